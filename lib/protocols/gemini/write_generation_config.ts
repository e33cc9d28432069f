import type { OutputFormat, Prompt } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { someOf } from "../members.ts";
import { writeThinking } from "./write_thinking.ts";

/**
 * Writes `generationConfig`; `undefined` if it would be empty. Parameters that the model's row does not list are
 * dropped, except length and format, without which the answer would be another.
 */
export function writeGeneration(prompt: Prompt, target: WriteTarget): JsonObject | undefined {
  const { row, dropped } = target;
  const { sampling, stop } = prompt;

  /** Returns the value if the model has the parameter. */
  function take<T>(value: T | undefined, name: string): T | undefined {
    if (value === undefined || row.supported_parameters.includes(name)) return value;
    dropped.add(name);
    return undefined;
  }

  if (sampling.logitBias !== undefined) dropped.add("logit_bias");
  return someOf({
    maxOutputTokens: prompt.maxTokens,
    temperature: take(sampling.temperature, "temperature"),
    topP: take(sampling.topP, "top_p"),
    topK: take(sampling.topK, "top_k"),
    seed: take(sampling.seed, "seed"),
    presencePenalty: take(sampling.presencePenalty, "presence_penalty"),
    frequencyPenalty: take(sampling.frequencyPenalty, "frequency_penalty"),
    stopSequences: stop.length === 0 ? undefined : stop,
    ...writeFormat(prompt.format),
    thinkingConfig: writeThinking(prompt, target),
  });
}

/**
 * A schema has no name and no strictness: it is always enforced. The description goes into the schema, unless it has
 * one.
 */
function writeFormat(format: OutputFormat | undefined): JsonObject {
  if (format === undefined || format.type === "text") return {};
  const json = { responseMimeType: "application/json" };
  if (format.type === "json_object") return json;
  const { schema, description } = format;
  return { ...json, responseJsonSchema: description === undefined ? schema : { description, ...schema } };
}
