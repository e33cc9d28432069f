/**
 * Puts messages into an order that upstreams accept. A round is an assistant message and the messages that answer it.
 * Every call of a round gets exactly one result, directly after it.
 */
import { asksForJson, type ContentBlock, type ContentBlockOf, type Message, type Prompt } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { type AdaptTarget, enforcesSchemas } from "../upstream_codec.ts";
import { isManual } from "./fit_content.ts";

const OPENING_TEXT = ".";
const CONTINUE_TEXT =
  "Your last message is unfinished. Continue it exactly where it ends: write only what comes next, and " +
  "repeat nothing of it.";
const NEXT_TEXT = "Your last message is finished. Continue with a new one.";

/**
 * Puts the messages into an order that the target accepts.
 * - A result without a call becomes text of the user. A call without a result gets a placeholder result, because no
 *   upstream accepts an open call. Results come first, in the order of their calls.
 * - If roles must alternate, adjacent messages of one role are merged, and later system messages follow the user
 *   message. A conversation that does not begin with the user gets a user message `.` first.
 * - An empty conversation, which every upstream refuses, gets the same message.
 * - If the upstream cannot continue a final assistant text, a user message asks the model to continue it; or to write
 *   another message, if the answer cannot be a continuation.
 */
export function orderMessages(prompt: Prompt, target: AdaptTarget): Prompt {
  if (isOrdered(prompt.messages)) return prompt;
  const { alternates } = target.dialect;
  const [head, rounds] = splitRounds(pairCalls(prompt.messages));
  const ordered = rounds.flatMap((round) => alternates ? mergeRound(round) : orderRound(round));
  const isEmpty = head.length === 0 && ordered.length === 0;
  const messages = [...head, ...(alternates || isEmpty ? beginWithUser(ordered) : ordered)];
  return { ...prompt, messages: fitEnd(messages, { prompt, target }) };
}

/**
 * True if the messages need no change: system messages first, then user and assistant in turn, the user last, and no
 * calls or results.
 */
function isOrdered(messages: readonly Message[]): boolean {
  let last: Message["role"] = "system";
  for (const { role, blocks } of messages) {
    if (!mayFollow(role, last) || blocks.length === 0 || blocks.some(isPaired)) return false;
    last = role;
  }
  return last === "user";
}

function mayFollow(role: Message["role"], last: Message["role"]): boolean {
  if (role === "user") return last !== "user";
  return role === "assistant" ? last === "user" : last === "system";
}

/**
 * Returns the leading system messages, and the rounds after them. Each round begins with the first assistant message
 * after a user message.
 */
function splitRounds(messages: readonly Message[]): [Message[], Message[][]] {
  const begin = messages.findIndex(({ role }) => role !== "system");
  if (begin < 0) return [[...messages], []];
  const rounds: Message[][] = [[]];
  let answered = true;
  for (const message of messages.slice(begin)) {
    if (message.role === "assistant" && answered) rounds.push([]);
    if (message.role !== "system") answered = message.role === "user";
    rounds.at(-1)?.push(message);
  }
  return [messages.slice(0, begin), rounds.filter((round) => round.length > 0)];
}

/** Merges a round into one assistant message, one user message with the results first, and the system messages. */
function mergeRound(round: readonly Message[]): Message[] {
  const assistant = merge(round.filter(({ role }) => role === "assistant"));
  const users = round.filter(({ role }) => role === "user");
  const results = assistant === undefined ? [] : resultsFor(assistant, resultsOf(users)).map(({ block }) => block);
  const user = merge(users);
  const others = user?.blocks.filter(({ type }) => type !== "tool_result") ?? [];
  const answer = [...results, ...others];
  return [
    ...(assistant === undefined ? [] : [assistant]),
    ...(answer.length === 0 ? [] : [{ role: "user" as const, ...user, blocks: answer }]),
    ...round.filter(({ role }) => role === "system"),
  ];
}

