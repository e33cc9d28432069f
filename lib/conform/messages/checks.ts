/** Messages: answers, limits, versions, and request members. */
import type { Json, JsonObject } from "../../json/mod.ts";
import { type Checks, must, Skip } from "../check.ts";
import { commonChecks, streaming, wholeOf } from "../http_checks.ts";
import type { Ability, SuiteContext } from "../suite_context.ts";
import { HALT, HALTING, LONG, READY, SHORT, SYSTEM } from "../prompts.ts";
import { objectOf } from "../sse.ts";
import {
  checkUsage,
  foldEvents,
  inputOf,
  type MessageAnswer,
  MESSAGES,
  messagesTools,
  readEvents,
  readWhole,
} from "./forms.ts";
import { MESSAGES_STREAMS } from "./streams.ts";
import { MESSAGES_THINKING } from "./thinking.ts";
import { MESSAGES_TOOLS } from "./tools.ts";
import { sharedChecks } from "../shared_checks.ts";

async function whole(
  context: SuiteContext,
  { body, ability }: { body: JsonObject; ability?: Ability },
): Promise<MessageAnswer> {
  return readWhole(await context.good({ path: context.path("messages"), body }, ability));
}

/** Tokens of a body by the count_tokens endpoint. */
async function count(context: SuiteContext, more: JsonObject): Promise<number> {
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
    const { finish } = readWhole(await wholeOf(MESSAGES, context));
    must(finish === "end_turn", { expected: 'stop_reason "end_turn"', seen: finish });
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
    const { finish, usage } = await whole(context, { body: MESSAGES.body(context, LONG, { max_tokens: SHORT }) });
    must(finish === "max_tokens", { expected: 'stop_reason "max_tokens"', seen: finish });
    const { output_tokens } = checkUsage(usage);
    must(output_tokens <= SHORT, { expected: `at most ${SHORT} output tokens`, seen: output_tokens });
  },
  async "length.stream"(context) {
    const body = MESSAGES.body(context, LONG, { max_tokens: SHORT, ...streaming("messages") });
    const { finish } = foldEvents(readEvents(await context.stream({ path: context.path("messages"), body })));
    must(finish === "max_tokens", { expected: 'stop_reason "max_tokens"', seen: finish });
  },
  async stop(context) {
    const body = MESSAGES.body(context, HALTING, { stop_sequences: [HALT] });
    const { text, finish, stopSequence } = await whole(context, { body, ability: "stop" });
    must(!text.includes(HALT), { expected: `a text without ${HALT}`, seen: text });
    must(!/gamma/.test(text), { expected: `no text after ${HALT}`, seen: text });
    // Chat hosts report both endings as "stop", so a gateway in front of one cannot know.
    if (finish === "end_turn") return "it is not told that a stop sequence was met, as by hosts that speak chat";
    must(finish === "stop_sequence", { expected: 'stop_reason "stop_sequence"', seen: finish });
    must(stopSequence === HALT, { expected: `stop_sequence "${HALT}"`, seen: stopSequence });
  },
  async count(context) {
    const plain = await count(context, {});
    const system = await count(context, { system: SYSTEM });
    must(system > plain, { expected: `more than ${plain} with a system prompt`, seen: system });
    const tools = await count(context, { tools: messagesTools() });
    must(tools > plain, { expected: `more than ${plain} with tools`, seen: tools });
  },
};

async function checkSystem(context: SuiteContext, system: Json): Promise<void> {
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
  ...sharedChecks(MESSAGES),
  ...commonChecks(MESSAGES),
};
