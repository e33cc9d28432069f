import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { aggregateEvents } from "../../../lib/protocols/canonical/aggregate_events.ts";
import { checkGrammar } from "../canonical/event_grammar.ts";
import type {
  ContentBlock,
  ContentBlockOf,
  Message,
  Prompt,
  ReplyEvent,
} from "../../../lib/protocols/canonical/types.ts";
import { isLegal } from "../../../lib/protocols/translate/legal_names.ts";
import type { AdaptTarget } from "../../../lib/protocols/upstream_codec.ts";
import { type Callable, randomAnswer, randomPrompt } from "./random_prompt.ts";
import { promptOf, user } from "../canonical/messages.ts";
import { adapt, KINDS, targetOf } from "./targets.ts";
import { rounds } from "../../support/skip.ts";

const SEEDS = Array.from({ length: rounds(400) }, (_, seed) => seed);

Deno.test("adaptPrompt() fits every target's dialect", () => {
  for (const kind of KINDS) {
    for (const seed of SEEDS) {
      const target = targetOf(kind);
      const { prompt } = adapt(randomPrompt(seed), target);
      const problems = findProblems(prompt, target);
      assertEquals(problems, [], `${kind}, seed ${seed}`);
    }
  }
});

Deno.test("adaptPrompt() is idempotent", () => {
  for (const kind of KINDS) {
    for (const seed of SEEDS) {
      const once = adapt(randomPrompt(seed), targetOf(kind)).prompt;
      const target = targetOf(kind);
      const twice = adapt(once, target).prompt;
      assertEquals(twice, once, `${kind}, seed ${seed}`);
      assertEquals(target.dropped.names, [], `${kind}, seed ${seed}`);
    }
  }
});

Deno.test("adaptPrompt() is deterministic and does not modify its argument", () => {
  for (const kind of KINDS) {
    for (const seed of SEEDS.slice(0, 100)) {
      const prompt = randomPrompt(seed);
      const first = JSON.stringify(adapt(prompt, targetOf(kind)).prompt);
      assertEquals(JSON.stringify(adapt(prompt, targetOf(kind)).prompt), first, `${kind}, seed ${seed}`);
      assertEquals(prompt, randomPrompt(seed), `${kind}, seed ${seed}`);
    }
  }
});

Deno.test("adaptPrompt() keeps the prefix of a growing conversation", () => {
  for (const kind of KINDS) {
    for (const seed of SEEDS.slice(0, 200)) {
      const random = randomPrompt(seed);
      // Marks are counted from the end, and a turn without reasoning may lack what the next one adds.
      const requested = { ...random, messages: unmarked([...random.messages, user("and?")]) };
      const more = [...requested.messages, { role: "assistant" as const, blocks: [word("well")] }, user("thanks")];
      const before = adapt(requested, targetOf(kind)).prompt.messages;
      const after = adapt({ ...requested, messages: more }, targetOf(kind)).prompt.messages;
      assertEquals(after.slice(0, before.length), before, `${kind}, seed ${seed}`);
    }
  }
});

Deno.test("a restored answer obeys the grammar, and calls tools by the client's names", () => {
  for (const kind of KINDS) {
    for (const seed of SEEDS) {
      const requested = randomPrompt(seed);
      const { prompt, restore } = adapt(requested, targetOf(kind));
      const callable = prompt.tools.flatMap((tool) => tool.type === "hosted" ? [] : [calls(tool)]);
      const answer = randomAnswer(seed, [...callable, { name: "unknown" }, { name: "" }]);
      const transform = restore();
      const events: ReplyEvent[] = answer.flatMap(transform);
      const grammar = checkGrammar();
      events.forEach((event) => grammar.push(event));
      grammar.end();
      for (const block of aggregateEvents(events).blocks) {
        if (block.type !== "tool_call" || block.name === "unknown") continue;
        const { name, namespace, custom } = block;
        const called = JSON.stringify(calls({ name, ...(namespace !== undefined && { namespace }), custom }));
        const meant = requested.tools.some((tool) => tool.type !== "hosted" && JSON.stringify(calls(tool)) === called);
        assert(meant, `${kind}, seed ${seed}: ${called}`);
      }
    }
  }
});

