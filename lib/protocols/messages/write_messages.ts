/** Writes the conversation: the system prompt, and turns that alternate. */
import type { Message, Prompt } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import {
  ownUnknownMembers,
  shortestContent,
  writeBlocks,
  writeSystemBlocks,
  type WrittenContent,
} from "./write_content.ts";

/** A turn while it is composed. */
interface Turn {
  role: Message["role"];
  content: JsonObject[];
  unknownMembers: JsonObject;
}

/**
 * Writes the messages. System messages before all others are the system prompt. Later ones stay where they are if the
 * model takes them there, and are marked text of the user's if not: the system prompt would change with each turn, and
 * with it the cached prefix of everything after it.
 * @param lines what the system prompt says besides
 */
export function writeMessages(
  prompt: Prompt,
  { target, lines }: { target: WriteTarget; lines: readonly string[] },
): { system?: WrittenContent; messages: JsonObject[] } {
  const first = prompt.messages.findIndex(({ role }) => role !== "system");
  const leading = first < 0 ? prompt.messages.length : first;
  const system = prompt.messages.slice(0, leading).flatMap(({ blocks }) => writeSystemBlocks(blocks));
  system.push(...lines.map((text) => ({ type: "text", text })));
  const turns = joinTurns(prompt.messages.slice(leading), target.row.features?.system_messages === true);
  return {
    ...(system.length > 0 && { system: shortestContent(system) }),
    messages: turns.map(writeJoined),
  };
}

function writeJoined({ role, content, unknownMembers }: Turn): JsonObject {
  const written = { role, content: shortestContent(content) };
  return Object.keys(unknownMembers).length === 0 ? written : { ...unknownMembers, ...written };
}

/** Turns that alternate. What the model takes as a system message it takes after a user's turn only. */
function joinTurns(messages: readonly Message[], takesSystem: boolean): Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    const written = writeTurn(message);
    if (written.content.length === 0) continue;
    const last = turns.at(-1);
    const stays = takesSystem && last !== undefined && last.role !== "assistant";
    const turn = written.role === "system" && !stays ? asUser(written) : written;
    if (last?.role === turn.role) turns[turns.length - 1] = join(last, turn);
    else turns.push(turn);
  }
  return turns;
}

function writeTurn({ role, blocks, unknownMembers }: Message): Turn {
  return {
    role,
    content: role === "system" ? writeSystemBlocks(blocks) : writeBlocks(blocks),
    unknownMembers: ownUnknownMembers({ unknownMembers }),
  };
}

/** System text as the user's, marked as what it is. */
function asUser({ content }: Turn): Turn {
  return {
    role: "user",
    content: content.map((block) =>
      typeof block.text === "string" ? { ...block, text: `<system>\n${block.text}\n</system>` } : block
    ),
    unknownMembers: {},
  };
}

/** One turn of two. Results of tools come first: they must follow the calls directly. */
function join(first: Turn, second: Turn): Turn {
  const content = [...first.content, ...second.content];
  const isResult = ({ type }: JsonObject) => type === "tool_result";
  return {
    role: first.role,
    content: [...content.filter(isResult), ...content.filter((block) => !isResult(block))],
    unknownMembers: { ...first.unknownMembers, ...second.unknownMembers },
  };
}
