/** Messages: answers, limits, versions, and what a request may hold. */
import type { JsonObject } from "../../json/mod.ts";
import { type Check, Mismatch, must, show, Skip } from "../check.ts";
import { commonChecks, streaming, wholeOf } from "../common.ts";
import type { Ability, Context } from "../context.ts";
import { HALT, HALTING, LONG, MAKE_PERSON, PERSON, personProblem, PICTURE, READY, SEE, SHORT } from "../words.ts";
import { objectOf } from "../wire.ts";
import { checkUsage, foldEvents, inputOf, MESSAGES, messagesTools, readEvents, readWhole, type Said } from "./forms.ts";
import { MESSAGES_STREAMS } from "./streams.ts";
import { MESSAGES_THINKING } from "./thinking.ts";
import { MESSAGES_TOOLS } from "./tools.ts";

const SYSTEM = "You are a plain machine. You answer in as few words as you can, in lower case.";

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

const ANSWERS: readonly Check[] = [
  {
    id: "messages.whole.form",
    part: "messages",
    title: "A whole answer is a message of an assistant, with its blocks",
    why: "SDKs read content[].text without looking",
    run: async (context) => void readWhole(await wholeOf(MESSAGES, context)),
  },
  {
    id: "messages.whole.usage",
    part: "messages",
    title: "A whole answer tells its usage",
    why: "Bills and context meters are made of it",
    async run(context) {
      const usage = checkUsage(readWhole(await wholeOf(MESSAGES, context)).usage);
      must(inputOf(usage) > 0, { expected: "tokens of the prompt", seen: usage });
    },
  },
  {
    id: "messages.whole.stop",
    part: "messages",
    title: 'An answer that came to its end stops with "end_turn"',
    why: "Agents go on, or cut off, by this word",
    async run(context) {
      const { stop } = readWhole(await wholeOf(MESSAGES, context));
      must(stop === "end_turn", { expected: 'stop_reason "end_turn"', seen: stop });
    },
  },
  {
    id: "messages.credential",
    part: "messages",
    title: "The key may come as x-api-key or as a bearer",
    why: "Anthropic's own SDKs differ in it",
    run: async (context) =>
      void await context.good({
        path: context.path("messages"),
        body: MESSAGES.body(context, READY),
        credential: "bearer",
      }),
  },
  {
    id: "messages.version",
    part: "messages",
    title: "anthropic-version 2026-10-21 is taken",
    why: "SDKs of version 1 and later send it",
    run: async (context) =>
      void await context.good({
        path: context.path("messages"),
        body: MESSAGES.body(context, READY),
        headers: { "anthropic-version": "2026-10-21" },
      }),
  },
  {
    id: "messages.beta",
    part: "messages",
    title: "?beta=true in the address changes nothing",
    why: "Claude Code sends it with every request",
    run: async (context) =>
      void await context.good({ path: `${context.path("messages")}?beta=true`, body: MESSAGES.body(context, READY) }),
  },
  {
    id: "messages.parts",
    part: "messages",
    title: "A conversation of several turns, with content as blocks, is taken",
    why: "Most clients send no plain texts",
    async run(context) {
      const messages = [
        { role: "user", content: [{ type: "text", text: "My name is Ada." }] },
        { role: "assistant", content: [{ type: "text", text: "Hello, Ada." }] },
        { role: "user", content: [{ type: "text", text: READY, cache_control: { type: "ephemeral" } }] },
      ];
      await whole(context, { body: { model: context.subject.model, max_tokens: 256, messages } });
    },
  },
  ...([["text", SYSTEM], ["blocks", [{ type: "text", text: SYSTEM }]]] as const).map(([form, system]): Check => ({
    id: `messages.system.${form}`,
    part: "messages",
    title: `A system prompt as ${form} is taken, and counts in the prompt`,
    why: "Instructions that get lost are noticed late",
    async run(context) {
      const said = await whole(context, {
        body: MESSAGES.body(context, READY, { system: structuredClone(system) as string }),
      });
      const without = inputOf(checkUsage(readWhole(await wholeOf(MESSAGES, context)).usage));
      const seen = inputOf(checkUsage(said.usage));
      must(seen > without, { expected: `more than ${without} input tokens`, seen });
    },
  })),
  {
    id: "messages.length.whole",
    part: "messages",
    title: 'An answer that a limit cut stops with "max_tokens", and keeps to it',
    why: "Clients take half an answer for a whole one otherwise",
    instructed: true,
    async run(context) {
      const { stop, usage } = await whole(context, { body: MESSAGES.body(context, LONG, { max_tokens: SHORT }) });
      must(stop === "max_tokens", { expected: 'stop_reason "max_tokens"', seen: stop });
      const { output_tokens } = checkUsage(usage);
      must(output_tokens <= SHORT, { expected: `at most ${SHORT} output tokens`, seen: output_tokens });
    },
  },
  {
    id: "messages.length.stream",
    part: "messages",
    title: 'A stream that a limit cut stops with "max_tokens"',
    why: "Clients take half an answer for a whole one otherwise",
    instructed: true,
    async run(context) {
      const body = MESSAGES.body(context, LONG, { max_tokens: SHORT, ...streaming("messages") });
      const { stop } = foldEvents(readEvents(await context.stream({ path: context.path("messages"), body })));
      must(stop === "max_tokens", { expected: 'stop_reason "max_tokens"', seen: stop });
    },
  },
  {
    id: "messages.stop",
    part: "messages",
    title: "A stop sequence ends the answer, is no part of it, and is named by who knows it",
    why: "Templates rely on it",
    instructed: true,
    async run(context) {
      const body = MESSAGES.body(context, HALTING, { stop_sequences: [HALT] });
      const { text, stop, stopSequence } = await whole(context, { body, ability: "stop" });
      must(!text.includes(HALT), { expected: `a text without ${HALT}`, seen: text });
      must(!/gamma/.test(text), { expected: `no text after ${HALT}`, seen: text });
      // Chat hosts call both ends "stop", so that a gateway in front of one cannot know.
      if (stop === "end_turn") return "it is not told that a stop sequence was met, as by hosts that speak chat";
      must(stop === "stop_sequence", { expected: 'stop_reason "stop_sequence"', seen: stop });
      must(stopSequence === HALT, { expected: `stop_sequence "${HALT}"`, seen: stopSequence });
    },
  },
  {
    id: "messages.json.schema",
    part: "messages",
    title: "output_config.format json_schema gives JSON that the schema allows",
    why: "Clients parse it without a second look",
    async run(context) {
      const output_config = { format: { type: "json_schema", schema: PERSON } };
      const body = MESSAGES.body(context, MAKE_PERSON, { output_config });
      const { text } = await whole(context, { body, ability: "response_format" });
      const problem = personProblem(text);
      if (problem !== undefined) throw new Mismatch("JSON of the schema", `${problem}: ${show(text)}`);
    },
  },
  {
    id: "messages.image",
    part: "messages",
    title: "A picture in base64 is taken",
    why: "Pictures are part of the protocol",
    async run(context) {
      const source = { type: "base64", media_type: "image/png", data: PICTURE };
      const content = [{ type: "image", source }, { type: "text", text: SEE }];
      const body = { ...MESSAGES.body(context, SEE), messages: [{ role: "user", content }] };
      await whole(context, { body, ability: "image" });
    },
  },
  {
    id: "messages.count",
    part: "messages",
    title: "count_tokens counts, system text and tools included",
    why: "Coding agents compact their conversation by it",
    async run(context) {
      const plain = await count(context, {});
      const system = await count(context, { system: SYSTEM });
      must(system > plain, { expected: `more than ${plain} with a system prompt`, seen: system });
      const tools = await count(context, { tools: messagesTools() });
      must(tools > plain, { expected: `more than ${plain} with tools`, seen: tools });
    },
  },
];

/** Every check of messages. */
export const MESSAGES_CHECKS: readonly Check[] = [
  ...ANSWERS,
  ...MESSAGES_STREAMS,
  ...MESSAGES_TOOLS,
  ...MESSAGES_THINKING,
  ...commonChecks(MESSAGES),
];
