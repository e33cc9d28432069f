/** Checks of the messages protocol: answers, versions, tools, and thinking with signatures. */
import type { Json, JsonObject } from "../../json/mod.ts";
import { type Checks, expectThat, Mismatch, Skip } from "../check.ts";
import { HTTP_CHECKS } from "../http_checks.ts";
import { BOTH, HALT, HALTING, READY, SYSTEM, WEATHER } from "../prompts.ts";
import { type ProtocolChecks, type ProtocolClient, withClient } from "../protocol_client.ts";
import { checkCalls, checkNames, checkSystem, sharedChecks } from "../shared_checks.ts";
import { objectOf } from "../sse.ts";
import type { SuiteRequest } from "../suite_context.ts";
import { type MessageAnswer, type MessageBlock, type MessageEvent, MESSAGES, totalsOf } from "./forms.ts";

/** Checks that blocks have consecutive indices from 0, do not interleave, and contain their deltas. */
function checkBlocks(events: readonly MessageEvent[]): void {
  let next = 0;
  let open: number | undefined;
  for (const { type, index } of events) {
    if (type === "content_block_start") {
      expectThat(open === undefined, `content_block_stop of block ${open}`, type);
      expectThat(index === next, `index ${next}`, index);
      open = next++;
    } else if (type === "content_block_delta" || type === "content_block_stop") {
      expectThat(open !== undefined && index === open, `${type} of block ${open ?? "none"}`, index);
      if (type === "content_block_stop") open = undefined;
    } else if (type === "message_delta" || type === "message_stop") {
      expectThat(open === undefined, `content_block_stop of block ${open}`, type);
    }
  }
}

const STREAMS: ProtocolChecks<MessageAnswer, MessageEvent> = {
  "stream.names": checkNames,
  async "stream.begin"(client) {
    const all = await client.readyEvents();
    const starts = all.filter(({ type }) => type === "message_start");
    expectThat(all[0]?.type === "message_start", "message_start", all[0]?.type);
    expectThat(starts.length === 1, "one message_start", `${starts.length} of them`);
    const { type, role, content, stop_reason } = Object(starts[0]?.message);
    expectThat(
      type === "message" && role === "assistant" && Array.isArray(content) && content.length === 0,
      "an empty message of the assistant",
      starts[0]?.message,
    );
    expectThat(stop_reason === null, "stop_reason null", stop_reason);
  },
  async "stream.start_usage"(client) {
    totalsOf(Object((await client.readyEvents()).find(({ type }) => type === "message_start")?.message).usage);
  },
  async "stream.blocks"(client) {
    const all = await client.readyEvents();
    expectThat(all.some(({ type }) => type === "content_block_start"), "a block", "none");
    checkBlocks(all);
  },
  async "stream.delta"(client) {
    const all = await client.readyEvents();
    const deltas = all.filter(({ type }) => type === "message_delta");
    expectThat(deltas.length > 0, "message_delta", "none");
    const [last] = deltas.slice(-1);
    const { stop_reason } = Object(last?.delta);
    expectThat(stop_reason === "end_turn", 'stop_reason "end_turn"', stop_reason);
    expectThat(Number.isInteger(Object(last?.usage).output_tokens), "usage.output_tokens", last);
    const lateBlock = all.slice(all.findIndex(({ type }) => type === "message_delta")).find(({ type }) =>
      type.startsWith("content_block")
    );
    expectThat(lateBlock === undefined, "no block after message_delta", lateBlock?.type);
  },
  async "stream.end"(client) {
    const all = await client.readyEvents();
    const stops = all.filter(({ type }) => type === "message_stop").length;
    expectThat(stops === 1, "one message_stop", `${stops} of them`);
    expectThat(all.at(-1)?.type === "message_stop", "message_stop at the end", all.at(-1)?.type);
  },
};

type MessagesClient = ProtocolClient<MessageAnswer, MessageEvent>;

