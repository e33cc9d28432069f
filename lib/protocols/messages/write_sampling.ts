/** Writes sampling parameters. */
import type { Prompt, Sampling } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";

/** The highest temperature. Higher ones are clamped, because scaling would change the meaning of 1. */
const HOTTEST = 1;

/**
 * Writes temperature, top_p and top_k if the model accepts them; other parameters do not exist in this protocol.
 * @param thinking whether the model thinks: Anthropic then accepts no sampling parameter
 */
export function writeSampling(
  { sampling }: Prompt,
  { target, thinking }: { target: WriteTarget; thinking: boolean },
): JsonObject {
  const { row, dropped } = target;
  for (const name of unknownNames(sampling)) dropped.add(name);
  const members: JsonObject = {};

  function write(name: string, value: number | undefined): void {
    if (value === undefined) return;
    // 1 is the default of temperature and top_p, so dropping it loses nothing.
    const neutral = value === 1 && name !== "top_k";
    if (row.supported_parameters.includes(name) && !thinking) members[name] = value;
    else if (!neutral) dropped.add(name);
  }

  const { temperature, topP, topK } = sampling;
  if (temperature !== undefined && temperature > HOTTEST) dropped.add("temperature");
  write("temperature", temperature === undefined ? undefined : Math.min(temperature, HOTTEST));
  if (members.temperature !== undefined && topP !== undefined && row.features?.exclusive_sampling === true) {
    if (topP !== 1) dropped.add("top_p");
  } else {
    write("top_p", topP);
  }
  write("top_k", topK);
  return members;
}

/** Returns the names of unsupported parameters that would have an effect. */
function unknownNames(sampling: Sampling): string[] {
  const { frequencyPenalty = 0, presencePenalty = 0, seed, logitBias } = sampling;
  const names: string[] = [];
  if (frequencyPenalty !== 0) names.push("frequency_penalty");
  if (presencePenalty !== 0) names.push("presence_penalty");
  if (seed !== undefined) names.push("seed");
  if (logitBias !== undefined && Object.keys(logitBias).length > 0) names.push("logit_bias");
  return names;
}
