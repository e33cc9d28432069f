/** Adapts a client's prompt to the capabilities of a target, and its answer back. */
import type { Prompt } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { fitCacheMarks } from "./cache_marks.ts";
import { legalizeCallIds } from "./call_ids.ts";
import { chainMachines } from "./chain_machines.ts";
import { dropEmpty, flattenContent } from "./flatten_content.ts";
import { unwrapCustomCalls, wrapCustomTools } from "./custom_tools.ts";
import { normalizeFinish } from "./normalize_finish.ts";
import { dropTrailingSignatures } from "./trailing_signatures.ts";
import { splitTokenLimit } from "./split_token_limit.ts";
import { moveMediaOutOfResults } from "./move_media.ts";
import { dropUnreadableReasoning, fitReasoning } from "./fit_reasoning.ts";
import { dropUnknownMembers } from "./drop_unknown_members.ts";
import { fitSchemas } from "./fit_schemas.ts";
import { enforceStopSequences, splitStopSequences } from "./stop_sequences.ts";
import type { AdaptedPrompt, AdaptTarget } from "./adapt_target.ts";
import { renameTools } from "./tool_names.ts";
import { selectTools } from "./select_tools.ts";
import { orderMessages } from "./order_messages.ts";

/**
 * Adapts a prompt to its target. Deterministic and idempotent. Names what the target does not support in
 * `target.dropped`.
 * @throws {GatewayError} `invalid`, if leaving something out would change the meaning
 */
export function adaptPrompt(prompt: Prompt, target: AdaptTarget): AdaptedPrompt {
  const { dialect } = target;
  checkLength(prompt, target);
  const local = dropUnknownMembers(flattenContent(prompt, target), target);
  const { prompt: renamed, restore: restoreNames } = renameTools(selectTools(local, target), dialect);
  const wrapped = dialect.customTools ? renamed : wrapCustomTools(renamed);
  const spoken = dropEmpty(dropUnreadableReasoning(wrapped, target), target);
  const paired = legalizeCallIds(orderMessages(spoken, target), dialect.callId);
  const placed = dialect.mediaInResults ? paired : moveMediaOutOfResults(paired);
  const fitted = fitSchemas(fitCacheMarks(fitReasoning(placed, target), target), target);
  const { prompt: limited, ours: limit } = splitTokenLimit(fitted, target);
  const { prompt: adapted, ours } = splitStopSequences(limited, target);
  return {
    prompt: adapted,
    ...(limit !== undefined && { limit }),
    restore: () =>
      chainMachines([
        restoreNames(),
        ...(dialect.customTools ? [] : [unwrapCustomCalls()]),
        ...(ours.length === 0 ? [] : [enforceStopSequences(ours)]),
        normalizeFinish(),
        ...(prompt.protocol === "messages" ? [dropTrailingSignatures()] : []),
      ]),
  };
}

/** A limit of 0 tokens fills a cache at Anthropic; no other vendor accepts it. */
function checkLength({ maxTokens }: Prompt, { protocol }: AdaptTarget): void {
  if (maxTokens !== 0 || protocol === "messages") return;
  throw new GatewayError("invalid", "Cannot use max_tokens 0: this model's upstream requires at least 1", {
    param: "max_tokens",
  });
}
