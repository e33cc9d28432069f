/** Adapts the tools of a prompt to a target, and the calls of its answer back. */
import type { Machine, Prompt, ReplyEvent } from "../canonical/types.ts";
import type { AdaptTarget } from "./adapt_target.ts";
import { unwrapCustomCalls, wrapCustomTools } from "./custom_tools.ts";
import { selectTools } from "./select_tools.ts";
import { renameTools } from "./tool_names.ts";

/** A prompt with adapted tools. */
export interface AdaptedTools {
  prompt: Prompt;
  /** Returns the machines that give the calls of one answer their original names and types. */
  restore: () => Machine<ReplyEvent, ReplyEvent>[];
}

/** Selects, renames and wraps the tools, and the past calls with them. */
export function adaptTools(prompt: Prompt, target: AdaptTarget): AdaptedTools {
  const { dialect } = target;
  const { prompt: renamed, restore } = renameTools(selectTools(prompt, target), dialect);
  return dialect.customTools
    ? { prompt: renamed, restore: () => [restore()] }
    : { prompt: wrapCustomTools(renamed), restore: () => [restore(), unwrapCustomCalls()] };
}
