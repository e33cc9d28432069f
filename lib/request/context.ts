/** Makes a prompt fit the model's context window, or refuses it. */
import type { Prompt } from "../protocols/canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import { countMessages, countPrompt } from "../billing/count_prompt.ts";
import { loadTokenCounter } from "../o200k/mod.ts";
import type { Codec } from "../protocols/codec.ts";
import { truncate } from "./truncate.ts";

/** A prompt that fits its model. */
export interface Fitted {
  prompt: Prompt;
  /**
   * Size of the prompt in o200k tokens, at most the model's context. Counted when first asked for: most upstreams count for
   * themselves.
   */
  countInput: () => Promise<number>;
}

/** The context window that a prompt must fit. */
export interface Fit {
  model: Model;
  codec: Codec;
  /** True where the upstream refuses by itself what is too long. */
  checkedUpstream: boolean;
  /** Output tokens that the client asked for; absent: it named no limit. */
  maxTokens?: number | undefined;
}

/**
 * Counts the input where the upstream does not check it, or where the client wants it shortened. Where it is over the
 * context window, together with the output that the client asked for, `truncation: auto` drops the oldest turns; anything
 * else is refused in the protocol's own words.
 * @throws {GatewayError} `invalid`
 */
export function fitContext(prompt: Prompt, fit: Fit): Fitted | Promise<Fitted> {
  if (fit.checkedUpstream && prompt.truncation !== "auto") {
    return { prompt, countInput: counting(prompt, fit.model.context_length) };
  }
  return countAndFit(prompt, fit);
}

async function countAndFit(prompt: Prompt, { model, codec, maxTokens: output = 0 }: Fit): Promise<Fitted> {
  const limit = model.context_length;
  const room = limit - output;
  const counts = await countMessages(prompt, await loadTokenCounter());
  const input = sum(counts);
  if (input <= room) return { prompt, countInput: () => Promise.resolve(input) };
  const shorter = prompt.truncation === "auto" ? truncate(prompt, counts, room) : undefined;
  if (shorter === undefined) throw codec.contextError({ input, output, limit });
  return { prompt: shorter.prompt, countInput: () => Promise.resolve(input - shorter.tokens) };
}

/** An accepted prompt is no larger than the context, whatever the estimate of its images and files. */
function counting(prompt: Prompt, limit: number): () => Promise<number> {
  let count: Promise<number> | undefined;
  const most = (tokens: number) => Math.min(tokens, limit);
  return () => count ??= loadTokenCounter().then((counter) => countPrompt(prompt, counter)).then(most);
}

function sum({ fixed, messages }: { fixed: number; messages: number[] }): number {
  return messages.reduce((total, tokens) => total + tokens, fixed);
}
