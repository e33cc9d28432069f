/** Random prompts and answers in the canonical form: the same seed gives the same. Nothing promises that they make sense. */
import type { Block, Event, Message, OpenBlock, Prompt, Protocol, Tool } from "../../lib/canonical/types.ts";
import type { JsonObject } from "../../lib/json.ts";

/** Gives an integer from 0 up to, and without, its argument. */
export type Below = (limit: number) => number;

/** A generator with a seed (mulberry32). */
export function seeded(seed: number): Below {
  let state = seed >>> 0;
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296) * limit);
  };
}

const PROTOCOLS: readonly Protocol[] = ["chat", "responses", "messages"];
const TEXTS = ["hello", "", " ", "two words", "näive 😀 text\n", "END", "a STOP b", "{}", "  padded  "];
const IDS = ["call_1", "call_2", "toolu_abc", "functions.get:0", "x".repeat(70), "ABCDEFGHI", "", "id with space"];
const NAMES = [
  "get_weather",
  "get weather",
  "mcp.server.tool",
  "n".repeat(90),
  "apply_patch",
  "a__b",
  "b",
  "größe",
];
const NAMESPACES = [undefined, undefined, "a", "mcp server"];
const ARGUMENTS = ["{}", "", '{"a":1}', '{"a":12345678901234567890}', "not json"];

/** A prompt of a random protocol. Its calls and results may be in any disorder; readers could have read it. */
export function randomPrompt(seed: number): Prompt {
  const below = seeded(seed);
  const protocol = pick(PROTOCOLS, below);
  const tools = many(below, 5, () => randomTool(protocol, below));
  return {
    protocol,
    model: "test/model",
    messages: many(below, 10, () => randomMessage(protocol, below)),
    tools,
    ...randomChoice(tools, below),
    ...(chance(below, 4) && { parallelToolCalls: chance(below, 2) }),
    ...(chance(below, 2) && { maxTokens: 1 + below(5000) }),
    stop: many(below, 6, () => pick(["END", "STOP", "\n\n", " ", "😀", "###"], below)),
    sampling: { ...(chance(below, 2) && { temperature: below(20) / 10 }) },
    ...randomReasoning(protocol, below),
    ...(chance(below, 4) && { format: { type: "json_schema", schema: { type: "object", properties: {} } } }),
    stream: chance(below, 2),
    ...(chance(below, 3) && {
      rest: { from: protocol, members: { metadata: { a: "b" }, service_tier: "auto", [`${protocol}_only`]: 1 } },
    }),
  };
}

/** What a call says of its tool. */
export interface Callable {
  name: string;
  namespace?: string;
  custom?: boolean;
}

/** Events of an answer that obeys the grammar, with calls of the given tools and of others. */
export function randomAnswer(seed: number, callable: readonly Callable[] = [{ name: "get_weather" }]): Event[] {
  const below = seeded(seed);
  const events: Event[] = [{ type: "start", id: "up_1", usage: { prompt: below(100) } }];
  let calls = 0;
  const blocks = below(5);
  for (let index = 0; index < blocks; index++) {
    const block = randomOpenBlock(callable, below);
    if (block.type === "tool_call") calls++;
    events.push({ type: "open", index, block });
    const text = block.type === "tool_call" ? pick(['{"a":1}', '{"input":"x😀\\n"}', "{}"], below) : randomText(below);
    for (const piece of pieces(text, below)) events.push({ type: "delta", index, text: piece });
    events.push({
      type: "close",
      index,
      ...(block.type === "reasoning" && { signature: { issuer: "vendor", value: `s${index}` } }),
    });
  }
  const reason = calls > 0 ? pick(["tool_use", "length"] as const, below) : pick(["end", "length"] as const, below);
  events.push({ type: "finish", reason, usage: { prompt: 3, completion: 5 } });
  return events;
}

/** A text cut into pieces of 1 to 4 code units. */
export function pieces(text: string, below: Below): string[] {
  const cut: string[] = [];
  for (let at = 0; at < text.length;) {
    const length = 1 + below(4);
    cut.push(text.slice(at, at + length));
    at += length;
  }
  return cut;
}

/** One of several values. */
export function pick<T>(values: readonly T[], below: Below): T {
  const value = values[below(values.length)];
  if (value === undefined && !values.includes(value as T)) throw new RangeError("Cannot pick: there are no values");
  return value as T;
}

/** True once in so many times. */
export function chance(below: Below, times: number): boolean {
  return below(times) === 0;
}

function many<T>(below: Below, limit: number, make: () => T): T[] {
  return Array.from({ length: below(limit) }, make);
}

function randomText(below: Below): string {
  return many(below, 5, () => pick(TEXTS, below)).join("");
}

function randomMessage(protocol: Protocol, below: Below): Message {
  const role = pick(["user", "user", "assistant", "assistant", "system"] as const, below);
  const make = role === "assistant" ? assistantBlock : role === "user" ? userBlock : textBlock;
  return {
    role,
    blocks: many(below, 4, () => make(protocol, below)),
    ...(chance(below, 6) && { rest: { from: protocol, members: { name: "ann" } } }),
  };
}

function textBlock(protocol: Protocol, below: Below): Block {
  return {
    type: "text",
    text: pick(TEXTS, below),
    ...(chance(below, 5) && { cache: { ttl: pick(["5m", "1h"] as const, below) } }),
    ...(chance(below, 8) && { rest: { from: protocol, members: { phase: "commentary" } } }),
    ...(chance(below, 8) && { citations: [{ from: protocol, value: { type: "url_citation" } }] }),
  };
}

