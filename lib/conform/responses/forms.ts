/** Schemas of responses. */
import { z } from "zod";
import type { JsonObject } from "../../json/mod.ts";
import { must, shaped } from "../check.ts";
import type { HttpAnswer } from "../suite_context.ts";
import type { PlainAnswer, ProtocolForm } from "../shared_checks.ts";
import { PERSON, PICTURE, type PlainTool, TOOLS } from "../prompts.ts";
import { bodiesOf, objectOf, type WireStream } from "../sse.ts";

const count = z.number().int().min(0);

const usageForm = z.object({
  input_tokens: count.min(1),
  output_tokens: count,
  total_tokens: count,
  input_tokens_details: z.object({ cached_tokens: count }),
  output_tokens_details: z.object({ reasoning_tokens: count }),
});

/** Usage of an answer. */
export type ResponseUsage = z.output<typeof usageForm>;

const partForm = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("output_text"), text: z.string(), annotations: z.array(z.unknown()) }),
  z.looseObject({ type: z.literal("refusal"), refusal: z.string() }),
]);

const itemForm = z.discriminatedUnion("type", [
  z.looseObject({
    type: z.literal("message"),
    id: z.string().min(1),
    role: z.literal("assistant"),
    status: z.enum(["completed", "in_progress", "incomplete"]),
    content: z.array(partForm),
  }),
  z.looseObject({
    type: z.literal("function_call"),
    id: z.string().min(1),
    call_id: z.string().min(1).max(64),
    name: z.string().min(1),
    arguments: z.string(),
  }),
  z.looseObject({
    type: z.literal("reasoning"),
    id: z.string().min(1),
    summary: z.array(z.object({ type: z.literal("summary_text"), text: z.string() })),
    encrypted_content: z.string().nullish(),
  }),
]);

/** One item of an answer. */
export type Item = z.output<typeof itemForm>;

const responseForm = z.looseObject({
  id: z.string().regex(/^resp_/, { error: 'begins with "resp_"' }),
  object: z.literal("response"),
  created_at: z.number().int().min(1_000_000_000).max(9_999_999_999),
  model: z.string().min(1),
  status: z.string(),
  output: z.array(itemForm),
  usage: z.unknown().optional(),
});

/** A response object. */
export interface ResponseAnswer extends PlainAnswer {
  status: string;
  output: Item[];
}

/** Reads a response object. */
export function readResponse(value: unknown, where = "the response"): ResponseAnswer {
  const body = shaped(responseForm, value, where);
  const { output, status, usage } = body;
  return {
    body: Object(value),
    status,
    output,
    text: textOf(output),
    calls: output.flatMap((item) =>
      item.type === "function_call" ? [{ id: item.call_id, name: item.name, arguments: item.arguments }] : []
    ),
    finish: status,
    usage,
    history: Object(value).output,
    hasReasoned: Number(Object(Object(usage).output_tokens_details).reasoning_tokens ?? 0) > 0,
  };
}

/** Reads a whole answer. */
export function readWhole({ text }: HttpAnswer): ResponseAnswer {
  return readResponse(objectOf(text, "the answer"));
}

/** The text of items. */
export function textOf(items: readonly Item[]): string {
  return items.flatMap((item) => item.type === "message" ? item.content : [])
    .map((part) => part.type === "output_text" ? part.text : "").join("");
}

const eventForm = z.looseObject({ type: z.string().min(1) });

/** The data of an event. */
export type ResponseEvent = z.output<typeof eventForm> & JsonObject;

/** Parses the events of a stream. */
export function readEvents(stream: WireStream): ResponseEvent[] {
  return bodiesOf(stream).map((body, index) => shaped(eventForm, body, `event ${index}`) as ResponseEvent);
}

/** Types of the events that end a stream. */
export const TERMINAL = ["response.completed", "response.incomplete", "response.failed"];

/** The response in the last event of a stream. */
export function lastResponse(events: readonly ResponseEvent[]): ResponseAnswer {
  const last = events.findLast(({ type }) => TERMINAL.includes(type));
  must(last !== undefined, { expected: TERMINAL.join(" or "), seen: events.at(-1)?.type });
  return readResponse(last.response, last.type);
}

/** Validates a usage and the sums within it. */
export function checkUsage(value: unknown): ResponseUsage {
  must(value !== undefined && value !== null, { expected: "usage", seen: value });
  const usage = shaped(usageForm, value, "usage");
  const { input_tokens, output_tokens, total_tokens } = usage;
  must(total_tokens === input_tokens + output_tokens, { expected: "total = input + output", seen: usage });
  must(usage.input_tokens_details.cached_tokens <= input_tokens, { expected: "cached ≤ input", seen: usage });
  must(usage.output_tokens_details.reasoning_tokens <= output_tokens, { expected: "reasoning ≤ output", seen: usage });
  return usage;
}

/** The suite's tools in the format of responses. */
export function responsesTools(count: number = TOOLS.length): JsonObject[] {
  return TOOLS.slice(0, count).map(({ name, description, schema }: PlainTool) => ({
    type: "function",
    name,
    description,
    parameters: schema,
    strict: true,
  }));
}

/** Responses for the shared checks. The suite sends the conversation itself, and nothing is stored. */
export const RESPONSES: ProtocolForm = {
  part: "responses",
  errors: "openai",
  body: ({ subject }, words, more = {}) => ({ model: subject.model, input: words, store: false, ...more }),
  // A number is an invalid input.
  incomplete: ({ subject }) => ({ model: subject.model, input: 1 }),
  known: { user: "conform", metadata: { suite: "conform" }, service_tier: "auto", parallel_tool_calls: true },
  readWhole,
  readStream: (stream) => lastResponse(readEvents(stream)),
  tokens(usage) {
    const { input_tokens, output_tokens } = checkUsage(usage);
    return { input: input_tokens, output: output_tokens };
  },
  tools: (count) => responsesTools(count),
  choices: { forced: { type: "function", name: "get_weather" }, required: "required", none: "none" },
  parallel: { parallel_tool_calls: true },
  goOn: (words, { history }, results) => ({
    input: [
      { role: "user", content: words },
      ...history,
      ...results.map(({ id, output }) => ({ type: "function_call_output", call_id: id, output })),
    ],
  }),
  withImage(words) {
    const image = { type: "input_image", image_url: `data:image/png;base64,${PICTURE}`, detail: "low" };
    return { input: [{ role: "user", content: [{ type: "input_text", text: words }, image] }] };
  },
  schema: { text: { format: { type: "json_schema", name: "person", strict: true, schema: PERSON } } },
};
