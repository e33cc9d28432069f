/** Writes the conversation: the system prompt, and alternating messages. */
import type { Message, Prompt } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { shortestContent, writeBlocks, writeSystemBlocks, type WrittenContent } from "./write_content.ts";

/** A message being composed. */
interface MessageDraft {
  role: Message["role"];
  content: JsonObject[];
  unknownMembers: JsonObject;
}

/** Blocks written in one step. */
const BLOCKS_AT_ONCE = 1_024;

/**
 * Writes the messages, in steps. Leading system messages are the system prompt. Later ones stay in place if the model accepts
 * them, else they become marked user text: in the system prompt they would change with each request and invalidate the
 * cached prefix.
 * @param lines additional text of the system prompt
 */
export function* writeMessages(
  prompt: Prompt,
  { target, lines }: { target: WriteTarget; lines: readonly string[] },
): Generator<void, { system?: WrittenContent; messages: JsonObject[] }> {
  const first = prompt.messages.findIndex(({ role }) => role !== "system");
  const leading = first < 0 ? prompt.messages.length : first;
  const system = prompt.messages.slice(0, leading).flatMap(({ blocks }) => writeSystemBlocks(blocks));
  system.push(...lines.map((text) => ({ type: "text", text })));
  const turns = yield* joinMessages(prompt.messages.slice(leading), target.row.features?.system_messages === true);
  return {
    ...(system.length > 0 && { system: shortestContent(system) }),
    messages: turns.map(writeJoined),
  };
}

function writeJoined({ role, content, unknownMembers }: MessageDraft): JsonObject {
  return { ...unknownMembers, role, content: shortestContent(content) };
}

/**
 * Writes the messages, whose roles alternate apart from those of the system. What the system says joins the user's message
 * before it. A model that accepts system messages accepts them after a user message only.
 */
function* joinMessages(messages: readonly Message[], takesSystem: boolean): Generator<void, MessageDraft[]> {
  const turns: MessageDraft[] = [];
  let blocks = 0;
  for (const message of messages) {
    if ((blocks += message.blocks.length) >= BLOCKS_AT_ONCE) {
      blocks = 0;
      yield;
    }
    const wireMessage = writeMessage(message);
    const last = turns.at(-1);
    const staysSystem = takesSystem && last !== undefined && last.role !== "assistant";
    const turn = wireMessage.role === "system" && !staysSystem ? asUser(wireMessage) : wireMessage;
    if (last?.role !== turn.role) {
      turns.push(turn);
      continue;
    }
    for (const block of turn.content) last.content.push(block);
    last.unknownMembers = { ...last.unknownMembers, ...turn.unknownMembers };
  }
  return turns;
}

function writeMessage(message: Message): MessageDraft {
  const { role, blocks } = message;
  return {
    role,
    content: role === "system" ? writeSystemBlocks(blocks) : writeBlocks(blocks),
    unknownMembers: ownMembers(message),
  };
}

/** Writes system text as marked user text. */
function asUser({ content }: MessageDraft): MessageDraft {
  return {
    role: "user",
    content: content.map((block) =>
      typeof block.text === "string" ? { ...block, text: `<system>\n${block.text}\n</system>` } : block
    ),
    unknownMembers: {},
  };
}
