/** The facts about the prompt and its target that the writers of a responses request need. */
import { PARAMETER_NAMES, type ParameterNames } from "../canonical/parameter_names.ts";
import type { Prompt } from "../canonical/types.ts";
import type { WriteTarget } from "../upstream_codec.ts";

/** The context of a prompt that is being written. */
export interface ResponsesWriteContext {
  /** True if the client speaks this protocol, too. Its members are written unchanged. */
  own: boolean;
  target: WriteTarget;
  /** The client's names of parameters that may be dropped. */
  names: Readonly<ParameterNames>;
  customCalls: ReadonlySet<string>;
}

/** Returns the context of a prompt. */
export function writeContextOf(prompt: Prompt, target: WriteTarget): ResponsesWriteContext {
  const calls = prompt.messages.flatMap(({ blocks }) => blocks).filter((block) => block.type === "tool_call");
  return {
    own: prompt.protocol === "responses",
    target,
    names: PARAMETER_NAMES[prompt.protocol],
    customCalls: new Set(calls.filter(({ custom }) => custom === true).map(({ id }) => id)),
  };
}
