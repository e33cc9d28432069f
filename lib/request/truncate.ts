/** `truncation: auto`: the oldest turns go until the rest fits. */
import type { Message, Prompt } from "../protocols/canonical/types.ts";

/** A prompt without its oldest turns. */
export interface Truncated {
  prompt: Prompt;
  /** Number of messages that went. */
  dropped: number;
  /** Their size in tokens. */
  tokens: number;
}

/**
 * Drops whole turns, oldest first, until the input is at most `limit` tokens. A turn is what the user says and everything
 * up to what the user says next; a tool call and its result are always in the same turn. System messages stay where they
 * are, and the last turn stays.
 * @param counts sizes in tokens: `messages[i]` of the message at index i, `fixed` of everything else
 * @returns undefined where even the last turn is too large
 */
export function truncate(
  prompt: Prompt,
  counts: { readonly fixed: number; readonly messages: readonly number[] },
  limit: number,
): Truncated | undefined {
  const { messages } = prompt;
  const sizes = messages.map((_, index) => counts.messages[index] ?? 0);
  let size = sizes.reduce((sum, tokens) => sum + tokens, counts.fixed);
  const begins = turnBegins(messages);
  let end = 0;
  let dropped = 0;
  let tokens = 0;
  for (const next of begins.slice(1)) {
    if (size <= limit) break;
    for (; end < next; end++) {
      if (messages[end]?.role === "system") continue;
      dropped++;
      tokens += sizes[end] ?? 0;
      size -= sizes[end] ?? 0;
    }
  }
  if (size > limit) return undefined;
  if (dropped === 0) return { prompt, dropped, tokens };
  const kept = messages.filter(({ role }, index) => index >= end || role === "system");
  return { prompt: { ...prompt, messages: kept }, dropped, tokens };
}

/** Indices at which turns begin, the first of them 0. */
function turnBegins(messages: readonly Message[]): number[] {
  const begins = [0];
  const joined = insidePairs(messages);
  let before: Message | undefined;
  messages.forEach((message, index) => {
    if (message.role === "system") return;
    // The user may say one thing in several messages.
    const goesOn = before === undefined || (before.role === "user" && !hasResult(before));
    if (message.role === "user" && !hasResult(message) && !goesOn && !joined.has(index)) begins.push(index);
    before = message;
  });
  return begins;
}

function hasResult({ blocks }: Message): boolean {
  return blocks.some((block) => block.type === "tool_result");
}

/** Indices at which a cut would part a call from its result. */
function insidePairs(messages: readonly Message[]): Set<number> {
  const calledAt = new Map<string, number>();
  // At each index, how many more pairs are open from there on than before.
  const change = new Array<number>(messages.length + 1).fill(0);
  const add = (index: number, pairs: number) => change[index] = (change[index] ?? 0) + pairs;
  messages.forEach(({ blocks }, index) => {
    for (const block of blocks) {
      if (block.type === "tool_call") calledAt.set(block.id, index);
      const call = block.type === "tool_result" ? calledAt.get(block.callId) : undefined;
      if (call === undefined) continue;
      add(call + 1, 1);
      add(index + 1, -1);
    }
  });
  const inside = new Set<number>();
  let open = 0;
  change.forEach((pairs, index) => {
    open += pairs;
    if (open > 0) inside.add(index);
  });
  return inside;
}
