/** Translates parameter names of the gateway into those of the client's own request. */
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import type { Protocol } from "./types.ts";

/** A client's request body and its protocol. */
export interface NamedRequest {
  prompt: { protocol: Protocol };
  request: JsonObject;
}

/** Gemini's ways to ask for reasoning. */
const THINKING = [
  "generationConfig.thinkingConfig.thinkingBudget",
  "generationConfig.thinkingConfig.thinkingLevel",
  "generationConfig.thinkingConfig",
];

/** Alternative names of a parameter, by protocol: paths into the body, the likeliest first. */
const OTHER_NAMES: Readonly<Record<Protocol, ReadonlyMap<string, readonly string[]>>> = {
  chat: new Map([
    ["max_completion_tokens", ["max_tokens"]],
    ["reasoning", ["reasoning_effort"]],
    ["reasoning_effort", ["reasoning.effort", "reasoning"]],
    ["reasoning_content", ["messages.reasoning"]],
    ["reasoning_details", ["messages.thinking_blocks"]],
    ["user", ["safety_identifier"]],
    ["safety_identifier", ["user"]],
    ["tools", ["functions"]],
    ["tool_choice", ["function_call"]],
    // With `functions` there is one call at a time by default.
    ["parallel_tool_calls", ["functions"]],
  ]),
  responses: new Map([
    ["max_completion_tokens", ["max_output_tokens"]],
    ["reasoning.effort", ["reasoning"]],
    ["user", ["safety_identifier"]],
    ["verbosity", ["text.verbosity"]],
    ["logprobs", ["include"]],
  ]),
  messages: new Map([
    ["max_completion_tokens", ["max_tokens"]],
    ["output_config.effort", ["thinking.budget_tokens", "thinking"]],
    ["thinking.type", ["output_config.effort"]],
    ["user", ["metadata.user_id"]],
    ["stop", ["stop_sequences"]],
  ]),
  gemini: new Map([
    ["max_completion_tokens", ["generationConfig.maxOutputTokens"]],
    ["temperature", ["generationConfig.temperature"]],
    ["top_p", ["generationConfig.topP"]],
    ["top_k", ["generationConfig.topK"]],
    ["seed", ["generationConfig.seed"]],
    ["presence_penalty", ["generationConfig.presencePenalty"]],
    ["frequency_penalty", ["generationConfig.frequencyPenalty"]],
    ["stop", ["generationConfig.stopSequences"]],
    ["logprobs", ["generationConfig.responseLogprobs"]],
    ["top_logprobs", ["generationConfig.logprobs"]],
    ["tool_choice", ["toolConfig"]],
    ["images", ["contents.parts.inlineData", "contents.parts.fileData"]],
    ["contents.parts.thought", ["contents.parts.thoughtSignature"]],
    ["generationConfig.responseSchema", ["generationConfig.responseJsonSchema", "generationConfig.responseMimeType"]],
    ["generationConfig.thinkingConfig.thinkingLevel", THINKING],
    ["generationConfig.thinkingConfig.thinkingBudget", THINKING],
  ]),
};

/** Returns the name that the client's body has for a parameter; the same name if it has none. */
export function clientParameterName(name: string, { prompt: { protocol }, request }: NamedRequest): string {
  const others = OTHER_NAMES[protocol].get(name);
  if (others === undefined || has(request, name) || has(request, `messages.${name}`)) return name;
  return others.find((other) => has(request, other)) ?? name;
}

/** True if the body has a member at this path; in a list, in any of its objects. */
function has(value: Json | undefined, path: string): boolean {
  if (Array.isArray(value)) return value.some((element) => has(element, path));
  if (!isObject(value)) return false;
  if (Object.hasOwn(value, path)) return value[path] !== null;
  const dot = path.indexOf(".");
  return dot > 0 && has(value[path.slice(0, dot)], path.slice(dot + 1));
}
