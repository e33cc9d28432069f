import { assertEquals } from "@std/assert";
import { oneModel, startGateway } from "../../support/gateway.ts";
import { WHOLE } from "../../upstream/replies.ts";
import { json, startUpstream } from "../../upstream/mod.ts";

const FUNCTION = { name: "f", description: "d", input_schema: { type: "object" }, defer_loading: true };

/** Members of 2026 as Claude Code and the SDK send them, and an unknown one. */
const BODY = {
  model: "acme/one",
  max_tokens: 100,
  messages: [{ role: "user", content: "a" }],
  safeguards: [{ type: "dangerous_tool_use", classifier_context: { v: 1, permission_mode: "auto" } }],
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  tools: [{ type: "tool_search_tool_regex_20251119", name: "tool_search_tool_regex" }, FUNCTION],
  x_of_tomorrow: { a: 1 },
};

const BETAS = "context-management-2025-06-27,advanced-tool-use-2025-11-20,beta-of-tomorrow-2027-01-01";

const LOST = [
  "context_management",
  "defer_loading",
  "safeguards",
  "tools.tool_search_tool_regex_20251119",
  "x_of_tomorrow",
];

Deno.test("new members of messages and betas are passed on to an upstream of the same protocol", async () => {
  await using server = startUpstream(() => json(WHOLE.messages));
  await using gateway = startGateway(oneModel("messages", server.url));
  const response = await gateway.ask("messages", BODY, { headers: { "anthropic-beta": BETAS } });
  await response.text();
  assertEquals([response.status, response.headers.get("x-sluice-dropped")], [200, null]);
  const [sent] = server.requests;
  assertEquals([sent?.json, sent?.headers.get("anthropic-beta")], [{ ...BODY, model: "real-one" }, BETAS]);
});

for (const to of ["chat", "responses"] as const) {
  Deno.test(`new members of messages are named if the upstream has the ${to} protocol, and the rest is sent`, async () => {
    await using server = startUpstream(() => json(WHOLE[to]));
    await using gateway = startGateway(oneModel(to, server.url));
    const response = await gateway.ask("messages", BODY, { headers: { "anthropic-beta": BETAS } });
    await response.text();
    const dropped = response.headers.get("x-sluice-dropped")?.split(", ") ?? [];
    assertEquals([response.status, dropped.toSorted()], [200, LOST]);
    const [sent] = server.requests;
    assertEquals([sent?.json.tools.length, sent?.headers.get("anthropic-beta")], [1, null]);
    const text = JSON.stringify(sent?.json);
    const words = ["safeguards", "context_management", "tool_search", "defer_loading", "x_of_tomorrow"];
    assertEquals(words.filter((word) => text.includes(word)), []);
    // The log shows names of the protocol, and no text of the client.
    const [line] = gateway.requestLines;
    assertEquals(line?.dropped, "safeguards,context_management,other,defer_loading,tools.other");
  });
}
