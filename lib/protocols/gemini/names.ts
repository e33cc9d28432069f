/** What the clients' protocols call the things that cannot be said here. */
import type { Protocol } from "../../canonical/types.ts";

/** A client's words for what it asked, by protocol. */
export interface Names {
  maxTokens: string;
  stop: string;
  n: string;
  user: string;
  parallel: string;
  logprobs: string;
  format: string;
  messages: string;
  /** Name of a file that stands in a message. */
  fileName: string;
  /** That there be no reasoning. */
  off: string;
  budget: string;
  effort: string;
}

/** Where a name has no place in a protocol, that protocol cannot ask for the thing. */
export const NAMES: Readonly<Record<Protocol, Names>> = {
  chat: {
    maxTokens: "max_completion_tokens",
    stop: "stop",
    n: "n",
    user: "user",
    parallel: "parallel_tool_calls",
    logprobs: "logprobs",
    format: "response_format",
    messages: "messages",
    fileName: "filename",
    off: "reasoning",
    budget: "reasoning.max_tokens",
    effort: "reasoning_effort",
  },
  responses: {
    maxTokens: "max_output_tokens",
    stop: "stop",
    n: "n",
    user: "user",
    parallel: "parallel_tool_calls",
    logprobs: "include",
    format: "text.format",
    messages: "input",
    fileName: "filename",
    off: "reasoning",
    budget: "reasoning.max_tokens",
    effort: "reasoning.effort",
  },
  messages: {
    maxTokens: "max_tokens",
    stop: "stop_sequences",
    n: "n",
    user: "metadata.user_id",
    parallel: "tool_choice.disable_parallel_tool_use",
    logprobs: "logprobs",
    format: "output_config.format",
    messages: "messages",
    fileName: "title",
    off: "thinking",
    budget: "thinking.budget_tokens",
    effort: "output_config.effort",
  },
};
