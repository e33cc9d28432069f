/** Random prompts and answers in the canonical form: the same seed gives the same. They need not be meaningful. */
import type {
  ContentBlock,
  Message,
  OpenBlock,
  Prompt,
  Protocol,
  ReplyEvent,
  Tool,
} from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { type Random, seeded } from "../../support/random.ts";

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
  const random = seeded(seed);
  const protocol = random.pick(PROTOCOLS);
  const tools = many(random, 5, () => randomTool(protocol, random));
  return {
    protocol,
    model: "test/model",
    messages: many(random, 10, () => randomMessage(protocol, random)),
    tools,
    ...randomChoice(tools, random),
    ...(random.chance(1 / 4) && { parallelToolCalls: random.chance(1 / 2) }),
    ...(random.chance(1 / 2) && { maxTokens: 1 + random.below(5000) }),
    stop: many(random, 6, () => random.pick(["END", "STOP", "\n\n", " ", "😀", "###"])),
    sampling: { ...(random.chance(1 / 2) && { temperature: random.below(20) / 10 }) },
    ...randomReasoning(protocol, random),
    ...(random.chance(1 / 4) && { format: { type: "json_schema", schema: { type: "object", properties: {} } } }),
    stream: random.chance(1 / 2),
    ...(random.chance(1 / 3) && {
      unknownMembers: {
        from: protocol,
        members: { metadata: { a: "b" }, service_tier: "auto", [`${protocol}_only`]: 1 },
      },
    }),
  };
}

/** The reference of a call to its tool. */
export interface Callable {
  name: string;
  namespace?: string;
  custom?: boolean;
}

/** Events of an answer that obeys the grammar, with calls of the given tools and of others. */
export function randomAnswer(seed: number, callable: readonly Callable[] = [{ name: "get_weather" }]): ReplyEvent[] {
  const random = seeded(seed);
  const events: ReplyEvent[] = [{ type: "start", id: "up_1", usage: { prompt: random.below(100) } }];
  let calls = 0;
  const blocks = random.below(5);
  for (let index = 0; index < blocks; index++) {
    const block = randomOpenBlock(callable, random);
    if (block.type === "tool_call") calls++;
    events.push({ type: "open", index, block });
    const text = block.type === "tool_call" ? random.pick(['{"a":1}', '{"input":"x😀\\n"}', "{}"]) : randomText(random);
    for (const piece of pieces(text, random)) events.push({ type: "delta", index, text: piece });
    events.push({
      type: "close",
      index,
      ...(block.type === "reasoning" && { signature: { issuer: "vendor", value: `s${index}` } }),
    });
  }
  const reason = calls > 0 ? random.pick(["tool_use", "length"] as const) : random.pick(["end", "length"] as const);
  events.push({ type: "finish", reason, usage: { prompt: 3, completion: 5 } });
  return events;
}

/** A text cut into pieces of 1 to 4 code units. */
export function pieces(text: string, random: Random): string[] {
  const cut: string[] = [];
  for (let at = 0; at < text.length;) {
    const length = 1 + random.below(4);
    cut.push(text.slice(at, at + length));
    at += length;
  }
  return cut;
}

function many<T>(random: Random, limit: number, make: () => T): T[] {
  return Array.from({ length: random.below(limit) }, make);
}

function randomText(random: Random): string {
  return many(random, 5, () => random.pick(TEXTS)).join("");
}

function randomMessage(protocol: Protocol, random: Random): Message {
  const role = random.pick(["user", "user", "assistant", "assistant", "system"] as const);
  const make = role === "assistant" ? assistantBlock : role === "user" ? userBlock : textBlock;
  return {
    role,
    blocks: many(random, 4, () => make(protocol, random)),
    ...(random.chance(1 / 6) && { unknownMembers: { from: protocol, members: { name: "ann" } } }),
  };
}

function textBlock(protocol: Protocol, random: Random): ContentBlock {
  return {
    type: "text",
    text: random.pick(TEXTS),
    ...(random.chance(1 / 5) && { cache: { ttl: random.pick(["5m", "1h"] as const) } }),
    ...(random.chance(1 / 8) && { unknownMembers: { from: protocol, members: { phase: "commentary" } } }),
    ...(random.chance(1 / 8) && { citations: [{ from: protocol, value: { type: "url_citation" } }] }),
  };
}

function mediaBlock(protocol: Protocol, random: Random): ContentBlock {
  return {
    type: "media",
    media: random.chance(1 / 2)
      ? { kind: "url", url: "https://example.com/a.png" }
      : { kind: "bytes", base64: "AAAA", mediaType: "image/png" },
    ...(random.chance(1 / 3) && { name: "a.png" }),
    ...(random.chance(1 / 3) && { unknownMembers: { from: protocol, members: { image_url: { detail: "low" } } } }),
  };
}

