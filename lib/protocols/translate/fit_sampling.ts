/** Fits the settings of a request that are counts or numbers to the target. */
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { Prompt, Protocol } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { AdaptTarget } from "../upstream_codec.ts";

/**
 * Checks that the client asks for one answer, and for more than 0 tokens. A limit of 0 tokens fills the cache at
 * Anthropic; no other vendor accepts it.
 * @throws {GatewayError} `invalid`, if not
 */
export function checkCounts({ n = 1, maxTokens, protocol }: Prompt, target: AdaptTarget): void {
  if (maxTokens === 0 && target.protocol !== "messages") {
    throw new GatewayError("invalid", "Cannot use max_tokens 0: this model's upstream requires at least 1", {
      param: "max_tokens",
    });
  }
  if (n <= 1) return;
  throw new GatewayError("invalid", `Cannot return ${n} answers: this model returns one per request`, {
    param: PARAMETER_NAMES[protocol].n,
  });
}

/** Protocols of OpenAI, which have log probabilities in the same form. */
const LOGPROBS_PROTOCOLS: ReadonlySet<Protocol> = new Set(["chat", "responses"]);

/**
 * Removes sampling parameters without an effect, and the request for log probabilities unless client and target have
 * them in the same form.
 */
export function fitSampling(prompt: Prompt, { protocol, row, dropped }: AdaptTarget): Prompt {
  const { logprobs, topLogprobs, topK, frequencyPenalty, presencePenalty, logitBias, ...sampling } = prompt.sampling;
  // Hosts of chat may have a limit of their own, which 0 or -1 removes.
  const hasTopK = topK !== undefined && (topK > 0 || protocol === "chat");
  const isShared = [prompt.protocol, protocol].every((name) => LOGPROBS_PROTOCOLS.has(name));
  const supports = (name: string): boolean => isShared && row.supported_parameters.includes(name);
  const isKept = logprobs === true && supports("logprobs");
  if (logprobs === true && !isKept) dropped.add("logprobs");
  const isTopKept = isKept && topLogprobs !== undefined && supports("top_logprobs");
  if ((topLogprobs ?? 0) > 0 && !isTopKept) dropped.add("top_logprobs");
  return {
    ...prompt,
    sampling: {
      ...sampling,
      ...(hasTopK && { topK }),
      ...(Boolean(frequencyPenalty) && { frequencyPenalty }),
      ...(Boolean(presencePenalty) && { presencePenalty }),
      ...(Object.keys(logitBias ?? {}).length > 0 && { logitBias }),
      ...(isKept && { logprobs }),
      ...(isTopKept && { topLogprobs }),
    },
  };
}
