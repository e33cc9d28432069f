/** Responses: answers, limits, and what a request may hold. */
import type { JsonObject } from "../../json/mod.ts";
import { type Check, Mismatch, must, show } from "../check.ts";
import { commonChecks, streaming, wholeOf } from "../common.ts";
import type { Ability, Context } from "../context.ts";
import { LONG, MAKE_PERSON, PERSON, personProblem, PICTURE, READY, SEE, SHORT } from "../words.ts";
import { checkUsage, lastResponse, readEvents, readWhole, RESPONSES, type Said } from "./forms.ts";
import { RESPONSES_REASONING } from "./reasoning.ts";
import { RESPONSES_STREAMS } from "./streams.ts";
import { RESPONSES_TOOLS } from "./tools.ts";

/** Members that OpenAI's schema requires. */
const REQUIRED = [
  ...["error", "incomplete_details", "instructions", "metadata", "parallel_tool_calls", "temperature", "top_p"],
  ...["tool_choice", "tools"],
];

/** Members that the Open Responses suite requires beside them. */
const OPEN = [
  ...["completed_at", "previous_response_id", "truncation", "text", "presence_penalty", "frequency_penalty"],
  ...["top_logprobs", "reasoning", "max_output_tokens", "max_tool_calls", "store", "background", "service_tier"],
  ...["safety_identifier", "prompt_cache_key"],
];

async function whole(context: Context, { body, ability }: { body: JsonObject; ability?: Ability }): Promise<Said> {
  return readWhole(await context.good({ path: context.path("responses"), body }, ability));
}

function has(names: readonly string[], body: JsonObject): void {
  const missing = names.filter((name) => !Object.hasOwn(body, name));
  if (missing.length > 0) {
    throw new Mismatch("every member, null where there is nothing to say", `no ${missing.join(", ")}`);
  }
}

function schemaFormat(): JsonObject {
  return { text: { format: { type: "json_schema", name: "person", strict: true, schema: PERSON } } };
}

