import { assertEquals, assertLess } from "@std/assert";
import { checkGrammar } from "../canonical/event_grammar.ts";
import { aggregateEvents, eventsOf } from "../../../lib/protocols/canonical/aggregate_events.ts";
import type {
  ContentBlock,
  EventTransform,
  FinishReason,
  Reply,
  ReplyEvent,
} from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import { removeCodeFence } from "../../../lib/protocols/translate/json_frame.ts";
import { chainTransforms, normalizeFinish } from "../../../lib/protocols/translate/restore_answer.ts";
import { enforceStopSequences, splitStopSequences } from "../../../lib/protocols/translate/stop_sequences.ts";
import { seeded } from "../../support/random.ts";
import { pieces } from "./random_prompt.ts";
import { call, promptOf, text } from "../canonical/messages.ts";
import { targetOf } from "./targets.ts";
import { workedMs } from "../../support/turns.ts";

function pass(events: readonly ReplyEvent[], transform: EventTransform): ReplyEvent[] {
  const grammar = checkGrammar();
  const passed = events.flatMap((event) => transform(event));
  passed.forEach((event) => grammar.push(event));
  grammar.end();
  return passed;
}

/** The answer's events, its text in the given pieces. */
function say(...texts: string[]): ReplyEvent[] {
  return [
    { type: "start", usage: { prompt: 7, input_cache_read: 2, completion: 1 } },
    { type: "open", index: 0, block: { type: "text" } },
    ...texts.map((text): ReplyEvent => ({ type: "delta", index: 0, text })),
    { type: "close", index: 0 },
    { type: "finish", reason: "end", usage: { prompt: 7, completion: 9 } },
  ];
}

Deno.test("stop sequences are split between upstream and gateway", () => {
  const cases: [string, string[], ReturnType<typeof targetOf>, string[], string[]][] = [
    ["all fit", ["a", "b"], targetOf("chat"), ["a", "b"], []],
    ["too many", ["a", "b", "c", "d", "e", "f"], targetOf("chat"), ["a", "b", "c", "d"], ["e", "f"]],
    ["none", ["a"], targetOf("responses"), [], ["a"]],
    ["white space", ["\n\n", "a"], targetOf("messages"), ["a"], ["\n\n"]],
    ["the model takes none", ["a"], targetOf("chat", { row: { supported_parameters: ["tools"] } }), [], ["a"]],
    ["twice the same", ["a", "a"], targetOf("chat"), ["a"], []],
  ];
  for (const [claim, stop, target, theirs, ours] of cases) {
    const shared = splitStopSequences(promptOf([], { stop }), target);
    assertEquals([shared.prompt.stop, shared.gatewayStops], [theirs, ours], claim);
    assertEquals(target.dropped.names, [], claim);
  }
  const target = targetOf("chat");
  assertEquals(
    splitStopSequences(promptOf([], { protocol: "messages", stop: ["", "\ud83d", "\ude00"] }), target).gatewayStops,
    [],
  );
  assertEquals(target.dropped.names, ["stop_sequences"]);
});

Deno.test("removeCodeFence() takes text out of the one fence around it", () => {
  const cases: [string, string][] = [
    ['```json\n{"a":1}\n```', '{"a":1}'],
    ["\n```\r\n[\n  1\n]\r\n```\n\n", "[\n  1\n]"],
    ['```json\n{"a":"``` \n```x"}\n```', '{"a":"``` \n```x"}'],
    ['```json\n{"a":', '{"a":'],
    [' {"a":"```json\n"}\n', ' {"a":"```json\n"}\n'],
    ["``` no fence", "``` no fence"],
    ["``", "``"],
    ["Here:\n```json\n{}\n```", "Here:\n```json\n{}\n```"],
  ];
  const random = seeded(5);
  for (const [content, left] of cases) {
    for (const cut of [[content], content.split(""), pieces(content, random)]) {
      assertEquals(aggregateEvents(pass(say(...cut), removeCodeFence())).blocks, [text(left)], content);
    }
  }
  const plain = say("{", '"a"', "}");
  assertEquals(pass(plain, removeCodeFence()), plain);
  const ms = workedMs();
  pass(say(...Array.from({ length: 50_000 }, () => "\n")), removeCodeFence());
  pass(say("```\n", ...Array.from({ length: 50_000 }, () => " ")), removeCodeFence());
  assertLess(workedMs() - ms, 5_000);
});

Deno.test("an answer ends at the first complete stop sequence", () => {
  const cases: [string, string[], string, string | undefined][] = [
    ["one END two", ["END"], "one ", "END"],
    ["one EN", ["END"], "one EN", undefined],
    ["ENEND", ["END"], "EN", "END"],
    ["abcd", ["abcd", "c"], "ab", "c"],
    ["abc", ["c", "bc"], "a", "bc"],
    ["END", ["END"], "", "END"],
    ["x😀y", ["😀"], "x", "😀"],
    ["a\n\nb", ["\n\n"], "a", "\n\n"],
    ["no stop here", ["###", "STOP"], "no stop here", undefined],
  ];
  const random = seeded(3);
  for (const [content, stops, left, stop] of cases) {
    for (const cut of [[content], [...content].flatMap((character) => character.split("")), pieces(content, random)]) {
      const events = pass(say(...cut), chainTransforms([enforceStopSequences(stops)]));
      const reply = aggregateEvents(events);
      assertEquals(reply.blocks, [text(left)], content);
      assertEquals(
        [reply.finish, reply.stopSequence],
        stop === undefined ? ["end", undefined] : ["stop_sequence", stop],
      );
      for (const event of events) if (event.type === "delta") assertEquals(event.text.isWellFormed(), true, content);
    }
  }
});

