/** Quirks of vendors in the chat protocol, by vendor. */
import type { VendorName } from "../../upstreams/vendors.ts";
import { compatible, compatibleBody } from "./compatible.ts";
import { mapMessages, omit, type Quirk, rename } from "./quirk.ts";
import { mistral } from "./mistral.ts";
import { openrouter } from "./openrouter.ts";
import { EFFORT_MEMBERS, restoreReasoningContent, wantsThinking, writeThinkingSwitch } from "./thinking.ts";
import { isObject } from "../../json/mod.ts";
import { keepKnownMembers, type KnownMembers } from "./known_members.ts";

/**
 * Some of Groq's models write reasoning into the text, in `<think>` tags, unless the request has `reasoning_format`.
 * Groq answers 400 ("property 'reasoning_content' is unsupported") to members of answers that it does not know.
 * https://github.com/tashfeenahmed/freellmapi/issues/1070
 */
export const groq: Quirk = {
  dialect: { ...compatible.dialect, unsignedReasoning: true },
  changesAllMessages: true,
  body(body, prompt, dropped, row) {
    const isWanted = typeof body.reasoning_effort === "string" && wantsThinking(prompt.reasoning) === true;
    const others = mapMessages(
      compatibleBody(body, dropped),
      keepKnownMembers(GROQ_MESSAGES, prompt, { dropped, row }),
    );
    // Models without reasoning refuse `reasoning_format`.
    if (!isWanted || others.reasoning_format !== undefined) return others;
    return { ...others, reasoning_format: "parsed" };
  },
};

const GROQ_MESSAGES: KnownMembers = {
  members: new Map([["assistant", ["tool_calls", "function_call", "name"]]]),
  withThought: (message, thought) => ({ ...message, reasoning: thought }),
};

/** At vLLM the model's chat template turns thinking on or off, by its argument `enable_thinking`. */
export const vllm: Quirk = {
  dialect: compatible.dialect,
  mayKnowOpenRouter: true,
  body(body, { reasoning }, dropped) {
    const others = compatibleBody(body, dropped);
    const isWanted = wantsThinking(reasoning);
    const own = isObject(others.chat_template_kwargs) ? others.chat_template_kwargs : {};
    if (isWanted === undefined || own.enable_thinking !== undefined) return others;
    return { ...others, chat_template_kwargs: { ...own, enable_thinking: isWanted } };
  },
};

/**
 * DeepSeek requires that its unsigned reasoning comes back with tool calls, and has a `thinking` switch instead of an
 * effort.
 */
export const deepseek: Quirk = {
  dialect: { ...compatible.dialect, unsignedReasoning: true },
  changesAllMessages: true,
  body(body, prompt, dropped) {
    const switched = writeThinkingSwitch(restoreReasoningContent(compatibleBody(body, dropped)), prompt.reasoning);
    // Some hosts of DeepSeek refuse null content beside tool calls; an empty string means the same.
    return mapMessages(switched, (message) => message.content === null ? { ...message, content: "" } : message);
  },
};

/** Qwen, at Alibaba's Model Studio, has `enable_thinking` and `thinking_budget` at the top of the request. */
export const qwen: Quirk = {
  dialect: compatible.dialect,
  body(body, { reasoning }, dropped) {
    const others = omit(compatibleBody(body, dropped), EFFORT_MEMBERS);
    const isWanted = wantsThinking(reasoning);
    if (isWanted === undefined || others.enable_thinking !== undefined) return others;
    const budget = isWanted ? reasoning?.budgetTokens : undefined;
    return { ...others, enable_thinking: isWanted, ...(budget !== undefined && { thinking_budget: budget }) };
  },
};

/**
 * Kimi, by Moonshot, requires that its reasoning comes back with tool calls and has a `thinking` switch, as DeepSeek
 * does.
 */
export const kimi: Quirk = {
  dialect: { ...compatible.dialect, unsignedReasoning: true },
  changesAllMessages: true,
  body: (body, prompt, dropped) =>
    writeThinkingSwitch(restoreReasoningContent(compatibleBody(body, dropped)), prompt.reasoning),
};

/** GLM, by Z.ai, has a `thinking` switch instead of an effort. */
export const glm: Quirk = {
  dialect: compatible.dialect,
  body: (body, prompt, dropped) => writeThinkingSwitch(compatibleBody(body, dropped), prompt.reasoning),
};

/** xAI knows the newer `max_completion_tokens`, but no `developer` role. */
export const xai: Quirk = {
  dialect: compatible.dialect,
  body: (body, _prompt, dropped) => rename(compatibleBody(body, dropped), "max_tokens", "max_completion_tokens"),
};

/** For vendors that follow their protocol exactly. */
const NO_QUIRKS: Quirk = {};

/**
 * The quirks of each vendor in lib/upstreams/vendors.ts. `compatible` is for servers that follow OpenAI's older chat
 * API. Examples of other differences are `xai` (a renamed member) and mistral.ts (refused members).
 */
export const QUIRKS: Readonly<Record<VendorName, Quirk>> = {
  openai: NO_QUIRKS,
  anthropic: NO_QUIRKS,
  gemini: NO_QUIRKS,
  azure: NO_QUIRKS,
  deepseek,
  glm,
  groq,
  kimi,
  mistral,
  xai,
  qwen,
  openrouter,
  vllm,
  ollama: compatible,
  "openai-compatible": compatible,
};
