/** Edge cases that need the whole gateway: headers, statuses, and everything beside translation. */
import { assert, assertEquals } from "@std/assert";
import { isObject, type JsonObject, parseJson } from "../../../lib/json/mod.ts";
import { oneModel, startGateway } from "../../support/gateway.ts";
import { frames } from "../../upstream/frames.ts";
import { errorBody, errorFrame, prompt, PROTOCOLS, STREAMED, SUCCESS, WHOLE } from "../../upstream/replies.ts";
import { events, json, startUpstream } from "../../upstream/mod.ts";

Deno.test("expired signatures are left out in a second try", async () => {
  const words = "messages.1.content.0: Invalid `signature` in `thinking` block";
  await using server = startUpstream((request) =>
    request.body.includes("old-token")
      ? json(errorBody("messages", words, "invalid_request_error"), { status: 400 })
      : json(WHOLE.messages)
  );
  await using gateway = startGateway(oneModel("messages", server.url));
  const thinking = { type: "thinking", thinking: "Plan.", signature: "old-token" };
  const response = await gateway.ask(
    "messages",
    prompt("messages", {
      messages: [
        { role: "user", content: "a" },
        { role: "assistant", content: [thinking, { type: "text", text: "b" }] },
        { role: "user", content: "c" },
      ],
    }),
  );
  assertEquals([response.status, server.requests.length], [200, 2], await response.text());
  assert(!server.requests[1]?.body.includes("thinking"));
});

Deno.test("a beta's body member and header reach its vendor together, and no other vendor", async () => {
  const headers = { "anthropic-beta": "context-management-2025-06-27" };
  const body = prompt("messages", { context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } });
  for (const protocol of PROTOCOLS) {
    await using server = startUpstream(() => json(WHOLE[protocol]));
    await using gateway = startGateway(oneModel(protocol, server.url));
    const response = await gateway.ask("messages", body, { headers });
    assertEquals(response.status, 200, await response.text());
    const [request] = server.requests;
    const own = protocol === "messages";
    assertEquals(request?.headers.get("anthropic-beta") ?? null, own ? headers["anthropic-beta"] : null, protocol);
    assertEquals(request?.body.includes("context_management"), own, protocol);
    assertEquals(response.headers.get("x-sluice-dropped"), own ? null : "context_management", protocol);
  }
});

Deno.test("an error in place of the first event is an HTTP error for every client", async () => {
  for (const from of PROTOCOLS) {
    await using server = startUpstream(() => events(errorFrame(from, "Overloaded", "overloaded_error")));
    await using gateway = startGateway(oneModel(from, server.url));
    for (const client of PROTOCOLS) {
      const response = await gateway.ask(client, prompt(client, { stream: true }));
      const text = await response.text();
      assert(response.status >= 500 && response.headers.get("content-type")?.includes("json"), `${from} to ${client}`);
      assert(isObject(parseJson(text)) && !text.includes(SUCCESS[client]), `${from} to ${client}: ${text}`);
    }
  }
});

Deno.test("a truncated stream ends with the client protocol's own error", async () => {
  for (const from of PROTOCOLS) {
    const said = STREAMED[from].findIndex((frame) => frame.includes("Hello"));
    const cut = STREAMED[from].slice(0, said + 1).join("");
    await using server = startUpstream(() => events(cut));
    await using gateway = startGateway(oneModel(from, server.url));
    for (const client of PROTOCOLS) {
      const text = await (await gateway.ask(client, prompt(client, { stream: true }))).text();
      const last = { chat: 'data: {"error"', messages: "event: error", responses: "event: response.failed" }[client];
      assert(text.includes(last), `${from} to ${client}: ${text}`);
      assert(!text.includes("message_stop") && !text.includes("response.completed"), `${from} to ${client}`);
    }
  }
});

Deno.test("the size of the input is reported at the start, including system text and tools", async () => {
  // An upstream without final usage: its last interim report is used.
  const { opening, pieces, ending } = frames("chat", ["Hello"], "missing");
  await using server = startUpstream(() => events([...opening, ...pieces, ...ending].join("")));
  await using gateway = startGateway(oneModel("chat", server.url));
  const count = async (more: JsonObject): Promise<number> => {
    const text = await (await gateway.ask("messages", prompt("messages", { stream: true, ...more }))).text();
    return Number(/"message_start".*?"input_tokens":(\d+)/.exec(text)?.[1]);
  };
  const plain = await count({});
  assert(plain > 0);
  const full = await count({
    system: "You answer in the fewest words that will do.",
    tools: [{ name: "get_weather", description: "Tells the weather", input_schema: { type: "object" } }],
  });
  assert(full > plain + 10, `${full} tokens with system text and tools, ${plain} without`);
});