/** Counts the tokens of a body with `count_tokens`. @throws {Skip} if the gateway does not count */
async function countTokens(client: MessagesClient, members: JsonObject): Promise<number> {
  const { max_tokens: _, ...body } = client.body(READY, members);
  const answer = await client.context.ask({ path: `${client.path}/count_tokens`, body });
  if (answer.status === 404) throw new Skip("the gateway does not count: 404");
  expectThat(answer.status === 200, "status 200", `${answer.status}: ${answer.text}`);
  const { input_tokens } = objectOf(answer.text, "the count");
  expectThat(Number.isInteger(input_tokens) && Number(input_tokens) > 0, "input_tokens", answer.text);
  return Number(input_tokens);
}

async function checkAccepted(client: MessagesClient, request: Partial<SuiteRequest>): Promise<void> {
  await client.context.good({ path: client.path, body: client.body(READY), ...request });
}

const ANSWERS: ProtocolChecks<MessageAnswer, MessageEvent> = {
  "whole.form": async (client) => void await client.ready(),
  async "whole.stop"(client) {
    const { finish } = await client.ready();
    expectThat(finish === "end_turn", 'stop_reason "end_turn"', finish);
  },
  credential: (client) => checkAccepted(client, { credential: "bearer" }),
  version: (client) => checkAccepted(client, { headers: { "anthropic-version": "2026-10-21" } }),
  beta: (client) => checkAccepted(client, { path: `${client.path}?beta=true` }),
  async parts(client) {
    const messages = [
      { role: "user", content: [{ type: "text", text: "My name is Ada." }] },
      { role: "assistant", content: [{ type: "text", text: "Hello, Ada." }] },
      { role: "user", content: [{ type: "text", text: READY, cache_control: { type: "ephemeral" } }] },
    ];
    await client.ask(READY, { messages });
  },
  "system.text": (client) => checkSystemMember(client, SYSTEM),
  "system.blocks": (client) => checkSystemMember(client, [{ type: "text", text: SYSTEM }]),
  async stop(client) {
    const { text, finish, stopSequence } = await client.ask(HALTING, { stop_sequences: [HALT] }, "stop");
    expectThat(!text.includes(HALT), `a text without ${HALT}`, text);
    expectThat(!/gamma/.test(text), `no text after ${HALT}`, text);
    // Hosts that speak chat report both endings as "stop", so a gateway in front of one cannot tell them apart.
    if (finish === "end_turn") return "the answer does not name the stop sequence, as with hosts that speak chat";
    expectThat(finish === "stop_sequence", 'stop_reason "stop_sequence"', finish);
    expectThat(stopSequence === HALT, `stop_sequence "${HALT}"`, stopSequence);
  },
  async count(client) {
    const plain = await countTokens(client, {});
    const system = await countTokens(client, { system: SYSTEM });
    expectThat(system > plain, `more than ${plain} with a system prompt`, system);
    const tools = await countTokens(client, { tools: MESSAGES.tools() });
    expectThat(tools > plain, `more than ${plain} with tools`, tools);
  },
};

async function checkSystemMember(client: MessagesClient, system: Json): Promise<void> {
  await checkSystem(client, { system });
}

const TOOLS: ProtocolChecks<MessageAnswer, MessageEvent> = {
  async "tools.stop"(client) {
    const { calls, finish } = await client.forcedCall();
    expectThat(calls.length > 0 && finish === "tool_use", 'stop_reason "tool_use"', finish);
  },
  async "tools.single"(client) {
    const tool_choice = { type: "any", disable_parallel_tool_use: true };
    const body = client.body(BOTH, { tools: MESSAGES.tools(), tool_choice });
    const answer = await client.context.good({ path: client.path, body }, "tools");
    const { calls } = MESSAGES.readWhole(answer);
    // Gemini has no such flag. A gateway that says so by naming the dropped parameter is correct.
    if (/parallel/.test(answer.header("x-sluice-dropped") ?? "")) {
      throw new Skip("the gateway says that it was dropped");
    }
    expectThat(calls.length === 1, "one call", calls);
  },
  "tools.failed": async (client) => void await client.sendResults(WEATHER, await client.forcedCall(), true),
  async "tools.stream"(client) {
    const events = await client.parallelEvents();
    checkBlocks(events);
    const starts = events.filter(({ content_block }) => Object(content_block).type === "tool_use");
    if (starts.length === 0) throw new Skip("the model called nothing");
    for (const { content_block } of starts) {
      const { input, id, name } = Object(content_block);
      const isEmpty = JSON.stringify(input) === "{}" && typeof id === "string" && typeof name === "string";
      expectThat(isEmpty, "id, name and an empty input", content_block);
    }
    const { calls, finish } = MESSAGES.aggregate(events);
    checkCalls(calls);
    expectThat(finish === "tool_use", 'stop_reason "tool_use"', finish);
  },
};

