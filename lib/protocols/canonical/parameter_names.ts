/** The names of parameters in each protocol, for messages about parameters that are dropped or refused. */
import { type Protocol, PROTOCOLS } from "./types.ts";

const GEMINI_BUDGET = "generationConfig.thinkingConfig.thinkingBudget";

/** Names in chat, responses, messages and Gemini. A protocol without a parameter has the name of the most similar one. */
const NAMES = {
  maxTokens: ["max_completion_tokens", "max_output_tokens", "max_tokens", "generationConfig.maxOutputTokens"],
  messages: ["messages", "input", "messages", "contents"],
  /** Models to try if the first one fails. */
  fallbacks: ["models", "models", "fallbacks", "models"],
  stop: ["stop", "stop", "stop_sequences", "generationConfig.stopSequences"],
  n: ["n", "n", "n", "generationConfig.candidateCount"],
  /** The member from which the end user's id is read first; a second one stays an unknown member. */
  user: ["safety_identifier", "user", "metadata.user_id", "labels"],
  toolChoice: ["tool_choice", "tool_choice", "tool_choice", "toolConfig"],
  parallel: ["parallel_tool_calls", "parallel_tool_calls", "tool_choice.disable_parallel_tool_use", "toolConfig"],
  logprobs: ["logprobs", "include", "logprobs", "generationConfig.responseLogprobs"],
  format: ["response_format", "text.format", "output_config.format", "generationConfig.responseSchema"],
  strict: ["tools.strict", "tools.strict", "tools.strict", "tools"],
  verbosity: ["verbosity", "text.verbosity", "verbosity", "generationConfig"],
  /** Citations of an earlier answer. */
  citations: ["annotations", "annotations", "citations", "contents"],
  fileName: ["filename", "filename", "title", "displayName"],
  reasoning: ["reasoning", "reasoning", "thinking", "generationConfig.thinkingConfig"],
  /** The choice between a budget and adaptive reasoning. */
  mode: ["reasoning", "reasoning", "thinking.type", GEMINI_BUDGET],
  /** The member that disables reasoning. */
  off: ["reasoning_effort", "reasoning.effort", "thinking.type", GEMINI_BUDGET],
  budget: ["reasoning.max_tokens", "reasoning.max_tokens", "thinking.budget_tokens", GEMINI_BUDGET],
  effort: [
    "reasoning_effort",
    "reasoning.effort",
    "output_config.effort",
    "generationConfig.thinkingConfig.thinkingLevel",
  ],
  /** Signed reasoning of earlier answers. */
  signed: ["reasoning_details", "input.reasoning", "messages.thinking", "contents.parts.thoughtSignature"],
  /** Unsigned reasoning of earlier answers. */
  unsigned: ["reasoning_content", "input.reasoning", "messages.thinking", "contents.parts.thought"],
} as const satisfies Record<string, readonly [chat: string, responses: string, messages: string, gemini: string]>;

/** Names of parameters in one protocol. */
export type ParameterNames = Record<keyof typeof NAMES, string>;

/** Names by protocol. */
export const PARAMETER_NAMES = Object.fromEntries(
  PROTOCOLS.map((protocol, index) => [
    protocol,
    Object.fromEntries(Object.entries(NAMES).map(([key, names]) => [key, names[index]])),
  ]),
) as Readonly<Record<Protocol, Readonly<ParameterNames>>>;
