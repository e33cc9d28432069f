import { assert, assertEquals, assertGreater, assertLessOrEqual, assertRejects } from "@std/assert";
import { UnsupportedParameters } from "../../../lib/protocols/canonical/unsupported_parameters.ts";
import { aggregateEvents } from "../../../lib/protocols/canonical/aggregate_events.ts";
import { checkGrammar } from "../../protocols/canonical/event_grammar.ts";
import type { ContentBlock, Message, Prompt, Reply, ToolChoice } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import { countReply } from "../../../lib/billing/count_prompt.ts";
import { loadTokenCounter } from "../../../lib/o200k/mod.ts";
import { NOTHING } from "../../../lib/upstreams/embedded/plan_answer.ts";
import { createEmbedded } from "../../../lib/upstreams/embedded/mod.ts";
import { assistant, call, promptOf, result, system, user } from "../../protocols/canonical/messages.ts";
import { seeded } from "../../support/random.ts";
import { rounds } from "../../support/skip.ts";
import { callOf, echoFeed, echoModel, eventsOf, png, tool } from "./prompts.ts";

async function replyOf(messages: Message[], more: Partial<Prompt> = {}): Promise<Reply> {
  return aggregateEvents(await eventsOf(promptOf(messages, more)));
}

/** The answer as text: its text, then `name arguments` of each call. */
async function wordsOf(messages: Message[], more: Partial<Prompt> = {}): Promise<string[]> {
  const { blocks } = await replyOf(messages, more);
  return blocks.map((block) =>
    block.type === "text" ? block.text : block.type === "tool_call" ? `${block.name} ${block.arguments}` : block.type
  );
}

Deno.test("echo answers in text", async () => {
  const cases: [string, Message[], string][] = [
    ["the last message", [system("s"), user("one"), assistant("one"), user("two")], "two"],
    ["images in place", [user("see", png(64, 48), "ok?")], "see\n[image 64x48 png]\nok?"],
    ["results", [user("q"), assistant(call("a"), call("b")), user(result("a", "1"), result("b", "2"))], "1\n2"],
    ["results and text", [assistant(call("a")), user(result("a", "1"), "and?")], "1\nand?"],
    ["prefill", [user("hi"), assistant("Well, ")], "hi"],
    ["nobody spoke", [], NOTHING],
    ["nothing was said", [user("")], NOTHING],
    ["an empty result", [assistant(call("a")), user(result("a"))], NOTHING],
  ];
  for (const [name, messages, text] of cases) {
    const reply = await replyOf(messages);
    assertEquals([reply.blocks, reply.finish], [[{ type: "text", text }], "end"], name);
  }
});

Deno.test("echo calls tools", async () => {
  const tools = [tool("get_weather"), tool("get_time")];
  assertEquals(await wordsOf([user("weather?")], { tools }), ["get_weather {}"]);
  assertEquals(await wordsOf([user('Look:\ncall:get_time {"tz":"UTC"}\ncall:get_weather')], { tools }), [
    "Look:",
    'get_time {"tz":"UTC"}',
    "get_weather {}",
  ]);
  assertEquals(await wordsOf([user("call:get_time {}")]), ["call:get_time {}"]);
  assertEquals(await wordsOf([assistant(call("a")), user(result("a", "12:00"), "call:get_time")], { tools }), [
    "12:00",
    "get_time {}",
  ]);
  assertEquals((await replyOf([user("weather?")], { tools })).finish, "tool_use");
});

Deno.test("echo answers in the requested format", async () => {
  const schema = { type: "object", properties: { n: { type: "integer", minimum: 3 } }, required: ["n"] };
  const tools = [tool("get_time")];
  const jsonSchema = { format: { type: "json_schema" as const, schema } };
  const jsonObject = { format: { type: "json_object" as const } };
  assertEquals(await wordsOf([user("hi")], jsonSchema), ['{"n":3}']);
  assertEquals(await wordsOf([user("hi")], { format: { type: "json_schema", schema: { type: "sorcery" } } }), ["null"]);
  assertEquals(await wordsOf([user('say "hi"\n')], jsonObject), ['{"echo":"say \\"hi\\"\\n"}']);
  assertEquals(await wordsOf([user("hi")], { format: { type: "text" } }), ["hi"]);
  assertEquals(await wordsOf([user("b")], { choices: ["a", "b"] }), ["b"]);
  assertEquals(await wordsOf([user("c")], { choices: ["a", "b"] }), ["a"]);
  assertEquals(await wordsOf([user("now\ncall:get_time")], { ...jsonSchema, tools }), ["get_time {}"]);
  assertEquals(await wordsOf([assistant(call("a")), user(result("a", "12"))], { ...jsonObject, tools }), [
    '{"echo":"12"}',
  ]);
});

