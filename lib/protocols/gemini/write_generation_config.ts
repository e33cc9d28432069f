/** Writes the parameters of the answer. */
import type { OutputFormat, Prompt } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { someOf } from "./members.ts";
import { NAMES } from "./parameter_names.ts";
import { writeThinking } from "./write_thinking.ts";

/**
 * The `generationConfig`; `undefined` where the client set nothing. Knobs that the model's row does not list are dropped;
 * length and form of the answer are no knobs: without them it would be another.
 */
export function writeGeneration(prompt: Prompt, target: WriteTarget): JsonObject | undefined {
  const { row, dropped } = target;
  const { sampling, stop, protocol } = prompt;
  const names = NAMES[protocol];

  /** The value, if the model has the knob. */
  function take<T>(value: T | undefined, listed: string, name = listed): T | undefined {
    if (value === undefined || row.supported_parameters.includes(listed)) return value;
    dropped.add(name);
    return undefined;
  }

  // The canonical answer has no place for probabilities, so there is no use in asking for them.
  if (sampling.logprobs === true) dropped.add(names.logprobs);
  if (sampling.topLogprobs !== undefined) dropped.add("top_logprobs");
  if (sampling.logitBias !== undefined) dropped.add("logit_bias");
  return someOf({
    maxOutputTokens: prompt.maxTokens,
    temperature: take(sampling.temperature, "temperature"),
    topP: take(sampling.topP, "top_p"),
    topK: take(sampling.topK, "top_k"),
    seed: take(sampling.seed, "seed"),
    presencePenalty: take(sampling.presencePenalty, "presence_penalty"),
    frequencyPenalty: take(sampling.frequencyPenalty, "frequency_penalty"),
    stopSequences: take(stop.length === 0 ? undefined : stop, "stop", names.stop),
    ...writeFormat(prompt.format),
    thinkingConfig: writeThinking(prompt, target),
  });
}

/**
 * Name and strictness of a schema have no place: the answer always keeps to it. Its description goes into the schema,
 * unless that has one.
 */
function writeFormat(format: OutputFormat | undefined): JsonObject {
  if (format === undefined || format.type === "text") return {};
  const json = { responseMimeType: "application/json" };
  if (format.type === "json_object") return json;
  const { schema, description } = format;
  return { ...json, responseJsonSchema: description === undefined ? schema : { description, ...schema } };
}
