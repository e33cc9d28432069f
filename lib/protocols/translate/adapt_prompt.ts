/** Adapts a client's prompt to the capabilities of a target, and its answer back. */
import type { Prompt } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { fitCacheMarks } from "./cache_marks.ts";
import { adaptMessages } from "./adapt_messages.ts";
import { adaptTools } from "./adapt_tools.ts";
import { chainMachines } from "./chain_machines.ts";
import { flattenContent } from "./flatten_content.ts";
import { normalizeFinish } from "./normalize_finish.ts";
import { dropTrailingSignatures } from "./trailing_signatures.ts";
import { splitTokenLimit } from "./split_token_limit.ts";
import { fitReasoning } from "./fit_reasoning.ts";
import { dropUnknownMembers } from "./drop_unknown_members.ts";
import { fitSchemas } from "./fit_schemas.ts";
import { enforceStopSequences, splitStopSequences } from "./stop_sequences.ts";
import type { AdaptedPrompt, AdaptTarget } from "./adapt_target.ts";

/**
 * Adapts a prompt to its target. Deterministic and idempotent. Names what the target does not support in
 * `target.dropped`.
 * @throws {GatewayError} `invalid`, if leaving something out would change the meaning
 */
export function adaptPrompt(prompt: Prompt, target: AdaptTarget): AdaptedPrompt {
  checkLength(prompt, target);
  const local = dropUnknownMembers(flattenContent(prompt, target), target);
  const { prompt: withTools, restore: restoreTools } = adaptTools(local, target);
  const withMessages = adaptMessages(withTools, target);
  const fitted = fitSchemas(fitCacheMarks(fitReasoning(withMessages, target), target), target);
  const { prompt: limited, ours: limit } = splitTokenLimit(fitted, target);
  const { prompt: adapted, ours } = splitStopSequences(limited, target);
  return {
    prompt: adapted,
    ...(limit !== undefined && { limit }),
    restore: () =>
      chainMachines([
        ...restoreTools(),
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