function mediaBlock(protocol: Protocol, below: Below): Block {
  return {
    type: "media",
    media: chance(below, 2)
      ? { kind: "url", url: "https://example.com/a.png" }
      : { kind: "bytes", base64: "AAAA", mediaType: "image/png" },
    ...(chance(below, 3) && { name: "a.png" }),
    ...(chance(below, 3) && { rest: { from: protocol, members: { image_url: { detail: "low" } } } }),
  };
}

function userBlock(protocol: Protocol, below: Below): Block {
  switch (below(6)) {
    case 0:
      return mediaBlock(protocol, below);
    case 1:
    case 2:
      return {
        type: "tool_result",
        callId: pick(IDS, below),
        blocks: many(below, 3, () => chance(below, 3) ? mediaBlock(protocol, below) : textBlock(protocol, below)),
        ...(chance(below, 5) && { isError: true }),
        ...(chance(below, 5) && { custom: true }),
      };
    case 3:
      return protocol === "messages"
        ? { type: "foreign", from: "messages", value: searchResult() }
        : textBlock(protocol, below);
    default:
      return textBlock(protocol, below);
  }
}

function searchResult(): JsonObject {
  return { type: "search_result", source: "s", title: "t", content: [{ type: "text", text: "found" }] };
}

function assistantBlock(protocol: Protocol, below: Below): Block {
  switch (below(7)) {
    case 0:
      return {
        type: "reasoning",
        text: pick(["", "thought"], below),
        ...(!chance(below, 3) && {
          signature: { issuer: pick(["anthropic", "openai", "vendor"], below), value: `sig${below(9)}` },
        }),
      };
    case 1:
    case 2:
    case 3:
      return randomCall(below);
    case 4:
      return replay(protocol);
    default:
      return textBlock(protocol, below);
  }
}

function replay(protocol: Protocol): Block {
  return protocol === "chat" ? { type: "refusal", text: "no" } : {
    type: "foreign",
    from: protocol,
    value: { type: protocol === "messages" ? "server_tool_use" : "web_search_call" },
  };
}

function randomCall(below: Below): Block {
  const namespace = pick(NAMESPACES, below);
  const custom = chance(below, 4);
  return {
    type: "tool_call",
    id: pick(IDS, below),
    name: pick(NAMES, below),
    arguments: custom ? pick(TEXTS, below) : pick(ARGUMENTS, below),
    ...(custom && { custom }),
    ...(namespace !== undefined && { namespace }),
  };
}

function randomTool(protocol: Protocol, below: Below): Tool {
  const namespace = pick(NAMESPACES, below);
  const named = {
    name: pick(NAMES, below),
    ...(namespace !== undefined && { namespace }),
    ...(chance(below, 3) && { description: "does it" }),
    ...(chance(below, 5) && { cache: { ttl: "5m" as const } }),
  };
  switch (below(5)) {
    case 0:
      return {
        type: "custom",
        ...named,
        ...(chance(below, 2) && { format: { type: "grammar", syntax: "lark", definition: "start: WORD" } }),
      };
    case 1:
      return { type: "hosted", from: protocol, value: { type: "web_search", name: "web_search" } };
    default:
      return {
        type: "function",
        ...named,
        parameters: chance(below, 3)
          ? { anyOf: [{ type: "object", required: ["a"], properties: { a: { type: "string" } } }, { type: "object" }] }
          : { type: "object", properties: { a: { type: "integer" } } },
        ...(chance(below, 5) && { rest: { from: protocol, members: { defer_loading: true } } }),
      };
  }
}

/** A choice that the tools can satisfy. */
function randomChoice(tools: readonly Tool[], below: Below): Pick<Prompt, "toolChoice"> {
  const named = tools.flatMap((tool) => tool.type === "hosted" ? [] : [tool]);
  const tool = named[below(Math.max(1, named.length))];
  switch (below(6)) {
    case 0:
      return { toolChoice: { type: "auto" } };
    case 1:
      return { toolChoice: { type: "none" } };
    case 2:
      return tool === undefined ? {} : { toolChoice: { type: "required" } };
    case 3:
      return tool === undefined
        ? {}
        : { toolChoice: { type: "tool", name: tool.name, ...(tool.type === "custom" && { custom: true }) } };
    case 4:
      return tool === undefined
        ? {}
        : { toolChoice: { type: "allowed", mode: pick(["auto", "required"] as const, below), names: [tool.name] } };
    default:
      return {};
  }
}

function randomReasoning(protocol: Protocol, below: Below): Pick<Prompt, "reasoning"> {
  switch (below(5)) {
    case 0:
      return { reasoning: { mode: "manual", budgetTokens: 1024 } };
    case 1:
      return { reasoning: { effort: "high" } };
    case 2:
      return { reasoning: { mode: "adaptive", rest: { from: protocol, members: { display: "updates" } } } };
    default:
      return {};
  }
}

function randomOpenBlock(callable: readonly Callable[], below: Below): OpenBlock {
  switch (below(4)) {
    case 0:
      return { type: "reasoning" };
    case 1:
      return { type: "tool_call", id: `call_${below(99)}`, ...pick(callable, below) };
    default:
      return { type: "text" };
  }
}
