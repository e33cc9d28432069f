/** Writes the body of a responses request. */
import type { Prompt } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { writeContextOf } from "./write_context.ts";
import { splitInstructions, writeInput } from "./write_input.ts";
import {
  writeInclude,
  writeReasoning,
  writeSampling,
  writeText,
  writeUnknownMembers,
  writeUser,
} from "./write_options.ts";
import { insertTools, writeToolChoice, writeTools } from "./write_tools.ts";

/**
 * Writes a request body, in steps. The body of a client of this protocol is only normalized: text as parts, leading
 * system text as `instructions`, `include` in a fixed order, no null or empty members, no `provider` and `models`.
 * Requests of other clients have no state at the vendor: it stores nothing, and reasoning comes encrypted.
 * @throws {GatewayError} `invalid`, for media that the protocol does not support
 */
export function* writePrompt(prompt: Prompt, target: WriteTarget): Generator<void, JsonObject> {
  const context = writeContextOf(prompt, target);
  const { own } = context;
  const { instructions, others } = splitInstructions(prompt.messages, context);
  const { tools, added } = writeTools(prompt.tools, context);
  const { toolChoice, parallelToolCalls, truncation, maxTokens } = prompt;
  return {
    ...writeUnknownMembers(prompt),
    model: target.model,
    ...(instructions !== undefined && { instructions }),
    input: insertTools(yield* writeInput(others, context), added),
    ...(tools.length > 0 && { tools }),
    ...(toolChoice !== undefined && { tool_choice: writeToolChoice(toolChoice, prompt.tools) }),
    ...(parallelToolCalls !== undefined && { parallel_tool_calls: parallelToolCalls }),
    ...(maxTokens !== undefined && { max_output_tokens: maxTokens }),
    ...writeSampling(prompt, context),
    ...writeReasoning(prompt.reasoning, prompt, context),
    ...writeText(prompt, context),
    ...writeInclude(prompt, context),
    ...(!own && { store: false }),
    ...(own && truncation !== undefined && { truncation }),
    ...(prompt.stream && { stream: true }),
    ...writeUser(prompt, context),
  };
}
