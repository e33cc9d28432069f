/** Replaces, moves or drops contents of messages that the target does not support. */
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import { type ContentBlock, hasToolResult, type Message, type Prompt } from "../canonical/types.ts";
import { flattenVendorSpecific } from "./flatten_vendor_specific.ts";
import { mapPrompt } from "./map_blocks.ts";
import type { AdaptTarget, TextRule } from "../upstream_codec.ts";
import { legalCallId } from "./legal_names.ts";

/**
 * Flattens blocks of other protocols into text and media, or drops them and adds them to `dropped`.
 * @throws {GatewayError} `invalid`, if the model would have to read a block that cannot be flattened
 */
export function* flattenContent(prompt: Prompt, target: AdaptTarget): Generator<void, Prompt> {
  const flatten = (block: ContentBlock, role: Message["role"]): ContentBlock | ContentBlock[] =>
    block.type === "vendor_specific" && block.from !== target.protocol
      ? flattenVendorSpecific(block, { role, protocol: prompt.protocol, to: target.protocol, dropped: target.dropped })
      : block;
  return yield* mapPrompt(prompt, flatten);
}

/**
 * Drops empty texts, and messages with nothing else; for Anthropic also texts of only white space, which it refuses.
 * Reasoning without text stays for its signature.
 */
export function* dropEmpty(prompt: Prompt, { protocol }: AdaptTarget): Generator<void, Prompt> {
  const dropIfBlank = (block: ContentBlock): ContentBlock | ContentBlock[] => {
    const blank = blankText(block);
    return blank === "" || (blank !== undefined && protocol === "messages") ? [] : block;
  };
  const kept = yield* mapPrompt(prompt, dropIfBlank);
  return { ...kept, messages: kept.messages.filter(({ blocks }) => blocks.length > 0) };
}

/** Returns the text of a text or refusal block that is only white space; undefined for any other block. */
export function blankText(block: ContentBlock): string | undefined {
  const isText = block.type === "text" || block.type === "refusal";
  return isText && block.text.trim() === "" ? block.text : undefined;
}

/**
 * Drops reasoning that the target cannot read: signed by another issuer, or unsigned if the target does not accept
 * that. Adds it to `dropped` unless it is empty.
 */
export function* dropUnreadableReasoning(
  prompt: Prompt,
  { issuer, dialect, dropped }: AdaptTarget,
): Generator<void, Prompt> {
  const names = PARAMETER_NAMES[prompt.protocol];
  const dropIfUnreadable = (block: ContentBlock): ContentBlock | ContentBlock[] => {
    if (block.type !== "reasoning") return block;
    const { text, signature } = block;
    if (signature === undefined ? text !== "" && dialect.unsignedReasoning : signature.issuer === issuer) {
      return block;
    }
    if (text !== "" || signature !== undefined) dropped.add(signature === undefined ? names.unsigned : names.signed);
    return [];
  };
  return yield* mapPrompt(prompt, dropIfUnreadable);
}

/**
 * Disables reasoning for a request that Anthropic's manual thinking would refuse: a forced tool, or a last assistant
 * message with tool calls that does not begin with its reasoning. Adaptive thinking accepts both.
 */
export function fitReasoning(prompt: Prompt, target: AdaptTarget): Prompt {
  const { reasoning, toolChoice, protocol } = prompt;
  if (target.protocol !== "messages" || !isManual(prompt, target)) return prompt;
  const isForced = toolChoice?.type === "tool" || toolChoice?.type === "required" ||
    (toolChoice?.type === "allowed" && toolChoice.mode === "required");
  if (!isForced && !hasBareCall(prompt)) return prompt;
  const isByEffort = reasoning?.mode === undefined;
  target.dropped.add(isByEffort ? PARAMETER_NAMES[protocol].effort : PARAMETER_NAMES[protocol].reasoning);
  return { ...prompt, reasoning: { mode: "off" } };
}

/** True if the request asks for thinking, and the model's thinking has a budget. */
export function isManual({ reasoning }: Prompt, { row }: AdaptTarget): boolean {
  if (reasoning === undefined || reasoning.mode === "off") return false;
  if (reasoning.mode === "manual") return true;
  const isRequested = reasoning.mode === "adaptive" || (reasoning.effort !== undefined && reasoning.effort !== "none");
  return isRequested && row.reasoning !== undefined && !row.reasoning.modes.includes("adaptive");
}

/** True if the last assistant message has tool calls and does not begin with reasoning. */
function hasBareCall({ messages }: Prompt): boolean {
  const last = messages.findLast(({ role }) => role === "assistant");
  return last !== undefined && last.blocks[0]?.type !== "reasoning" &&
    last.blocks.some(({ type }) => type === "tool_call");
}

/**
 * Moves media from tool results to the end of the results of a round, in the user message with the last one. A line of
 * text in both places tells the model which attachment belongs to which result.
 */
export function moveMediaOutOfResults(prompt: Prompt): Prompt {
  let moved: ContentBlock[] = [];
  let count = 0;

  function moveMediaOut(block: ContentBlock): ContentBlock {
    if (block.type !== "tool_result") return block;
    const blocks = block.blocks.map((inner): ContentBlock => {
      if (inner.type !== "media") return inner;
      const label = `[Attachment ${++count} of the tool results${inner.name === undefined ? "" : `: ${inner.name}`}]`;
      moved.push({ type: "text", text: label }, inner);
      return { type: "text", text: label };
    });
    return { ...block, blocks };
  }

  const messages = prompt.messages.map((message, index): Message => {
    if (message.role !== "user") return message;
    const blocks = message.blocks.map(moveMediaOut);
    const next = prompt.messages[index + 1];
    if (moved.length === 0 || (next !== undefined && next.role === "user" && hasToolResult(next))) {
      return { ...message, blocks };
    }
    const resultsEnd = blocks.findLastIndex(({ type }) => type === "tool_result") + 1;
    const withMoved = [...blocks.slice(0, resultsEnd), ...moved, ...blocks.slice(resultsEnd)];
    moved = [];
    count = 0;
    return { ...message, blocks: withMoved };
  });
  return { ...prompt, messages };
}

/** Replaces every call id that the rule does not allow, in steps. The same id always gets the same replacement. */
export function* legalizeCallIds(prompt: Prompt, rule: TextRule): Generator<void, Prompt> {
  const legalIds = new Map<string, string>();
  const legalIdOf = (id: string) => {
    let legalId = legalIds.get(id);
    if (legalId === undefined) legalIds.set(id, legalId = legalCallId(id, rule));
    return legalId;
  };
  return yield* mapPrompt(prompt, (block) => {
    switch (block.type) {
      case "tool_call":
        return { ...block, id: legalIdOf(block.id) };
      case "tool_result":
        return { ...block, callId: legalIdOf(block.callId) };
      default:
        return block;
    }
  });
}
