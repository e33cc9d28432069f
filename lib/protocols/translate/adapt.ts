/** From a client's prompt to one that an upstream's dialect can say, and back from its answer. */
import type { Prompt } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { fitCacheMarks } from "./cache_marks.ts";
import { legalizeCallIds } from "./call_ids.ts";
import { chain } from "./chain.ts";
import { dropEmpty, flattenContent } from "./content.ts";
import { unwrapCustomCalls, wrapCustomTools } from "./custom_tools.ts";
import { settleFinish } from "./finish.ts";
import { leaveOutLateSignatures } from "./late_signatures.ts";
import { shareLimit } from "./least_tokens.ts";
import { moveMediaOut } from "./media.ts";
import { dropForeignReasoning, settleReasoning } from "./reasoning.ts";
import { dropRest } from "./rest.ts";
import { fitSchemas } from "./schemas.ts";
import { enforceStops, shareStops } from "./stops.ts";
import type { Adapted, AdaptTarget } from "./target.ts";
import { renameTools } from "./tool_names.ts";
import { selectTools } from "./tools.ts";
import { orderTurns } from "./turns.ts";

/**
 * Fits a prompt to its target. Deterministic, and nothing is left to do for a prompt that was fitted before. What the
 * target cannot say is named in `target.dropped`.
 * @throws {GatewayError} `invalid`, where leaving something out would change the meaning
 */
export function adapt(prompt: Prompt, target: AdaptTarget): Adapted {
  const { dialect } = target;
  checkLength(prompt, target);
  const local = dropRest(flattenContent(prompt, target), target);
  const { prompt: renamed, restore: restoreNames } = renameTools(selectTools(local, target), dialect);
  const wrapped = dialect.customTools ? renamed : wrapCustomTools(renamed);
  const spoken = dropEmpty(dropForeignReasoning(wrapped, target), target);
  const paired = legalizeCallIds(orderTurns(spoken, target), dialect.callId);
  const placed = dialect.mediaInResults ? paired : moveMediaOut(paired);
  const fitted = fitSchemas(fitCacheMarks(settleReasoning(placed, target), target), target);
  const { prompt: limited, ours: limit } = shareLimit(fitted, target);
  const { prompt: adapted, ours } = shareStops(limited, target);
  return {
    prompt: adapted,
    ...(limit !== undefined && { limit }),
    restore: () =>
      chain([
        restoreNames(),
        ...(dialect.customTools ? [] : [unwrapCustomCalls()]),
        ...(ours.length === 0 ? [] : [enforceStops(ours)]),
        settleFinish(),
        ...(prompt.protocol === "messages" ? [leaveOutLateSignatures()] : []),
      ]),
  };
}

/** An answer of no tokens fills a cache. Only one vendor knows that; to the others it is no number of tokens. */
function checkLength({ maxTokens }: Prompt, { protocol }: AdaptTarget): void {
  if (maxTokens !== 0 || protocol === "messages") return;
  throw new GatewayError("invalid", "Cannot ask for 0 tokens: this model's upstream gives at least one", {
    param: "max_tokens",
  });
}
