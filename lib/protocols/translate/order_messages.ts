/**
 * The order of turns. A round is what the assistant says and what answers it; every call of a round gets exactly one
 * result, directly after it.
 */
import type { ContentBlock, ContentBlockOf, Message, Prompt } from "../canonical/types.ts";
import { isPaired, pairCalls } from "./pair_calls.ts";
import type { AdaptTarget } from "./adapt_target.ts";

const OPENING = ".";
const CONTINUE =
  "Your last message is unfinished. Continue it exactly where it ends: write only what comes next, and " +
  "repeat nothing of it.";

/**
 * Puts the turns in legal order.
 * - A result without its call becomes text of the user's; a call without a result gets one that says so, in the last turn
 *   too: no upstream takes an open call. Results come first, in the order of their calls.
 * - Where turns must alternate, adjacent ones of one role are merged, and later system messages follow the user's turn.
 *   A conversation that does not begin with the user begins with a `.` of theirs.
 * - An assistant's text at the end, where the upstream cannot continue it, is followed by the user's wish to continue it.
 */
export function orderMessages(prompt: Prompt, target: AdaptTarget): Prompt {
  if (isOrdered(prompt.messages)) return prompt;
  const { alternates } = target.dialect;
  const [head, rounds] = splitRounds(pairCalls(prompt.messages));
  const ordered = rounds.flatMap((round) => alternates ? mergeRound(round) : orderRound(round));
  const messages = [...head, ...(alternates ? beginWithUser(ordered) : ordered)];
  return { ...prompt, messages: endOf(messages, target) };
}

/** Whether the system speaks first, then the user and the assistant in turn, the user last, and nobody of tools. */
function isOrdered(messages: readonly Message[]): boolean {
  let last: Message["role"] = "system";
  for (const { role, blocks } of messages) {
    const follows = role === "user" ? last !== "user" : role === "assistant" ? last === "user" : last === "system";
    if (!follows || blocks.length === 0 || blocks.some(isPaired)) return false;
    last = role;
  }
  return last === "user";
}

/** Leading system messages, and the rounds: each begins with the assistant's first word after the user's. */
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

/** One turn of the assistant's, one of the user's with the results first, then what the system said meanwhile. */
function mergeRound(round: readonly Message[]): Message[] {
  const assistant = merge(round.filter(({ role }) => role === "assistant"));
  const users = round.filter(({ role }) => role === "user");
  const results = resultsFor(assistant === undefined ? [] : [assistant], users).map(({ block }) => block);
  const user = merge(users);
  const said = user?.blocks.filter(({ type }) => type !== "tool_result") ?? [];
  const answer = [...results, ...said];
  return [
    ...(assistant === undefined ? [] : [assistant]),
    ...(answer.length === 0 ? [] : [{ role: "user" as const, ...user, blocks: answer }]),
    ...round.filter(({ role }) => role === "system"),
  ];
}

/** Messages of one role as one. */
function merge(messages: readonly Message[]): Message | undefined {
  const [first] = messages;
  if (first === undefined || messages.length === 1) return first;
  const rests = messages.flatMap(({ unknownMembers }) => unknownMembers === undefined ? [] : [unknownMembers]);
  const [unknownMembers] = rests;
  return {
    role: first.role,
    blocks: messages.flatMap(({ blocks }) => blocks),
    ...(unknownMembers !== undefined && {
      unknownMembers: { from: unknownMembers.from, members: Object.assign({}, ...rests.map(({ members }) => members)) },
    }),
  };
}

/** Every message stays one, but results move up to the message of their calls. */
function orderRound(round: readonly Message[]): Message[] {
  const users = round.filter(({ role }) => role === "user");
  const ordered: Message[] = [];
  const begun = new Map<Message, Message>();
  for (const message of round) {
    if (message.role === "user") {
      const blocks = message.blocks.filter(({ type }) => type !== "tool_result");
      if (blocks.length === 0 && message.blocks.length > 0) continue;
      const results = begun.get(message);
      // Where it came with the last result, the two stay one message.
      if (results !== undefined && results === ordered.at(-1)) results.blocks.push(...blocks);
      else ordered.push(results === undefined ? { ...message, blocks } : { role: "user", blocks });
      continue;
    }
    ordered.push(message);
    if (message.role === "assistant") ordered.push(...resultMessages(resultsFor([message], users), begun));
  }
  return ordered;
}

/**
 * Results as messages: one for each message they came in.
 * @param begun the first message made of each message of the client's, which keeps its rest
 */
function resultMessages(results: readonly Result[], begun: Map<Message, Message>): Message[] {
  const messages: Message[] = [];
  let before: Message | undefined;
  for (const { block, source } of results) {
    const last = messages.at(-1);
    if (last !== undefined && source !== undefined && source === before) {
      last.blocks.push(block);
      continue;
    }
    before = source;
    const message: Message = source !== undefined && !begun.has(source)
      ? { ...source, blocks: [block] }
      : { role: "user", blocks: [block] };
    if (source !== undefined && !begun.has(source)) begun.set(source, message);
    messages.push(message);
  }
  return messages;
}

interface Result {
  block: ContentBlockOf<"tool_result">;
  /** The client's message it came in; undefined where there was none. */
  source: Message | undefined;
}

/** The results of the messages' calls, in the order of the calls, each with the message it came in. */
function resultsFor(
  assistants: readonly Message[],
  users: readonly Message[],
): Result[] {
  const results = new Map<string, Result>();
  for (const source of users) {
    for (const block of source.blocks) if (block.type === "tool_result") results.set(block.callId, { block, source });
  }
  const calls = assistants.flatMap(({ blocks }) => blocks).filter((block: ContentBlock) => block.type === "tool_call");
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
  return messages[0]?.role === "user" ? [...messages] : [userSays(OPENING), ...messages];
}

function endOf(messages: Message[], { dialect, protocol, dropped }: AdaptTarget): Message[] {
  const { alternates, prefill } = dialect;
  const at = messages.findLastIndex(({ role }) => role !== "system");
  const last = messages[at];
  if (last?.role !== "assistant") return messages;
  if (at < messages.length - 1) {
    if (prefill) return messages;
    // The system has the last word: as the user's it can be answered.
    const said = messages.slice(at + 1).map((message): Message => ({ ...message, role: "user" }));
    const merged = alternates ? merge(said) : undefined;
    return [...messages.slice(0, at + 1), ...(merged === undefined ? said : [merged])];
  }
  if (!prefill) {
    dropped.add("prefill");
    return [...messages, userSays(CONTINUE)];
  }
  return protocol === "messages" ? messages.with(at, trimEnd(last)) : messages;
}

/** Anthropic refuses a beginning that ends with white space. */
function trimEnd(message: Message): Message {
  const last = message.blocks.at(-1);
  if (last?.type !== "text") return message;
  return { ...message, blocks: [...message.blocks.slice(0, -1), { ...last, text: last.text.trimEnd() }] };
}

function userSays(text: string): Message {
  return { role: "user", blocks: [{ type: "text", text }] };
}
