/** Reads streamed answers of chat upstreams. */
import { answerReader, finishEvent } from "../canonical/finish.ts";
import { inputUsage } from "../canonical/input_tokens.ts";
import { type FinishReason, type Machine, MAX_ANSWERS, type ReplyEvent, type TokenUsage } from "../canonical/types.ts";
import { cutAnswerError, GatewayError } from "../../errors.ts";
import { isObject, type JsonObject, parsePlain, tryParse } from "../../json/mod.ts";
import type { Frame } from "../codec.ts";
import { templateParser, type TemplateRule, valueOf, type VariableMember } from "../frame_template.ts";
import { numberOf, objectOf, objectsOf, present, stringOf } from "../members.ts";
import type { Origin } from "../upstream_codec.ts";
import { withReported } from "../extras.ts";
import { ChatReplyReader } from "./chat_reply_reader.ts";
import { readOpenaiError } from "../read_openai_error.ts";
import { errorInside } from "../vendor_error.ts";
import { readUsage } from "./chat_usage.ts";

/** Longest id that is passed on. */
const MAX_ID_LENGTH = 256;

/**
 * Creates a reader of chunks. Usage may come on any chunk; the last one counts. The answer ends with `[DONE]`, or with
 * the stream if there was a finish reason. Everything after the end is ignored.
 */
export function streamReader(origin: Origin): Machine<Frame, ReplyEvent> {
  const answer = new ChatReplyReader(origin);
  const parse = templateParser(parseChunk, chatTemplateRule);
  let started = false;
  let id = "";
  let usage: TokenUsage | undefined;
  let servedTier: string | undefined;
  let finish: ChatFinish | undefined;
  /** True once a delta had content. Some hosts (MiniMax) end such a stream with the whole message, which repeats it. */
  let hasDeltas = false;
  /** True for each further answer (`n`) that has ended, by its index. */
  const others = new Map<number, boolean>();

  function start(): ReplyEvent[] {
    if (started) return [];
    started = true;
    return [{ type: "start", ...(id !== "" && { id }), ...present({ usage: usage && inputUsage(usage) }) }];
  }

  function close(hasDoneMark: boolean): ReplyEvent[] {
    // `[DONE]` without a finish reason ends a complete answer, too.
    const end: ChatFinish | undefined = finish ??
      (hasDoneMark && answer.hasContent && !answer.hasOpenCall ? { reason: "end" } : undefined);
    const isCut = !hasDoneMark && [...others.values()].includes(false);
    if (end === undefined || isCut) throw cutAnswerError();
    const reason = answer.end(end.reason);
    const reported = withReported(usage ?? {}, { tier: servedTier, requestedTier: origin.tier });
    return [...start(), ...answer.take(), finishEvent(reason, { ...end, usage: reported })];
  }

  function pushChunk(chunk: JsonObject): ReplyEvent[] {
    const choice = firstChoice(chunk);
    usage = usageOf(chunk) ?? usage;
    if (chunk.service_tier !== undefined) servedTier = stringOf(chunk.service_tier) ?? servedTier;
    // Azure's first chunk has neither an id nor choices.
    if (id === "") id = idOf(chunk);
    if (choice !== undefined) {
      const delta = objectOf(choice.delta);
      answer.push(delta ?? (hasDeltas ? undefined : objectOf(choice.message)) ?? {}, id, choice.logprobs);
      hasDeltas ||= delta !== undefined && answer.hasContent;
      finish ??= readFinish(choice);
    }
    for (const other of objectsOf(chunk.choices)) {
      const index = numberOf(other.index) ?? 0;
      if (index > 0 && index < MAX_ANSWERS) {
        others.set(index, others.get(index) === true || Boolean(stringOf(other.finish_reason)));
      }
    }
    return choice === undefined && id === "" ? [] : [...start(), ...answer.take()];
  }

  return answerReader({
    read(frame) {
      const { event, data } = frame;
      const text = data.trim();
      // Some servers forward comments of their upstream as data.
      if (text === "" || text.startsWith(":")) return [];
      if (text === "[DONE]") return close(true);
      // `trim()` removes more characters than JSON's white space.
      const chunk = valueOf(frame, parse);
      if (!isObject(chunk)) throw new GatewayError("upstream", "The model's vendor sent an invalid answer");
      if (isFailure(chunk, event)) throw errorInside(chunk, readOpenaiError(200, chunk));
      return pushChunk(chunk);
    },
    end: () => close(false),
    // Nothing was sent before the start of the answer, so the response can still have the status of the error.
    unsent: () => started ? answer.take() : [],
  });
}

