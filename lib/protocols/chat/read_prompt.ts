/** Reads the body of a chat request. */
import type { ContentBlock, Message, Prompt, Sampling } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { type ContentSizes, isInteger, isObject, type Json, type JsonObject } from "../../json/mod.ts";
import type { ClientPermissions } from "../codec.ts";
import { checkCount } from "../fields.ts";
import { booleanOf, numberOf, objectOf, present, stringOf, textsOf } from "../members.ts";
import { readOutputFormat } from "../openai_settings.ts";
import { plainPrompt, plainSizes, type ToolList } from "../plain_contents.ts";
import { modalityOf } from "../canonical/media.ts";
import { unknownIn } from "../canonical/unknown_members.ts";
import { readMessages } from "./read_messages.ts";
import { runToEnd } from "../../scheduler.ts";
import { readReasoningOptions } from "./read_reasoning_options.ts";
import { readToolChoice, readTools, usesLegacyFunctions } from "./read_tools.ts";

/** Members of the body that the canonical form models. */
const MODELLED = new Set(
  `model messages tools functions tool_choice function_call parallel_tool_calls max_completion_tokens max_tokens stop
  temperature top_p top_k frequency_penalty presence_penalty seed logit_bias logprobs top_logprobs reasoning_effort
  reasoning include_reasoning response_format n stream provider models safety_identifier`.split(/\s+/),
);
/** `MODELLED` for bodies without `safety_identifier`, in which `user` is the end user's id. */
const MODELLED_USER = new Set([...MODELLED, "user"]);
const INNER = { stream_options: new Set(["include_usage"]), usage: new Set(["include"]) };

/**
 * Reads a request that the schema has accepted.
 * @throws {GatewayError} `invalid`, for contradictions and for what the gateway does not support
 */
export function readPrompt(body: JsonObject, permissions?: ClientPermissions): Prompt {
  return runToEnd(readSteps(body, permissions));
}

/** As `readPrompt`, in steps. */
export function* readSteps(body: JsonObject, permissions?: ClientPermissions): Generator<void, Prompt> {
  refuseAudio(body);
  const tools = readTools(body);
  const messages = yield* readMessages(body, permissions);
  limitImages(messages);
  return { ...readSettings(body, { count: tools.length, list: () => tools }), messages, tools };
}

/** Reads a request whose messages and tools are plain. @throws {GatewayError} `invalid`, as `readPrompt` */
export function readPlainPrompt(head: JsonObject, sizes: ContentSizes, body: () => JsonObject): Prompt {
  if (usesLegacyFunctions(head)) return readPrompt(body());
  refuseAudio(head);
  const plain = plainSizes(sizes, { messages: sizes.entries.get("messages") ?? 0, issuer: "" });
  return plainPrompt(
    readSettings(head, { count: plain.tools, list: () => readTools(body()) }),
    plain,
    () => ({ messages: runToEnd(readMessages(body())), tools: readTools(body()) }),
  );
}

function readSettings(body: JsonObject, tools: ToolList): Omit<Prompt, "messages" | "tools"> {
  const stream = body.stream === true;
  const endUser = stringOf(body.safety_identifier);
  const format = objectOf(body.response_format);
  const hasChoice = body.tool_choice !== undefined || body.function_call !== undefined;
  const asksForReasoning = (body.reasoning ?? body.reasoning_effort ?? body.include_reasoning) !== undefined;
  return {
    ...present({
      toolChoice: hasChoice ? readToolChoice(body, tools) : undefined,
      // With `functions` an answer has at most one call.
      parallelToolCalls: usesLegacyFunctions(body) ? false : booleanOf(body.parallel_tool_calls),
      maxTokens: readMaxTokens(body),
      reasoning: asksForReasoning ? readReasoningOptions(body) : undefined,
      format: readOutputFormat(format, format && (objectOf(format.json_schema) ?? {})),
      n: numberOf(body.n),
      includeUsage: readIncludeUsage(body, stream),
      openRouter: isForOpenRouter(body) || undefined,
      provider: objectOf(body.provider),
      fallbacks: Array.isArray(body.models) ? textsOf(body.models) : undefined,
      user: endUser ?? stringOf(body.user),
    }),
    protocol: "chat",
    model: stringOf(body.model) ?? "",
    stop: typeof body.stop === "string" ? [body.stop] : textsOf(body.stop),
    sampling: readSampling(body),
    stream,
    ...unknownIn("chat", body, endUser === undefined ? MODELLED_USER : MODELLED, { inner: INNER }),
  };
}

/** Hosts differ in which of the two members they use, and the budget holds the cost of only one. */
function readMaxTokens(body: JsonObject): number | undefined {
  const [newer, older] = [limitOf(body.max_completion_tokens), limitOf(body.max_tokens)];
  if (newer !== undefined && older !== undefined && newer !== older) {
    throw new GatewayError("invalid", "Cannot use both max_tokens and max_completion_tokens: they are the same limit", {
      param: "max_tokens",
    });
  }
  return newer ?? older;
}

/** Returns a limit of tokens; -1 is none. */
function limitOf(value: Json | undefined): number | undefined {
  return value === -1 ? undefined : numberOf(value);
}

function readSampling(body: JsonObject): Sampling {
  const logprobs = booleanOf(body.logprobs);
  const topLogprobs = numberOf(body.top_logprobs);
  if (topLogprobs !== undefined && logprobs !== true) {
    throw new GatewayError("invalid", "Cannot use top_logprobs: logprobs is not true", { param: "top_logprobs" });
  }
  return present({
    temperature: numberOf(body.temperature),
    topP: numberOf(body.top_p),
    topK: numberOf(body.top_k),
    frequencyPenalty: numberOf(body.frequency_penalty),
    presencePenalty: numberOf(body.presence_penalty),
    seed: isInteger(body.seed) ? body.seed : undefined,
    logitBias: objectOf(body.logit_bias),
    logprobs,
    topLogprobs,
  });
}

function readIncludeUsage(body: JsonObject, stream: boolean): boolean | undefined {
  const options = objectOf(body.stream_options);
  if (options !== undefined && !stream) {
    throw new GatewayError("invalid", "Cannot use stream_options: stream is not true", { param: "stream_options" });
  }
  return booleanOf(options?.include_usage) ?? (stream ? booleanOf(objectOf(body.usage)?.include) : undefined);
}

/** OpenAI and others refuse these members, or ignore them. */
function isForOpenRouter({ reasoning, usage, include_reasoning: includeReasoning }: JsonObject): boolean {
  return isObject(reasoning) || isObject(usage) || typeof includeReasoning === "boolean";
}

function refuseAudio(body: JsonObject): void {
  const asksForAudio = textsOf(body.modalities).includes("audio");
  if (!asksForAudio && objectOf(body.audio) === undefined) return;
  const param = asksForAudio ? "modalities" : "audio";
  throw new GatewayError("invalid", "Cannot answer with audio: this gateway returns text only", { param });
}

function limitImages(messages: readonly Message[]): void {
  const count = messages.reduce((sum, { blocks }) => sum + countImages(blocks), 0);
  checkCount("images", count, "messages");
}

function countImages(blocks: readonly ContentBlock[]): number {
  let images = 0;
  for (const block of blocks) {
    if (block.type === "tool_result") images += countImages(block.blocks);
    else if (block.type === "media" && modalityOf(block.media, block.name) === "image") images++;
  }
  return images;
}
