/** Makes a prompt fit the model's context window, or refuses it. */
import type { Prompt } from "../canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import { countMessages, countPrompt } from "../metering/count_prompt.ts";
import { loadTokenCounter } from "../metering/tokens.ts";
import type { Codec } from "../protocols/codec.ts";
import { truncate } from "./truncate.ts";

/** A prompt that fits its model. */
export interface Fitted {
  prompt: Prompt;
  /** Size of the prompt in o200k tokens. Counted when first asked for: most upstreams count for themselves. */
  countInput: () => Promise<number>;
}

/** What a prompt must fit. */
export interface Fit {
  model: Model;
  codec: Codec;
  /** True where the upstream refuses by itself what is too long. */
  checkedUpstream: boolean;
}

/**
 * Counts the input where the upstream does not check it, or where the client wants it shortened. Where it is over the
 * context window, `truncation: auto` drops the oldest turns; anything else is refused in the protocol's own words.
 * @throws {GatewayError} `invalid`
 */
export function fitContext(prompt: Prompt, fit: Fit): Fitted | Promise<Fitted> {
  if (fit.checkedUpstream && prompt.truncation !== "auto") return { prompt, countInput: counting(prompt) };
  return countAndFit(prompt, fit);
}

async function countAndFit(prompt: Prompt, { model, codec }: Fit): Promise<Fitted> {
  const limit = model.context_length;
  const counts = await countMessages(prompt, await loadTokenCounter());
  const input = sum(counts);
  if (input <= limit) return { prompt, countInput: () => Promise.resolve(input) };
  const shorter = prompt.truncation === "auto" ? truncate(prompt, counts, limit) : undefined;
  if (shorter === undefined) throw codec.contextError({ input, limit });
  return { prompt: shorter.prompt, countInput: () => Promise.resolve(input - shorter.tokens) };
}

function counting(prompt: Prompt): () => Promise<number> {
  let count: Promise<number> | undefined;
  return () => count ??= loadTokenCounter().then((counter) => countPrompt(prompt, counter));
}

function sum({ fixed, messages }: { fixed: number; messages: number[] }): number {
  return messages.reduce((total, tokens) => total + tokens, fixed);
}
