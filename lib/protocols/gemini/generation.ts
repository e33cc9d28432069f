/** Writes the parameters of the answer. */
import type { OutputFormat, Prompt } from "../../canonical/types.ts";
import type { JsonObject } from "../../json.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { someOf } from "./members.ts";
import { NAMES } from "./names.ts";
import { writeThinking } from "./thinking.ts";

/** The `generationConfig`; `undefined` where the client set nothing. What the model's row does not list is dropped. */
export function writeGeneration(prompt: Prompt, target: WriteTarget): JsonObject | undefined {
  const { row, dropped } = target;
  const { sampling, stop, protocol } = prompt;
  const names = NAMES[protocol];

  /** The value, if the model takes the parameter: `listed` are its names in the catalog, `name` is the client's. */
  function take<T>(value: T | undefined, listed: readonly string[], name = listed[0]): T | undefined {
    if (value === undefined || name === undefined) return undefined;
    if (listed.some((parameter) => row.supported_parameters.includes(parameter))) return value;
    dropped.add(name);
    return undefined;
  }

  // The canonical answer has no place for probabilities, so there is no use in asking for them.
  if (sampling.logprobs === true) dropped.add(names.logprobs);
  if (sampling.topLogprobs !== undefined) dropped.add("top_logprobs");
  if (sampling.logitBias !== undefined) dropped.add("logit_bias");
  const format = prompt.format?.type === "text" ? undefined : prompt.format;
  return someOf({
    maxOutputTokens: take(prompt.maxTokens, ["max_tokens", "max_completion_tokens"], names.maxTokens),
    temperature: take(sampling.temperature, ["temperature"]),
    topP: take(sampling.topP, ["top_p"]),
    topK: take(sampling.topK, ["top_k"]),
    seed: take(sampling.seed, ["seed"]),
    presencePenalty: take(sampling.presencePenalty, ["presence_penalty"]),
    frequencyPenalty: take(sampling.frequencyPenalty, ["frequency_penalty"]),
    stopSequences: take(stop.length === 0 ? undefined : stop, ["stop"], names.stop),
    ...writeFormat(take(format, ["response_format", "structured_outputs"], names.format)),
    thinkingConfig: writeThinking(prompt, target),
  });
}

/** Name, description and strictness of a schema have no place: the answer always keeps to it. */
function writeFormat(format: OutputFormat | undefined): JsonObject {
  if (format === undefined || format.type === "text") return {};
  const json = { responseMimeType: "application/json" };
  return format.type === "json_object" ? json : { ...json, responseJsonSchema: format.schema };
}