Deno.test("echo reasons on request, and accepts its own reasoning back", async () => {
  const question = user("hi");
  for (const display of ["summarized", "omitted"] as const) {
    const reasoning = { mode: "adaptive" as const, display };
    const { blocks, usage } = await replyOf([question], { reasoning });
    const [thought, text] = blocks;
    assert(thought?.type === "reasoning");
    assertEquals([thought.text === "", thought.hidden], display === "omitted" ? [true, true] : [false, undefined]);
    assertEquals(thought.signature?.issuer, "sluice");
    assertEquals(text, { type: "text", text: "hi" });
    assertGreater(usage.reasoning, 0);

    const back = [question, assistant(...blocks), user("again")];
    assertEquals((await replyOf(back, { reasoning })).blocks[1], { type: "text", text: "again" });
    const forged: ContentBlock = { ...thought, text: "I will not." };
    await assertRejects(
      () => replyOf([question, assistant(forged), user("again")]),
      GatewayError,
      "Invalid `signature`",
    );
  }
  assertEquals((await replyOf([question], { reasoning: { mode: "off" } })).blocks.length, 1);
});

Deno.test("echo respects the limits of the client and the model", async () => {
  const long = user("one two three four five six seven eight nine ten");
  const cases: [number | undefined, number, number][] = [[3, 100, 3], [100, 4, 4], [undefined, 5, 5], [0, 100, 0]];
  for (const [maxTokens, most, completion] of cases) {
    const prompt = promptOf([long], maxTokens === undefined ? {} : { maxTokens });
    const { finish, usage } = aggregateEvents(await eventsOf(prompt, { model: echoModel(most) }));
    assertEquals([finish, usage.completion], ["length", completion]);
  }
  const stopped = await replyOf([long], { stop: [" four"] });
  assertEquals([stopped.stopSequence, stopped.blocks], [" four", [{ type: "text", text: "one two three" }]]);
});

Deno.test("echo reports the prompt's size first, and yields one event at a time", async () => {
  const feed = await echoFeed(promptOf([user("hi there")]), { countInput: () => Promise.resolve(42) });
  assertEquals(await feed.read(), [{ type: "start", usage: { prompt: 42 } }]);
  for (let events = await feed.read(); events !== undefined; events = await feed.read()) {
    assertEquals(events.length, 1);
  }
  assertEquals(await feed.read(), undefined);
});

Deno.test("echo names parameters without effect", async () => {
  const dropped = new UnsupportedParameters();
  const sampling = {
    temperature: 0.5,
    topP: 0.5,
    topK: 4,
    frequencyPenalty: 1,
    presencePenalty: -1,
    seed: 0,
    logitBias: { "1": 2 },
    logprobs: true,
    topLogprobs: 2,
  };
  const search = { type: "hosted" as const, from: "messages" as const, value: { type: "web_search_20250305" } };
  await createEmbedded().generate(callOf(promptOf([user("hi")], { sampling, tools: [search], n: 1 }), { dropped }));
  assertEquals(dropped.names, [
    "top_k",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "tools.web_search_20250305",
  ]);
  const nothing = new UnsupportedParameters();
  const idle = { frequencyPenalty: 0, presencePenalty: 0, logitBias: {}, logprobs: false, topLogprobs: 0 };
  await createEmbedded().generate(callOf(promptOf([user("hi")], { sampling: idle }), { dropped: nothing }));
  assertEquals(nothing.names, []);
});

Deno.test("echo rejects several answers, and forced tools that it cannot call", async () => {
  const several = await assertRejects(() => replyOf([user("hi")], { n: 2 }), GatewayError, "one answer per request");
  assertEquals([several.kind, several.param], ["invalid", "n"]);
  const toolChoice: ToolChoice = { type: "vendor_specific", from: "responses", value: { type: "file_search" } };
  const foreign = await assertRejects(() => replyOf([user("hi")], { toolChoice }), GatewayError, "file_search");
  assertEquals([foreign.kind, foreign.param], ["invalid", "tool_choice"]);
});

Deno.test("echo stops when the call is aborted", async () => {
  const gone = new AbortController();
  const feed = await echoFeed(promptOf([user("one two three")]), { signal: gone.signal });
  await feed.read();
  gone.abort(new DOMException("Gone", "AbortError"));
  await assertRejects(() => feed.read(), DOMException, "Gone");
  feed.cancel();
  assertEquals(await feed.read(), undefined);
  await assertRejects(
    () => createEmbedded().generate(callOf(promptOf([]), { signal: gone.signal })),
    DOMException,
    "Gone",
  );
});

Deno.test("echo stops when the feed is cancelled, even during a pause", async () => {
  const feed = await echoFeed(promptOf([user("word ".repeat(20_000))]));
  for (let paused = false; !paused;) {
    const read = feed.read();
    // A read that gives no event at once waits for its turn.
    const first = await Promise.race([read, Promise.resolve().then(() => Promise.resolve()).then(() => "pause")]);
    assert(first !== undefined, "The answer ended without a pause");
    if (first !== "pause") continue;
    paused = true;
    feed.cancel();
    feed.cancel();
    assertEquals(await read, undefined);
  }
  assertEquals(await feed.read(), undefined);
});

