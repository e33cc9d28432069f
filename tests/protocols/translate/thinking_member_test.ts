import { assertEquals } from "@std/assert";
import type { Reasoning } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { promptOf, user } from "../canonical/messages.ts";
import { adapt, targetOf } from "./targets.ts";

interface Case {
  thinking: JsonObject;
  /** Other reasoning options of the request. */
  others?: Reasoning;
  reasoning: Reasoning | undefined;
  dropped?: string[];
}

const CASES: Case[] = [
  {
    thinking: { type: "enabled", budget_tokens: 2048 },
    reasoning: { mode: "manual", budgetTokens: 2048 },
  },
  { thinking: { type: "enabled" }, reasoning: { mode: "adaptive" } },
  { thinking: { type: "enabled", budget_tokens: -1.5 }, reasoning: { mode: "adaptive" } },
  { thinking: { type: "adaptive", display: "omitted" }, reasoning: { mode: "adaptive", display: "omitted" } },
  { thinking: { type: "disabled" }, reasoning: { mode: "off" } },
  // DeepSeek's clients send both.
  { thinking: { type: "enabled" }, others: { effort: "high" }, reasoning: { effort: "high" } },
  {
    thinking: { type: "disabled" },
    others: { mode: "off", effort: "none" },
    reasoning: { mode: "off", effort: "none" },
  },
  { thinking: { type: "disabled" }, others: { effort: "high" }, reasoning: { effort: "high" }, dropped: ["thinking"] },
  {
    thinking: { type: "enabled", budget_tokens: 2048 },
    others: { effort: "high" },
    reasoning: { effort: "high" },
    dropped: ["thinking.budget_tokens"],
  },
  {
    thinking: { type: "enabled" },
    others: { display: "omitted" },
    reasoning: { display: "omitted", mode: "adaptive" },
  },
  // GLM's switch.
  {
    thinking: { type: "enabled", clear_thinking: false },
    reasoning: { mode: "adaptive" },
    dropped: ["thinking.clear_thinking"],
  },
  { thinking: { type: "unknown" }, reasoning: undefined, dropped: ["thinking"] },
];

Deno.test("`thinking` of a chat client is read for other protocols, and passed on to chat upstreams", () => {
  for (const { thinking, others, reasoning, dropped = [] } of CASES) {
    const request = promptOf([user("Hi")], {
      protocol: "chat",
      unknownMembers: { from: "chat", members: { thinking } },
      ...(others !== undefined && { reasoning: others }),
    });
    for (const kind of ["messages", "responses", "gemini"] as const) {
      const target = targetOf(kind);
      const { prompt } = adapt(request, target);
      const found = [prompt.reasoning, prompt.unknownMembers, target.dropped.names];
      assertEquals(found, [reasoning, undefined, dropped], JSON.stringify({ kind, thinking, others }));
    }
    const target = targetOf("chat");
    assertEquals(adapt(request, target).prompt.unknownMembers, request.unknownMembers);
    assertEquals(target.dropped.names, []);
  }
});

Deno.test("`thinking` is reported if the model does not reason, and if the client's protocol does not have it", () => {
  const members = { thinking: { type: "enabled" } };
  for (const [protocol, row] of [["chat", { reasoning: undefined }], ["responses", {}]] as const) {
    const target = targetOf("messages", { row });
    const request = promptOf([user("Hi")], { protocol, unknownMembers: { from: protocol, members } });
    assertEquals(adapt(request, target).prompt.reasoning, undefined);
    assertEquals(target.dropped.names, ["thinking"]);
  }
});