Deno.test("usage of a cut answer is the input reported at its start", () => {
  assertEquals(aggregateEvents(pass(say("a STOP"), enforceStopSequences(["STOP"]))).usage, {
    prompt: 7,
    input_cache_read: 2,
  });
});

Deno.test("text is held back only while it may begin a stop sequence", () => {
  const transform = enforceStopSequences(["STOP"]);
  const given = say("abcdef", "g", "ST", "OMP").slice(0, 6).map((event) => transform(event));
  assertEquals(given.slice(2).flat(), [
    { type: "delta", index: 0, text: "abc" },
    { type: "delta", index: 0, text: "d" },
    { type: "delta", index: 0, text: "ef" },
    { type: "delta", index: 0, text: "gST" },
  ]);
});

Deno.test("reasoning and arguments are not searched for stop sequences", () => {
  const reply: Reply = {
    blocks: [{ type: "reasoning", text: "STOP" }, {
      ...call("1"),
      type: "tool_call",
      id: "1",
      name: "t",
      arguments: '"STOP"',
    }],
    finish: "tool_use",
    usage: {},
  };
  assertEquals(aggregateEvents(pass(eventsOf(reply), enforceStopSequences(["STOP"]))), reply);
});

Deno.test("the finish reason follows from the calls", () => {
  const cases: [FinishReason, ContentBlock[], FinishReason][] = [
    ["end", [call("1")], "tool_use"],
    ["stop_sequence", [text("a"), call("1")], "tool_use"],
    ["refusal", [call("1")], "tool_use"],
    ["length", [call("1")], "length"],
    ["tool_use", [text("a")], "end"],
    ["tool_use", [], "end"],
    ["tool_use", [call("1", "")], "end"],
    ["tool_use", [call("1", " "), call("2")], "tool_use"],
    ["pause", [text("a")], "pause"],
    ["refusal", [text("a")], "refusal"],
  ];
  for (const [reported, blocks, meant] of cases) {
    const events = eventsOf({ blocks, finish: reported, stopSequence: "x", usage: {} });
    const reply = aggregateEvents(pass(events, normalizeFinish()));
    assertEquals(reply.finish, meant, reported);
    assertEquals(reply.stopSequence, undefined);
  }
});

Deno.test("calls without a name are dropped, and later indices move down", () => {
  const blocks = [text("a"), call("1", ""), call("2"), call("3", " "), text("b")];
  const events = pass(eventsOf({ blocks, finish: "tool_use", usage: {} }), normalizeFinish());
  assertEquals(aggregateEvents(events).blocks, [text("a"), call("2"), text("b")]);
});

Deno.test("blank arguments of a function become an empty object; blank input of a custom tool stays", () => {
  const cases: [string[], boolean, string][] = [
    [[], false, "{}"],
    [[" ", "\n"], false, "{}"],
    [[" ", '{"a"', ":1}"], false, ' {"a":1}'],
    [[], true, ""],
    [[" "], true, " "],
  ];
  for (const [content, custom, meant] of cases) {
    const events: ReplyEvent[] = [
      { type: "start" },
      { type: "open", index: 0, block: { type: "tool_call", id: "1", name: "t", ...(custom && { custom }) } },
      ...content.map((text): ReplyEvent => ({ type: "delta", index: 0, text })),
      { type: "close", index: 0 },
      { type: "finish", reason: "tool_use", usage: {} },
    ];
    const passed = pass(events, normalizeFinish());
    assertEquals(passed.flatMap((event) => event.type === "delta" ? [event.text] : []).join(""), meant);
  }
});

Deno.test("a chain ends with an error, too", () => {
  const error: ReplyEvent = { type: "error", error: new GatewayError("upstream", "Gone") };
  const transform = chainTransforms([normalizeFinish()]);
  assertEquals([...transform({ type: "start" }), ...transform(error)], [{ type: "start" }, error]);
  assertEquals(transform(error), []);
});

Deno.test("a whole answer that ends at a stop sequence keeps the reported input", () => {
  const reply: Reply = {
    blocks: [text("one END two")],
    finish: "end",
    usage: { prompt: 7, input_cache_read: 2, completion: 9 },
  };
  const { usage, finish } = aggregateEvents(pass(eventsOf(reply), enforceStopSequences(["END"])));
  assertEquals([usage, finish], [{ prompt: 7, input_cache_read: 2 }, "stop_sequence"]);
});

Deno.test("blank arguments without end take linear time", () => {
  const transform = normalizeFinish();
  transform({ type: "open", index: 0, block: { type: "tool_call", id: "c", name: "f" } });
  const start = workedMs();
  for (let count = 0; count < 200_000; count++) transform({ type: "delta", index: 0, text: " " });
  assertLess(workedMs() - start, 5_000);
});
