/** Writes the body of a chat request in OpenAI's form. Quirks of other vendors are applied afterwards. */
import { supportedEffort } from "../canonical/effort.ts";
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { ContentBlock, ContentBlockOf, Message, OutputFormat, Prompt } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { objectOf, present, stringOf } from "../members.ts";
import { endUserId } from "../openai_settings.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import {
  type ChatWriteContext,
  isPlain,
  withMembers,
  withUnknownMembers,
  writeCall,
  writeContent,
  writePart,
} from "./write_parts.ts";
import { writeTools } from "./write_tools.ts";
import { callSignatures, signedCallId } from "../canonical/signature.ts";
import { writePastReasoning } from "./reasoning_details.ts";

/**
 * Parameters that are sent only if the model's catalog entry lists them. Tools, format and length are always sent,
 * because the answer would not be what the client wants without them.
 */
const LISTED_PARAMETERS: ReadonlySet<string> = new Set(
  `temperature top_p top_k min_p top_a frequency_penalty presence_penalty repetition_penalty seed logit_bias logprobs
  top_logprobs stop prediction verbosity web_search_options`.split(/\s+/),
);

/**
 * Writes a prompt, in steps. Everything is written, added to `target.dropped`, or refused. The body is normalized:
 * `max_tokens` becomes `max_completion_tokens`, the `reasoning` object `reasoning_effort`, `functions` become `tools`,
 * a stop string becomes a list, and one plain text part a string. Provider preferences are not sent.
 * @throws {GatewayError} `invalid`, for a file of which only the URL is known
 */
export function* writePrompt(prompt: Prompt, target: WriteTarget): Generator<void, JsonObject> {
  const context: ChatWriteContext = { prompt, target };
  const { stream_options, user, ...unknownMembers } = ownMembers(prompt);
  return withUnknownMembers(
    {
      model: target.model,
      messages: yield* writeMessages(context),
      ...writeTools(prompt),
      ...present({ max_completion_tokens: prompt.maxTokens }),
      ...keepListed(writeSampling(prompt), context),
      ...writeEffort(context),
      ...writeFormat(prompt.format),
      ...present({ n: prompt.n }),
      // The usage is always requested, because billing needs it.
      ...(prompt.stream && { stream: true, stream_options: { ...objectOf(stream_options), include_usage: true } }),
      ...writeEndUser(prompt.user, user),
    },
    keepListed(unknownMembers, context),
  );
}

function writeSampling({ sampling, stop }: Prompt): JsonObject {
  return {
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK,
    frequency_penalty: sampling.frequencyPenalty,
    presence_penalty: sampling.presencePenalty,
    seed: sampling.seed,
    logit_bias: sampling.logitBias,
    logprobs: sampling.logprobs,
    top_logprobs: sampling.topLogprobs,
    stop: stop.length > 0 ? [...stop] : undefined,
  };
}

/** Drops parameters that the model does not have, and adds them to `dropped` unless they are null or absent. */
function keepListed(members: JsonObject, { target: { row, dropped } }: ChatWriteContext): JsonObject {
  const kept: [string, Json | undefined][] = [];
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined) continue;
    if (!LISTED_PARAMETERS.has(name) || row.supported_parameters.includes(name)) kept.push([name, value]);
    else if (value !== null) dropped.add(name);
  }
  return Object.fromEntries(kept);
}

/** Writes `reasoning_effort`, for spreading. The display of reasoning is not sent: the gateway applies it itself. */
function writeEffort({ prompt, target }: ChatWriteContext): JsonObject {
  const { reasoning, protocol } = prompt;
  if (reasoning === undefined) return {};
  const { dropped, row, dialect } = target;
  for (const name of Object.keys(ownMembers(reasoning))) {
    dropped.add(`reasoning.${name}`);
  }
  if (reasoning.encrypted === true && dialect.reasoningDetails !== true) dropped.add("include");
  const names = PARAMETER_NAMES[protocol];
  const effort = supportedEffort(reasoning, { efforts: row.reasoning?.efforts, names, dropped });
  return effort === undefined ? {} : { reasoning_effort: effort };
}

/** Writes the format, for spreading. Text is the default. OpenAI requires a name for a schema, unlike other vendors. */
function writeFormat(format: OutputFormat | undefined): JsonObject {
  if (format === undefined || format.type === "text") return {};
  if (format.type === "json_object") return { response_format: { type: "json_object" } };
  const { name = "output", description, schema, strict } = format;
  return {
    response_format: {
      type: "json_schema",
      json_schema: { name, ...present({ description }), schema, ...present({ strict }) },
    },
  };
}