/** Returns the first choice: only one answer is requested. */
export function firstChoice(body: JsonObject): JsonObject | undefined {
  return objectsOf(body.choices).find(({ index }) => (numberOf(index) ?? 0) === 0);
}

/** Returns the id of an answer; "" if there is none. */
export function idOf(body: JsonObject): string {
  const id = stringOf(body.id) ?? "";
  return id.length <= MAX_ID_LENGTH ? id : "";
}

/** Reads the usage at the top of the body, in the choice (Moonshot), or in `x_groq`. */
export function usageOf(body: JsonObject): TokenUsage | undefined {
  return readUsage(body.usage) ?? readUsage(firstChoice(body)?.usage) ?? readUsage(objectOf(body.x_groq)?.usage);
}

/** Returns whether a body is an error: it has a member `error`, is an event `error`, or says so in `object`. */
export function isFailure(body: JsonObject, event?: string): boolean {
  return Boolean(body.error) || event === "error" || stringOf(body.object)?.toLowerCase() === "error";
}

/** Matches arguments that are an object, not a text: the numbers in it must keep their spelling. */
const OBJECT_INPUT = /"(?:arguments|input)"\s*:\s*\{/;

function parseChunk(text: string): JsonObject | undefined {
  const value = (OBJECT_INPUT.test(text) ? tryParse(text) : undefined) ?? tryParse(text, parsePlain);
  return isObject(value) ? value : undefined;
}

const TEXT_MEMBERS = ["content", "reasoning_content", "reasoning", "thinking", "refusal"] as const;

/** Applies to chunks with one choice whose delta has only texts. All other chunks are parsed in full. */
export const chatTemplateRule: TemplateRule = {
  variableMember({ choices }: JsonObject): VariableMember | undefined {
    const [choice, ...others] = Array.isArray(choices) ? choices : [];
    if (!isObject(choice) || others.length > 0 || !isObject(choice.delta)) return undefined;
    const { delta } = choice;
    for (const member of Object.values(delta)) if (typeof member === "object" && member !== null) return undefined;
    for (const name of TEXT_MEMBERS) {
      if (typeof delta[name] === "string" && delta[name] !== "") return { holder: delta, name };
    }
    return undefined;
  },
  // OpenAI pads chunks with random text to hide the length of their content.
  unread: ["obfuscation"],
};

/** A finish reason, with the matched stop string if the upstream reports it. */
export interface ChatFinish {
  reason: FinishReason;
  stopSequence?: string;
}

/** Finish reasons besides an ordinary end. */
const FINISH_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ["length", "length"],
  ["max_tokens", "length"],
  // Mistral: the context is full.
  ["model_length", "length"],
  ["tool_calls", "tool_use"],
  ["function_call", "tool_use"],
  ["tool_use", "tool_use"],
  ["content_filter", "refusal"],
  // GLM.
  ["sensitive", "refusal"],
]);

/** Finish reasons of failed answers: `error` of OpenRouter and Mistral, then those of vLLM, DeepSeek and GLM. */
const FAILURE_REASONS: ReadonlySet<string> = new Set(
  ["error", "abort", "insufficient_system_resource", "network_error"],
);

/**
 * Reads the finish reason of a choice; returns undefined if there is none yet. Unknown reasons count as an ordinary
 * end.
 * @throws {GatewayError} `upstream`, if the reason is a failure
 */
export function readFinish(choice: JsonObject): ChatFinish | undefined {
  const reported = stringOf(choice.finish_reason);
  if (!reported) return undefined;
  if (FAILURE_REASONS.has(reported)) throw new GatewayError("upstream", "The model failed in the middle of its answer");
  const reason = FINISH_REASONS.get(reported) ?? "end";
  const stopSequence = reason === "end" ? readStopSequence(choice) : undefined;
  return stopSequence === undefined ? { reason } : { reason: "stop_sequence", stopSequence };
}

/** Returns the stop string that vLLM and SGLang report. Other servers have the finish reason in the same member. */
function readStopSequence(choice: JsonObject): string | undefined {
  const match = stringOf(choice.stop_reason) || stringOf(choice.matched_stop);
  return match && !/^[a-z_]+$/.test(match) ? match : undefined;
}
