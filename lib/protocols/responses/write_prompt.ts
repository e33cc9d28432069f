import type { Prompt } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
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
import { hasTools, insertTools, writeToolChoice, writeTools } from "./write_tools.ts";

/**
 * Writes a request body. Prompts of this protocol's own clients stay the same except for normalization: text as parts,
 * leading system text as `instructions`, `include` in one order, no null or empty members, no `provider` and `models`.
 * Prompts of other clients are stateless: nothing is stored, and reasoning comes with its token.
 * @throws {GatewayError} `invalid`, for more than one answer, and for media that the protocol does not support
 */
export function* writePrompt(prompt: Prompt, target: WriteTarget): Generator<void, JsonObject> {
  if (prompt.n !== undefined && prompt.n > 1) {
    throw new GatewayError("invalid", `Cannot return ${prompt.n} answers: this model returns one per request`, {
      param: "n",
    });
  }
  const context = writeContextOf(prompt, target);
  const { own } = context;
  const { instructions, others } = splitInstructions(prompt.messages, context);
  const { tools, added } = writeTools(prompt.tools, context);
  const { toolChoice, parallelToolCalls, truncation, maxTokens } = prompt;
  // Without tools, a choice is meaningless.
  const chooses = own || hasTools(tools, added);
  const choice = toolChoice === undefined || !chooses ? undefined : writeToolChoice(toolChoice, prompt.tools);
  return {
    ...writeUnknownMembers(prompt, context),
    model: target.model,
    ...(instructions !== undefined && { instructions }),
    input: insertTools(yield* writeInput(others, context), added),
    ...(tools.length > 0 && { tools }),
    ...(choice !== undefined && { tool_choice: choice }),
    ...(parallelToolCalls !== undefined && chooses && { parallel_tool_calls: parallelToolCalls }),
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
