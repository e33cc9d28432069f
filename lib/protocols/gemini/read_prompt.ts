/** Reads the body of `generateContent`, with the model and the streaming mode of the URL as members. */
import { effortOf } from "../canonical/effort.ts";
import type { OutputFormat, Prompt, Reasoning, Sampling } from "../canonical/types.ts";
import { unknownIn } from "../canonical/unknown_members.ts";
import { GatewayError } from "../../errors.ts";
import { isInteger, isRawNumber, type Json, type JsonObject } from "../../json/mod.ts";
import { runToEnd } from "../../scheduler.ts";
import type { ClientPermissions, PrewrittenJson } from "../codec.ts";
import { checkCount } from "../fields.ts";
import { booleanOf, numberOf, objectOf, present, stringOf, textsOf } from "../members.ts";
import { CallMatcher } from "./match_calls.ts";
import { readContents, readSystem, writeObjects } from "./read_contents.ts";
import type { GeminiReadContext } from "./read_parts.ts";
import { readSchema } from "./read_schema.ts";
import { readToolChoice, readTools } from "./read_tools.ts";

const NO_NAMES: ReadonlySet<string> = new Set();
const MODELLED = new Set([
  ...["model", "stream", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig"],
  ...["provider", "models"],
]);
const SETTINGS = `stopSequences candidateCount maxOutputTokens temperature topP topK seed presencePenalty
  frequencyPenalty responseLogprobs logprobs thinkingConfig`.split(/\s+/);
/** Members of `generationConfig` that are read, for answers of types that the canonical form models and for others. */
const GENERATION_MEMBERS = new Set([...SETTINGS, "responseMimeType", "responseSchema", "responseJsonSchema"]);
const GENERATION_MEMBERS_OF_OTHER_TYPES = new Set(SETTINGS);
const THINKING_MEMBERS = new Set(["includeThoughts", "thinkingBudget", "thinkingLevel"]);
const CALLING_MEMBERS = { functionCallingConfig: new Set(["mode", "allowedFunctionNames"]) };

const ROUTING_MEMBERS = ["routingConfig", "modelSelectionConfig"];

const TEXT_MODALITIES: ReadonlySet<string> = new Set(["MODALITY_UNSPECIFIED", "TEXT"]);

/** Budgets with a special meaning: no thinking, and as much as the model decides. */
const NO_THINKING_BUDGET = 0;
const DYNAMIC_BUDGET = -1;

const JSON_TYPE = "application/json";
const ENUM_TYPE = "text/x.enum";

/** Media types of answers that the canonical form models. A missing one means plain text. */
const MODELLED_TYPES: ReadonlySet<string> = new Set(["", "text/plain", JSON_TYPE]);

/** Reads a request. @throws {GatewayError} `invalid`, for what the schema cannot check */
export function readPrompt(body: JsonObject, permissions?: ClientPermissions): Prompt {
  return runToEnd(readRequest(body, { permissions }));
}

/** As `readPrompt`, in steps. */
export function* readSteps(body: JsonObject, permissions?: ClientPermissions): Generator<void, Prompt> {
  const texts = yield* writeObjects(body);
  return yield* readRequest(body, { permissions, texts });
}

function* readRequest(
  body: JsonObject,
  { permissions, texts }: { permissions: ClientPermissions | undefined; texts?: PrewrittenJson },
): Generator<void, Prompt> {
  const context: GeminiReadContext = { calls: new CallMatcher(), texts, permissions, images: 0 };
  const messages = [...readSystem(body.systemInstruction, context), ...yield* readContents(body.contents, context)];
  if (messages.every(({ role }) => role === "system")) {
    throw new GatewayError("invalid", "Expected contents with at least one part", { param: "contents" });
  }
  checkCount("images", context.images, "contents");
  const config = objectOf(body.generationConfig) ?? {};
  checkRouting(config);
  refuseOtherModalities(config);
  return {
    protocol: "gemini",
    model: stringOf(body.model) ?? "",
    messages,
    tools: readTools(body.tools),
    stop: textsOf(config.stopSequences),
    sampling: readSampling(config),
    stream: booleanOf(body.stream) ?? false,
    ...present({
      toolChoice: readToolChoice(body.toolConfig),
      maxTokens: numberOf(config.maxOutputTokens),
      reasoning: readReasoning(objectOf(config.thinkingConfig)),
      format: readFormat(config),
      choices: readChoices(config),
      n: numberOf(config.candidateCount),
      provider: objectOf(body.provider),
      fallbacks: Array.isArray(body.models) ? textsOf(body.models) : undefined,
    }),
    ...unknownMembersOf(body, config),
  };
}

/** Refuses members by which Vertex AI chooses the model. @throws {GatewayError} `invalid` */
function checkRouting(config: JsonObject): void {
  for (const name of ROUTING_MEMBERS) {
    if (config[name] === undefined || config[name] === null) continue;
    throw new GatewayError(
      "invalid",
      `Cannot use generationConfig.${name}: another model could answer, at its own price. Name the model in the URL`,
      { param: `generationConfig.${name}` },
    );
  }
}

/** Refuses answers that are not text. @throws {GatewayError} `invalid` */
function refuseOtherModalities({ responseModalities }: JsonObject): void {
  const other = textsOf(responseModalities).find((name) => !TEXT_MODALITIES.has(name.toUpperCase()));
  if (other === undefined) return;
  throw new GatewayError("invalid", `Cannot answer with ${other.toLowerCase()}: this gateway returns text only`, {
    param: "generationConfig.responseModalities",
  });
}

function readSampling(config: JsonObject): Sampling {
  return present({
    temperature: numberOf(config.temperature),
    topP: numberOf(config.topP),
    topK: numberOf(config.topK),
    seed: readSeed(config.seed),
    presencePenalty: numberOf(config.presencePenalty),
    frequencyPenalty: numberOf(config.frequencyPenalty),
    logprobs: booleanOf(config.responseLogprobs),
    topLogprobs: numberOf(config.logprobs),
  });
}

/** Reads a seed. It keeps integers beyond the precision of a double. */
function readSeed(seed: Json | undefined): Sampling["seed"] {
  if (typeof seed === "number") return seed;
  return seed !== undefined && isRawNumber(seed) && isInteger(seed) ? seed : undefined;
}

function readReasoning(config: JsonObject | undefined): Reasoning | undefined {
  if (config === undefined) return undefined;
  const budget = numberOf(config.thinkingBudget);
  const level = stringOf(config.thinkingLevel)?.toLowerCase();
  const reasoning: Reasoning = {
    ...present({
      mode: modeOf(budget),
      budgetTokens: budget !== undefined && budget > NO_THINKING_BUDGET ? budget : undefined,
      effort: effortOf(level),
      display: displayOf(config.includeThoughts),
    }),
    ...unknownIn("gemini", config, THINKING_MEMBERS),
  };
  return Object.keys(reasoning).length === 0 ? undefined : reasoning;
}

function modeOf(budget: number | undefined): Reasoning["mode"] {
  if (budget === undefined) return undefined;
  if (budget === NO_THINKING_BUDGET) return "off";
  return budget === DYNAMIC_BUDGET ? "adaptive" : "manual";
}

function displayOf(includeThoughts: Json | undefined): Reasoning["display"] {
  if (typeof includeThoughts !== "boolean") return undefined;
  return includeThoughts ? "summarized" : "omitted";
}

function typeOf({ responseMimeType }: JsonObject): string {
  return stringOf(responseMimeType)?.toLowerCase() ?? "";
}

/** True for answers in a form that the canonical form does not model, such as `text/x.enum`. */
function isUnmodelledType(config: JsonObject): boolean {
  return !MODELLED_TYPES.has(typeOf(config));
}

/** Reads the texts of which the answer must be one; undefined if it may be any. */
function readChoices(config: JsonObject): string[] | undefined {
  if (typeOf(config) !== ENUM_TYPE) return undefined;
  const values = textsOf((objectOf(config.responseJsonSchema) ?? objectOf(config.responseSchema))?.enum);
  return values.length === 0 ? undefined : values;
}

/** Reads the format of the answer. @throws {GatewayError} `invalid`, for two schemas */
function readFormat(config: JsonObject): OutputFormat | undefined {
  const openapiSchema = objectOf(config.responseSchema);
  const jsonSchema = objectOf(config.responseJsonSchema);
  if (openapiSchema !== undefined && jsonSchema !== undefined) {
    throw new GatewayError("invalid", "Cannot use both responseSchema and responseJsonSchema", {
      param: "generationConfig.responseSchema",
    });
  }
  if (isUnmodelledType(config)) return undefined;
  const schema = jsonSchema ?? (openapiSchema && readSchema(openapiSchema));
  if (schema !== undefined) return { type: "json_schema", schema };
  return typeOf(config) === JSON_TYPE ? { type: "json_object" } : undefined;
}

/** Returns the unknown members of a body, and those inside objects that are partly modelled. */
function unknownMembersOf(body: JsonObject, config: JsonObject): Pick<Prompt, "unknownMembers"> {
  const toolConfig = unknownIn("gemini", objectOf(body.toolConfig) ?? {}, NO_NAMES, { inner: CALLING_MEMBERS });
  const generationConfig = isUnmodelledType(config) ? GENERATION_MEMBERS_OF_OTHER_TYPES : GENERATION_MEMBERS;
  const more = { toolConfig: toolConfig.unknownMembers?.members };
  return unknownIn("gemini", body, MODELLED, { inner: { generationConfig }, more });
}
