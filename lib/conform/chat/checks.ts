/** Chat completions: answers, streams, limits, and what a request may hold. */
import { type Check, Mismatch, must, show, Skip } from "../check.ts";
import { commonChecks, streaming, streamOf, wholeOf } from "../common.ts";
import type { Ability, Context } from "../context.ts";
import type { JsonObject } from "../../json/mod.ts";
import {
  HALT,
  HALTING,
  LIKE_THIS,
  LONG,
  MAKE_PERSON,
  PERSON,
  personProblem,
  PICTURE,
  READY,
  SEE,
  SHORT,
} from "../words.ts";
import { DONE } from "../wire.ts";
import { CHAT, checkUsage, foldChunks, readChunks, readWhole, type Said } from "./forms.ts";
import { CHAT_REASONING } from "./reasoning.ts";
import { CHAT_TOOLS } from "./tools.ts";

/** Members that a limit may be called by: newer models refuse the old one, older hosts do not know the new one. */
const LIMIT_NAMES = ["max_completion_tokens", "max_tokens"];

async function whole(context: Context, more: { body: JsonObject; ability?: Ability }): Promise<Said> {
  return readWhole(await context.good({ path: context.path("chat"), body: more.body }, more.ability));
}

/** A request that is cut short, by whichever name the model takes. */
async function cut(context: Context, more: JsonObject): Promise<JsonObject> {
  const body = (name: string) => CHAT.body(context, LONG, { [name]: SHORT, ...more });
  const first = await context.once(
    "chat cut",
    () => context.ask({ path: context.path("chat"), body: CHAT.body(context, LONG, { max_completion_tokens: SHORT }) }),
  );
  return body(first.status === 200 ? "max_completion_tokens" : "max_tokens");
}

