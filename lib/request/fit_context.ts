/** Makes a prompt fit the model's context window by dropping old turns, or refuses it. */
import { hasToolResult, type Message, type Prompt } from "../protocols/canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import { countMessages, countPrompt, type PromptTokens } from "../billing/count_prompt.ts";
import { loadTokenCounter } from "../o200k/mod.ts";
import type { Codec } from "../protocols/codec.ts";

/** A prompt that fits its model. */
export interface Fitted {
  prompt: Prompt;
  /**
   * Returns the size of the prompt in o200k tokens, at most the model's context. The prompt is counted at the first
   * call, because most upstreams report the size.
   */
  countInput: () => Promise<number>;
}

/** The model that a prompt must fit, and the limits of its output. */
export interface FitOptions {
  model: Model;
  codec: Codec;
  /** True if the upstream itself refuses prompts that are too long. */
  checkedUpstream: boolean;
  /** Output limit that the client set, in tokens; absent if it set none. */
  maxTokens?: number | undefined;
  /** Ends the count once it aborts; absent: nothing does. */
  signal?: AbortSignal;
}

/**
 * Counts the input if the upstream does not check its size, or if the client allows truncation. If the input and the
 * output limit together exceed the context window, `truncation: auto` drops the oldest turns; otherwise the request is
 * refused.
 * @throws {GatewayError} `invalid`, with the message that clients of the protocol know; the signal's reason
 */
export function fitContext(prompt: Prompt, options: FitOptions): Fitted | Promise<Fitted> {
  if (options.checkedUpstream && prompt.truncation !== "auto") {
    let count: Promise<number> | undefined;
    return { prompt, countInput: () => count ??= countAccepted(prompt, options.model.context_length) };
  }
  return countAndFit(prompt, options);
}

async function countAndFit(
  prompt: Prompt,
  { model, codec, maxTokens: output = 0, signal }: FitOptions,
): Promise<Fitted> {
  const limit = model.context_length;
  const room = limit - output;
  const counts = await countMessages(prompt, await loadTokenCounter(), signal);
  const input = sum(counts);
  if (input <= room) return { prompt, countInput: () => Promise.resolve(input) };
  const shorter = prompt.truncation === "auto" ? truncatePrompt(prompt, counts, room) : undefined;
  if (shorter === undefined) throw codec.contextError({ input, output, limit });
  return { prompt: shorter.prompt, countInput: () => Promise.resolve(input - shorter.removed) };
}

/** Counts a prompt that the upstream accepted, so it fits the context even if the estimate for its media is higher. */
async function countAccepted(prompt: Prompt, limit: number): Promise<number> {
  return Math.min(await countPrompt(prompt, await loadTokenCounter()), limit);
}

function sum({ fixed, messages }: PromptTokens): number {
  return messages.reduce((total, tokens) => total + tokens, fixed);
}

/**
 * Drops whole turns, oldest first, until the input is at most `limit` tokens. A turn is a user message and everything up to
 * the next user message; a tool call and its result are always in the same turn. System messages stay where they
 * are, and the last turn stays.
 * @returns the shorter prompt, and the size of the removed messages in tokens; undefined if even the last turn is too
 * large
 */
export function truncatePrompt(
  prompt: Prompt,
  sizes: PromptTokens,
  limit: number,
): { prompt: Prompt; removed: number } | undefined {
  const { messages } = prompt;
  const size = sum(sizes);
  let end = 0;
  let removed = 0;
  for (const next of findTurnStarts(messages).slice(1)) {
    if (size - removed <= limit) break;
    for (; end < next; end++) {
      if (messages[end]?.role !== "system") removed += sizes.messages[end] ?? 0;
    }
  }
  if (size - removed > limit) return undefined;
  if (end === 0) return { prompt, removed };
  const remaining = messages.filter(({ role }, index) => index >= end || role === "system");
  return { prompt: { ...prompt, messages: remaining }, removed };
}

/** Returns the indices at which turns start. The first one is 0. */
function findTurnStarts(messages: readonly Message[]): number[] {
  const turnStarts = [0];
  const insidePair = findIndicesInsidePairs(messages);
  let previous: Message | undefined;
  messages.forEach((message, index) => {
    if (message.role === "system") return;
    // Several user messages in a row belong to one turn.
    const continues = previous === undefined || (previous.role === "user" && !hasToolResult(previous));
    if (message.role === "user" && !hasToolResult(message) && !continues && !insidePair.has(index)) {
      turnStarts.push(index);
    }
    previous = message;
  });
  return turnStarts;
}

/** Returns the indices at which a cut would separate a tool call from its result. */
function findIndicesInsidePairs(messages: readonly Message[]): Set<number> {
  const calledAt = new Map<string, number>();
  // For each index, the change in the number of open pairs: +1 after a call, -1 after its result.
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
  const positions = new Set<number>();
  let open = 0;
  change.forEach((pairs, index) => {
    open += pairs;
    if (open > 0) positions.add(index);
  });
  return positions;
}
