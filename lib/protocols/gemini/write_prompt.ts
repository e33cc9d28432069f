/** Writes the body of a Gemini request. */
import { BUDGET_SHARES } from "../canonical/effort.ts";
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import {
  type Effort,
  EFFORTS,
  type OutputFormat,
  type Prompt,
  type Reasoning,
  type Tool,
  type ToolChoice,
} from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { objectOf, someOf } from "../members.ts";
import { writeContents } from "./write_contents.ts";
import type { Model } from "../../catalog/model.ts";

/**
 * Writes the body of `generateContent` and `streamGenerateContent`, in steps. The model and the streaming mode are in
 * the URL.
 */
export function* writePrompt(prompt: Prompt, target: WriteTarget): Generator<void, JsonObject> {
  if (prompt.user !== undefined) target.dropped.add(PARAMETER_NAMES[prompt.protocol].user);
  const { generationConfig: unknownConfig, toolConfig: _, ...members } = ownMembers(prompt);
  const { system, contents } = yield* writeContents(prompt, target);
  const generationConfig = someOf({ ...writeGeneration(prompt, target), ...objectOf(unknownConfig) });
  return {
    ...(system.length > 0 && { systemInstruction: { parts: system } }),
    contents,
    ...writeTools(prompt, target),
    ...(generationConfig !== undefined && { generationConfig }),
    ...members,
  };
}

/**
 * Writes `generationConfig`; returns undefined if it would be empty. Parameters that the model's catalog entry does not
 * list are dropped. Length and format are always written, because the answer would not be what the client wants without
 * them.
 */
function writeGeneration(prompt: Prompt, target: WriteTarget): JsonObject | undefined {
  const { row, dropped } = target;
  const { sampling, stop } = prompt;

  /** Returns the value if the model has the parameter; else undefined, and adds it to `dropped`. */
  function supportedValue<T>(value: T | undefined, name: string): T | undefined {
    if (value === undefined || row.supported_parameters.includes(name)) return value;
    dropped.add(name);
    return undefined;
  }

  if (sampling.logitBias !== undefined) dropped.add("logit_bias");
  return someOf({
    maxOutputTokens: prompt.maxTokens,
    temperature: supportedValue(sampling.temperature, "temperature"),
    topP: supportedValue(sampling.topP, "top_p"),
    topK: supportedValue(sampling.topK, "top_k"),
    seed: supportedValue(sampling.seed, "seed"),
    presencePenalty: supportedValue(sampling.presencePenalty, "presence_penalty"),
    frequencyPenalty: supportedValue(sampling.frequencyPenalty, "frequency_penalty"),
    stopSequences: stop.length === 0 ? undefined : stop,
    ...writeFormat(prompt.format),
    thinkingConfig: writeThinking(prompt, target),
  });
}

/**
 * Writes the format, for spreading. The protocol has no name and no strictness for a schema, which is always enforced.
 * The description becomes that of the schema, unless the schema has one.
 */
function writeFormat(format: OutputFormat | undefined): JsonObject {
  if (format === undefined || format.type === "text") return {};
  const jsonType = { responseMimeType: "application/json" };
  if (format.type === "json_object") return jsonType;
  const { schema, description } = format;
  return { ...jsonType, responseJsonSchema: description === undefined ? schema : { description, ...schema } };
}

type SupportedReasoning = NonNullable<Model["reasoning"]>;

/**
 * Budgets by effort, from Google's table for its OpenAI-compatible endpoint,
 * https://ai.google.dev/gemini-api/docs/openai#thinking. Higher efforts get the highest budget that all of these
 * models accept.
 */
const BUDGETS: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 1_024,
  low: 1_024,
  medium: 8_192,
  high: 24_576,
  xhigh: 24_576,
  max: 24_576,
};

/** The budget that leaves the decision to the model. */
const DYNAMIC_BUDGET = -1;

const LEVELS: Readonly<Record<Exclude<Effort, "none">, string>> = {
  minimal: "MINIMAL",
  low: "LOW",
  medium: "MEDIUM",
  high: "HIGH",
  xhigh: "HIGH",
  max: "HIGH",
};

/**
 * Writes `thinkingConfig`: a budget or a level, never both, and whether to return thoughts. Returns undefined without
 * reasoning options, or for a model without reasoning.
 */
function writeThinking(prompt: Prompt, { row, dropped }: WriteTarget): JsonObject | undefined {
  const { reasoning } = prompt;
  if (reasoning === undefined || row.reasoning === undefined) return undefined;
  if (reasoning.mode === "off" || reasoning.effort === "none") {
    const { depth, isOff } = writeOff(row.reasoning);
    if (!isOff) dropped.add(PARAMETER_NAMES[prompt.protocol][reasoning.effort === "none" ? "effort" : "reasoning"]);
    return depth;
  }
  const depth = writeDepth(reasoning, { prompt, supported: row.reasoning, dropped });
  return someOf({
    ...depth,
    includeThoughts: isShown(prompt, reasoning) && depth.thinkingBudget !== BUDGETS.none ? true : undefined,
    ...ownMembers(reasoning),
  });
}

/** Disables thinking, or reduces it as far as the model can. */
function writeOff({ modes, efforts, mandatory }: SupportedReasoning): { depth: JsonObject; isOff: boolean } {
  if (modes.includes("manual") && mandatory !== true) return { depth: { thinkingBudget: BUDGETS.none }, isOff: true };
  const lowest = EFFORTS.find((effort) => effort !== "none" && efforts.includes(effort)) ?? "low";
  const depth = modes.includes("adaptive") ? { thinkingLevel: levelOf(lowest) } : { thinkingBudget: BUDGETS[lowest] };
  return { depth, isOff: false };
}

