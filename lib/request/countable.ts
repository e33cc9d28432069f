/** Decides whether the cost of a cancelled stream can be counted from the events that were sent. */
import type { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import { modalityOf } from "../protocols/canonical/media.ts";
import { type ContentBlock, mayRunHostedTools, type Prompt } from "../protocols/canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import { wantsThinking } from "../protocols/quirks/thinking.ts";

/** Facts about the call. */
export interface SentRequest {
  model: Pick<Model, "reasoning">;
  /** Protocol of the upstream; absent for embedded models. */
  spoken: string | undefined;
  /** Parameters that the upstream does not support. */
  dropped: UnsupportedParameters;
}

/** Facts about the stream so far. */
export interface Shown {
  /** True if the upstream sent a reasoning block. */
  reasoning: boolean;
  /** True if the upstream reported the input tokens. */
  input: boolean;
}

/**
 * Returns true if the upstream can be cancelled when the client leaves, because the sent events can be counted. Returns
 * false if there may be hidden output, or input that only the upstream can count. A whole answer shows nothing before its
 * end.
 */
export function isCountable(prompt: Prompt, asked: SentRequest, shown: Shown): boolean {
  if (!prompt.stream || shown.reasoning || (prompt.n ?? 1) > 1 || mayRunHostedTools(prompt)) return false;
  // Rejected prediction tokens are billed but not shown.
  if (mayReason(prompt, asked) || prompt.unknownMembers?.members.prediction !== undefined) return false;
  return shown.input || prompt.plain !== undefined || !prompt.messages.some(hasFile);
}

/** True if the model can reason and reasoning is not effectively disabled. */
function mayReason({ reasoning }: Prompt, { model: { reasoning: can }, spoken, dropped }: SentRequest): boolean {
  if (can === undefined) return false;
  if (can.mandatory === true) return true;
  switch (wantsThinking(reasoning)) {
    case true:
      return true;
    case false:
      // If the upstream does not support the parameter, it is in `dropped`.
      return dropped.names.some((name) => /^(reasoning|thinking|output_config)/.test(name));
    case undefined:
      // The messages protocol has budgeted thinking only on request. Everything else depends on the model.
      return spoken !== "messages" || can.modes.includes("adaptive");
  }
}

/** True if the prompt has a file whose token count depends on the vendor. */
function hasFile({ blocks }: { blocks: readonly ContentBlock[] }): boolean {
  return blocks.some((block) => {
    if (block.type === "tool_result") return hasFile(block);
    if (block.type !== "media") return false;
    const modality = modalityOf(block.media, block.name);
    return modality !== "image" && (modality !== "text" || block.media.kind === "url");
  });
}
