/** Chat completions: answers, streams, limits, and request members. */
import { type Checks, must, Skip } from "../check.ts";
import { commonChecks, streaming, streamOf, wholeOf } from "../http_checks.ts";
import type { Ability, SuiteContext } from "../suite_context.ts";
import type { JsonObject } from "../../json/mod.ts";
import { HALT, HALTING, LIKE_THIS, LONG, READY, SHORT, SYSTEM } from "../prompts.ts";
import { DONE } from "../sse.ts";
import { CHAT, type ChatAnswer, checkUsage, foldChunks, readChunks, readWhole } from "./forms.ts";
import { CHAT_REASONING } from "./reasoning.ts";
import { CHAT_TOOLS } from "./tools.ts";
import { schemaStream, sharedChecks } from "../shared_checks.ts";

/** Names of the token limit: newer models refuse the older name, older hosts do not know the newer one. */
const LIMIT_NAMES = ["max_completion_tokens", "max_tokens"];

async function whole(context: SuiteContext, more: { body: JsonObject; ability?: Ability }): Promise<ChatAnswer> {
  return readWhole(await context.good({ path: context.path("chat"), body: more.body }, more.ability));
}

/** Sends a request with a low token limit, under the name that the model accepts. */
async function cut(context: SuiteContext, more: JsonObject): Promise<JsonObject> {
  const body = (name: string) => CHAT.body(context, LONG, { [name]: SHORT, ...more });
  const first = await context.once(
    "chat cut",
    () => context.ask({ path: context.path("chat"), body: CHAT.body(context, LONG, { max_completion_tokens: SHORT }) }),
  );
  return body(first.status === 200 ? "max_completion_tokens" : "max_tokens");
}

const ANSWERS: Checks = {
  "whole.form": async (context) => void readWhole(await wholeOf(CHAT, context)),
  async "whole.nulls"(context) {
    const { body, message } = readWhole(await wholeOf(CHAT, context));
    const [choice] = Array.isArray(body.choices) ? body.choices : [];
    must("refusal" in message, { expected: "message.refusal", seen: message });
    must("logprobs" in Object(choice), { expected: "logprobs", seen: choice });
  },
  "whole.usage": async (context) => void checkUsage(readWhole(await wholeOf(CHAT, context)).usage),
  async "whole.finish"(context) {
    const { finish } = readWhole(await wholeOf(CHAT, context));
    must(finish === "stop", { expected: 'finish_reason "stop"', seen: finish });
  },
  async parts(context) {
    const messages = [
      { role: "user", content: [{ type: "text", text: "My name is Ada." }] },
      { role: "assistant", content: "Hello, Ada." },
      { role: "user", content: [{ type: "text", text: READY }, { type: "text", text: "Thank you." }] },
    ];
    await whole(context, { body: { model: context.subject.model, messages } });
  },
  system: (context) => checkLead(context, "system"),
  developer: (context) => checkLead(context, "developer"),
  async "length.whole"(context) {
    const { finish, usage } = await whole(context, { body: await cut(context, {}) });
    const { completion_tokens } = checkUsage(usage);
    must(finish === "length", { expected: 'finish_reason "length"', seen: finish });
    must(completion_tokens <= SHORT, { expected: `at most ${SHORT} completion tokens`, seen: completion_tokens });
  },
  async "length.stream"(context) {
    const stream = await context.stream({
      path: context.path("chat"),
      body: await cut(context, streaming("chat")),
    });
    const { finish } = foldChunks(readChunks(stream));
    must(finish[0] === "length", { expected: 'finish_reason "length"', seen: finish });
  },
  async "length.names"(context) {
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
  async stop(context) {
    const body = CHAT.body(context, HALTING, { stop: [HALT] });
    const { text, finish } = await whole(context, { body, ability: "stop" });
    must(!text.includes(HALT), { expected: `a text without ${HALT}`, seen: text });
    must(finish === "stop", { expected: 'finish_reason "stop"', seen: finish });
  },
  async "json.object"(context) {
    const body = CHAT.body(context, LIKE_THIS, { response_format: { type: "json_object" } });
    const { text } = await whole(context, { body, ability: "response_format" });
    must(isJsonObject(text), { expected: "a JSON object", seen: text });
  },
  "json.stream": schemaStream(CHAT),
};

async function checkLead(context: SuiteContext, role: string): Promise<void> {
  const { messages, ...rest } = CHAT.body(context, READY);
  const body = { ...rest, messages: [{ role, content: SYSTEM }, ...(Array.isArray(messages) ? messages : [])] };
  const { usage } = await whole(context, { body });
  const without = checkUsage(readWhole(await wholeOf(CHAT, context)).usage).prompt_tokens;
  const seen = checkUsage(usage).prompt_tokens;
  must(seen > without, { expected: `more than ${without} prompt tokens`, seen });
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

const STREAMS: Checks = {
  async "stream.form"(context) {
    const chunks = readChunks(await streamOf(CHAT, context));
    must(chunks.length > 0, { expected: "chunks", seen: "none" });
    for (const name of ["id", "created", "model"] as const) {
      const values = [...new Set(chunks.map((chunk) => chunk[name]))];
      must(values.length === 1, { expected: `one ${name}`, seen: values });
    }
  },
  async "stream.role"(context) {
    const roles = readChunks(await streamOf(CHAT, context)).flatMap(({ choices }) => choices).map(({ delta }) =>
      delta.role ?? ""
    );
    must(roles[0] === "assistant", { expected: 'role "assistant" in the first delta', seen: roles[0] });
    must(roles.slice(1).every((role) => role === ""), { expected: "no role in later deltas", seen: roles });
  },
  async "stream.finish"(context) {
    const chunks = readChunks(await streamOf(CHAT, context));
    const { finish } = foldChunks(chunks);
    must(finish.length === 1 && finish[0] === "stop", { expected: 'one finish_reason "stop"', seen: finish });
    const end = chunks.findIndex(({ choices }) => typeof choices[0]?.finish_reason === "string");
    const late = foldChunks(chunks.slice(end + 1)).text;
    must(late === "", { expected: "no text after the finish_reason", seen: late });
  },
  async "stream.done"(context) {
    const { events } = await streamOf(CHAT, context);
    const done = events.filter(({ data }) => data === DONE).length;
    must(done === 1, { expected: "one [DONE]", seen: `${done} of them` });
    must(events.at(-1)?.data === DONE, { expected: "[DONE] at the end", seen: events.at(-1)?.data });
  },
  async "stream.usage"(context) {
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
  async "stream.no_usage"(context) {
    const stream = await context.stream({
      path: context.path("chat"),
      body: CHAT.body(context, READY, { stream: true }),
    });
    const bare = readChunks(stream).find(({ choices }) => choices.length === 0);
    must(bare === undefined, { expected: "choices in every chunk", seen: bare });
  },
};

/** Every check of chat completions. */
export const CHAT_CHECKS: Checks = {
  ...ANSWERS,
  ...STREAMS,
  ...CHAT_TOOLS,
  ...CHAT_REASONING,
  ...sharedChecks(CHAT),
  ...commonChecks(CHAT),
};
