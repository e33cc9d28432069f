import { assertEquals, assertNotEquals, fail } from "@std/assert";
import type { ContentBlock, Message, Prompt } from "../../../lib/protocols/canonical/types.ts";
import { orderMessages } from "../../../lib/protocols/translate/order_messages.ts";
import { assistant, call, promptOf, result, system, user } from "../canonical/messages.ts";
import { type Kind, picture, targetOf } from "./targets.ts";
import { workedMs } from "../../support/turns.ts";

const MISSING = "There is no result: the call was not carried out";
const ORPHAN = "Result of a tool call that is no longer part of this conversation:";

function order(messages: Message[], kind: Kind = "messages"): Message[] {
  return orderMessages(promptOf(messages), targetOf(kind)).messages;
}

function missing(callId: string): ContentBlock {
  return { type: "tool_result", callId, blocks: [{ type: "text", text: MISSING }], isError: true };
}

Deno.test("messages are put in legal order", () => {
  const cases: [string, Message[], Message[]][] = [
    ["what is in order stays", [system("s"), user("a"), assistant("b"), user("c")], [
      system("s"),
      user("a"),
      assistant("b"),
      user("c"),
    ]],
    ["one role's turns are merged", [user("a"), user("b"), assistant("c"), assistant(call("1")), user(result("1"))], [
      user("a", "b"),
      assistant("c", call("1")),
      user(result("1")),
    ]],
    [
      "results come first, in the order of the calls",
      [user("a"), assistant(call("1"), call("2")), user("wait", result("2", "two")), user(result("1", "one"), "go on")],
      [
        user("a"),
        assistant(call("1"), call("2")),
        user(result("1", "one"), result("2", "two"), "wait", "go on"),
      ],
    ],
    ["a call without a result gets one", [user("a"), assistant(call("1"), call("2")), user(result("2"), "b")], [
      user("a"),
      assistant(call("1"), call("2")),
      user(missing("1"), result("2"), "b"),
    ]],
    ["also the last one", [user("a"), assistant("b", call("1"))], [
      user("a"),
      assistant("b", call("1")),
      user(missing("1")),
    ]],
    ["a result without a call is text", [user(result("1", "x", picture)), assistant("b"), user("c")], [
      user(ORPHAN, "x", picture),
      assistant("b"),
      user("c"),
    ]],
    ["a result that comes a turn too late is text", [
      user("a"),
      assistant(call("1")),
      user("b"),
      assistant("c"),
      user(result("1", "x")),
    ], [user("a"), assistant(call("1")), user(missing("1"), "b"), assistant("c"), user(ORPHAN, "x")]],
    ["a second result is text", [user("a"), assistant(call("1")), user(result("1", "x"), result("1", "y"))], [
      user("a"),
      assistant(call("1")),
      user(result("1", "x"), ORPHAN, "y"),
    ]],
    ["the user begins", [assistant("hello"), user("a")], [user("."), assistant("hello"), user("a")]],
    ["system messages follow the user's turn", [
      user("a"),
      assistant(call("1")),
      system("s"),
      user(result("1")),
      user("b"),
    ], [user("a"), assistant(call("1")), user(result("1"), "b"), system("s")]],
    ["the system's last word is the user's", [user("a"), assistant("b"), system("s"), system("t")], [
      user("a"),
      assistant("b"),
      user("s", "t"),
    ]],
    ["nothing but a system message", [system("s")], [system("s"), user(".")]],
  ];
  for (const [claim, messages, expected] of cases) assertEquals(order(messages), expected, claim);
});

Deno.test("members of a message stay with it, even if its blocks are separated", () => {
  const unknownMembers = { from: "chat" as const, members: { name: "n" } };
  assertEquals(
    order([assistant(call("1")), { ...user(result("1")), unknownMembers }, { ...user("x"), unknownMembers }], "chat"),
    [assistant(call("1")), { ...user(result("1")), unknownMembers }, { ...user("x"), unknownMembers }],
  );
});

Deno.test("a prefill for Anthropic ends without white space", () => {
  const target = targetOf("messages with prefill");
  assertEquals(orderMessages(promptOf([user("a"), assistant("x", "b \n")]), target).messages, [
    user("a"),
    assistant("x", "b"),
  ]);
  assertEquals(target.dropped.names, []);
});

