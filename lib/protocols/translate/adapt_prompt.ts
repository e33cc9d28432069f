/** Adapts a client's prompt to the capabilities of a target, and restores the answer for the client. */
import { asksForJson, type ContentBlock, type EventTransform, type Prompt } from "../canonical/types.ts";
import type { AdaptTarget } from "../upstream_codec.ts";
import { fitCacheMarks } from "./cache_marks.ts";
import { replaceClientTools } from "./client_tools.ts";
import { removeCodeFence, unwrapAnswer } from "./json_frame.ts";
import { unwrapCustomCalls, wrapCustomTools } from "./custom_tools.ts";
import { dropUnknownMembers } from "./drop_unknown_members.ts";
import {
  blankText,
  dropEmpty,
  dropUnreadableReasoning,
  fitReasoning,
  flattenContent,
  legalizeCallIds,
  moveMediaOutOfResults,
} from "./fit_content.ts";
import { checkCounts, fitSampling } from "./fit_sampling.ts";
import { askForChoice, fitSchemas } from "./fit_schemas.ts";
import { orderMessages } from "./order_messages.ts";
import { chainTransforms, dropTrailingSignatures, normalizeFinish } from "./restore_answer.ts";
import { selectTools } from "./select_tools.ts";
import { enforceStopSequences, splitStopSequences } from "./stop_sequences.ts";
import { renameTools } from "./tool_names.ts";

/** An adapted prompt, with what restores its answer. */
export interface AdaptedPrompt {
  prompt: Prompt;
  /**
   * Returns the transform of one answer. It restores tool names and custom calls, enforces the stop sequences that the
   * upstream did not get, and normalizes the finish reason. After it returns a finish or an error, the answer is over:
   * it ignores further events, and the upstream's answer can be cancelled.
   */
  restore: () => EventTransform;
  /** The client's token limit, if it is below the upstream's minimum: the gateway cuts the answer there. */
  limit?: number;
}

/**
 * Adapts a prompt to its target. Deterministic and idempotent. Adds what the target does not support to
 * `target.dropped`, so the protocol's writer adds only what its protocol cannot express. An adapted prompt asks for one
 * answer and has no empty texts and nothing of another protocol than the target's. Steps for rare contents run only for
 * prompts that have them. A prompt may have tens of thousands of blocks, so the function yields between its steps.
 * @throws {GatewayError} `invalid`, if leaving something out would change the meaning
 */
