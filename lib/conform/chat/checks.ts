/** Checks of chat completions: answers, streams, tools, and reasoning with signatures, which OpenAI's own API lacks. */
import { isObject, type JsonObject } from "../../json/mod.ts";
import { type Checks, expectThat, Skip } from "../check.ts";
import { HTTP_CHECKS } from "../http_checks.ts";
import { HALT, HALTING, LIKE_THIS, READY, SYSTEM } from "../prompts.ts";
import { type ProtocolChecks, type ProtocolClient, withClient } from "../protocol_client.ts";
import { checkCalls, checkDone, checkStreamedSchema, checkSystem, sharedChecks } from "../shared_checks.ts";
import { aggregateChunks, CHAT, type ChatAnswer, type ChatChunk, checkUsage } from "./forms.ts";

type ChatClient = ProtocolClient<ChatAnswer, ChatChunk>;

/** Both names of the token limit. Newer models refuse the older name, and older hosts do not know the newer one. */
const LIMIT_NAMES = ["max_completion_tokens", "max_tokens"];

const ANSWERS: ProtocolChecks<ChatAnswer, ChatChunk> = {
  "whole.form": async (client) => void await client.ready(),
  async "whole.nulls"(client) {
    const { body, message } = await client.ready();
    const [choice] = Array.isArray(body.choices) ? body.choices : [];
    expectThat("refusal" in message, "message.refusal", message);
    expectThat("logprobs" in Object(choice), "logprobs", choice);
  },
  async "whole.finish"(client) {
    const { finish } = await client.ready();
    expectThat(finish === "stop", 'finish_reason "stop"', finish);
  },
  async parts(client) {
    const messages = [
      { role: "user", content: [{ type: "text", text: "My name is Ada." }] },
      { role: "assistant", content: "Hello, Ada." },
      { role: "user", content: [{ type: "text", text: READY }, { type: "text", text: "Thank you." }] },
    ];
    await client.ask(READY, { messages });
  },
  system: (client) => checkInstructions(client, "system"),
  developer: (client) => checkInstructions(client, "developer"),
  async "length.names"(client) {
    for (const name of LIMIT_NAMES) {
      const answer = await client.post({ body: client.body(READY, { [name]: 64 }) });
      if (answer.status === 400 && answer.text.includes("unsupported_parameter")) {
        throw new Skip(`the model itself refuses ${name}`);
      }
      expectThat(answer.status === 200, `status 200 with ${name}`, `${answer.status}: ${answer.text}`);
    }
  },
  async stop(client) {
    const { text, finish } = await client.ask(HALTING, { stop: [HALT] }, "stop");
    expectThat(!text.includes(HALT), `a text without ${HALT}`, text);
    expectThat(finish === "stop", 'finish_reason "stop"', finish);
  },
  async "json.object"(client) {
    const { text } = await client.ask(LIKE_THIS, { response_format: { type: "json_object" } }, "response_format");
    expectThat(isJsonObject(text), "a JSON object", text);
  },
  "json.stream": checkStreamedSchema,
};

/** Checks that instructions in a first message with a role are accepted and counted. */
async function checkInstructions(client: ChatClient, role: string): Promise<void> {
  await checkSystem(client, { messages: [{ role, content: SYSTEM }, { role: "user", content: READY }] });
}

function isJsonObject(text: string): boolean {
  try {
    return isObject(JSON.parse(text));
  } catch {
    return false;
  }
}

const STREAMS: ProtocolChecks<ChatAnswer, ChatChunk> = {
  async "stream.form"(client) {
    const chunks = await client.readyEvents();
    expectThat(chunks.length > 0, "chunks", "none");
    for (const name of ["id", "created", "model"] as const) {
      const values = [...new Set(chunks.map((chunk) => chunk[name]))];
      expectThat(values.length === 1, `one ${name}`, values);
    }
  },
  async "stream.role"(client) {
    const roles = deltasOf(await client.readyEvents()).map(({ role }) => role ?? "");
    expectThat(roles[0] === "assistant", 'role "assistant" in the first delta', roles[0]);
    expectThat(roles.slice(1).every((role) => role === ""), "no role in later deltas", roles);
  },
  async "stream.finish"(client) {
    const chunks = await client.readyEvents();
    checkFinish(chunks, "stop");
    const end = chunks.findIndex(({ choices }) => typeof choices[0]?.finish_reason === "string");
    const late = aggregateChunks(chunks.slice(end + 1)).text;
    expectThat(late === "", "no text after the finish_reason", late);
  },
  "stream.done": checkDone,
  async "stream.usage"(client) {
    const chunks = await client.readyEvents();
    const { usages } = aggregateChunks(chunks);
    expectThat(usages.length === 1, "one usage", `${usages.length} of them`);
    checkUsage(usages[0]);
    const last = chunks.at(-1);
    const isSeparate = last?.choices.length === 0 && last.usage !== undefined;
    expectThat(isSeparate, "the usage in a last chunk without choices", last);
  },
  async "stream.no_usage"(client) {
    const body = client.body(READY, { stream: true });
    const chunks = CHAT.readEvents(await client.context.stream({ path: client.path, body }));
    const withoutChoices = chunks.find(({ choices }) => choices.length === 0);
    expectThat(withoutChoices === undefined, "choices in every chunk", withoutChoices);
  },
};

