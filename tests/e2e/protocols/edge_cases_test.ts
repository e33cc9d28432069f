/** Edge cases that need the whole gateway: headers, statuses, and everything beside translation. */
import { assert, assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { oneModel, startGateway } from "../../support/gateway.ts";
import { frames } from "../../upstream/frames.ts";
import { prompt, PROTOCOLS, WHOLE } from "../../upstream/replies.ts";
import { events, json, startUpstream } from "../../upstream/mod.ts";

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

Deno.test("a refusal of too large a limit names the member that the client sent", async () => {
  await using server = startUpstream(() => json(WHOLE.chat));
  await using gateway = startGateway(oneModel("chat", server.url));
  for (const name of ["max_tokens", "max_completion_tokens"]) {
    const response = await gateway.ask("chat", prompt("chat", { [name]: 1_000_000_000 }));
    const { error } = await response.json();
    assertEquals([response.status, error.param, error.message.split(":")[0]], [400, name, name]);
  }
});
