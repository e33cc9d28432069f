import { assert, assertEquals, assertLess, assertLessOrEqual } from "@std/assert";
import { aggregateEvents } from "../../../lib/protocols/canonical/aggregate_events.ts";
import { checkGrammar } from "../../protocols/canonical/event_grammar.ts";
import type { ContentBlockOf, Reply, ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import { loadTokenCounter } from "../../../lib/o200k/mod.ts";
import type { PlannedAnswer } from "../../../lib/upstreams/embedded/plan_answer.ts";
import { emitAnswer, type EmitLimits } from "../../../lib/upstreams/embedded/emit_answer.ts";
import { signReasoning } from "../../../lib/upstreams/embedded/thinking.ts";

const counter = await loadTokenCounter();

function eventsOf(planned: Partial<PlannedAnswer>, limits: Partial<EmitLimits> = {}): ReplyEvent[] {
  const steps = emitAnswer({ text: "", calls: [], ...planned }, {
    maxTokens: 1_000_000,
    stop: [],
    inputTokens: 3,
    ...limits,
  }, counter);
  const events = [...steps].filter((event) => event !== undefined);
  const grammar = checkGrammar();
  for (const event of events) grammar.push(event);
  grammar.end();
  return events;
}

function replyOf(planned: Partial<PlannedAnswer>, limits: Partial<EmitLimits> = {}): Reply {
  return aggregateEvents(eventsOf(planned, limits));
}

function call(name: string, text: string): ContentBlockOf<"tool_call"> {
  return { type: "tool_call", id: `call_${name}`, name, arguments: text };
}

const texts = [
  "Hello, world!",
  "  leading and trailing  \n",
  "Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich",
  "你好，世界。日本語テキスト",
  "👩‍👩‍👧‍👦 family 😀😀 𝕏 🇨🇭",
  "a lone \ud83d surrogate",
  'function f() {\n\treturn "x".repeat(12345);\n}\r\n\r\n\n',
  "<|endoftext|>",
];

Deno.test("emitAnswer() emits one token per delta, and counts like the tokenizer", () => {
  for (const text of texts) {
    const events = eventsOf({ text });
    const deltas = events.flatMap((event) => event.type === "delta" ? [event.text] : []);
    assertEquals(deltas, counter.split(text), text);
    const { blocks, usage, finish } = aggregateEvents(events);
    assertEquals(blocks, [{ type: "text", text }]);
    assertEquals(usage, { prompt: 3, completion: counter.count(text), reasoning: 0 }, text);
    assertEquals(finish, "end");
  }
});

Deno.test("emitAnswer() counts a long text like the tokenizer, with pauses", async () => {
  const text = [...texts, "12345 6 789 abc123def", "...\n/ \n\n  x  \t y"].join(" ").repeat(600);
  const steps = [...emitAnswer({ text, calls: [] }, { maxTokens: 1e9, stop: [], inputTokens: 0 }, counter)];
  const deltas = steps.flatMap((step) => step?.type === "delta" ? [step.text] : []);
  assertEquals(deltas.join(""), text);
  const finish = steps.at(-1);
  assertEquals(finish?.type === "finish" && finish.usage.completion, await counter.countLong(text));
  assertLess(text.length / 8192, steps.filter((step) => step === undefined).length);
});

Deno.test("emitAnswer() emits a long text without a boundary completely", () => {
  for (const unit of ["a", "😀"]) {
    const text = unit.repeat(40_000);
    assertEquals(replyOf({ text }).blocks, [{ type: "text", text }]);
  }
});

Deno.test("emitAnswer() stops after exactly as many tokens as allowed", () => {
  const text = "One two three four five, six seven.";
  const tokens = counter.split(text);
  for (let maxTokens = 0; maxTokens <= tokens.length + 1; maxTokens++) {
    const { blocks, finish, usage } = replyOf({ text }, { maxTokens });
    const cut = tokens.slice(0, maxTokens).join("");
    assertEquals(blocks, maxTokens === 0 ? [] : [{ type: "text", text: cut }]);
    assertEquals(finish, maxTokens < tokens.length ? "length" : "end");
    assertEquals(usage.completion, Math.min(maxTokens, tokens.length));
    assertEquals(counter.count(cut), usage.completion);
  }
});

Deno.test("emitAnswer() never splits a character", () => {
  const text = "𝕏👩‍👩‍👧‍👦";
  for (let maxTokens = 0; maxTokens <= counter.count(text); maxTokens++) {
    const { blocks, usage } = replyOf({ text }, { maxTokens });
    const cut = blocks[0]?.type === "text" ? blocks[0].text : "";
    assert(cut.isWellFormed() && text.startsWith(cut), cut);
    assertLessOrEqual(usage.completion, maxTokens);
    assertEquals(usage.completion, counter.count(cut));
  }
});

Deno.test("emitAnswer() spends tokens on reasoning first, and signs the emitted part", () => {
  const reasoning = { text: "I will think about it.", hidden: false };
  const thought = counter.split(reasoning.text);
  for (let maxTokens = 0; maxTokens <= thought.length + 2; maxTokens++) {
    const { blocks, finish, usage } = replyOf({ reasoning, text: "Yes." }, { maxTokens });
    const words = thought.slice(0, maxTokens).join("");
    const rest = counter.split("Yes.").slice(0, Math.max(0, maxTokens - thought.length)).join("");
    assertEquals(blocks, [
      ...(words === "" ? [] : [{ type: "reasoning" as const, text: words, signature: signReasoning(words) }]),
      ...(rest === "" ? [] : [{ type: "text" as const, text: rest }]),
    ]);
    assertEquals(finish, rest === "Yes." ? "end" : "length");
    assertEquals(usage, { prompt: 3, completion: maxTokens, reasoning: Math.min(maxTokens, thought.length) });
  }
});

Deno.test("emitAnswer() hides the text of hidden reasoning, and counts it", () => {
  const text = "I will think about it.";
  const { blocks, usage } = replyOf({ reasoning: { text, hidden: true }, text: "Yes." });
  assertEquals(blocks, [
    { type: "reasoning", hidden: true, text: "", signature: signReasoning(text) },
    { type: "text", text: "Yes." },
  ]);
  assertEquals(usage.reasoning, counter.count(text));
  assertEquals(usage.completion, counter.count(text) + counter.count("Yes."));
});

Deno.test("emitAnswer() stops before the earliest stop sequence", () => {
  const cases: [string, string[], string, string | undefined][] = [
    ["abc END def", ["END"], "abc ", "END"],
    ["abc END def", ["def", "END"], "abc ", "END"],
    ["abc END def", ["EN", "END"], "abc ", "EN"],
    ["abc END def", ["END", "EN"], "abc ", "END"],
    ["END", ["END"], "", "END"],
    ["abc", ["end", ""], "abc", undefined],
    ["one\n\ntwo", ["\n\n"], "one", "\n\n"],
  ];
  for (const [text, stop, words, sequence] of cases) {
    const reply = replyOf({ text, calls: [] }, { stop });
    assertEquals(reply.blocks, words === "" ? [] : [{ type: "text", text: words }]);
    assertEquals([reply.finish, reply.stopSequence], [sequence === undefined ? "end" : "stop_sequence", sequence]);
    assertEquals(reply.usage.completion, counter.count(words));
  }
});

Deno.test("emitAnswer() searches stop sequences in visible text only, and calls nothing after one", () => {
  const calls = [call("stop", '{"a":"stop"}')];
  const reasoning = { text: "I will stop.", hidden: false };
  assertEquals(replyOf({ reasoning, calls, text: "go" }, { stop: ["stop"] }).finish, "tool_use");
  const stopped = replyOf({ calls, text: "please stop now" }, { stop: ["stop"] });
  assertEquals([stopped.finish, stopped.blocks], ["stop_sequence", [{ type: "text", text: "please " }]]);
});

Deno.test("emitAnswer() ends at the limit or the stop sequence, whichever is first", () => {
  const text = "one two three four";
  assertEquals(replyOf({ text }, { stop: ["four"], maxTokens: 2 }).finish, "length");
  assertEquals(replyOf({ text }, { stop: ["two"], maxTokens: 2 }).finish, "stop_sequence");
});

Deno.test("emitAnswer() counts a call by name and arguments, and omits one that does not fit", () => {
  const calls = [call("first", '{"city":"Paris"}'), call("second", "{}")];
  const cost = calls.map(({ name, arguments: text }) => counter.count(name) + counter.count(text));
  const [one = 0, two = 0] = cost;
  for (let maxTokens = 0; maxTokens <= one + two; maxTokens++) {
    const fit = maxTokens === one + two ? 2 : maxTokens >= one ? 1 : 0;
    const { blocks, finish, usage } = replyOf({ calls }, { maxTokens });
    assertEquals(blocks, calls.slice(0, fit));
    assertEquals(finish, fit === 2 ? "tool_use" : "length");
    assertEquals(usage.completion, [0, one, one + two][fit]);
  }
});

Deno.test("emitAnswer() writes custom calls and namespaces", () => {
  const custom: ContentBlockOf<"tool_call"> = { ...call("a", ""), custom: true, namespace: "n" };
  const { blocks, usage } = replyOf({ calls: [custom] });
  assertEquals(blocks, [custom]);
  assertEquals(usage.completion, counter.count("a") + counter.count("n"));
});