function deltasOf(chunks: readonly ChatChunk[]) {
  return chunks.flatMap(({ choices }) => choices).map(({ delta }) => delta);
}

function checkFinish(chunks: readonly ChatChunk[], expected: string): void {
  const { finish } = aggregateChunks(chunks);
  expectThat(finish.length === 1 && finish[0] === expected, `one finish_reason "${expected}"`, finish);
}

const TOOLS: ProtocolChecks<ChatAnswer, ChatChunk> = {
  async "tools.finish"(client) {
    const { calls, finish } = await client.parallelCalls();
    if (calls.length === 0) throw new Skip("the model called nothing");
    expectThat(finish === "tool_calls", 'finish_reason "tool_calls"', finish);
  },
  async "tools.stream"(client) {
    const deltas = deltasOf(await parallelChunks(client)).flatMap(({ tool_calls }) => tool_calls ?? []);
    const order = [...new Set(deltas.map(({ index }) => index))];
    expectThat(order.every((index, at) => index === at), "indices 0, 1, … in this order", order);
    const calls = order.map((index) => {
      const [first, ...later] = deltas.filter((delta) => delta.index === index);
      const { id = "", type } = first ?? {};
      const name = first?.function?.name ?? "";
      const isComplete = (id ?? "") !== "" && type === "function" && name !== "";
      expectThat(isComplete, "id, type and name in a call's first piece", first);
      const repeated = later.find((delta) => delta.id || delta.function?.name);
      expectThat(repeated === undefined, "id and name only in a call's first piece", repeated);
      const text = [first, ...later].map((delta) => delta?.function?.arguments ?? "").join("");
      return { id: id ?? "", name, arguments: text };
    });
    checkCalls(calls);
  },
  "tools.stream_finish": async (client) => checkFinish(await parallelChunks(client), "tool_calls"),
};

async function parallelChunks(client: ChatClient): Promise<ChatChunk[]> {
  const chunks = await client.parallelEvents();
  if (!deltasOf(chunks).some(({ tool_calls }) => tool_calls)) throw new Skip("the model called nothing");
  return chunks;
}

/** Members that request reasoning. */
const EFFORT: JsonObject = { reasoning_effort: "low" };

/** Requests an answer with reasoning, once for all checks. */
function requestReasoning(client: ChatClient): Promise<ChatAnswer> {
  return client.once("reasoning", () => client.ask(READY, EFFORT, "reasoning"));
}

/** Returns the reasoning text of a message or delta, under any of its usual names; "" if there is none. */
function reasoningIn(message: Record<string, unknown>): string {
  const { reasoning_content, reasoning, reasoning_details } = message;
  const details = Array.isArray(reasoning_details) ? reasoning_details.filter(isObject) : [];
  const texts = [reasoning_content, reasoning, ...details.map(({ text, summary }) => text ?? summary)];
  return texts.find((text) => typeof text === "string" && text !== "") as string | undefined ?? "";
}

const REASONING: ProtocolChecks<ChatAnswer, ChatChunk> = {
  async "reasoning.whole"(client) {
    const { message, usage } = await requestReasoning(client);
    const reasoningTokens = checkUsage(usage).completion_tokens_details?.reasoning_tokens ?? 0;
    if (reasoningIn(message) === "" && reasoningTokens === 0) throw new Skip("the model did not reason");
    expectThat(reasoningTokens > 0, "reasoning_tokens", usage);
    return reasoningIn(message) === "" ? "counted, but not shown" : undefined;
  },
  async "reasoning.stream"(client) {
    const deltas = deltasOf(await client.events(READY, EFFORT, "reasoning"));
    const lastReasoning = deltas.findLastIndex(({ reasoning_content, reasoning }) =>
      reasoningIn({ reasoning_content, reasoning }) !== ""
    );
    if (lastReasoning < 0) throw new Skip("no reasoning was shown");
    const firstText = deltas.findIndex(({ content }) => typeof content === "string" && content !== "");
    expectThat(
      firstText < 0 || lastReasoning < firstText,
      "all reasoning before the text",
      `${lastReasoning} after ${firstText}`,
    );
  },
  async "reasoning.back"(client) {
    const { message, history } = await requestReasoning(client);
    const isSigned = Array.isArray(message.reasoning_details);
    if (reasoningIn(message) === "" && !isSigned) throw new Skip("no reasoning was shown");
    const question = { role: "user", content: READY };
    await client.ask(READY, { messages: [question, ...history, question], ...EFFORT }, "reasoning");
    return isSigned ? undefined : "there was no signature";
  },
};

/** All checks of chat completions. */
export const CHAT_CHECKS: Checks = withClient(CHAT, {
  ...sharedChecks(CHAT),
  ...HTTP_CHECKS,
  ...ANSWERS,
  ...STREAMS,
  ...TOOLS,
  ...REASONING,
});
