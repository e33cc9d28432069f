/** Limits of the answer that are lower than the target accepts. */
import type { Prompt } from "../canonical/types.ts";
import type { AdaptTarget } from "./adapt_target.ts";

/** A prompt with a limit that its upstream accepts, and the client's own if the gateway has to enforce it. */
export interface SplitTokenLimit {
  prompt: Prompt;
  /** Most tokens of the answer for the client; absent: the upstream enforces the limit. */
  ours?: number;
}

/** Raises a limit to the target's minimum, and names it: the client pays for the minimum. */
export function splitTokenLimit(
  prompt: Prompt,
  { dialect: { leastTokens = 0 }, dropped }: AdaptTarget,
): SplitTokenLimit {
  const { maxTokens } = prompt;
  if (maxTokens === undefined || maxTokens >= leastTokens) return { prompt };
  dropped.add("max_completion_tokens");
  return { prompt: { ...prompt, maxTokens: leastTokens }, ours: maxTokens };
}
