import { assertEquals } from "@std/assert";
import { runToEnd } from "../../../lib/scheduler.ts";
import type { ContentBlock, Message, Reasoning, ToolChoice } from "../../../lib/protocols/canonical/types.ts";
import { dropUnreadableReasoning, fitReasoning } from "../../../lib/protocols/translate/fit_content.ts";
import { assistant, call, promptOf, result, user } from "../canonical/messages.ts";
import { targetOf } from "./targets.ts";

const OWN: ContentBlock = { type: "reasoning", text: "a", signature: { issuer: "anthropic", value: "s" } };
const OTHER: ContentBlock = { type: "reasoning", text: "b", signature: { issuer: "openai", value: "s" } };

Deno.test("a message with foreign reasoning only is dropped", () => {
  const { messages } = runToEnd(dropUnreadableReasoning(
    promptOf([user("a"), assistant(OTHER), user("b")]),
    targetOf("messages"),
  ));
  assertEquals(messages, [user("a"), user("b")]);
});

Deno.test("manual thinking is disabled where the vendor would reject it", () => {
  const bare = [user("a"), assistant("b", call("1")), user(result("1"))];
  const led = [user("a"), assistant(OWN, call("1")), user(result("1"))];
  const past = [...bare, assistant("done"), user("more")];
  const manual: Reasoning = { mode: "manual", budgetTokens: 2000 };
  const cases: [string, Message[], Reasoning, ToolChoice | undefined, string[]][] = [
    ["a call without reasoning", bare, manual, undefined, ["thinking"]],
    ["a call after reasoning", led, manual, undefined, []],
    ["only the last turn counts", past, manual, undefined, []],
    ["a forced tool", led, manual, { type: "tool", name: "tool" }, ["thinking"]],
    ["any tool forced", led, manual, { type: "required" }, ["thinking"]],
    ["a free choice", led, manual, { type: "auto" }, []],
    ["adaptive thinking takes both", bare, { mode: "adaptive" }, { type: "required" }, []],
    ["no thinking", bare, { mode: "off" }, { type: "required" }, []],
  ];
  for (const [claim, messages, reasoning, toolChoice, names] of cases) {
    const requested = promptOf(messages, {
      protocol: "messages",
      reasoning,
      ...(toolChoice !== undefined && { toolChoice }),
    });
    const target = targetOf("messages");
    const settled = fitReasoning(requested, target);
    assertEquals(settled.reasoning, names.length > 0 ? { mode: "off" } : reasoning, claim);
    assertEquals(target.dropped.names, names, claim);
    assertEquals(fitReasoning(requested, targetOf("chat")), requested, claim);
  }
});

Deno.test("an effort becomes manual thinking if the model has no other mode", () => {
  const requested = promptOf([user("a"), assistant(call("1")), user(result("1"))], { reasoning: { effort: "high" } });
  const manual = targetOf("messages", { row: { reasoning: { modes: ["manual"] } } });
  assertEquals(fitReasoning(requested, manual).reasoning, { mode: "off" });
  assertEquals(manual.dropped.names, ["reasoning_effort"]);
  assertEquals(fitReasoning(requested, targetOf("messages")), requested);
});
