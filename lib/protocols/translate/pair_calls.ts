/** Pairs tool calls with their results. */
import type { ContentBlock, Message } from "../canonical/types.ts";
import { hashText } from "./legal_names.ts";

const ORPHAN = "Result of a tool call that is no longer part of this conversation:";

/**
 * Gives every call a unique id, its result the same, and turns results without a call into text. A result belongs to
 * the first open call with its id since the previous user message. An empty id belongs to nothing: such a call gets an
 * id, such a result becomes text.
 */
export function pairCalls(messages: readonly Message[]): Message[] {
  const ids = uniqueIds();
  /** Open calls of this round: their new ids by the client's ids. */
  let open = new Map<string, string[]>();
  let answered = false;
  return messages.map((message): Message => {
    if (message.role === "assistant" && answered) open = new Map();
    if (message.role !== "system") answered = message.role === "user";
    if (!message.blocks.some(isPaired)) return message;
    const blocks = message.blocks.flatMap((block): ContentBlock[] => {
      if (block.type === "tool_call") {
        const id = ids(block.id);
        if (block.id !== "") open.set(block.id, [...open.get(block.id) ?? [], id]);
        return [{ ...block, id }];
      }
      if (block.type !== "tool_result") return [block];
      const id = message.role === "user" ? open.get(block.callId)?.shift() : undefined;
      return id === undefined ? [{ type: "text", text: ORPHAN }, ...block.blocks] : [{ ...block, callId: id }];
    });
    return { ...message, blocks };
  });
}

/** True for a call or a result. */
export function isPaired({ type }: ContentBlock): boolean {
  return type === "tool_call" || type === "tool_result";
}

/** Some models number their calls from 0 in every message: repeated ids are replaced, the same way each time. */
function uniqueIds(): (id: string) => string {
  const seen = new Set<string>();
  return (id) => {
    let unique = id;
    for (let count = 1; unique === "" || seen.has(unique); count++) unique = `call_${hashText(`${id}#${count}`, 24)}`;
    seen.add(unique);
    return unique;
  };
}
