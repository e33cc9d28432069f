/** Messages: answers, limits, versions, and what a request may hold. */
import type { Json, JsonObject } from "../../json/mod.ts";
import { type Checks, Mismatch, must, show, Skip } from "../check.ts";
import { commonChecks, streaming, wholeOf } from "../common.ts";
import type { Ability, Context } from "../context.ts";
import {
  HALT,
  HALTING,
  LONG,
  MAKE_PERSON,
  PERSON,
  personProblem,
  PICTURE,
  READY,
  SEE,
  SHORT,
  SYSTEM,
} from "../words.ts";
import { objectOf } from "../wire.ts";
import { checkUsage, foldEvents, inputOf, MESSAGES, messagesTools, readEvents, readWhole, type Said } from "./forms.ts";
import { MESSAGES_STREAMS } from "./streams.ts";
import { MESSAGES_THINKING } from "./thinking.ts";
import { MESSAGES_TOOLS } from "./tools.ts";

async function whole(context: Context, { body, ability }: { body: JsonObject; ability?: Ability }): Promise<Said> {
  return readWhole(await context.good({ path: context.path("messages"), body }, ability));
}

/** Tokens of a body, by the endpoint that only counts. */
async function count(context: Context, more: JsonObject): Promise<number> {
  const { max_tokens: _, ...body } = MESSAGES.body(context, READY, more);
  const answer = await context.ask({ path: `${context.path("messages")}/count_tokens`, body });
  if (answer.status === 404) throw new Skip("the gateway does not count: 404");
  must(answer.status === 200, { expected: "status 200", seen: `${answer.status}: ${answer.text}` });
  const { input_tokens } = objectOf(answer.text, "the count");
  must(Number.isInteger(input_tokens) && Number(input_tokens) > 0, { expected: "input_tokens", seen: answer.text });
  return Number(input_tokens);
}

const ANSWERS: Checks = {
  "whole.form": async (context) => void readWhole(await wholeOf(MESSAGES, context)),
  async "whole.usage"(context) {
    const usage = checkUsage(readWhole(await wholeOf(MESSAGES, context)).usage);
    must(inputOf(usage) > 0, { expected: "tokens of the prompt", seen: usage });
  },
  async "whole.stop"(context) {
    const { stop } = readWhole(await wholeOf(MESSAGES, context));
    must(stop === "end_turn", { expected: 'stop_reason "end_turn"', seen: stop });
  },
  credential: async (context) =>
    void await context.good({
      path: context.path("messages"),
      body: MESSAGES.body(context, READY),
      credential: "bearer",
    }),
  version: async (context) =>
    void await context.good({
      path: context.path("messages"),
      body: MESSAGES.body(context, READY),
      headers: { "anthropic-version": "2026-10-21" },
    }),
  beta: async (context) =>
    void await context.good({ path: `${context.path("messages")}?beta=true`, body: MESSAGES.body(context, READY) }),
  async parts(context) {
    const messages = [
      { role: "user", content: [{ type: "text", text: "My name is Ada." }] },
      { role: "assistant", content: [{ type: "text", text: "Hello, Ada." }] },
      { role: "user", content: [{ type: "text", text: READY, cache_control: { type: "ephemeral" } }] },
    ];
    await whole(context, { body: { model: context.subject.model, max_tokens: 256, messages } });
  },
  "system.text": (context) => checkSystem(context, SYSTEM),
  "system.blocks": (context) => checkSystem(context, [{ type: "text", text: SYSTEM }]),
  async "length.whole"(context) {
    const { stop, usage } = await whole(context, { body: MESSAGES.body(context, LONG, { max_tokens: SHORT }) });
    must(stop === "max_tokens", { expected: 'stop_reason "max_tokens"', seen: stop });
    const { output_tokens } = checkUsage(usage);
    must(output_tokens <= SHORT, { expected: `at most ${SHORT} output tokens`, seen: output_tokens });
  },
  async "length.stream"(context) {
    const body = MESSAGES.body(context, LONG, { max_tokens: SHORT, ...streaming("messages") });
    const { stop } = foldEvents(readEvents(await context.stream({ path: context.path("messages"), body })));
    must(stop === "max_tokens", { expected: 'stop_reason "max_tokens"', seen: stop });
  },
  async stop(context) {
    const body = MESSAGES.body(context, HALTING, { stop_sequences: [HALT] });
    const { text, stop, stopSequence } = await whole(context, { body, ability: "stop" });
    must(!text.includes(HALT), { expected: `a text without ${HALT}`, seen: text });
    must(!/gamma/.test(text), { expected: `no text after ${HALT}`, seen: text });
    // Chat hosts call both ends "stop", so that a gateway in front of one cannot know.
    if (stop === "end_turn") return "it is not told that a stop sequence was met, as by hosts that speak chat";
    must(stop === "stop_sequence", { expected: 'stop_reason "stop_sequence"', seen: stop });
    must(stopSequence === HALT, { expected: `stop_sequence "${HALT}"`, seen: stopSequence });
  },
  async "json.schema"(context) {
    const output_config = { format: { type: "json_schema", schema: PERSON } };
    const body = MESSAGES.body(context, MAKE_PERSON, { output_config });
    const { text } = await whole(context, { body, ability: "response_format" });
    const problem = personProblem(text);
    if (problem !== undefined) throw new Mismatch("JSON of the schema", `${problem}: ${show(text)}`);
  },
  async image(context) {
    const source = { type: "base64", media_type: "image/png", data: PICTURE };
    const content = [{ type: "image", source }, { type: "text", text: SEE }];
    const body = { ...MESSAGES.body(context, SEE), messages: [{ role: "user", content }] };
    await whole(context, { body, ability: "image" });
  },
  async count(context) {
    const plain = await count(context, {});
    const system = await count(context, { system: SYSTEM });
    must(system > plain, { expected: `more than ${plain} with a system prompt`, seen: system });
    const tools = await count(context, { tools: messagesTools() });
    must(tools > plain, { expected: `more than ${plain} with tools`, seen: tools });
  },
};

async function checkSystem(context: Context, system: Json): Promise<void> {
  const { usage } = await whole(context, { body: MESSAGES.body(context, READY, { system }) });
  const without = inputOf(checkUsage(readWhole(await wholeOf(MESSAGES, context)).usage));
  const seen = inputOf(checkUsage(usage));
  must(seen > without, { expected: `more than ${without} input tokens`, seen });
}

/** Every check of messages. */
export const MESSAGES_CHECKS: Checks = {
  ...ANSWERS,
  ...MESSAGES_STREAMS,
  ...MESSAGES_TOOLS,
  ...MESSAGES_THINKING,
  ...commonChecks(MESSAGES),
};
