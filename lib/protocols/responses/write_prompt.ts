/** Writes the body of a responses request. */
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { Prompt, Reasoning } from "../canonical/types.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { splitInstructions, writeInput } from "./write_input.ts";
import type { ResponsesWriteContext } from "./write_parts.ts";
import { CHOICE_FORMS, insertTools, writeTools } from "./write_tools.ts";
import { supportedEffort } from "../canonical/effort.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import { listOf, objectOf, present } from "../members.ts";
import { endUserId, writeToolChoice } from "../openai_settings.ts";
import { ENCRYPTED } from "./encrypted_content.ts";
import { LOGPROBS } from "./read_prompt.ts";

/**
 * Writes a request body, in steps. The body of a client of this protocol is only normalized: text as parts, leading
 * system text as `instructions`, `include` in a fixed order, no null or empty members, no `provider` and `models`.
 * Requests of other clients have no state at the vendor: it stores nothing, and reasoning comes encrypted.
 * @throws {GatewayError} `invalid`, for media that the protocol does not support
 */
export function* writePrompt(prompt: Prompt, target: WriteTarget): Generator<void, JsonObject> {
  const calls = prompt.messages.flatMap(({ blocks }) => blocks).filter((block) => block.type === "tool_call");
  const own = prompt.protocol === "responses";
  const context: ResponsesWriteContext = {
    own,
    target,
    names: PARAMETER_NAMES[prompt.protocol],
    customCalls: new Set(calls.filter(({ custom }) => custom === true).map(({ id }) => id)),
  };
  const { instructions, others } = splitInstructions(prompt.messages, context);
  const { tools, added } = writeTools(prompt.tools, context);
  const { toolChoice, parallelToolCalls, truncation, maxTokens } = prompt;
  // `include` and `text` have writers of their own.
  const { include: _include, text: _text, ...unknownMembers } = ownMembers(prompt);
  return {
    ...unknownMembers,
    model: target.model,
    ...(instructions !== undefined && { instructions }),
    input: insertTools(yield* writeInput(others, context), added),
    ...(tools.length > 0 && { tools }),
    ...(toolChoice !== undefined && { tool_choice: writeToolChoice(toolChoice, prompt.tools, CHOICE_FORMS) }),
    ...(parallelToolCalls !== undefined && { parallel_tool_calls: parallelToolCalls }),
    ...(maxTokens !== undefined && { max_output_tokens: maxTokens }),
    ...writeSampling(prompt, context),
    ...writeReasoning(prompt.reasoning, prompt, context),
    ...writeText(prompt, context),
    ...writeInclude(prompt, context),
    ...(!own && { store: false }),
    ...(own && truncation !== undefined && { truncation }),
    ...(prompt.stream && { stream: true }),
    ...writeUser(prompt, context),
  };
}

/** Writes the sampling parameters that the protocol and the model have, and adds the others to `dropped`. */
function writeSampling({ sampling }: Prompt, { own, target }: ResponsesWriteContext): JsonObject {
  const { temperature, topP, topK, frequencyPenalty, presencePenalty, seed, logitBias, topLogprobs } = sampling;
  const { dropped, row } = target;
  /** Returns the value if it can be sent; else undefined, and adds its name to `dropped`. */
  const sent = <T>(value: T | undefined, name: string, isKnown = true): T | undefined => {
    if (value === undefined || (isKnown && row.supported_parameters.includes(name))) return value;
    dropped.add(name);
    return undefined;
  };
  if (topK !== undefined) dropped.add("top_k");
  if (seed !== undefined) dropped.add("seed");
  if (logitBias !== undefined) dropped.add("logit_bias");
  return present({
    temperature: sent(temperature, "temperature"),
    top_p: sent(topP, "top_p"),
    // Open Responses has the penalties, but OpenAI refuses them.
    frequency_penalty: sent(frequencyPenalty, "frequency_penalty", own),
    presence_penalty: sent(presencePenalty, "presence_penalty", own),
    top_logprobs: topLogprobs,
  });
}

/**
 * Writes `include`, for spreading. The vendor stores nothing, so reasoning must come encrypted. A model without
 * reasoning refuses to encrypt it.
 */
function writeInclude(prompt: Prompt, { own, target }: ResponsesWriteContext): JsonObject {
  const encrypted = own ? prompt.reasoning?.encrypted === true : target.row.reasoning !== undefined;
  const include: Json[] = [
    ...(encrypted ? [ENCRYPTED] : []),
    ...(prompt.sampling.logprobs === true ? [LOGPROBS] : []),
    ...listOf(ownMembers(prompt).include),
  ];
  return include.length === 0 ? {} : { include };
}

/** Writes `reasoning`, for spreading. */
function writeReasoning(
  reasoning: Reasoning | undefined,
  prompt: Prompt,
  context: ResponsesWriteContext,
): JsonObject {
  if (reasoning === undefined) return {};
  const { own, target, names } = context;
  if (!own && target.row.reasoning === undefined) {
    // For a model without reasoning, the effort "none" changes nothing.
    if (reasoning.mode !== "off" && reasoning.effort !== "none") target.dropped.add(names.effort);
    return {};
  }
  const members = own ? writeOwnReasoning(reasoning) : present({
    effort: supportedEffort(reasoning, { efforts: target.row.reasoning?.efforts, names, dropped: target.dropped }),
    summary: showsReasoning(reasoning, prompt) ? "auto" : undefined,
  });
  return Object.keys(members).length === 0 ? {} : { reasoning: members };
}

/** Writes `text`, which has the format and the verbosity, for spreading. */
function writeText(prompt: Prompt, { own, target, names }: ResponsesWriteContext): JsonObject {
  const { format } = prompt;
  const text: JsonObject = { ...objectOf(ownMembers(prompt).text) };
  if (typeof text.verbosity === "string" && !target.row.supported_parameters.includes("verbosity")) {
    target.dropped.add(names.verbosity);
    delete text.verbosity;
  }
  if (format?.type === "json_schema") {
    const { name, schema, description } = format;
    const strict = format.strict ?? (own ? undefined : false);
    text.format = { type: "json_schema", name: name ?? "output", schema, ...present({ description, strict }) };
  } else if (format !== undefined) {
    text.format = { type: format.type };
  }
  return Object.keys(text).length === 0 ? {} : { text };
}

/**
 * Writes the end user's id, for spreading; a long one is hashed. For clients of messages it is the prompt-cache key,
 * too, because their id identifies the session.
 */
function writeUser(prompt: Prompt, { own }: ResponsesWriteContext): JsonObject {
  const { user, protocol } = prompt;
  if (user === undefined) return {};
  // The client may have sent the id under the newer name, which is an unknown member.
  if (own) return ownMembers(prompt).safety_identifier === user ? {} : { user };
  const id = endUserId(user);
  return { safety_identifier: id, ...(protocol === "messages" && { prompt_cache_key: id }) };
}

function writeOwnReasoning(reasoning: Reasoning): JsonObject {
  const { mode, budgetTokens, effort, display } = reasoning;
  return {
    ...present({
      enabled: mode === "off" ? false : undefined,
      max_tokens: budgetTokens,
      effort,
      summary: display === undefined ? undefined : "auto",
    }),
    ...ownMembers(reasoning),
  };
}

/** True if the client gets reasoning text: in messages if it enabled thinking, in chat if it asked for reasoning. */
function showsReasoning({ mode, effort, display }: Reasoning, { protocol }: Prompt): boolean {
  if (display === "omitted" || mode === "off" || effort === "none") return false;
  return protocol === "chat" || display !== undefined || mode !== undefined;
}
