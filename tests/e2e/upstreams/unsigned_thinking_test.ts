import { assert, assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { oneModel, startGateway } from "../../support/gateway.ts";
import { prompt, WHOLE } from "../../upstream/replies.ts";
import { json, startUpstream } from "../../upstream/mod.ts";

/** A conversation whose thinking comes back as some clients keep it. */
function conversation(thinking: JsonObject): JsonObject {
  return prompt("messages", {
    messages: [
      { role: "user", content: "Hello" },
      {
        role: "assistant",
        content: [{ type: "thinking", thinking: "Hm.", ...thinking }, { type: "text", text: "Yes" }],
      },
      { role: "user", content: "Go on" },
    ],
  });
}

const UNSIGNED: JsonObject[] = [{}, { signature: null }, { signature: "" }];

Deno.test("unsigned thinking is accepted by targets that need no signature", async () => {
  await using server = startUpstream(() => json(WHOLE.chat));
  await using gateway = startGateway(oneModel("chat", server.url));
  for (const thinking of UNSIGNED) {
    for (const model of ["acme/one", "sluice/echo"]) {
      const response = await gateway.ask("messages", { ...conversation(thinking), model });
      assertEquals(response.status, 200, await response.text());
    }
  }
});

Deno.test("a target that needs a signature gets the request without the thinking, which is named", async () => {
  const refusal = {
    type: "error",
    error: { type: "invalid_request_error", message: "messages.1.content.0.thinking.signature: Field required" },
  };
  await using server = startUpstream(({ body }) =>
    body.includes('"Hm."') ? json(refusal, { status: 400 }) : json(WHOLE.messages)
  );
  await using gateway = startGateway(oneModel("messages", server.url));
  const response = await gateway.ask("messages", conversation({}));
  assertEquals(response.status, 200, await response.text());
  assert(
    response.headers.get("x-sluice-dropped")?.includes("messages.thinking"),
    String(response.headers.get("x-sluice-dropped")),
  );
});

Deno.test("a stream of unsigned thinking ends with an empty signature", async () => {
  const chunk = (delta: JsonObject, finish: string | null = null) =>
    `data: ${
      JSON.stringify({
        id: "c",
        object: "chat.completion.chunk",
        created: 1,
        model: "m",
        choices: [{ index: 0, delta, finish_reason: finish }],
      })
    }\n\n`;
  const body = chunk({ role: "assistant", reasoning_content: "Hm." }) + chunk({ content: "Yes" }) + chunk({}, "stop") +
    "data: [DONE]\n\n";
  await using server = startUpstream(() => ({ headers: { "content-type": "text/event-stream" }, body }));
  await using gateway = startGateway(oneModel("chat", server.url));
  const text = await (await gateway.ask("messages", prompt("messages", { stream: true }))).text();
  const events = text.split("\n").filter((line) => line.startsWith("data: ")).map((line) => JSON.parse(line.slice(6)));
  const thinking = events.filter(({ index }) => index === 0).map(({ type, delta }) => delta?.type ?? type);
  assertEquals(thinking, ["content_block_start", "thinking_delta", "signature_delta", "content_block_stop"]);
});