/** Returns one message with the blocks and unknown members of all; undefined if there are none. */
function merge(messages: readonly Message[]): Message | undefined {
  const [first] = messages;
  if (first === undefined || messages.length === 1) return first;
  const memberSets = messages.flatMap(({ unknownMembers }) => unknownMembers ?? []);
  const from = memberSets[0]?.from;
  const members: JsonObject = Object.assign({}, ...memberSets.map(({ members }) => members));
  const blocks = messages.flatMap(({ blocks }) => blocks);
  return { role: first.role, blocks, ...(from !== undefined && { unknownMembers: { from, members } }) };
}

/** Returns the messages of a round unmerged, with each result moved to the message of its call. */
function orderRound(round: readonly Message[]): Message[] {
  const results = resultsOf(round.filter(({ role }) => role === "user"));
  const ordered: Message[] = [];
  const newMessages = new Map<Message, Message>();
  for (const message of round) {
    if (message.role === "user") {
      const blocks = message.blocks.filter(({ type }) => type !== "tool_result");
      if (blocks.length === 0 && message.blocks.length > 0) continue;
      const newMessage = newMessages.get(message);
      // Text that came with the last result stays in its message.
      if (newMessage !== undefined && newMessage === ordered.at(-1)) newMessage.blocks.push(...blocks);
      else ordered.push(newMessage === undefined ? { ...message, blocks } : { role: "user", blocks });
      continue;
    }
    ordered.push(message);
    if (message.role === "assistant") ordered.push(...resultMessages(resultsFor(message, results), newMessages));
  }
  return ordered;
}

/**
 * Returns results as messages, one for each original message.
 * @param newMessages receives the first new message of each original message, which keeps its unknown members
 */
function resultMessages(results: readonly Result[], newMessages: Map<Message, Message>): Message[] {
  const messages: Message[] = [];
  let lastSource: Message | undefined;
  for (const { block, source } of results) {
    const last = messages.at(-1);
    if (last !== undefined && source !== undefined && source === lastSource) {
      last.blocks.push(block);
      continue;
    }
    lastSource = source;
    const isFirst = source !== undefined && !newMessages.has(source);
    const message: Message = isFirst ? { ...source, blocks: [block] } : { role: "user", blocks: [block] };
    if (isFirst) newMessages.set(source, message);
    messages.push(message);
  }
  return messages;
}

interface Result {
  block: ContentBlockOf<"tool_result">;
  /** The original message; undefined for a placeholder. */
  source: Message | undefined;
}

function resultsOf(users: readonly Message[]): ReadonlyMap<string, Result> {
  const results = new Map<string, Result>();
  for (const source of users) {
    for (const block of source.blocks) if (block.type === "tool_result") results.set(block.callId, { block, source });
  }
  return results;
}

/** Returns the results of a message's calls, in the order of the calls. */
function resultsFor({ blocks }: Message, results: ReadonlyMap<string, Result>): Result[] {
  const calls = blocks.filter((block) => block.type === "tool_call");
  return calls.map((call) => results.get(call.id) ?? { block: missingResult(call), source: undefined });
}

function missingResult({ id, custom }: ContentBlockOf<"tool_call">): ContentBlockOf<"tool_result"> {
  return {
    type: "tool_result",
    callId: id,
    blocks: [{ type: "text", text: "There is no result: the call was not carried out" }],
    isError: true,
    ...(custom === true && { custom }),
  };
}

function beginWithUser(messages: readonly Message[]): Message[] {
  return messages[0]?.role === "user" ? [...messages] : [userMessage(OPENING_TEXT), ...messages];
}

/** Makes the last message one that the upstream can answer or continue. */
function fitEnd(messages: Message[], { prompt, target }: { prompt: Prompt; target: AdaptTarget }): Message[] {
  const { dialect: { alternates }, protocol, dropped } = target;
  const prefill = target.dialect.prefill && !refusesPrefill(prompt, target);
  const lastIndex = messages.findLastIndex(({ role }) => role !== "system");
  const last = messages[lastIndex];
  if (last?.role !== "assistant") return messages;
  if (lastIndex < messages.length - 1) {
    if (prefill) return messages;
    // A final system message becomes a user message, so that it can be answered.
    const userMessages = messages.slice(lastIndex + 1).map((message): Message => ({ ...message, role: "user" }));
    const merged = alternates ? merge(userMessages) : undefined;
    return [...messages.slice(0, lastIndex + 1), ...(merged === undefined ? userMessages : [merged])];
  }
  if (!prefill) {
    if (!canContinue(prompt)) return [...messages, userMessage(NEXT_TEXT)];
    dropped.add("prefill");
    return [...messages, userMessage(CONTINUE_TEXT)];
  }
  return protocol === "messages" ? messages.with(lastIndex, trimEnd(last)) : messages;
}

