/** What the clients' protocols call the things that cannot be said here. */
import type { Protocol } from "../canonical/types.ts";

/** A client's words for what it asked, by protocol. */
export interface ParameterNames {
  stop: string;
  n: string;
  /** The first place that the end user's id is read from: the second stays among the unknown members. */
  user: string;
  parallel: string;
  logprobs: string;
  messages: string;
  /** Name of a file that stands in a message. */
  fileName: string;
  /** That there be no reasoning. */
  off: string;
  budget: string;
  effort: string;
}

/** Where a name has no place in a protocol, that protocol cannot ask for the thing. */
export const NAMES: Readonly<Record<Protocol, ParameterNames>> = {
  chat: {
    stop: "stop",
    n: "n",
    user: "safety_identifier",
    parallel: "parallel_tool_calls",
    logprobs: "logprobs",
    messages: "messages",
    fileName: "filename",
    off: "reasoning",
    budget: "reasoning.max_tokens",
    effort: "reasoning_effort",
  },
  responses: {
    stop: "stop",
    n: "n",
    user: "user",
    parallel: "parallel_tool_calls",
    logprobs: "include",
    messages: "input",
    fileName: "filename",
    off: "reasoning",
    budget: "reasoning.max_tokens",
    effort: "reasoning.effort",
  },
  messages: {
    stop: "stop_sequences",
    n: "n",
    user: "metadata.user_id",
    parallel: "tool_choice.disable_parallel_tool_use",
    logprobs: "logprobs",
    messages: "messages",
    fileName: "title",
    off: "thinking",
    budget: "thinking.budget_tokens",
    effort: "output_config.effort",
  },
};