export function* adaptPrompt(original: Prompt, target: AdaptTarget): Generator<void, AdaptedPrompt> {
  const { dialect, dropped } = target;
  checkCounts(original, target);
  const restores: (() => EventTransform)[] = [];
  let prompt = fitSampling(original, target);
  if (prompt.choices !== undefined && target.protocol !== "gemini") prompt = askForChoice(prompt);
  let survey = surveyPrompt(prompt);
  let restoreItems: (() => EventTransform) | undefined;
  const hasHosted = survey.types.has("vendor_specific") || prompt.tools.some(({ type }) => type === "hosted");
  if (hasHosted && !dialect.hostedFrom.includes(prompt.protocol)) {
    ({ prompt, restore: restoreItems } = yield* replaceClientTools(prompt, target));
    survey = surveyPrompt(prompt);
  }
  if (survey.types.has("vendor_specific")) {
    prompt = yield* flattenContent(prompt, target);
    survey = surveyPrompt(prompt);
  }
  const { types, hasMarks, hasBlank, hasUnknown } = survey;
  if (hasUnknown) prompt = yield* dropUnknownMembers(prompt, target);
  yield;

  const hasCalls = types.has("tool_call") || types.has("tool_result");
  const hasChoice = prompt.toolChoice !== undefined || prompt.parallelToolCalls !== undefined;
  if (prompt.tools.length > 0 || hasChoice || hasCalls) {
    const renamed = yield* renameTools(selectTools(prompt, target), dialect);
    restores.push(renamed.restore);
    prompt = renamed.prompt;
    if (!dialect.customTools) {
      restores.push(unwrapCustomCalls);
      prompt = yield* wrapCustomTools(prompt);
    }
    yield;
  }

  if (types.has("reasoning")) prompt = yield* dropUnreadableReasoning(prompt, target);
  if (hasBlank) prompt = yield* dropEmpty(prompt, target);
  prompt = orderMessages(prompt, target);
  yield;
  if (hasCalls) prompt = yield* legalizeCallIds(prompt, dialect.callId);
  if (hasCalls && types.has("media") && !dialect.mediaInResults) prompt = moveMediaOutOfResults(prompt);

  if (prompt.reasoning !== undefined) prompt = fitReasoning(prompt, target);
  yield;
  if (hasMarks) prompt = fitCacheMarks(prompt, target);
  const hasSchemas = prompt.tools.length > 0 || prompt.format?.type === "json_schema";
  if (hasSchemas && prompt.protocol !== target.protocol) prompt = yield* fitSchemas(prompt, target);

  const { maxTokens } = prompt;
  const isTooFew = maxTokens !== undefined && maxTokens < (dialect.minTokens ?? 0);
  if (isTooFew) {
    // The client pays for the target's minimum.
    dropped.add("max_completion_tokens");
    prompt = { ...prompt, maxTokens: dialect.minTokens ?? 0 };
  }

  // This protocol has no JSON mode, and Claude fences JSON even if the system prompt forbids it.
  if (target.protocol === "messages" && asksForJson(prompt)) restores.push(removeCodeFence);
  if (prompt.format?.type === "json_schema" && prompt.format.isWrapped === true) restores.push(unwrapAnswer);
  if (prompt.stop.length > 0) {
    const { prompt: limited, gatewayStops } = splitStopSequences(prompt, target);
    prompt = limited;
    if (gatewayStops.length > 0) restores.push(() => enforceStopSequences(gatewayStops));
  }
  restores.push(normalizeFinish);
  if (original.protocol === "messages") restores.push(dropTrailingSignatures);
  if (restoreItems !== undefined) restores.push(restoreItems);
  return {
    prompt,
    ...(isTooFew && { limit: maxTokens }),
    restore: () => chainTransforms(restores.map((restore) => restore())),
  };
}

/** The rare contents that a prompt has. */
interface PromptSurvey {
  /** Types of the blocks in messages and in tool results. */
  types: Set<ContentBlock["type"]>;
  /** True if there are prompt-cache marks. */
  hasMarks: boolean;
  /** True if there are blank texts, or messages without blocks. */
  hasBlank: boolean;
  /** True if there are members that the canonical form does not model, or citations. */
  hasUnknown: boolean;
}

/** Returns what rare contents a prompt has, found in one pass. */
function surveyPrompt({ messages, tools, unknownMembers, reasoning }: Prompt): PromptSurvey {
  const hasUnknown = (unknownMembers ?? reasoning?.unknownMembers) !== undefined;
  const survey: PromptSurvey = { types: new Set(), hasMarks: false, hasBlank: false, hasUnknown };
  for (const tool of tools) {
    if (tool.cache !== undefined) survey.hasMarks = true;
    if (tool.unknownMembers !== undefined) survey.hasUnknown = true;
  }
  for (const { blocks, unknownMembers } of messages) {
    if (unknownMembers !== undefined) survey.hasUnknown = true;
    if (blocks.length === 0) survey.hasBlank = true;
    surveyBlocks(blocks, survey);
  }
  return survey;
}

function surveyBlocks(blocks: readonly ContentBlock[], survey: PromptSurvey): void {
  for (const block of blocks) {
    survey.types.add(block.type);
    if (block.cache !== undefined) survey.hasMarks = true;
    if (block.unknownMembers !== undefined) survey.hasUnknown = true;
    if (block.type === "tool_result") surveyBlocks(block.blocks, survey);
    if (block.type === "text" && block.citations !== undefined) survey.hasUnknown = true;
    if (blankText(block) !== undefined) survey.hasBlank = true;
  }
}