Deno.test("each answer has its own transform", () => {
  const { restore } = adapt(promptOf([user("hi")], { stop: ["END"] }), targetOf("responses"));
  const upstreamEvents: ReplyEvent[] = [
    { type: "start" },
    { type: "open", index: 0, block: { type: "text" } },
    { type: "delta", index: 0, text: "a END b" },
  ];
  const [first, second] = [restore(), restore()];
  assertNotEquals(upstreamEvents.flatMap((event) => first(event)), []);
  assertEquals(first({ type: "close", index: 0 }), []);
  assertEquals(aggregateEvents(upstreamEvents.flatMap((event) => second(event))).finish, "stop_sequence");
});

/** A model's call of a tool. */
function calls(
  { name, namespace, type, custom }: { name: string; namespace?: string; type?: string; custom?: boolean | undefined },
): Callable {
  return {
    name,
    ...(namespace !== undefined && { namespace }),
    ...((type === "custom" || custom === true) && { custom: true }),
  };
}

function word(text: string): ContentBlock {
  return { type: "text", text };
}

function unmarked(messages: Message[]): Message[] {
  return messages.map((message) => ({ ...message, blocks: message.blocks.map(({ cache: _, ...block }) => block) }));
}

/** Parts of a prompt that its target does not support. */
function findProblems(prompt: Prompt, target: AdaptTarget): string[] {
  return [...toolProblems(prompt, target), ...contentProblems(prompt, target), ...turnProblems(prompt, target)];
}

function toolProblems(
  { protocol, tools, toolChoice, parallelToolCalls, stop, unknownMembers }: Prompt,
  target: AdaptTarget,
) {
  const problems: string[] = [];
  const { dialect } = target;
  const wire = new Map<string, string>();
  for (const tool of tools) {
    if (tool.type === "hosted") {
      if (!dialect.hostedFrom.includes(tool.from)) problems.push("a foreign hosted tool");
      continue;
    }
    if (tool.type === "custom" && !dialect.customTools) problems.push("a custom tool");
    if (tool.namespace !== undefined && !dialect.namespaces) problems.push("a namespace");
    if (!isLegal(tool.name, dialect.toolName)) problems.push(`tool name ${tool.name}`);
    wire.set(`${tool.namespace}.${tool.name}`, tool.name);
  }
  if (toolChoice !== undefined && tools.length === 0) problems.push("a choice without tools");
  if (parallelToolCalls !== undefined && tools.length === 0) problems.push("parallel calls of no tools");
  if (toolChoice?.type === "allowed" && protocol !== target.protocol) problems.push("an allowed choice");
  if (toolChoice?.type === "tool" && ![...wire.values()].includes(toolChoice.name)) {
    problems.push("a choice of no tool");
  }
  if (stop.length > dialect.stops) problems.push("too many stop sequences");
  if (unknownMembers !== undefined && unknownMembers.from !== target.protocol) problems.push("a foreign rest");
  return problems;
}

