import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import type { Message } from "../../lib/protocols/canonical/types.ts";
import { truncatePrompt } from "../../lib/request/fit_context.ts";
import { assistant, call, promptOf, result, system, user } from "../protocols/canonical/messages.ts";

/** Every message is 10 tokens, everything else 5. Returns the indices that are kept. */
function kept(messages: Message[], limit: number): number[] | undefined {
  const prompt = promptOf(messages);
  const truncated = truncatePrompt(prompt, { fixed: 5, messages: messages.map(() => 10) }, limit);
  if (truncated === undefined) return undefined;
  const left = truncated.prompt.messages;
  assertEquals(truncated.removed, 10 * (messages.length - left.length));
  assert(5 + 10 * left.length <= limit);
  return left.map((message) => messages.indexOf(message));
}

const talk = [user("1"), assistant("1"), user("2"), assistant("2"), user("3")];
const agent = [
  system("s"),
  user("1"),
  assistant(call("a"), call("b")),
  user(result("a")),
  user(result("b")),
  assistant("1"),
  user("2"),
  assistant(call("c")),
  user(result("c"), "and this"),
];

Deno.test("truncate() drops the oldest turns until the rest fits", () => {
  const cases: [string, Message[], number, number[] | undefined][] = [
    ["all fit", talk, 55, [0, 1, 2, 3, 4]],
    ["one turn too many", talk, 54, [2, 3, 4]],
    ["exactly", talk, 35, [2, 3, 4]],
    ["two turns too many", talk, 34, [4]],
    ["the last turn fits", talk, 15, [4]],
    ["the last turn does not fit", talk, 14, undefined],
    ["nothing", [], 5, []],
    ["nothing does not fit", [], 4, undefined],
    ["one turn of tools", agent, 94, [0, 6, 7, 8]],
    ["the last turn of tools", agent, 44, undefined],
    ["system messages stay", [user("1"), system("s"), assistant("1"), user("2"), system("t")], 54, [1, 3, 4]],
    ["a prefill stays", [...talk, assistant("3:")], 25, [4, 5]],
    ["an opening of the assistant's goes first", [assistant("0"), user("1"), assistant("1"), user("2")], 40, [1, 2, 3]],
    ["one thing in two messages", [user("0"), assistant("0"), user("1"), user("1"), assistant("1")], 34, undefined],
    ["one thing in two messages, a turn later", [...talk.slice(0, 2), user("2"), user("2")], 30, [2, 3]],
    [
      "new text after results",
      [user("1"), assistant(call("a")), user(result("a")), user("2")],
      44,
      [3],
    ],
    [
      "text between a call and its result",
      [user("1"), assistant(call("a")), user("wait"), user(result("a")), assistant("1"), user("2")],
      64,
      [5],
    ],
    [
      "pairs that overlap",
      [
        user("1"),
        assistant(call("a")),
        user("2"),
        assistant(call("b")),
        user(result("b")),
        assistant("2"),
        user("3"),
        user(result("a")),
      ],
      84,
      undefined,
    ],
    [
      "a result without a call",
      [user(result("x")), assistant("1"), user("2")],
      30,
      [2],
    ],
  ];
  for (const [name, messages, limit, expected] of cases) assertEquals(kept(messages, limit), expected, name);
});

Deno.test("truncate() never separates a call from its result", () => {
  for (let limit = 0; limit <= 100; limit += 5) {
    const left = kept(agent, limit)?.map((index) => agent[index] as Message) ?? [];
    const ids = (type: "tool_call" | "tool_result") =>
      left.flatMap(({ blocks }) =>
        blocks.flatMap((block) =>
          block.type === "tool_call" && type === block.type
            ? [block.id]
            : block.type === "tool_result" && type === block.type
            ? [block.callId]
            : []
        )
      );
    assertEquals(ids("tool_call"), ids("tool_result"));
  }
});

Deno.test("truncate() leaves a fitting prompt unchanged", () => {
  const prompt = promptOf(talk);
  assertStrictEquals(truncatePrompt(prompt, { fixed: 0, messages: [1, 1, 1, 1, 1] }, 5)?.prompt, prompt);
});

Deno.test("truncate() decides by the size of each message", () => {
  const counts = { fixed: 1, messages: [50, 1, 1, 1, 1] };
  assertEquals(truncatePrompt(promptOf(talk), counts, 10), {
    prompt: promptOf(talk.slice(2)),
    removed: 51,
  });
});
