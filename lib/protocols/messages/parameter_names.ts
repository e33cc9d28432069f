/** Client's names of parameters that this protocol does not have. */
import type { Protocol } from "../canonical/types.ts";

type Thing = "stop" | "logprobs" | "format" | "strict" | "thinking" | "budget" | "effort";

const NAMES: Readonly<Record<Protocol, Readonly<Record<Thing, string>>>> = {
  chat: {
    stop: "stop",
    logprobs: "logprobs",
    format: "response_format",
    strict: "tools.strict",
    thinking: "reasoning",
    budget: "reasoning.max_tokens",
    effort: "reasoning_effort",
  },
  responses: {
    stop: "stop",
    logprobs: "include",
    format: "text.format",
    strict: "tools.strict",
    thinking: "reasoning",
    budget: "reasoning.max_tokens",
    effort: "reasoning.effort",
  },
  messages: {
    stop: "stop_sequences",
    logprobs: "logprobs",
    format: "output_config.format",
    strict: "tools.strict",
    thinking: "thinking",
    budget: "thinking.budget_tokens",
    effort: "output_config.effort",
  },
};

/** Returns the name in a client's protocol. */
export function parameterName(thing: Thing, protocol: Protocol): string {
  return NAMES[protocol][thing];
}
