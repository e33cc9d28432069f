import type { Protocol } from "../canonical/types.ts";

/** Parameter names of a client's protocol. */
export interface ParameterNames {
  stop: string;
  n: string;
  /** The member that the end user's id is read from first; the other one stays an unknown member. */
  user: string;
  parallel: string;
  logprobs: string;
  messages: string;
  /** Name of a file in a message. */
  fileName: string;
  /** Disabled reasoning. */
  off: string;
  budget: string;
  effort: string;
}

/** Parameter names by protocol. An empty name: the protocol does not have the parameter. */
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