/** Returns true if Anthropic refuses to continue a message: with a schema for the answer, and with manual thinking. */
function refusesPrefill(prompt: Prompt, target: AdaptTarget): boolean {
  const { protocol } = target;
  const hasSchema = prompt.format?.type === "json_schema" && enforcesSchemas(target);
  return protocol === "messages" && (hasSchema || isManual(prompt, target));
}

/**
 * Returns true if the answer can be the rest of a final assistant message. JSON and forced calls are whole, and OpenAI's
 * responses never continue an item. LangGraph asks for JSON after the agent's last message.
 */
function canContinue(prompt: Prompt): boolean {
  const { protocol, toolChoice } = prompt;
  const mode = toolChoice?.type === "allowed" ? toolChoice.mode : toolChoice?.type;
  return protocol !== "responses" && !asksForJson(prompt) && mode !== "required" && mode !== "tool";
}

/** Removes white space at the end of a message. Anthropic refuses a prefill that ends with it. */
function trimEnd(message: Message): Message {
  const last = message.blocks.at(-1);
  if (last?.type !== "text") return message;
  return { ...message, blocks: [...message.blocks.slice(0, -1), { ...last, text: last.text.trimEnd() }] };
}

function userMessage(text: string): Message {
  return { role: "user", blocks: [{ type: "text", text }] };
}

const ORPHAN_TEXT = "Result of a tool call that is no longer part of this conversation:";

/**
 * Gives every call and its result a unique id, and turns results without a call into text. A result belongs to the
 * first call of the round that has its id and no result yet. An empty id matches nothing: a call with one gets another
 * id, a result with one becomes text.
 */
function pairCalls(messages: readonly Message[]): Message[] {
  const makeUnique = uniqueIdMaker();
  /** New ids of this round's calls, by the client's ids. Those before the index `next` have a result. */
  let calls = new Map<string, { ids: string[]; next: number }>();
  let answered = false;
  return messages.map((message): Message => {
    if (message.role === "assistant" && answered) calls = new Map();
    if (message.role !== "system") answered = message.role === "user";
    if (!message.blocks.some(isPaired)) return message;
    const blocks: ContentBlock[] = [];
    for (const block of message.blocks) {
      if (block.type === "tool_call") {
        const id = makeUnique(block.id);
        const known = calls.get(block.id);
        if (known !== undefined) known.ids.push(id);
        else if (block.id !== "") calls.set(block.id, { ids: [id], next: 0 });
        blocks.push(id === block.id ? block : { ...block, id });
      } else if (block.type === "tool_result") {
        const sameId = message.role === "user" ? calls.get(block.callId) : undefined;
        const id = sameId?.ids[sameId.next++];
        if (id === undefined) blocks.push({ type: "text", text: ORPHAN_TEXT }, ...block.blocks);
        else blocks.push(id === block.callId ? block : { ...block, callId: id });
      } else blocks.push(block);
    }
    return { ...message, blocks };
  });
}

function isPaired({ type }: ContentBlock): boolean {
  return type === "tool_call" || type === "tool_result";
}

/** Returns a function that makes ids unique: some models number their calls from 0 in every message. Deterministic. */
function uniqueIdMaker(): (id: string) => string {
  const seen = new Set<string>();
  /** The last number given to each id. */
  const counts = new Map<string, number>();
  return (id) => {
    let unique = id;
    while (unique === "" || seen.has(unique)) {
      const count = (counts.get(id) ?? 0) + 1;
      counts.set(id, count);
      unique = id === "" ? `call_${count}` : `${id}_${count}`;
    }
    seen.add(unique);
    return unique;
  };
}
