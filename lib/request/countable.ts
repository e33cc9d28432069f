/** Whether what a client was sent of a stream tells what the stream cost. */
import type { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import { modalityOf } from "../protocols/canonical/media.ts";
import { type ContentBlock, mayRunHostedTools, type Prompt } from "../protocols/canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import { wantsThinking } from "../protocols/quirks/thinking.ts";

/** How a prompt was asked. */
export interface SentRequest {
  model: Pick<Model, "reasoning">;
  /** The protocol its upstream speaks; absent: it is no other process. */
  spoken: string | undefined;
  /** What its upstream could not be told. */
  dropped: UnsupportedParameters;
}

/** What its stream has shown so far. */
export interface Shown {
  /** The answer has a block of reasoning, whatever the catalog says of its model. */
  reasoning: boolean;
  /** The upstream has reported the size of the input. */
  input: boolean;
}

/**
 * True where the upstream can be cancelled when the client leaves, as the events that were sent can be counted. False
 * where there may be output that they do not show, or input that only the upstream can count. A whole answer shows
 * nothing before its end.
 */
export function isCountable(prompt: Prompt, asked: SentRequest, shown: Shown): boolean {
  if (!prompt.stream || shown.reasoning || (prompt.n ?? 1) > 1 || mayRunHostedTools(prompt)) return false;
  // Of a prediction, what was rejected is billed and not shown.
  if (mayReason(prompt, asked) || prompt.unknownMembers?.members.prediction !== undefined) return false;
  return shown.input || !prompt.messages.some(hasFile);
}

/** Whether the model may reason: it can, and was not effectively told not to. */
function mayReason({ reasoning }: Prompt, { model: { reasoning: can }, spoken, dropped }: SentRequest): boolean {
  if (can === undefined) return false;
  if (can.mandatory === true) return true;
  switch (wantsThinking(reasoning)) {
    case true:
      return true;
    case false:
      // An upstream that cannot be told so has it named.
      return dropped.names.some((name) => /^(reasoning|thinking|output_config)/.test(name));
    case undefined:
      // In this protocol thinking with a budget has to be asked for. All else depends on the model.
      return spoken !== "messages" || can.modes.includes("adaptive");
  }
}

/** Whether there is a file whose tokens depend on how the vendor reads it. */
function hasFile({ blocks }: { blocks: readonly ContentBlock[] }): boolean {
  return blocks.some((block) => {
    if (block.type === "tool_result") return hasFile(block);
    if (block.type !== "media") return false;
    const modality = modalityOf(block.media, block.name);
    return modality !== "image" && (modality !== "text" || block.media.kind === "url");
  });
}