const MAX_TOKENS = { max_tokens: 4096 };

/** Members that request thinking from newer models, which decide on its amount. */
const ADAPTIVE: JsonObject = {
  ...MAX_TOKENS,
  thinking: { type: "adaptive", display: "summarized" },
  output_config: { effort: "low" },
};
/** Members that request thinking from older models, which need a budget. */
const BUDGETED: JsonObject = { ...MAX_TOKENS, thinking: { type: "enabled", budget_tokens: 1024 } };

/** Reason of a skip. The answer does not show which of the two it is. */
const UNSIGNED = "it came without a signature: the model's host gives none, or the gateway lost it";

/** Requests an answer with thinking, once for all checks. Also returns the members that the model accepts. */
function requestThinking(client: MessagesClient): Promise<{ answer: MessageAnswer; mode: JsonObject }> {
  return client.once("thinking", async () => {
    try {
      return { answer: await client.ask(READY, ADAPTIVE), mode: ADAPTIVE };
    } catch (error) {
      if (!(error instanceof Mismatch)) throw error;
      return { answer: await client.ask(READY, BUDGETED, "reasoning"), mode: BUDGETED };
    }
  });
}

function isThinking({ type }: MessageBlock): boolean {
  return type === "thinking" || type === "redacted_thinking";
}

const THINKING: ProtocolChecks<MessageAnswer, MessageEvent> = {
  async "thinking.whole"(client) {
    const { content } = (await requestThinking(client)).answer;
    const index = content.findIndex(isThinking);
    const block = content[index];
    if (block === undefined) throw new Skip("the model did not think");
    expectThat(index === 0, "thinking first", content.map(({ type }) => type));
    if (block.type === "thinking" && block.signature === "") throw new Skip(UNSIGNED);
  },
  async "thinking.stream"(client) {
    const { answer, mode } = await requestThinking(client);
    if (!answer.content.some(({ type }) => type === "thinking")) throw new Skip("the model did not think");
    const events = await client.events(READY, mode);
    const start = events.find(({ content_block }) => Object(content_block).type === "thinking");
    if (start === undefined) throw new Skip("the model did not think this time");
    const ofBlock = events.filter(({ type, index }) => type.startsWith("content_block") && index === start.index);
    const kinds = ofBlock.map(({ type, delta }) => type === "content_block_delta" ? Object(delta).type : type);
    const signatures = kinds.filter((kind) => kind === "signature_delta").length;
    // Hosts that speak chat send the signature with the end of the answer, after the gateway has closed the block.
    if (signatures === 0) throw new Skip(UNSIGNED);
    expectThat(signatures === 1, "one signature_delta", kinds);
    expectThat(kinds.at(-2) === "signature_delta", "signature_delta before the stop", kinds.slice(-3));
  },
  async "thinking.back"(client) {
    const { answer: { content, history }, mode } = await requestThinking(client);
    if (!content.some(isThinking)) throw new Skip("the model did not think");
    const question = { role: "user", content: READY };
    await client.ask(READY, { ...mode, messages: [question, ...history, question] });
  },
};

/** All checks of the messages protocol. */
export const MESSAGES_CHECKS: Checks = withClient(MESSAGES, {
  ...sharedChecks(MESSAGES),
  ...HTTP_CHECKS,
  ...ANSWERS,
  ...STREAMS,
  ...TOOLS,
  ...THINKING,
});
