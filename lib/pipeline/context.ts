/** Makes a prompt fit the model's context window, or refuses it. */
import type { Prompt } from "../canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import { countMessages } from "../metering/count_prompt.ts";
import { loadTokenCounter } from "../metering/tokens.ts";
import type { Codec } from "../protocols/codec.ts";
import { truncate } from "./truncate.ts";

/** A prompt that fits its model, and its size in o200k tokens. */
export interface Fitted {
  prompt: Prompt;
  inputTokens: number;
}

/**
 * Counts the input. Where it is over the context window, `truncation: auto` drops the oldest turns; anything else is
 * refused in the protocol's own words.
 * @throws {GatewayError} `invalid`
 */
export async function fitContext(prompt: Prompt, { model, codec }: { model: Model; codec: Codec }): Promise<Fitted> {
  const limit = model.context_length;
  const counts = await countMessages(prompt, await loadTokenCounter());
  const input = sum(counts);
  if (input <= limit) return { prompt, inputTokens: input };
  const shorter = prompt.truncation === "auto" ? truncate(prompt, counts, limit) : undefined;
  if (shorter === undefined) throw codec.contextError({ input, limit });
  return { prompt: shorter.prompt, inputTokens: input - shorter.tokens };
}

function sum({ fixed, messages }: { fixed: number; messages: number[] }): number {
  return messages.reduce((total, tokens) => total + tokens, fixed);
}