function userBlock(protocol: Protocol, random: Random): ContentBlock {
  switch (random.below(6)) {
    case 0:
      return mediaBlock(protocol, random);
    case 1:
    case 2:
      return {
        type: "tool_result",
        callId: random.pick(IDS),
        blocks: many(
          random,
          3,
          () => random.chance(1 / 3) ? mediaBlock(protocol, random) : textBlock(protocol, random),
        ),
        ...(random.chance(1 / 5) && { isError: true }),
        ...(random.chance(1 / 5) && { custom: true }),
      };
    case 3:
      return protocol === "messages"
        ? { type: "vendor_specific", from: "messages", value: searchResult() }
        : textBlock(protocol, random);
    default:
      return textBlock(protocol, random);
  }
}

function searchResult(): JsonObject {
  return { type: "search_result", source: "s", title: "t", content: [{ type: "text", text: "found" }] };
}

function assistantBlock(protocol: Protocol, random: Random): ContentBlock {
  switch (random.below(7)) {
    case 0:
      return {
        type: "reasoning",
        text: random.pick(["", "thought"]),
        ...(!random.chance(1 / 3) && {
          signature: { issuer: random.pick(["anthropic", "openai", "vendor"]), value: `sig${random.below(9)}` },
        }),
      };
    case 1:
    case 2:
    case 3:
      return randomCall(random);
    case 4:
      return replay(protocol);
    default:
      return textBlock(protocol, random);
  }
}

function replay(protocol: Protocol): ContentBlock {
  return protocol === "chat" ? { type: "refusal", text: "no" } : {
    type: "vendor_specific",
    from: protocol,
    value: { type: protocol === "messages" ? "server_tool_use" : "web_search_call" },
  };
}

function randomCall(random: Random): ContentBlock {
  const namespace = random.pick(NAMESPACES);
  const custom = random.chance(1 / 4);
  return {
    type: "tool_call",
    id: random.pick(IDS),
    name: random.pick(NAMES),
    arguments: custom ? random.pick(TEXTS) : random.pick(ARGUMENTS),
    ...(custom && { custom }),
    ...(namespace !== undefined && { namespace }),
  };
}

function randomTool(protocol: Protocol, random: Random): Tool {
  const namespace = random.pick(NAMESPACES);
  const named = {
    name: random.pick(NAMES),
    ...(namespace !== undefined && { namespace }),
    ...(random.chance(1 / 3) && { description: "does it" }),
    ...(random.chance(1 / 5) && { cache: { ttl: "5m" as const } }),
  };
  switch (random.below(5)) {
    case 0:
      return {
        type: "custom",
        ...named,
        ...(random.chance(1 / 2) && { format: { type: "grammar", syntax: "lark", definition: "start: WORD" } }),
      };
    case 1:
      return { type: "hosted", from: protocol, value: { type: "web_search", name: "web_search" } };
    default:
      return {
        type: "function",
        ...named,
        parameters: random.chance(1 / 3)
          ? { anyOf: [{ type: "object", required: ["a"], properties: { a: { type: "string" } } }, { type: "object" }] }
          : { type: "object", properties: { a: { type: "integer" } } },
        ...(random.chance(1 / 5) && { unknownMembers: { from: protocol, members: { defer_loading: true } } }),
      };
  }
}

/** A choice that the tools can satisfy. */
function randomChoice(tools: readonly Tool[], random: Random): Pick<Prompt, "toolChoice"> {
  const named = tools.flatMap((tool) => tool.type === "hosted" ? [] : [tool]);
  const tool = named[random.below(Math.max(1, named.length))];
  switch (random.below(6)) {
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
        : { toolChoice: { type: "allowed", mode: random.pick(["auto", "required"] as const), names: [tool.name] } };
    default:
      return {};
  }
}

function randomReasoning(protocol: Protocol, random: Random): Pick<Prompt, "reasoning"> {
  switch (random.below(5)) {
    case 0:
      return { reasoning: { mode: "manual", budgetTokens: 1024 } };
    case 1:
      return { reasoning: { effort: "high" } };
    case 2:
      return { reasoning: { mode: "adaptive", unknownMembers: { from: protocol, members: { display: "updates" } } } };
    default:
      return {};
  }
}

function randomOpenBlock(callable: readonly Callable[], random: Random): OpenBlock {
  switch (random.below(4)) {
    case 0:
      return { type: "reasoning" };
    case 1:
      return { type: "tool_call", id: `call_${random.below(99)}`, ...random.pick(callable) };
    default:
      return { type: "text" };
  }
}
