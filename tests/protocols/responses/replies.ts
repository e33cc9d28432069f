/** Answers in the canonical form, each with the output it is in this protocol. */
import type { Prompt, Reply, ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { ResponseContext } from "../../../lib/protocols/codec.ts";

/** One answer: the request, the reply, and the written response. */
export interface ReplyCase {
  name: string;
  reply: Reply;
  /** Members of the prompt that matter to it. */
  prompt?: Partial<Prompt>;
  output: JsonObject[];
  /** Members of the response that differ from those of a plain completed one. */
  response?: JsonObject;
}

/** The members of a request that its answer repeats. */
export function responseContextOf(prompt: Partial<Prompt> = {}, request: JsonObject = {}): ResponseContext {
  return {
    requestId: "r1",
    createdAt: 100,
    completedAt: () => 107,
    model: "a/b",
    request: { model: "a/b", input: "Hi", ...request },
    prompt: {
      protocol: "responses",
      model: "a/b",
      messages: [],
      tools: [],
      stop: [],
      sampling: {},
      stream: true,
      ...prompt,
    },
  };
}

/** Cuts every delta of a stream in pieces of three characters. */
export function inPieces(events: ReplyEvent[]): ReplyEvent[] {
  return events.flatMap((event): ReplyEvent[] =>
    event.type === "delta" ? (event.text.match(/.{1,3}/gsu) ?? []).map((text) => ({ ...event, text })) : [event]
  );
}

const END = { finish: "end", usage: {} } as const;
const SUMMARY: Partial<Prompt> = { reasoning: { display: "summarized", encrypted: true } };
const TOKEN_ONLY: Partial<Prompt> = { reasoning: { encrypted: true } };
function text(text: string, annotations: JsonObject[] = []): JsonObject {
  return { type: "output_text", text, annotations, logprobs: [] };
}

function message(index: number, content: JsonObject[], status = "completed"): JsonObject {
  return { type: "message", id: `msg_r1_${index}`, status, role: "assistant", content };
}

function call(index: number, members: JsonObject): JsonObject {
  return { type: "function_call", id: `fc_r1_${index}`, status: "completed", ...members };
}

/** Base64url of an envelope, computed apart from our writer. */
function envelope(members: JsonObject): string {
  return `sluice1.${btoa(JSON.stringify(members)).replaceAll("=", "").replaceAll("+", "-").replaceAll("/", "_")}`;
}

/** Answers that together contain everything that an answer can. */
export const REPLIES: ReplyCase[] = [
  {
    name: "text",
    reply: { blocks: [{ type: "text", text: "Hi, wörld 🌍" }], ...END },
    output: [message(0, [text("Hi, wörld 🌍")])],
  },
  {
    name: "adjacent texts are one part",
    reply: { blocks: [{ type: "text", text: "Hi, " }, { type: "text", text: "you" }], ...END },
    output: [message(0, [text("Hi, you")])],
  },
  {
    name: "parallel calls between texts, one in a namespace, one without arguments",
    reply: {
      blocks: [
        { type: "text", text: "First" },
        { type: "tool_call", id: "c1", name: "exec", arguments: "{}", namespace: "functions" },
        { type: "tool_call", id: "c2", name: "now", arguments: "{}" },
        { type: "text", text: "then" },
      ],
      finish: "tool_use",
      usage: {},
    },
    output: [
      message(0, [text("First")]),
      call(1, { call_id: "c1", name: "exec", arguments: "{}", namespace: "functions" }),
      call(2, { call_id: "c2", name: "now", arguments: "{}" }),
      message(3, [text("then")]),
    ],
  },
  {
    name: "custom call without input",
    reply: {
      blocks: [{ type: "tool_call", id: "c1", name: "x", arguments: "", custom: true, namespace: "n" }],
      finish: "tool_use",
      usage: {},
    },
    output: [{
      type: "custom_tool_call",
      id: "ctc_r1_0",
      call_id: "c1",
      name: "x",
      input: "",
      status: "completed",
      namespace: "n",
    }],
  },
  {
    name: "reasoning with a signature, asked for",
    prompt: SUMMARY,
    reply: {
      blocks: [
        { type: "reasoning", text: "Hm", signature: { issuer: "anthropic", value: "c2ln" } },
        { type: "text", text: "Hi" },
      ],
      ...END,
    },
    output: [
      {
        type: "reasoning",
        id: "rs_r1_0",
        summary: [{ type: "summary_text", text: "Hm" }],
        encrypted_content: envelope({ issuer: "anthropic", value: "c2ln" }),
      },
      message(1, [text("Hi")]),
    ],
  },
  {
    name: "reasoning without include keeps its signature to itself",
    prompt: { reasoning: { display: "summarized" } },
    reply: {
      blocks: [{ type: "reasoning", text: "Hm", signature: { issuer: "openai", value: "gAAA" } }],
      ...END,
    },
    output: [{ type: "reasoning", id: "rs_r1_0", summary: [{ type: "summary_text", text: "Hm" }] }],
  },
  {
    name: "reasoning without a summary asked for keeps its text to itself",
    prompt: TOKEN_ONLY,
    reply: {
      blocks: [
        { type: "reasoning", text: "Hm", signature: { issuer: "openai", value: "gAAA" } },
        { type: "text", text: "Hi" },
      ],
      ...END,
    },
    output: [
      { type: "reasoning", id: "rs_r1_0", summary: [], encrypted_content: "gAAA" },
      message(1, [text("Hi")]),
    ],
  },
  {
    name: "unrequested reasoning is not shown",
    reply: {
      blocks: [{ type: "reasoning", text: "Hm" }, { type: "text", text: "Hi" }],
      ...END,
    },
    output: [message(0, [text("Hi")])],
  },
  {
    name: "refusal between texts, without words",
    reply: {
      blocks: [{ type: "text", text: "A" }, { type: "refusal", text: "" }, { type: "text", text: "B" }],
      finish: "refusal",
      usage: {},
    },
    output: [message(0, [text("A"), { type: "refusal", refusal: "" }, text("B")])],
  },
  {
    name: "reasoning cut by its length",
    prompt: SUMMARY,
    reply: { blocks: [{ type: "reasoning", text: "Hm" }], finish: "length", usage: {} },
    output: [{
      type: "reasoning",
      id: "rs_r1_0",
      summary: [{ type: "summary_text", text: "Hm" }],
      status: "incomplete",
    }],
    response: { status: "incomplete", completed_at: null, incomplete_details: { reason: "max_output_tokens" } },
  },
  {
    name: "items of this protocol, and of another",
    reply: {
      blocks: [
        {
          type: "vendor_specific",
          from: "responses",
          value: { type: "web_search_call", id: "ws_1", status: "completed" },
        },
        { type: "vendor_specific", from: "messages", value: { type: "server_tool_use", id: "s" } },
        { type: "text", text: "A" },
      ],
      ...END,
    },
    output: [{ type: "web_search_call", id: "ws_1", status: "completed" }, message(1, [text("A")])],
  },
];
