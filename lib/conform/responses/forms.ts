/** The responses protocol for the suite: schemas of answers, and the bodies of requests. */
import { z } from "zod";
import type { JsonObject } from "../../json/mod.ts";
import { expectThat, shaped } from "../check.ts";
import type { PlainAnswer, ProtocolForm } from "../protocol_client.ts";
import { PERSON, PICTURE, SHORT, TOOLS } from "../prompts.ts";
import { bodiesOf, objectOf } from "../sse.ts";

const count = z.number().int().min(0);

const usageForm = z.object({
  input_tokens: count.min(1),
  output_tokens: count,
  total_tokens: count,
  input_tokens_details: z.object({ cached_tokens: count }),
  output_tokens_details: z.object({ reasoning_tokens: count }),
});

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

const responseForm = z.looseObject({
  id: z.string().regex(/^resp_/, { error: 'begins with "resp_"' }),
  object: z.literal("response"),
  created_at: z.number().int().min(1_000_000_000).max(9_999_999_999),
  model: z.string().min(1),
  status: z.string(),
  incomplete_details: z.object({ reason: z.string() }).nullish(),
  output: z.array(itemForm),
  usage: z.unknown().optional(),
});

/** An answer that was not streamed, or the last event of a stream. */
export interface ResponseAnswer extends PlainAnswer {
  output: z.output<typeof itemForm>[];
}

function readResponse(value: unknown, where: string): ResponseAnswer {
  const { output, status, usage, incomplete_details } = shaped(responseForm, value, where);
  return {
    body: Object(value),
    output,
    text: output.flatMap((item) => item.type === "message" ? item.content : [])
      .map((part) => part.type === "output_text" ? part.text : "").join(""),
    calls: output.flatMap((item) =>
      item.type === "function_call" ? [{ id: item.call_id, name: item.name, arguments: item.arguments }] : []
    ),
    finish: status === "incomplete" ? `${status}: ${incomplete_details?.reason}` : status,
    usage,
    history: Object(value).output,
    hasReasoned: Number(Object(Object(usage).output_tokens_details).reasoning_tokens ?? 0) > 0,
  };
}

const eventForm = z.looseObject({ type: z.string().min(1) });

/** The data of a stream event. */
export type ResponseEvent = z.output<typeof eventForm> & JsonObject;

/** Types of the events that end a stream. */
export const TERMINAL = ["response.completed", "response.incomplete", "response.failed"];

function lastResponse(events: readonly ResponseEvent[]): ResponseAnswer {
  const last = events.findLast(({ type }) => TERMINAL.includes(type));
  expectThat(last !== undefined, TERMINAL.join(" or "), events.at(-1)?.type);
  return readResponse(last.response, last.type);
}

/** Validates a usage and the sums within it. @throws {Mismatch} if something is wrong */
export function checkUsage(value: unknown): z.output<typeof usageForm> {
  const usage = shaped(usageForm, value, "usage");
  const { input_tokens, output_tokens, total_tokens } = usage;
  expectThat(total_tokens === input_tokens + output_tokens, "total = input + output", usage);
  expectThat(usage.input_tokens_details.cached_tokens <= input_tokens, "cached ≤ input", usage);
  expectThat(usage.output_tokens_details.reasoning_tokens <= output_tokens, "reasoning ≤ output", usage);
  return usage;
}

/** The responses protocol. The suite always sends the whole conversation, and asks the gateway to store nothing. */
export const RESPONSES: ProtocolForm<ResponseAnswer, ResponseEvent> = {
  part: "responses",
  errors: "openai",
  body: (model, words) => ({ model, input: words, store: false }),
  // The input is invalid instead of missing, because a missing one may be allowed with other members.
  incomplete: (model) => ({ model, input: 1 }),
  known: { user: "conform", metadata: { suite: "conform" }, service_tier: "auto", parallel_tool_calls: true },
  streaming: { stream: true },
  readWhole: ({ text }) => readResponse(objectOf(text, "the answer"), "the response"),
  readEvents: (stream) =>
    bodiesOf(stream).map((body, index) => shaped(eventForm, body, `event ${index}`) as ResponseEvent),
  aggregate: lastResponse,
  tokens(usage) {
    const { input_tokens, output_tokens } = checkUsage(usage);
    return { input: input_tokens, output: output_tokens };
  },
  limit: () => ({ max_output_tokens: SHORT }),
  cutFinish: "incomplete: max_output_tokens",
  tools: (count = TOOLS.length) =>
    TOOLS.slice(0, count).map(({ name, description, schema }) => ({
      type: "function",
      name,
      description,
      parameters: schema,
      strict: true,
    })),
  choices: {
    forced: { tool_choice: { type: "function", name: "get_weather" } },
    required: { tool_choice: "required" },
    none: { tool_choice: "none" },
  },
  parallel: { parallel_tool_calls: true },
  withResults: (words, { history }, results) => ({
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