function writeDepth(
  { mode, budgetTokens, effort }: Reasoning,
  { prompt, supported, dropped }: { prompt: Prompt; supported: SupportedReasoning; dropped: WriteTarget["dropped"] },
): JsonObject {
  const { budget: budgetName, effort: effortName } = PARAMETER_NAMES[prompt.protocol];
  if (budgetTokens !== undefined && supported.modes.includes("manual")) {
    if (effort !== undefined) dropped.add(effortName);
    const budget = fitBudget(budgetTokens, { prompt, supported, share: 1 });
    if (budget !== budgetTokens) dropped.add(budgetName);
    return { thinkingBudget: budget };
  }
  if (budgetTokens !== undefined) dropped.add(budgetName);
  if (effort !== undefined) {
    // `high` is the highest level.
    if (effort === "xhigh" || effort === "max") dropped.add(effortName);
    if (supported.modes.includes("adaptive")) return { thinkingLevel: levelOf(effort) };
    const budget = fitBudget(BUDGETS[effort], { prompt, supported, share: BUDGET_SHARES[effort] });
    if (budget === BUDGETS.none) dropped.add(effortName);
    return { thinkingBudget: budget };
  }
  // Models with levels decide for themselves by default.
  return mode === "adaptive" && !supported.modes.includes("adaptive") ? { thinkingBudget: DYNAMIC_BUDGET } : {};
}

/** The highest minimum budget of the models that can answer without thinking, and of those that always think. */
const MIN_THINKING_TOKENS = { optional: 512, mandatory: 128 };

/**
 * Limits a budget to a share of the answer's tokens: thoughts count as output, so a model that spends the whole limit
 * on them has none left for the answer. If the limit is too low for any budget, the model does not think.
 */
function fitBudget(
  tokens: number,
  { prompt: { protocol, maxTokens }, supported, share }: {
    prompt: Prompt;
    supported: SupportedReasoning;
    share: number;
  },
): number {
  if (maxTokens === undefined || protocol === "gemini") return tokens;
  const most = Math.min(Math.floor(maxTokens * share), maxTokens - 1);
  if (tokens <= most) return tokens;
  if (most >= MIN_THINKING_TOKENS.optional) return most;
  return supported.mandatory === true ? Math.max(most, MIN_THINKING_TOKENS.mandatory) : BUDGETS.none;
}

function levelOf(effort: Effort): string {
  return LEVELS[effort === "none" ? "minimal" : effort];
}

/** True if the client gets thoughts. Clients of responses and Gemini must request them, as summaries. */
function isShown({ protocol }: Prompt, { display }: Reasoning): boolean {
  return protocol === "responses" || protocol === "gemini"
    ? display !== undefined && display !== "omitted"
    : display !== "omitted";
}

/** Writes `tools` and `toolConfig`, for spreading. */
function writeTools(prompt: Prompt, { dropped }: WriteTarget): JsonObject {
  if (prompt.parallelToolCalls === false) dropped.add(PARAMETER_NAMES[prompt.protocol].parallel);
  const functionDeclarations = prompt.tools.flatMap((tool) =>
    tool.type === "function" ? [writeFunction(tool, dropped)] : []
  );
  const hosted = prompt.tools.flatMap((tool) => tool.type === "hosted" ? [tool.value] : []);
  const { functionCallingConfig, ...others } = objectOf(ownMembers(prompt).toolConfig) ?? {};
  const choice = functionDeclarations.length === 0 ? undefined : prompt.toolChoice && writeChoice(prompt.toolChoice);
  if (choice === undefined && isForced(prompt.toolChoice)) dropped.add("tool_choice");
  const calling = someOf({ ...choice, ...objectOf(functionCallingConfig) });
  const toolConfig = someOf({ functionCallingConfig: calling, ...others });
  const tools = [...(functionDeclarations.length > 0 ? [{ functionDeclarations }] : []), ...hosted];
  return { ...(tools.length > 0 && { tools }), ...(toolConfig !== undefined && { toolConfig }) };
}

function isForced(choice: ToolChoice | undefined): boolean {
  return choice !== undefined && choice.type !== "auto" && choice.type !== "none";
}

function writeFunction(tool: Extract<Tool, { type: "function" }>, dropped: WriteTarget["dropped"]): JsonObject {
  if (tool.strict === true) dropped.add("strict");
  const { name, description, parameters } = tool;
  return {
    name,
    ...(description !== undefined && description !== "" && { description }),
    // The schema must have the type `object`.
    ...(parameters !== undefined && {
      parametersJsonSchema: parameters.type === undefined ? { type: "object", ...parameters } : parameters,
    }),
    ...ownMembers(tool),
  };
}

function writeChoice(choice: ToolChoice): JsonObject | undefined {
  switch (choice.type) {
    case "auto":
      return { mode: "AUTO" };
    case "none":
      return { mode: "NONE" };
    case "required":
      return { mode: "ANY" };
    case "tool":
      return { mode: "ANY", allowedFunctionNames: [choice.name] };
    case "allowed":
      // VALIDATED allows text or a call of one of these tools. AUTO accepts no names.
      return { mode: choice.mode === "required" ? "ANY" : "VALIDATED", allowedFunctionNames: choice.names };
    case "vendor_specific":
      return undefined;
  }
}