Deno.test("echo yields to the event loop during a long answer", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  try {
    const prompt = promptOf([user("and so on ".repeat(12_000))]);
    const { usage } = aggregateEvents(await eventsOf(prompt));
    assertEquals(usage.completion, 32_768);
    assertGreater(turns, 10);
  } finally {
    clearInterval(timer);
  }
});

function randomPrompt(seed: number): Prompt {
  const { below: roll, pick } = seeded(seed);
  const words = [
    "weather",
    "time",
    "ünïcödé",
    "😀",
    "\n",
    "call:get_weather {}",
    '\ncall:get_time {"a":[1]}',
    "END",
    "{",
    "read",
  ];
  const text = () => Array.from({ length: roll(12) }, () => pick(words)).join(pick([" ", ""]));
  const messages: Message[] = [];
  let calls: string[] = [];
  for (let count = roll(6); count > 0; count--) {
    const results = calls.map((id) => result(id, text()));
    messages.push(pick([user(...results, text()), user(...results), user(...results, text(), png(3, 4))]));
    calls = [`c${count}`].slice(roll(2));
    messages.push(assistant(text(), ...calls.map((id) => call(id))));
  }
  if (roll(4) > 0) messages.push(user(...calls.map((id) => result(id, text())), text()));
  if (roll(5) === 0) messages.push(system(text()));
  const tools = [tool("get_weather"), tool("get_time", { parameters: { required: ["a"] } })].slice(roll(3));
  const choices: (ToolChoice | undefined)[] = [undefined, { type: "auto" }, { type: "none" }];
  if (tools.length > 0) choices.push({ type: "required" }, { type: "tool", name: "get_time" });
  const toolChoice = pick(choices);
  const maxTokens = pick([undefined, roll(40), 1000]);
  const effort = pick([undefined, "none" as const, "low" as const]);
  const format = pick([undefined, { type: "json_object" as const }, { type: "json_schema" as const, schema: {} }]);
  return promptOf(messages, {
    tools,
    stop: pick([[], ["END"], ["e", "{"]]),
    ...(toolChoice !== undefined && { toolChoice }),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(effort !== undefined && { reasoning: { effort, display: pick(["full", "omitted"] as const) } }),
    ...(format !== undefined && { format }),
    ...(roll(3) === 0 && { parallelToolCalls: false }),
  });
}

Deno.test("echo obeys the event grammar and its limits for any prompt", async () => {
  const counter = await loadTokenCounter();
  const finishes = new Set<string>();
  for (let seed = 1; seed <= Math.max(150, rounds(600)); seed++) {
    const prompt = randomPrompt(seed);
    const events = await eventsOf(prompt);
    assertEquals(await eventsOf(prompt), events, `seed ${seed}`);
    const grammar = checkGrammar();
    for (const event of events) grammar.push(event);
    grammar.end();

    const { blocks, finish, usage, stopSequence } = aggregateEvents(events);
    finishes.add(finish);
    assertLessOrEqual(usage.completion, prompt.maxTokens ?? Infinity);
    const counted = await countReply(blocks, counter);
    const hidden = blocks.some((block) => block.type === "reasoning" && block.hidden === true);
    assertEquals(usage.completion, counted.completion + (hidden ? usage.reasoning ?? 0 : 0), `seed ${seed}`);
    if (!hidden) assertEquals(usage.reasoning, counted.reasoning, `seed ${seed}`);
    for (const block of blocks) {
      if (block.type === "text") assert(prompt.stop.every((stop) => !block.text.includes(stop)), `seed ${seed}`);
      if (block.type === "tool_call") {
        assert(prompt.tools.some((tool) => tool.type !== "hosted" && tool.name === block.name));
      }
    }
    assertEquals(finish === "stop_sequence", stopSequence !== undefined);
    if (prompt.parallelToolCalls === false) {
      assertLessOrEqual(blocks.filter(({ type }) => type === "tool_call").length, 1);
    }
  }
  assertEquals([...finishes].sort(), ["end", "length", "stop_sequence", "tool_use"]);
});

Deno.test("echo rejects references to vendor state, in words that clients act upon", async () => {
  const ask = (members: Record<string, string[]>) =>
    replyOf([user("Hi")], { unknownMembers: { from: "messages", members } });
  for (const [name, code] of [["thread", "thread_unsupported_request"], ["container", undefined]] as const) {
    const error = await assertRejects(() => ask({ [name]: ["x"] }), GatewayError);
    assertEquals([error.kind, error.param, error.code], ["invalid", name, code]);
  }
  assertEquals((await ask({ thread: [] })).finish, "end");
});
