import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { Prompt } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { objectOf, ownMembers, someOf } from "./members.ts";
import { writeContents } from "./write_contents.ts";
import { writeGeneration } from "./write_generation_config.ts";
import { writeTools } from "./write_tools.ts";

/**
 * Writes the body of `generateContent` and `streamGenerateContent`. The model and the streaming mode are in the URL.
 * @throws {GatewayError} `invalid`, for more than one answer and for a result without a call
 */
export function* writePrompt(prompt: Prompt, target: WriteTarget): Generator<void, JsonObject> {
  const names = PARAMETER_NAMES[prompt.protocol];
  if (prompt.n !== undefined && prompt.n > 1) {
    throw new GatewayError("invalid", `Cannot return ${prompt.n} answers: this model returns one per request`, {
      param: names.n,
    });
  }
  if (prompt.user !== undefined) target.dropped.add(names.user);
  const { unknownMembers } = prompt;
  if (unknownMembers?.from !== "gemini") { for (const name in unknownMembers?.members) target.dropped.add(name); }
  const { generationConfig: ofGeneration, toolConfig: _, ...members } = ownMembers(unknownMembers);
  const { system, contents } = yield* writeContents(prompt, target);
  const generationConfig = someOf({ ...writeGeneration(prompt, target), ...objectOf(ofGeneration) });
  return {
    ...(system.length > 0 && { systemInstruction: { parts: system } }),
    contents,
    ...writeTools(prompt, target),
    ...(generationConfig !== undefined && { generationConfig }),
    ...members,
  };
}