const ANSWERS: readonly Check[] = [
  {
    id: "responses.whole.form",
    part: "responses",
    title: "A whole answer is a response, completed, with its items",
    why: "SDKs read output[].content[].text without looking",
    async run(context) {
      const { status, output } = readWhole(await wholeOf(RESPONSES, context));
      must(status === "completed", { expected: 'status "completed"', seen: status });
      must(output.some(({ type }) => type === "message"), { expected: "a message", seen: output });
    },
  },
  {
    id: "responses.whole.required",
    part: "responses",
    title: "A response has every member that OpenAI's schema requires",
    why: "Typed clients refuse a response without them",
    run: async (context) => has(REQUIRED, readWhole(await wholeOf(RESPONSES, context)).body),
  },
  {
    id: "responses.whole.open",
    part: "responses",
    title: "A response has every member that Open Responses requires",
    why: "Clients made by that specification refuse a response without them",
    run: async (context) => has(OPEN, readWhole(await wholeOf(RESPONSES, context)).body),
  },
  {
    id: "responses.whole.usage",
    part: "responses",
    title: "A whole answer tells its usage with both details, and the numbers fit together",
    why: "Bills and context meters are made of them",
    run: async (context) => void checkUsage(readWhole(await wholeOf(RESPONSES, context)).usage),
  },
  {
    id: "responses.instructions",
    part: "responses",
    title: "Instructions are taken, count in the prompt, and are echoed",
    why: "Instructions that get lost are noticed late",
    async run(context) {
      const instructions = "You are a plain machine. You answer in as few words as you can, in lower case.";
      const said = await whole(context, { body: RESPONSES.body(context, READY, { instructions }) });
      must(said.body.instructions === instructions, { expected: "the instructions", seen: said.body.instructions });
      const without = checkUsage(readWhole(await wholeOf(RESPONSES, context)).usage).input_tokens;
      const seen = checkUsage(said.usage).input_tokens;
      must(seen > without, { expected: `more than ${without} input tokens`, seen });
    },
  },
  {
    id: "responses.items",
    part: "responses",
    title: "A conversation of items is taken, also an assistant's message without id and status",
    why: "The interface is stateless: the history comes with every request, from many clients without ids",
    async run(context) {
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
  },
  {
    id: "responses.back",
    part: "responses",
    title: "The model's own output comes back as input",
    why: "This is how a conversation goes on",
    async run(context) {
      const { body } = readWhole(await wholeOf(RESPONSES, context));
      const output = Array.isArray(body.output) ? body.output : [];
      const input = [{ role: "user", content: READY }, ...output, { role: "user", content: READY }];
      await whole(context, { body: { model: context.subject.model, input, store: false } });
    },
  },
  {
    id: "responses.length.whole",
    part: "responses",
    title: "An answer that a limit cut is incomplete, for max_output_tokens",
    why: "Clients take half an answer for a whole one otherwise",
    instructed: true,
    async run(context) {
      const said = await whole(context, { body: RESPONSES.body(context, LONG, { max_output_tokens: SHORT }) });
      checkCut(said);
      const { output_tokens } = checkUsage(said.usage);
      must(output_tokens <= SHORT, { expected: `at most ${SHORT} output tokens`, seen: output_tokens });
    },
  },
  {
    id: "responses.length.stream",
    part: "responses",
    title: "A stream that a limit cut ends with response.incomplete",
    why: "Clients wait for a last event, and take it at its word",
    instructed: true,
    async run(context) {
      const body = RESPONSES.body(context, LONG, { max_output_tokens: SHORT, ...streaming("responses") });
      const events = readEvents(await context.stream({ path: context.path("responses"), body }));
      must(events.at(-1)?.type === "response.incomplete", {
        expected: "response.incomplete",
        seen: events.at(-1)?.type,
      });
      checkCut(lastResponse(events));
    },
  },
  {
    id: "responses.json.schema",
    part: "responses",
    title: "text.format json_schema gives JSON that the schema allows",
    why: "Clients parse it without a second look",
    async run(context) {
      const body = RESPONSES.body(context, MAKE_PERSON, schemaFormat());
      checkPerson((await whole(context, { body, ability: "response_format" })).text);
    },
  },
  {
    id: "responses.json.stream",
    part: "responses",
    title: "The same, streamed",
    why: "Clients parse it without a second look",
    async run(context) {
      const body = RESPONSES.body(context, MAKE_PERSON, { ...schemaFormat(), ...streaming("responses") });
      const stream = await context.stream({ path: context.path("responses"), body }, "response_format");
      checkPerson(lastResponse(readEvents(stream)).text);
    },
  },
  {
    id: "responses.image",
    part: "responses",
    title: "A picture as a data URL is taken",
    why: "Pictures are part of the protocol",
    async run(context) {
      const content = [
        { type: "input_text", text: SEE },
        { type: "input_image", image_url: `data:image/png;base64,${PICTURE}`, detail: "low" },
      ];
      const input = [{ role: "user", content }];
      await whole(context, { body: { model: context.subject.model, input, store: false }, ability: "image" });
    },
  },
];

function checkCut({ status, body }: Said): void {
  must(status === "incomplete", { expected: 'status "incomplete"', seen: status });
  const { reason } = Object(body.incomplete_details);
  must(reason === "max_output_tokens", { expected: 'incomplete_details.reason "max_output_tokens"', seen: reason });
}

function checkPerson(text: string): void {
  const problem = personProblem(text);
  if (problem !== undefined) throw new Mismatch("JSON of the schema", `${problem}: ${show(text)}`);
}

/** Every check of responses. */
export const RESPONSES_CHECKS: readonly Check[] = [
  ...ANSWERS,
  ...RESPONSES_STREAMS,
  ...RESPONSES_TOOLS,
  ...RESPONSES_REASONING,
  ...commonChecks(RESPONSES),
];
