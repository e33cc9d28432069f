/** Recognizes the requests of one conversation, for prompt-cache affinity. */
import { type JsonDocument, memberText, scanElements } from "../json/mod.ts";
import { conversationId } from "../routing/affinity.ts";
import { type TargetKey, targetName } from "../routing/health.ts";
import { headOf, type JsonBody } from "../server/parse_body.ts";
import type { Affinity } from "../store/ledger.ts";
import type { RequestState } from "./state.ts";

/** Headers with the id of a session: opencode and Crush, OpenRouter's clients, Claude Code, Codex. */
const SESSION_HEADERS = ["x-session-affinity", "x-session-id", "x-claude-code-session-id", "session-id"];

/** Members that name a conversation: OpenAI's, and OpenRouter's. */
const SESSION_MEMBERS = ["prompt_cache_key", "session_id"];

/** Longest session id that is used, in UTF-16 code units. Longer ids are cut. */
const MAX_ID_LENGTH = 512;

/** Characters of each part of a prefix that identify the prefix, together with the length of each message. */
const PART_CHARS = 4_096;

/** Characters that are searched for the first messages. Searching the worst text of 30 million takes 400 ms. */
const SEARCHED_CHARS = 262_144;

/** Smallest body with a prefix that vendors cache: they cache 1,024 tokens and more. */
const MIN_CACHED_BYTES = 4_096;

/** Members at the start of a prompt that stay the same throughout a conversation. */
const PREFIX_MEMBERS = ["system", "instructions", "tools"];

const USER_ROLE = /"role"\s*:\s*"user"/;

/** A conversation with a model. */
export interface Conversation {
  id: string;
  /**
   * Name of the target that answered the last request, and may have the prompt in its cache; `undefined` if unknown.
   */
  warm: string | undefined;
}

/** Finds the conversation of a request; `undefined` if it has none, or if affinity is off. */
export function findConversation(body: JsonBody, { context, request, caller }: RequestState): Conversation | undefined {
  const { gateway: { config, conversations }, record } = context;
  if (config.routing.affinity_minutes === 0) return undefined;
  const id = conversationOf(body, request.headers, record.bytesIn);
  return id === undefined ? undefined : { id, warm: conversations.find(caller.keyId, id) };
}

/** Returns whether a target answered the last request of a conversation, as the ledger records it. */
export function affinityOf(conversation: Conversation, target: TargetKey): Affinity {
  if (conversation.warm === undefined) return "miss";
  return conversation.warm === targetName(target) ? "hit" : "moved";
}

/**
 * Returns the id of a request's conversation. It is derived from the prompt's cache key, else from the session that the
 * client names, else from the start of the prompt up to the user's first message. `undefined` for a short prompt
 * without a cache key and a session.
 */
function conversationOf(body: JsonBody, headers: Pick<Headers, "get">, bytes: number): string | undefined {
  const session = sessionOf(body, headers);
  const model = String(headOf(body).model);
  if (session !== undefined) return conversationId([model, session.slice(0, MAX_ID_LENGTH)]);
  if (bytes < MIN_CACHED_BYTES) return undefined;
  const members = PREFIX_MEMBERS.map((name) => memberText(body, name, PART_CHARS) ?? "");
  const messages = firstMessages(body).flatMap((text) => [String(text.length), text.slice(0, PART_CHARS)]);
  return conversationId([model, ...members, ...messages]);
}

function sessionOf(body: JsonBody, headers: Pick<Headers, "get">): string | undefined {
  const head = headOf(body);
  for (const name of SESSION_MEMBERS) {
    const value = head[name];
    if (typeof value === "string" && value !== "") return value;
  }
  for (const name of SESSION_HEADERS) {
    const value = headers.get(name);
    if (value !== null && value !== "") return value;
  }
  return undefined;
}

/** Returns the texts of the messages up to the user's first one. A prompt that is a string counts as one message. */
function firstMessages(body: JsonDocument): string[] {
  const text = memberText(body, "messages", SEARCHED_CHARS) ?? memberText(body, "input", SEARCHED_CHARS) ?? "";
  if (!text.startsWith("[")) return [text];
  const messages: string[] = [];
  for (const { start, end } of scanElements(text)) {
    const message = text.slice(start, end);
    messages.push(message);
    if (USER_ROLE.test(message)) break;
  }
  return messages;
}