/** Writes the end user's id as `user`; if the client has sent two ids, as `safety_identifier` beside its own `user`. */
function writeEndUser(user: string | undefined, olderId: Json | undefined): JsonObject {
  if (user === undefined) return {};
  const id = endUserId(user);
  const olderText = stringOf(olderId);
  return olderText === undefined ? { user: id } : { safety_identifier: id, user: olderText };
}

const BLOCKS_PER_STEP = 1_024;

/**
 * Writes the messages, in steps. Tool results become messages of their own, before the other content of their message.
 */
function* writeMessages(context: ChatWriteContext): Generator<void, JsonObject[]> {
  const written: JsonObject[] = [];
  let blocksSinceYield = 0;
  for (const message of context.prompt.messages) {
    if ((blocksSinceYield += message.blocks.length) >= BLOCKS_PER_STEP) {
      blocksSinceYield = 0;
      yield;
    }
    if (message.role === "assistant") written.push(writeAssistant(message, context));
    else if (message.role === "user") written.push(...writeUser(message, context));
    // The role of a client's `developer` message is among its unknown members.
    else written.push(withMembers({ role: "system", content: writeContent(message.blocks, context) }, message));
  }
  return written;
}

function writeUser(message: Message, context: ChatWriteContext): JsonObject[] {
  const own = ownMembers(message);
  const messages: JsonObject[] = [];
  const others: ContentBlock[] = [];
  for (const block of message.blocks) {
    if (block.type === "tool_result") messages.push(writeResult(block, context));
    else others.push(block);
  }
  // A single result was a message of its own, so the unknown members are those of that message.
  if (messages.length === 1 && others.length === 0) return messages.map((message) => withUnknownMembers(message, own));
  if (messages.length > 0 && others.length === 0 && Object.keys(own).length === 0) return messages;
  return [...messages, withUnknownMembers({ role: "user", content: writeContent(others, context) }, own)];
}

function writeResult(result: ContentBlockOf<"tool_result">, context: ChatWriteContext): JsonObject {
  const parts = result.blocks.map((block) => writePart(block, context));
  const isPlainText = parts.every(isPlain);
  // Chat has no flag for a failed tool.
  const errorMark = result.isError === true ? "[tool error] " : "";
  const joined = parts.map((part) => stringOf(part.text) ?? "").join("\n");
  const marked = errorMark === "" ? parts : [{ type: "text", text: errorMark.trim() }, ...parts];
  const text = joined === "" ? errorMark.trimEnd() : errorMark + joined;
  const content = isPlainText ? text : marked;
  return withMembers({ role: "tool", tool_call_id: result.callId, content }, result);
}

/** Writes an assistant message. Chat has no order between text and calls. */
function writeAssistant(message: Message, context: ChatWriteContext): JsonObject {
  const visible: ContentBlock[] = [];
  const refusals: string[] = [];
  const calls: JsonObject[] = [];
  const reasoning: ContentBlock[] = [];
  const { blocks } = message;
  const signatures = callSignatures(blocks, context.target.issuer);
  const callIds = new Set(blocks.map((block) => block.type === "tool_call" ? block.id : undefined));
  for (const block of blocks) {
    const signedCall = block.type === "reasoning" ? signedCallId(block.signature?.id) : undefined;
    if (block.type === "tool_call") calls.push(withMembers(writeCall(block, signatures.get(block.id)), block));
    else if (signedCall !== undefined && signatures.has(signedCall) && callIds.has(signedCall)) continue;
    else if (block.type === "refusal") refusals.push(block.text);
    else if (block.type === "reasoning" || isDetail(block)) reasoning.push(block);
    else visible.push(block);
  }
  const parts = visible.map((block) => writePart(block, context));
  // Texts of one answer follow each other without a separator.
  const joined = parts.every(isPlain) ? parts.map((part) => stringOf(part.text) ?? "").join("") : parts;
  const isEmpty = joined.length === 0 && (calls.length > 0 || refusals.length > 0);
  const written: JsonObject = {
    role: "assistant",
    content: isEmpty ? null : joined,
    ...writePastReasoning(reasoning, context),
    ...(refusals.length > 0 && { refusal: refusals.join("\n") }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return withMembers(written, message);
}

/** True for an unknown entry of `reasoning_details`, which returns to that member. */
function isDetail(block: ContentBlock): boolean {
  return block.type === "vendor_specific" && stringOf(block.value.type)?.startsWith("reasoning.") === true;
}
