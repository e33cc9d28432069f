/** Adapts the messages of a prompt to a target. */
import type { Prompt } from "../canonical/types.ts";
import type { AdaptTarget } from "./adapt_target.ts";
import { legalizeCallIds } from "./call_ids.ts";
import { dropUnreadableReasoning } from "./fit_reasoning.ts";
import { dropEmpty } from "./flatten_content.ts";
import { moveMediaOutOfResults } from "./move_media.ts";
import { orderMessages } from "./order_messages.ts";

/** Drops what the target cannot read, orders the messages, makes call ids legal and moves media out of tool results. */
export function adaptMessages(prompt: Prompt, target: AdaptTarget): Prompt {
  const { dialect } = target;
  const readable = dropEmpty(dropUnreadableReasoning(prompt, target), target);
  const ordered = legalizeCallIds(orderMessages(readable, target), dialect.callId);
  return dialect.mediaInResults ? ordered : moveMediaOutOfResults(ordered);
}
