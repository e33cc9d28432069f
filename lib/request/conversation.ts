/** Tells the requests of one conversation from others, for prompt-cache affinity. */
import { type JsonDocument, memberText, scanElements } from "../json/mod.ts";
import { conversationId } from "../routing/affinity.ts";
import { type TargetKey, targetName } from "../routing/health.ts";
import { headOf, type JsonBody } from "../server/body.ts";
import type { Affinity } from "../store/ledger.ts";
import type { RequestState } from "./state.ts";

/** Headers with the id of a session: opencode and Crush, OpenRouter's clients, Claude Code, Codex. */
const SESSION_HEADERS = ["x-session-affinity", "x-session-id", "x-claude-code-session-id", "session-id"];

/** Members that name a conversation: OpenAI's, and OpenRouter's. */
const SESSION_MEMBERS = ["prompt_cache_key", "session_id"];

/** Longest id that is used; longer ones are cut. */
const LONGEST_ID = 512;

/** Characters of each part of a prefix that identify it; a message's length does so, too. */
const PART_CHARS = 4_096;

/** Characters in which the first messages are looked for: the worst text of 30 million takes 400 ms. */
const SEARCHED_CHARS = 262_144;

/** Bodies below this have no prefix that vendors cache: they do so from 1,024 tokens on. */
const MIN_BYTES = 4_096;

/** Members at the start of a prompt, which stay the same in every turn of a conversation. */
const PREFIX_MEMBERS = ["system", "instructions", "tools"];

const USER = /"role"\s*:\s*"user"/;

/** A conversation with a model. */
export interface Conversation {
  id: string;
  /** Name of the target that answered its last request; `undefined` where none is remembered. */
  warm: string | undefined;
}

/** The conversation of a request; `undefined` where it has none, or where affinity is off. */
export function findConversation(body: JsonBody, { context, request, key }: RequestState): Conversation | undefined {
  const { gateway: { config, conversations }, record } = context;
  if (config.routing.affinity_minutes === 0) return undefined;
  const id = conversationOf(body, request.headers, record.bytesIn);
  return id === undefined ? undefined : { id, warm: conversations.find(key, id) };
}

/** The relation of a target to the prompt cache of a conversation. */
export function affinityOf(conversation: Conversation, target: TargetKey): Affinity {
  if (conversation.warm === undefined) return "miss";
  return conversation.warm === targetName(target) ? "hit" : "moved";
}

/**
 * Id of a request's conversation: its cache key, the session that its client names, or else the start of its prompt up to
 * the first message of the user. `undefined` for a short prompt without any of them.
 */
function conversationOf(body: JsonBody, headers: Pick<Headers, "get">, bytes: number): string | undefined {
  const session = sessionOf(body, headers);
  const model = String(headOf(body).model);
  if (session !== undefined) return conversationId([model, session.slice(0, LONGEST_ID)]);
  if (bytes < MIN_BYTES) return undefined;
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

/** The messages up to the first one of the user; a prompt that is a text has only itself. */
function firstMessages(body: JsonDocument): string[] {
  const text = memberText(body, "messages", SEARCHED_CHARS) ?? memberText(body, "input", SEARCHED_CHARS) ?? "";
  if (!text.startsWith("[")) return [text];
  const messages: string[] = [];
  for (const { start, end } of scanElements(text)) {
    const message = text.slice(start, end);
    messages.push(message);
    if (USER.test(message)) break;
  }
  return messages;
}
