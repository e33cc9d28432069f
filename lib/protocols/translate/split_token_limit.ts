/** Limits of the answer that are lower than the target takes. */
import type { Prompt } from "../canonical/types.ts";
import type { AdaptTarget } from "./adapt_target.ts";

/** A prompt with a limit that its upstream takes, and the client's own where that is left to the gateway. */
export interface SplitTokenLimit {
  prompt: Prompt;
  /** Most tokens of the answer that the client gets; absent: the upstream keeps to the limit. */
  ours?: number;
}

/** Raises a limit to the target's minimum, and names it: the client pays for what the minimum costs. */
export function splitTokenLimit(
  prompt: Prompt,
  { dialect: { leastTokens = 0 }, dropped }: AdaptTarget,
): SplitTokenLimit {
  const { maxTokens } = prompt;
  if (maxTokens === undefined || maxTokens >= leastTokens) return { prompt };
  dropped.add("max_completion_tokens");
  return { prompt: { ...prompt, maxTokens: leastTokens }, ours: maxTokens };
}