const ANSWERS: readonly Check[] = [
  {
    id: "chat.whole.form",
    part: "chat",
    title: "A whole answer is a chat.completion with one choice",
    why: "SDKs read choices[0].message.content without looking",
    run: async (context) => void readWhole(await wholeOf(CHAT, context)),
  },
  {
    id: "chat.whole.nulls",
    part: "chat",
    title: "choices[0].logprobs and message.refusal are there, null where there are none",
    why: "Typed clients require them",
    async run(context) {
      const { body, message } = readWhole(await wholeOf(CHAT, context));
      const [choice] = Array.isArray(body.choices) ? body.choices : [];
      must("refusal" in message, { expected: "message.refusal", seen: message });
      must("logprobs" in Object(choice), { expected: "logprobs", seen: choice });
    },
  },
  {
    id: "chat.whole.usage",
    part: "chat",
    title: "A whole answer tells its usage, and the numbers fit together",
    why: "Bills and context meters are made of them",
    run: async (context) => void checkUsage(readWhole(await wholeOf(CHAT, context)).usage),
  },
  {
    id: "chat.whole.finish",
    part: "chat",
    title: 'An answer that came to its end finishes with "stop"',
    why: "Agents go on, or cut off, by this word",
    async run(context) {
      const { finish } = readWhole(await wholeOf(CHAT, context));
      must(finish === "stop", { expected: 'finish_reason "stop"', seen: finish });
    },
  },
  {
    id: "chat.parts",
    part: "chat",
    title: "A conversation of several turns, with content as parts, is taken",
    why: "Most clients send no plain texts",
    async run(context) {
      const messages = [
        { role: "user", content: [{ type: "text", text: "My name is Ada." }] },
        { role: "assistant", content: "Hello, Ada." },
        { role: "user", content: [{ type: "text", text: READY }, { type: "text", text: "Thank you." }] },
      ];
      await whole(context, { body: { model: context.subject.model, messages } });
    },
  },
  ...["system", "developer"].map((role): Check => ({
    id: `chat.${role}`,
    part: "chat",
    title: `A ${role} message is taken, and counts in the prompt`,
    why: "Instructions that get lost are noticed late",
    async run(context) {
      const { messages, ...rest } = CHAT.body(context, READY);
      const lead = { role, content: "You are a plain machine. You answer in as few words as you can, in lower case." };
      const body = { ...rest, messages: [lead, ...(Array.isArray(messages) ? messages : [])] };
      const { usage } = await whole(context, { body });
      const without = checkUsage(readWhole(await wholeOf(CHAT, context)).usage).prompt_tokens;
      const seen = checkUsage(usage).prompt_tokens;
      must(seen > without, { expected: `more than ${without} prompt tokens`, seen });
    },
  })),
  {
    id: "chat.length.whole",
    part: "chat",
    title: 'An answer that a limit cut finishes with "length", and keeps to it',
    why: "Clients take half an answer for a whole one otherwise",
    instructed: true,
    async run(context) {
      const { finish, usage } = await whole(context, { body: await cut(context, {}) });
      const { completion_tokens } = checkUsage(usage);
      must(finish === "length", { expected: 'finish_reason "length"', seen: finish });
      must(completion_tokens <= SHORT, { expected: `at most ${SHORT} completion tokens`, seen: completion_tokens });
    },
  },
  {
    id: "chat.length.stream",
    part: "chat",
    title: 'A stream that a limit cut finishes with "length"',
    why: "Clients take half an answer for a whole one otherwise",
    instructed: true,
    async run(context) {
      const stream = await context.stream({
        path: context.path("chat"),
        body: await cut(context, streaming("chat")),
      });
      const { finish } = foldChunks(readChunks(stream));
      must(finish[0] === "length", { expected: 'finish_reason "length"', seen: finish });
    },
  },
  {
    id: "chat.length.names",
    part: "chat",
    title: "A limit may be called max_tokens or max_completion_tokens",
    why: "Old clients know the one, new ones the other",
    async run(context) {
      for (const name of LIMIT_NAMES) {
        const answer = await context.ask({
          path: context.path("chat"),
          body: CHAT.body(context, READY, { [name]: 64 }),
        });
        if (answer.status === 400 && answer.text.includes("unsupported_parameter")) {
          throw new Skip(`the model itself refuses ${name}`);
        }
        must(answer.status === 200, { expected: `status 200 with ${name}`, seen: `${answer.status}: ${answer.text}` });
      }
    },
  },
  {
    id: "chat.stop",
    part: "chat",
    title: 'A stop sequence ends the answer with "stop" and is no part of it',
    why: "Templates rely on it",
    instructed: true,
    async run(context) {
      const body = CHAT.body(context, HALTING, { stop: [HALT] });
      const { text, finish } = await whole(context, { body, ability: "stop" });
      must(!text.includes(HALT), { expected: `a text without ${HALT}`, seen: text });
      must(finish === "stop", { expected: 'finish_reason "stop"', seen: finish });
    },
  },
  {
    id: "chat.json.object",
    part: "chat",
    title: "response_format json_object gives a JSON object",
    why: "Clients parse it without a second look",
    instructed: true,
    async run(context) {
      const body = CHAT.body(context, LIKE_THIS, { response_format: { type: "json_object" } });
      const { text } = await whole(context, { body, ability: "response_format" });
      must(isJsonObject(text), { expected: "a JSON object", seen: text });
    },
  },
  {
    id: "chat.json.schema",
    part: "chat",
    title: "response_format json_schema gives JSON that the schema allows",
    why: "Clients parse it without a second look",
    async run(context) {
      const { text } = await whole(context, {
        body: CHAT.body(context, MAKE_PERSON, { response_format: schemaFormat() }),
        ability: "response_format",
      });
      const problem = personProblem(text);
      if (problem !== undefined) throw new Mismatch("JSON of the schema", `${problem}: ${show(text)}`);
    },
  },
  {
    id: "chat.json.stream",
    part: "chat",
    title: "The same, streamed",
    why: "Clients parse it without a second look",
    async run(context) {
      const stream = await context.stream({
        path: context.path("chat"),
        body: CHAT.body(context, MAKE_PERSON, { response_format: schemaFormat(), ...streaming("chat") }),
      }, "response_format");
      const { text } = foldChunks(readChunks(stream));
      const problem = personProblem(text);
      if (problem !== undefined) throw new Mismatch("JSON of the schema", `${problem}: ${show(text)}`);
    },
  },
  {
    id: "chat.image",
    part: "chat",
    title: "A picture as a data URL is taken",
    why: "Pictures are part of the protocol",
    async run(context) {
      const content = [
        { type: "text", text: SEE },
        { type: "image_url", image_url: { url: `data:image/png;base64,${PICTURE}`, detail: "low" } },
      ];
      const body = { model: context.subject.model, messages: [{ role: "user", content }] };
      await whole(context, { body, ability: "image" });
    },
  },
];

