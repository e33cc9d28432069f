/** Writes the `generationConfig` of a Gemini request. */
import type { OutputFormat, Prompt } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { someOf } from "../members.ts";
import { writeThinking } from "./write_thinking.ts";

/**
 * Writes `generationConfig`; returns undefined if it would be empty. Parameters that the model's catalog entry does not
 * list are dropped. Length and format are always written, because the answer would not be what the client wants without
 * them.
 */
export function writeGeneration(prompt: Prompt, target: WriteTarget): JsonObject | undefined {
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
