/** The names of parameters in each protocol, for messages about parameters that are dropped or refused. */
import type { Protocol } from "./types.ts";

/** Names in one protocol. If the protocol lacks a parameter, the name is that of the most similar one. */
export interface ParameterNames {
  maxTokens: string;
  messages: string;
  /** Models to try if the first one fails. */
  fallbacks: string;
  stop: string;
  n: string;
  /** The member from which the end user's id is read first; a second one stays an unknown member. */
  user: string;
  toolChoice: string;
  parallel: string;
  logprobs: string;
  format: string;
  strict: string;
  verbosity: string;
  /** Citations of an earlier answer. */
  citations: string;
  fileName: string;
  reasoning: string;
  /** The choice between a budget and adaptive reasoning. */
  mode: string;
  /** The member that disables reasoning. */
  off: string;
  budget: string;
  effort: string;
  /** Signed reasoning of earlier answers. */
  signed: string;
  /** Unsigned reasoning of earlier answers. */
  unsigned: string;
}

/** Names by protocol. */
export const PARAMETER_NAMES: Readonly<Record<Protocol, Readonly<ParameterNames>>> = {
  chat: {
    maxTokens: "max_completion_tokens",
    messages: "messages",
    fallbacks: "models",
    stop: "stop",
    n: "n",
    user: "safety_identifier",
    toolChoice: "tool_choice",
    parallel: "parallel_tool_calls",
    logprobs: "logprobs",
    format: "response_format",
    strict: "tools.strict",
    verbosity: "verbosity",
    citations: "annotations",
    fileName: "filename",
    reasoning: "reasoning",
    mode: "reasoning",
    off: "reasoning_effort",
    budget: "reasoning.max_tokens",
    effort: "reasoning_effort",
    signed: "reasoning_details",
    unsigned: "reasoning_content",
  },
  responses: {
    maxTokens: "max_output_tokens",
    messages: "input",
    fallbacks: "models",
    stop: "stop",
    n: "n",
    user: "user",
    toolChoice: "tool_choice",
    parallel: "parallel_tool_calls",
    logprobs: "include",
    format: "text.format",
    strict: "tools.strict",
    verbosity: "text.verbosity",
    citations: "annotations",
    fileName: "filename",
    reasoning: "reasoning",
    mode: "reasoning",
    off: "reasoning.effort",
    budget: "reasoning.max_tokens",
    effort: "reasoning.effort",
    signed: "input.reasoning",
    unsigned: "input.reasoning",
  },
  messages: {
    maxTokens: "max_tokens",
    messages: "messages",
    fallbacks: "fallbacks",
    stop: "stop_sequences",
    n: "n",
    user: "metadata.user_id",
    toolChoice: "tool_choice",
    parallel: "tool_choice.disable_parallel_tool_use",
    logprobs: "logprobs",
    format: "output_config.format",
    strict: "tools.strict",
    verbosity: "verbosity",
    citations: "citations",
    fileName: "title",
    reasoning: "thinking",
    mode: "thinking.type",
    off: "thinking.type",
    budget: "thinking.budget_tokens",
    effort: "output_config.effort",
    signed: "messages.thinking",
    unsigned: "messages.thinking",
  },
  gemini: {
    maxTokens: "generationConfig.maxOutputTokens",
    messages: "contents",
    fallbacks: "models",
    stop: "generationConfig.stopSequences",
    n: "generationConfig.candidateCount",
    user: "labels",
    toolChoice: "toolConfig",
    parallel: "toolConfig",
    logprobs: "generationConfig.responseLogprobs",
    format: "generationConfig.responseSchema",
    strict: "tools",
    verbosity: "generationConfig",
    citations: "contents",
    fileName: "displayName",
    reasoning: "generationConfig.thinkingConfig",
    mode: "generationConfig.thinkingConfig.thinkingBudget",
    off: "generationConfig.thinkingConfig.thinkingBudget",
    budget: "generationConfig.thinkingConfig.thinkingBudget",
    effort: "generationConfig.thinkingConfig.thinkingLevel",
    signed: "contents.parts.thoughtSignature",
    unsigned: "contents.parts.thought",
  },
};