function schemaFormat(): JsonObject {
  return { type: "json_schema", json_schema: { name: "person", strict: true, schema: PERSON } };
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

const STREAMS: readonly Check[] = [
  {
    id: "chat.stream.form",
    part: "chat",
    title: "Every chunk is a chat.completion.chunk; id, created and model are the same in all",
    why: "Clients put together what belongs to one id",
    async run(context) {
      const chunks = readChunks(await streamOf(CHAT, context));
      must(chunks.length > 0, { expected: "chunks", seen: "none" });
      for (const name of ["id", "created", "model"] as const) {
        const values = [...new Set(chunks.map((chunk) => chunk[name]))];
        must(values.length === 1, { expected: `one ${name}`, seen: values });
      }
    },
  },
  {
    id: "chat.stream.role",
    part: "chat",
    title: 'The first delta has role "assistant", and no other one has',
    why: "SDK helpers need it once, and put repeated ones together to assistantassistant",
    async run(context) {
      const roles = readChunks(await streamOf(CHAT, context)).flatMap(({ choices }) => choices).map(({ delta }) =>
        delta.role ?? ""
      );
      must(roles[0] === "assistant", { expected: 'role "assistant" in the first delta', seen: roles[0] });
      must(roles.slice(1).every((role) => role === ""), { expected: "no role in later deltas", seen: roles });
    },
  },
  {
    id: "chat.stream.finish",
    part: "chat",
    title: "There is one finish_reason, and no text or call after it",
    why: "Clients close the answer at the first one",
    async run(context) {
      const chunks = readChunks(await streamOf(CHAT, context));
      const { finish } = foldChunks(chunks);
      must(finish.length === 1 && finish[0] === "stop", { expected: 'one finish_reason "stop"', seen: finish });
      const end = chunks.findIndex(({ choices }) => typeof choices[0]?.finish_reason === "string");
      const late = foldChunks(chunks.slice(end + 1)).text;
      must(late === "", { expected: "no text after the finish_reason", seen: late });
    },
  },
  {
    id: "chat.stream.done",
    part: "chat",
    title: "The stream ends with data: [DONE], once, and nothing after it",
    why: "Clients wait for it before they take the answer for whole",
    async run(context) {
      const { events } = await streamOf(CHAT, context);
      const done = events.filter(({ data }) => data === DONE).length;
      must(done === 1, { expected: "one [DONE]", seen: `${done} of them` });
      must(events.at(-1)?.data === DONE, { expected: "[DONE] at the end", seen: events.at(-1)?.data });
    },
  },
  {
    id: "chat.stream.usage",
    part: "chat",
    title: "With include_usage the last chunk has the usage and no choices, and no other chunk has one",
    why: "Without it streams cannot be billed by clients, and with two of them they are billed twice",
    async run(context) {
      const chunks = readChunks(await streamOf(CHAT, context));
      const { usages } = foldChunks(chunks);
      must(usages.length === 1, { expected: "one usage", seen: `${usages.length} of them` });
      checkUsage(usages[0]);
      const last = chunks.at(-1);
      must(last?.choices.length === 0 && last.usage !== undefined, {
        expected: "the usage in a last chunk without choices",
        seen: last,
      });
    },
  },
  {
    id: "chat.stream.no_usage",
    part: "chat",
    title: "Without include_usage no chunk is without choices",
    why: "Clients that did not ask for it read choices[0] of every chunk",
    async run(context) {
      const stream = await context.stream({
        path: context.path("chat"),
        body: CHAT.body(context, READY, { stream: true }),
      });
      const bare = readChunks(stream).find(({ choices }) => choices.length === 0);
      must(bare === undefined, { expected: "choices in every chunk", seen: bare });
    },
  },
  {
    id: "chat.stream.same",
    part: "chat",
    title: "Whole and streamed, the same prompt has the same number of tokens, and so has the same answer",
    why: "Streaming must not change the bill",
    async run(context) {
      const said = readWhole(await wholeOf(CHAT, context));
      const { text, usages } = foldChunks(readChunks(await streamOf(CHAT, context)));
      const [one, other] = [checkUsage(said.usage), checkUsage(usages[0])];
      must(one.prompt_tokens === other.prompt_tokens, { expected: "equal prompt_tokens", seen: [one, other] });
      // Where the model thinks, two equal texts may have cost different thoughts.
      const thought = [one, other].some((usage) => (usage.completion_tokens_details?.reasoning_tokens ?? 0) > 0);
      if (said.text !== text || thought) return "the two answers differ, so that only the prompt was compared";
      must(one.completion_tokens === other.completion_tokens, {
        expected: "equal completion_tokens of equal texts",
        seen: [one, other],
      });
    },
  },
];

/** Every check of chat completions. */
export const CHAT_CHECKS: readonly Check[] = [
  ...ANSWERS,
  ...STREAMS,
  ...CHAT_TOOLS,
  ...CHAT_REASONING,
  ...commonChecks(CHAT),
];