function contentProblems({ messages, protocol, tools }: Prompt, target: AdaptTarget): string[] {
  const problems: string[] = [];
  const { dialect } = target;
  const marks = tools.flatMap(({ cache }) => cache ?? []);
  for (const message of messages) {
    if (message.blocks.length === 0) problems.push("an empty message");
    if (message.unknownMembers !== undefined && message.unknownMembers.from !== target.protocol) {
      problems.push("a foreign rest");
    }
    for (const block of allBlocks(message.blocks)) {
      if (block.unknownMembers !== undefined && block.unknownMembers.from !== target.protocol) {
        problems.push("a foreign rest");
      }
      if (block.type === "text" && block.text === "") problems.push("an empty text");
      if (block.type === "vendor_specific" && block.from !== target.protocol) problems.push("a foreign block");
      if (block.type === "reasoning" && block.signature === undefined && !dialect.unsignedReasoning) {
        problems.push("unsigned reasoning");
      }
      if (block.type === "reasoning" && (block.signature?.issuer ?? target.issuer) !== target.issuer) {
        problems.push("foreign reasoning");
      }
      if (block.type === "tool_call" && !isLegal(block.name, dialect.toolName)) problems.push("a call's name");
      if (block.type === "tool_call" && block.custom === true && !dialect.customTools) problems.push("a custom call");
      if (block.type === "tool_call" && !isLegal(block.id, dialect.callId)) problems.push(`call id ${block.id}`);
      if (block.type === "text" && block.citations?.some(({ from }) => from !== target.protocol)) {
        problems.push("a foreign citation");
      }
      if (
        block.type === "tool_result" && !dialect.mediaInResults && block.blocks.some(({ type }) => type === "media")
      ) {
        problems.push("media in a result");
      }
      if (block.cache !== undefined) marks.push(block.cache);
    }
  }
  if (target.protocol === "messages" && marks.length > 4) problems.push("too many cache marks");
  if (target.protocol !== "messages" && target.protocol !== protocol && marks.length > 0) problems.push("a cache mark");
  return problems;
}

function turnProblems({ messages }: Prompt, { dialect, protocol }: AdaptTarget): string[] {
  const problems: string[] = [];
  const content = messages.filter(({ role }) => role !== "system");
  if (dialect.alternates) {
    if (content[0]?.role !== "user") problems.push("the user does not begin");
    if (content.some(({ role }, index) => role === content[index - 1]?.role)) problems.push("two turns of one role");
  }
  const last = messages.at(-1);
  if (!dialect.prefill && last?.role === "assistant") problems.push("the assistant ends");
  const end = last?.blocks.at(-1);
  if (protocol === "messages" && last?.role === "assistant" && end?.type === "text" && /\s$/.test(end.text)) {
    problems.push("white space at the end");
  }
  let open: string[] = [];
  const seen = new Set<string>();
  for (const { role, blocks } of messages) {
    const results = blocks.filter((block) => block.type === "tool_result");
    const first = blocks.slice(0, results.length);
    if (first.some(({ type }) => type !== "tool_result")) problems.push("words before results");
    if (results.length === 0 && open.length > 0) problems.push("a call without a result");
    for (const { callId } of results) {
      if (open.shift() !== callId) problems.push("a result out of order");
    }
    if (role !== "assistant") continue;
    const ids = blocks.filter((block): block is ContentBlockOf<"tool_call"> => block.type === "tool_call").map((
      { id },
    ) => id);
    if (ids.some((id) => seen.has(id))) problems.push("an id that came before");
    ids.forEach((id) => seen.add(id));
    open = ids;
  }
  if (open.length > 0) problems.push("a call without a result at the end");
  return problems;
}

function allBlocks(blocks: readonly ContentBlock[]): ContentBlock[] {
  return blocks.flatMap((block) => block.type === "tool_result" ? [block, ...allBlocks(block.blocks)] : [block]);
}

Deno.test("members of a Gemini body that have names of OpenAI's members are not passed on", () => {
  const members = { metadata: "x", prompt_cache_options: { comparison_response_id: "resp_1" } };
  for (const kind of ["chat", "responses"] as const) {
    const target = targetOf(kind);
    const unknownMembers = { from: "gemini" as const, members };
    const { prompt } = adapt(promptOf([user("Hi")], { protocol: "gemini", unknownMembers }), target);
    assertEquals([prompt.unknownMembers, target.dropped.names], [undefined, Object.keys(members)]);
  }
});

Deno.test("OpenAI gets a schema with properties for a tool without arguments, which other clients may leave out", () => {
  for (const protocol of ["messages", "gemini"] as const) {
    for (const kind of ["chat", "responses"] as const) {
      const tool = { type: "function" as const, name: "f", parameters: { type: "object" } };
      const { prompt } = adapt(promptOf([user("Hi")], { protocol, tools: [tool] }), targetOf(kind));
      assertEquals(prompt.tools, [{ ...tool, parameters: { type: "object", properties: {} } }]);
    }
  }
});
