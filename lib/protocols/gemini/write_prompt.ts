/** Writes the body of a Gemini request. */
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { Prompt } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { objectOf, someOf } from "../members.ts";
import { writeContents } from "./write_contents.ts";
import { writeGeneration } from "./write_generation_config.ts";
import { writeTools } from "./write_tools.ts";

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
