/** Responses: answers, limits, and request members. */
import type { JsonObject } from "../../json/mod.ts";
import { type Checks, Mismatch, must } from "../check.ts";
import { commonChecks, streaming, wholeOf } from "../http_checks.ts";
import type { Ability, SuiteContext } from "../suite_context.ts";
import { LONG, READY, SHORT, SYSTEM } from "../prompts.ts";
import { checkUsage, lastResponse, readEvents, readWhole, type ResponseAnswer, RESPONSES } from "./forms.ts";
import { RESPONSES_REASONING } from "./reasoning.ts";
import { RESPONSES_STREAMS } from "./streams.ts";
import { RESPONSES_TOOLS } from "./tools.ts";
import { schemaStream, sharedChecks } from "../shared_checks.ts";

/** Members required by OpenAI's schema. */
const REQUIRED = [
  ...["error", "incomplete_details", "instructions", "metadata", "parallel_tool_calls", "temperature", "top_p"],
  ...["tool_choice", "tools"],
];

/** Members that the Open Responses suite requires in addition. */
const OPEN = [
  ...["completed_at", "previous_response_id", "truncation", "text", "presence_penalty", "frequency_penalty"],
  ...["top_logprobs", "reasoning", "max_output_tokens", "max_tool_calls", "store", "background", "service_tier"],
  ...["safety_identifier", "prompt_cache_key"],
];

async function whole(
  context: SuiteContext,
  { body, ability }: { body: JsonObject; ability?: Ability },
): Promise<ResponseAnswer> {
  return readWhole(await context.good({ path: context.path("responses"), body }, ability));
}

function has(names: readonly string[], body: JsonObject): void {
  const missing = names.filter((name) => !Object.hasOwn(body, name));
  if (missing.length > 0) {
    throw new Mismatch("every member, null where it has no value", `no ${missing.join(", ")}`);
  }
}

const ANSWERS: Checks = {
  async "whole.form"(context) {
    const { status, output } = readWhole(await wholeOf(RESPONSES, context));
    must(status === "completed", { expected: 'status "completed"', seen: status });
    must(output.some(({ type }) => type === "message"), { expected: "a message", seen: output });
  },
  "whole.required": async (context) => has(REQUIRED, readWhole(await wholeOf(RESPONSES, context)).body),
  "whole.open": async (context) => has(OPEN, readWhole(await wholeOf(RESPONSES, context)).body),
  "whole.usage": async (context) => void checkUsage(readWhole(await wholeOf(RESPONSES, context)).usage),
  async instructions(context) {
    const answer = await whole(context, { body: RESPONSES.body(context, READY, { instructions: SYSTEM }) });
    must(answer.body.instructions === SYSTEM, { expected: "the instructions", seen: answer.body.instructions });
    const without = checkUsage(readWhole(await wholeOf(RESPONSES, context)).usage).input_tokens;
    const seen = checkUsage(answer.usage).input_tokens;
    must(seen > without, { expected: `more than ${without} input tokens`, seen });
  },
  async items(context) {
    const input = [
      { role: "user", content: "My name is Ada." },
      {
        type: "message",
        role: "assistant",
        content: [{ type: "output_text", text: "Hello, Ada.", annotations: [] }],
      },
      { type: "message", role: "user", content: [{ type: "input_text", text: READY }] },
    ];
    await whole(context, { body: { model: context.subject.model, input, store: false } });
  },
  async back(context) {
    const { body } = readWhole(await wholeOf(RESPONSES, context));
    const output = Array.isArray(body.output) ? body.output : [];
    const input = [{ role: "user", content: READY }, ...output, { role: "user", content: READY }];
    await whole(context, { body: { model: context.subject.model, input, store: false } });
  },
  async "length.whole"(context) {
    const answer = await whole(context, { body: RESPONSES.body(context, LONG, { max_output_tokens: SHORT }) });
    checkCut(answer);
    const { output_tokens } = checkUsage(answer.usage);
    must(output_tokens <= SHORT, { expected: `at most ${SHORT} output tokens`, seen: output_tokens });
  },
  async "length.stream"(context) {
    const body = RESPONSES.body(context, LONG, { max_output_tokens: SHORT, ...streaming("responses") });
    const events = readEvents(await context.stream({ path: context.path("responses"), body }));
    must(events.at(-1)?.type === "response.incomplete", {
      expected: "response.incomplete",
      seen: events.at(-1)?.type,
    });
    checkCut(lastResponse(events));
  },
  "json.stream": schemaStream(RESPONSES),
};

function checkCut({ status, body }: ResponseAnswer): void {
  must(status === "incomplete", { expected: 'status "incomplete"', seen: status });
  const { reason } = Object(body.incomplete_details);
  must(reason === "max_output_tokens", { expected: 'incomplete_details.reason "max_output_tokens"', seen: reason });
}

/** Every check of responses. */
export const RESPONSES_CHECKS: Checks = {
  ...ANSWERS,
  ...RESPONSES_STREAMS,
  ...RESPONSES_TOOLS,
  ...RESPONSES_REASONING,
  ...sharedChecks(RESPONSES),
  ...commonChecks(RESPONSES),
};
