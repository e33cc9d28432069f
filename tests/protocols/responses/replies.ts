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
  /** Types of the events between `response.in_progress` and the terminal one, without `response.`. */
  events: string[];
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
const ADDED = "output_item.added";
const DONE = "output_item.done";
const TEXT = ["content_part.added", "output_text.delta", "output_text.done", "content_part.done"];
const MESSAGE = [ADDED, ...TEXT, DONE];
const SUMMARY_PART = [
  "reasoning_summary_part.added",
  "reasoning_summary_text.delta",
  "reasoning_summary_text.done",
  "reasoning_summary_part.done",
];
const CALL = [ADDED, "function_call_arguments.delta", "function_call_arguments.done", DONE];

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

/** Answers that between them hold everything an answer can. */
export const REPLIES: ReplyCase[] = [
  {
    name: "text",
    reply: { blocks: [{ type: "text", text: "Hi, wörld 🌍" }], ...END },
    output: [message(0, [text("Hi, wörld 🌍")])],
    events: MESSAGE,
  },
  { name: "nothing", reply: { blocks: [], ...END }, output: [], events: [] },
  { name: "empty text", reply: { blocks: [{ type: "text", text: "" }], ...END }, output: [], events: [] },
  {
    name: "adjacent texts are one part",
    reply: { blocks: [{ type: "text", text: "Hi, " }, { type: "text", text: "you" }], ...END },
    output: [message(0, [text("Hi, you")])],
    events: [ADDED, "content_part.added", "output_text.delta", "output_text.delta", ...TEXT.slice(2), DONE],
  },
  {
    name: "one call",
    reply: {
      blocks: [{ type: "tool_call", id: "call_1", name: "add", arguments: '{"x": 1.0}' }],
      finish: "tool_use",
      usage: {},
    },
    output: [call(0, { call_id: "call_1", name: "add", arguments: '{"x": 1.0}' })],
    events: CALL,
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
    events: [...MESSAGE, ...CALL, ...CALL, ...MESSAGE],
  },
  {
    name: "custom call",
    reply: {
      blocks: [{ type: "tool_call", id: "c1", name: "patch", arguments: "*** Begin\n", custom: true }],
      finish: "tool_use",
      usage: {},
    },
    output: [{
      type: "custom_tool_call",
      id: "ctc_r1_0",
      call_id: "c1",
      name: "patch",
      input: "*** Begin\n",
      status: "completed",
    }],
    events: [ADDED, "custom_tool_call_input.delta", "custom_tool_call_input.done", DONE],
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
    events: [ADDED, "custom_tool_call_input.done", DONE],
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
    events: [ADDED, ...SUMMARY_PART, DONE, ...MESSAGE],
  },
  {
    name: "reasoning without include keeps its signature to itself",
    prompt: { reasoning: { display: "summarized" } },
    reply: {
      blocks: [{ type: "reasoning", text: "Hm", signature: { issuer: "openai", value: "gAAA" } }],
      ...END,
    },
    output: [{ type: "reasoning", id: "rs_r1_0", summary: [{ type: "summary_text", text: "Hm" }] }],
    events: [ADDED, ...SUMMARY_PART, DONE],
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
    events: [ADDED, DONE, ...MESSAGE],
  },
  {
    name: "reasoning nobody asked about is not shown",
    reply: {
      blocks: [{ type: "reasoning", text: "Hm" }, { type: "text", text: "Hi" }],
      ...END,
    },
    output: [message(0, [text("Hi")])],
    events: MESSAGE,
  },
  {
    name: "hidden reasoning",
    prompt: SUMMARY,
    reply: {
      blocks: [
        { type: "reasoning", text: "", hidden: true, signature: { issuer: "anthropic", value: "cmVk" } },
        { type: "reasoning", text: "", hidden: true, signature: { issuer: "openai", value: "gAAA", id: "rs_8" } },
      ],
      ...END,
    },
    output: [
      {
        type: "reasoning",
        id: "rs_r1_0",
        summary: [],
        encrypted_content: envelope({ issuer: "anthropic#hidden", value: "cmVk" }),
      },
      {
        type: "reasoning",
        id: "rs_r1_1",
        summary: [],
        encrypted_content: envelope({ issuer: "openai", value: "gAAA", id: "rs_8" }),
      },
    ],
    events: [ADDED, DONE, ADDED, DONE],
  },
  {
    name: "refusal with words",
    reply: { blocks: [{ type: "refusal", text: "No." }], finish: "refusal", usage: {} },
    output: [message(0, [{ type: "refusal", refusal: "No." }])],
    events: [ADDED, "content_part.added", "refusal.delta", "refusal.done", "content_part.done", DONE],
  },
  {
    name: "refusal between texts, without words",
    reply: {
      blocks: [{ type: "text", text: "A" }, { type: "refusal", text: "" }, { type: "text", text: "B" }],
      finish: "refusal",
      usage: {},
    },
    output: [message(0, [text("A"), { type: "refusal", refusal: "" }, text("B")])],
    events: [ADDED, ...TEXT, "content_part.added", "refusal.done", "content_part.done", ...TEXT, DONE],
  },
  {
    name: "refusal that is only a reason",
    reply: { blocks: [{ type: "text", text: "Well" }], finish: "refusal", usage: {} },
    output: [message(0, [text("Well")], "incomplete")],
    response: { status: "incomplete", completed_at: null, incomplete_details: { reason: "content_filter" } },
    events: MESSAGE,
  },
  {
    name: "text cut by its length",
    reply: { blocks: [{ type: "text", text: "On and" }], finish: "length", usage: { completion: 2 } },
    output: [message(0, [text("On and")], "incomplete")],
    response: { status: "incomplete", completed_at: null, incomplete_details: { reason: "max_output_tokens" } },
    events: MESSAGE,
  },
  {
    name: "call cut by its length after a whole one",
    reply: {
      blocks: [
        { type: "tool_call", id: "c1", name: "a", arguments: "{}" },
        { type: "tool_call", id: "c2", name: "b", arguments: '{"x":' },
      ],
      finish: "length",
      usage: {},
    },
    output: [
      call(0, { call_id: "c1", name: "a", arguments: "{}" }),
      call(1, { call_id: "c2", name: "b", arguments: '{"x":', status: "incomplete" }),
    ],
    response: { status: "incomplete", completed_at: null, incomplete_details: { reason: "max_output_tokens" } },
    events: [...CALL, ...CALL],
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
    events: [ADDED, ...SUMMARY_PART, DONE],
  },
  {
    name: "a stop sequence and a pause are ends like any other",
    reply: { blocks: [{ type: "text", text: "A" }], finish: "stop_sequence", stopSequence: "END", usage: {} },
    output: [message(0, [text("A")])],
    events: MESSAGE,
  },
  {
    name: "pause",
    reply: { blocks: [{ type: "text", text: "A" }], finish: "pause", usage: {} },
    output: [message(0, [text("A")])],
    events: MESSAGE,
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
    events: [ADDED, DONE, ...MESSAGE],
  },
  {
    name: "citations of all protocols",
    reply: {
      blocks: [
        { type: "text", text: "🌍 is " },
        {
          type: "text",
          text: "wide",
          citations: [
            {
              from: "messages",
              value: { type: "web_search_result_location", url: "https://e.com", title: "E", cited_text: "w" },
            },
            { from: "messages", value: { type: "char_location", document_index: 0, cited_text: "w" } },
            {
              from: "chat",
              value: {
                type: "url_citation",
                url_citation: { start_index: 0, end_index: 1, url: "https://c.com", title: "C" },
              },
            },
            { from: "responses", value: { type: "file_citation", file_id: "f", filename: "a", index: 1 } },
          ],
        },
      ],
      ...END,
    },
    output: [message(0, [
      text("🌍 is wide", [
        { type: "url_citation", start_index: 5, end_index: 9, url: "https://e.com", title: "E" },
        { type: "url_citation", start_index: 0, end_index: 1, url: "https://c.com", title: "C" },
        { type: "file_citation", file_id: "f", filename: "a", index: 1 },
      ]),
    ])],
    events: [
      ADDED,
      "content_part.added",
      "output_text.delta",
      "output_text.delta",
      ...Array(3).fill("output_text.annotation.added"),
      ...TEXT.slice(2),
      DONE,
    ],
  },
];
