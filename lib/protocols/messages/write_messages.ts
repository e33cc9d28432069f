/** Writes the conversation of a messages request: the system prompt, and messages of alternating roles. */
import type { Message, Prompt } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { shortestContent, writeBlocks, writeSystemBlocks, type WrittenContent } from "./write_content.ts";

/** A message to which further messages of the same role may be added. */
interface MessageDraft {
  role: Message["role"];
  content: JsonObject[];
  unknownMembers: JsonObject;
}

const BLOCKS_PER_STEP = 1_024;

/**
 * Writes the messages, in steps. Leading system messages become the system prompt. Later ones stay in their place if
 * the model accepts them there; else they become user text in `<system>` tags. In the system prompt they would change
 * it from request to request, and so invalidate the prompt cache.
 * @param lines further texts of the system prompt
 */
export function* writeMessages(
  prompt: Prompt,
  { target, lines }: { target: WriteTarget; lines: readonly string[] },
): Generator<void, { system?: WrittenContent; messages: JsonObject[] }> {
  const first = prompt.messages.findIndex(({ role }) => role !== "system");
  const leading = first < 0 ? prompt.messages.length : first;
  const system = prompt.messages.slice(0, leading).flatMap(({ blocks }) => writeSystemBlocks(blocks));
  system.push(...lines.map((text) => ({ type: "text", text })));
  const drafts = yield* joinMessages(prompt.messages.slice(leading), target.row.features?.system_messages === true);
  return {
    ...(system.length > 0 && { system: shortestContent(system) }),
    messages: drafts.map(({ role, content, unknownMembers }) => ({
      ...unknownMembers,
      role,
      content: shortestContent(content),
    })),
  };
}

/**
 * Joins adjacent messages of one role, so that user and assistant alternate. System text that becomes user text joins
 * the user message before it. Models that accept system messages accept them only after a user message.
 */
function* joinMessages(messages: readonly Message[], acceptsSystem: boolean): Generator<void, MessageDraft[]> {
  const drafts: MessageDraft[] = [];
  let blocksSinceYield = 0;
  for (const message of messages) {
    if ((blocksSinceYield += message.blocks.length) >= BLOCKS_PER_STEP) {
      blocksSinceYield = 0;
      yield;
    }
    const written = writeMessage(message);
    const last = drafts.at(-1);
    const staysSystem = acceptsSystem && last !== undefined && last.role !== "assistant";
    const draft = written.role === "system" && !staysSystem ? asUserMessage(written) : written;
    if (last?.role !== draft.role) {
      drafts.push(draft);
      continue;
    }
    for (const block of draft.content) last.content.push(block);
    last.unknownMembers = { ...last.unknownMembers, ...draft.unknownMembers };
  }
  return drafts;
}

function writeMessage(message: Message): MessageDraft {
  const { role, blocks } = message;
  return {
    role,
    content: role === "system" ? writeSystemBlocks(blocks) : writeBlocks(blocks),
    unknownMembers: ownMembers(message),
  };
}

/** Returns a system message as a user message, with its texts in `<system>` tags. */
function asUserMessage({ content }: MessageDraft): MessageDraft {
  return {
    role: "user",
    content: content.map((block) =>
      typeof block.text === "string" ? { ...block, text: `<system>\n${block.text}\n</system>` } : block
    ),
    unknownMembers: {},
  };
}