Deno.test("a final assistant message is unfinished only where its client can want the rest of it", () => {
  const messages = [user("a"), assistant("b")];
  const cases: [string, Partial<Prompt>, string, string[]][] = [
    ["text", {}, "Your last message is unfinished.", ["prefill"]],
    ["JSON", { format: { type: "json_object" } }, "Your last message is finished.", []],
    ["a call", { toolChoice: { type: "required" } }, "Your last message is finished.", []],
    ["responses", { protocol: "responses" }, "Your last message is finished.", []],
  ];
  for (const [name, more, begin, dropped] of cases) {
    const target = targetOf("messages");
    assertEquals(endOf(orderMessages(promptOf(messages, more), target)), `user: ${begin}`, name);
    assertEquals(target.dropped.names, dropped, name);
  }
});

Deno.test("Anthropic gets no prefill together with a schema or manual thinking, which it refuses", () => {
  const messages = [user("a"), assistant("b")];
  const schema: Partial<Prompt> = { format: { type: "json_schema", schema: { type: "object" } } };
  const row = { supported_parameters: ["structured_outputs"] };
  const cases: [string, Partial<Prompt>, { row?: Record<string, unknown> }, string, string[]][] = [
    ["nothing", {}, { row }, "assistant: b", []],
    ["JSON in words", { format: { type: "json_object" } }, { row }, "assistant: b", []],
    ["a schema in words", schema, { row: { supported_parameters: [] } }, "assistant: b", []],
    ["a schema", schema, { row }, "user: Your last message is finished.", []],
    ["thinking", { reasoning: { mode: "manual" } }, { row }, "user: Your last message is unfinished.", ["prefill"]],
    ["no thinking", { reasoning: { mode: "off" } }, { row }, "assistant: b", []],
  ];
  for (const [name, more, facts, end, dropped] of cases) {
    const target = targetOf("messages with prefill", facts);
    assertEquals(endOf(orderMessages(promptOf(messages, more), target)), end, name);
    assertEquals(target.dropped.names, dropped, name);
  }
});

/** Role and first sentence of the last message. */
function endOf({ messages }: Prompt): string {
  const { role, blocks } = messages.at(-1) ?? fail();
  const [block] = blocks;
  return `${role}: ${block?.type === "text" ? /^[^.]*\.?/.exec(block.text)?.[0] : undefined}`;
}

Deno.test("empty ids match nothing, and repeated ids are separated", () => {
  const messages = order([
    user("a"),
    assistant(call("")),
    user(result("", "x")),
    assistant(call("call_0"), call("call_0")),
    user(result("call_0", "first"), result("call_0", "second")),
    assistant(call("call_0")),
    user(result("call_0", "third")),
  ]);
  const ids = messages.flatMap(({ blocks }) => blocks.flatMap((block) => block.type === "tool_call" ? [block.id] : []));
  assertEquals([new Set(ids).size, ids[1]], [4, "call_0"]);
  assertNotEquals(ids[0], "");
  assertEquals(messages[2], user(missing(ids[0] ?? ""), ORPHAN, "x"));
  assertEquals(messages[4], user(result(ids[1] ?? "", "first"), result(ids[2] ?? "", "second")));
  assertEquals(messages[6], user(result(ids[3] ?? "", "third")));
});

Deno.test("tens of thousands of calls are ordered in linear time", () => {
  const count = 20_000;
  const repeat = (of: (at: number) => Message) => Array.from({ length: count }, (_, at) => of(at));
  const shapes: [string, Message[]][] = [
    ["of one id", [user("a"), { role: "assistant", blocks: repeat(() => assistant(call("c"))).flatMap(blocksOf) }]],
    ["of one id, with results", [
      user("a"),
      ...repeat(() => assistant(call("c"))),
      ...repeat(() => user(result("c"))),
    ]],
    ["each in a message", [
      user("a"),
      ...repeat((at) => assistant(call(`c${at}`))),
      ...repeat((at) => user(result(`c${at}`))),
    ]],
  ];
  for (const [name, messages] of shapes) {
    for (const kind of ["chat", "messages"] as const) {
      const start = workedMs();
      order(messages, kind);
      const ms = workedMs() - start;
      // About 100, and 20,000 or more with a step that is quadratic.
      assertEquals(ms < 8_000, true, `${name}, ${kind}: ${ms} ms`);
    }
  }
});

function blocksOf({ blocks }: Message): ContentBlock[] {
  return blocks;
}
