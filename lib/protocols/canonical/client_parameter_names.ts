/** Translates the gateway's names of parameters into the names in the client's own request, for messages about them. */
import type { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { PARAMETER_NAMES, type ParameterNames } from "./parameter_names.ts";
import type { Protocol } from "./types.ts";

/** A client's request body, with its protocol. */
export interface NamedRequest {
  prompt: { protocol: Protocol };
  request: JsonObject;
}

/** Members by which Gemini's clients ask for reasoning. */
const THINKING_MEMBERS = [
  "generationConfig.thinkingConfig.thinkingBudget",
  "generationConfig.thinkingConfig.thinkingLevel",
  "generationConfig.thinkingConfig",
];

/** Other names of a parameter, by protocol: paths into the body, the most likely one first. */
const OTHER_NAMES: Readonly<Record<Protocol, ReadonlyMap<string, readonly string[]>>> = {
  chat: new Map([
    ["max_completion_tokens", ["max_tokens"]],
    ["reasoning", ["reasoning_effort", "thinking"]],
    ["reasoning_effort", ["reasoning.effort", "reasoning", "thinking"]],
    ["reasoning.max_tokens", ["thinking.budget_tokens"]],
    ["reasoning_content", ["messages.reasoning"]],
    ["reasoning_details", ["messages.thinking_blocks", "messages.tool_calls.extra_content"]],
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
    ["generationConfig.thinkingConfig.thinkingLevel", THINKING_MEMBERS],
    ["generationConfig.thinkingConfig.thinkingBudget", THINKING_MEMBERS],
  ]),
};

/** Returns the name by which the client's body sets a parameter; the given name if the body does not set it. */
export function clientParameterName(name: string, { prompt: { protocol }, request }: NamedRequest): string {
  const otherNames = OTHER_NAMES[protocol].get(name);
  if (otherNames === undefined || hasMember(request, name) || hasMember(request, `messages.${name}`)) return name;
  return otherNames.find((other) => hasMember(request, other)) ?? name;
}

/**
 * Returns the error of an upstream with another protocol with the client's own name of the invalid parameter, or without
 * one if the client's body does not have it. Positions in lists are left out, because the upstream's lists are others.
 * A prompt that is too long always has a name, as in OpenAI's own errors.
 */
export function inClientTerms(error: GatewayError, from: Protocol, client: NamedRequest): GatewayError {
  const { param } = error;
  const { prompt: { protocol }, request } = client;
  if (from === protocol) return error;
  if (error.code === "context_length_exceeded") return error.with({ param: PARAMETER_NAMES[protocol].messages });
  if (param === undefined) return error;
  const root = param.replace(/[.[].*$/s, "");
  const key = parameterKey(param, from) ?? parameterKey(root, from);
  const name = key === undefined ? clientParameterName(root, client) : PARAMETER_NAMES[protocol][key];
  return error.with({ param: hasMember(request, name) ? name : undefined });
}

/** Returns the key of a protocol's parameter in the names of all protocols; undefined if it is not among them. */
function parameterKey(name: string, protocol: Protocol): keyof ParameterNames | undefined {
  // Chat has an older name, which compatible servers use.
  if (name === "max_tokens") return "maxTokens";
  const names = PARAMETER_NAMES[protocol];
  return (Object.keys(names) as (keyof ParameterNames)[]).find((key) => names[key] === name);
}

/** True if a value has a member at this path that is not null. In a list, any object may have it. */
function hasMember(value: Json | undefined, path: string): boolean {
  if (Array.isArray(value)) return value.some((element) => hasMember(element, path));
  if (!isObject(value)) return false;
  if (Object.hasOwn(value, path)) return value[path] !== null;
  const dot = path.indexOf(".");
  return dot > 0 && hasMember(value[path.slice(0, dot)], path.slice(dot + 1));
}
