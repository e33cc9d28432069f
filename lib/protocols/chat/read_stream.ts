/** A streamed answer of a chat upstream as events. */
import type { Machine, ReplyEvent, TokenUsage } from "../canonical/types.ts";
import { GatewayError, toGatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject, parseJson, parsePlain } from "../../json/mod.ts";
import type { Frame } from "../codec.ts";
import { alikeParser } from "../alike.ts";
import { valueOf } from "../long_frame.ts";
import { chatTemplateRule } from "./template_rule.ts";
import { numberOf, objectOf, objectsOf, stringOf } from "../members.ts";
import type { Origin } from "../upstream_codec.ts";
import { withReported } from "../extras.ts";
import { ChatReplyReader } from "./chat_reply_reader.ts";
import { readError } from "./read_error.ts";
import { type ChatFinish, readFinish } from "./read_finish.ts";
import { readUsage } from "./read_chat_usage.ts";

/** Longest id that is taken over. */
const MAX_ID = 256;

/**
 * Reads a stream of chunks. Usage may come on any of them, the last one counts. The answer is over with `[DONE]`, or with
 * the stream where a reason was given; what comes later is ignored.
 */
export function streamReader(origin: Origin): Machine<Frame, ReplyEvent> {
  const answer = new ChatReplyReader(origin);
  const parse = alikeParser(readChunk, chatTemplateRule);
  let over = false;
  let started = false;
  let id = "";
  let usage: TokenUsage | undefined;
  let served: string | undefined;
  let finish: ChatFinish | undefined;

  function start(): ReplyEvent[] {
    if (started) return [];
    started = true;
    const input = inputOf(usage);
    return [{ type: "start", ...(id !== "" && { id }), ...(input !== undefined && { usage: input }) }];
  }

  function fail(error: GatewayError): ReplyEvent[] {
    over = true;
    // Nothing was sent yet where nothing was started, and the error can still have a status of its own.
    return [...(started ? answer.take() : []), { type: "error", error }];
  }

  function close(marked: boolean): ReplyEvent[] {
    // The mark alone is an end too, if there is a whole answer before it.
    const end = finish ?? (marked && answer.begun && !answer.cut ? { reason: "end" as const } : undefined);
    if (end === undefined) return fail(new GatewayError("upstream", "The model's answer ended before it was complete"));
    const reason = answer.end(end.reason);
    over = true;
    const { stopSequence } = end;
    return [...start(), ...answer.take(), {
      type: "finish",
      reason,
      ...(reason === "stop_sequence" && stopSequence !== undefined && { stopSequence }),
      usage: withReported(usage ?? {}, { tier: served, asked: origin.tier }),
    }];
  }

  function take(chunk: JsonObject): ReplyEvent[] {
    const choice = firstChoice(chunk);
    usage = usageOf(chunk) ?? usage;
    if (chunk.service_tier !== undefined) served = stringOf(chunk.service_tier) ?? served;
    // Azure's first chunk has neither id nor choices.
    if (id === "") id = idOf(chunk);
    if (choice !== undefined) {
      answer.push(objectOf(choice.delta) ?? objectOf(choice.message) ?? {}, id);
      finish ??= readFinish(choice);
    }
    return choice === undefined && id === "" ? [] : [...start(), ...answer.take()];
  }

  return {
    push(frame) {
      if (over) return [];
      const { event, data } = frame;
      const text = data.trim();
      try {
        // Some pass on the comments of their own upstream as data.
        if (text === "" || text.startsWith(":")) return [];
        if (text === "[DONE]") return close(true);
        // Of spaces, `trim()` knows more than JSON does.
        const chunk = valueOf(frame, parse);
        if (!isObject(chunk)) {
          return fail(new GatewayError("upstream", "The model's vendor sent something that is no answer"));
        }
        return isFailure(chunk, event) ? fail(readError(200, chunk)) : take(chunk);
      } catch (error) {
        return fail(toGatewayError(error));
      }
    },
    end() {
      if (over) return [];
      try {
        return close(false);
      } catch (error) {
        return fail(toGatewayError(error));
      }
    },
  };
}

/** The choice that is read: there is one answer, whatever else was sent. */
export function firstChoice(body: JsonObject): JsonObject | undefined {
  return objectsOf(body.choices).find(({ index }) => (numberOf(index) ?? 0) === 0);
}

/** Id of an answer, "" where there is none. */
export function idOf(body: JsonObject): string {
  const id = stringOf(body.id) ?? "";
  return id.length <= MAX_ID ? id : "";
}

/** Usage at the usual place; in the choice, as Moonshot has it; or in Groq's own member. */
export function usageOf(body: JsonObject): TokenUsage | undefined {
  return readUsage(body.usage) ?? readUsage(firstChoice(body)?.usage) ?? readUsage(objectOf(body.x_groq)?.usage);
}

/** An error may come with choices, without, in an event of that name, or as an object of that name. */
export function isFailure(body: JsonObject, event?: string): boolean {
  return Boolean(body.error) || event === "error" || stringOf(body.object)?.toLowerCase() === "error";
}

/** What is known of the input before the answer begins. */
function inputOf(usage: TokenUsage | undefined): TokenUsage | undefined {
  if (usage === undefined) return undefined;
  const { completion: _, reasoning: __, ...input } = usage;
  return Object.keys(input).length === 0 ? undefined : input;
}

/** Arguments that come as an object: their numbers must survive. */
const OBJECT_INPUT = /"(?:arguments|input)"\s*:\s*\{/;

function readChunk(text: string): JsonObject | undefined {
  const value = (OBJECT_INPUT.test(text) ? tryParse(text, parseJson) : undefined) ?? tryParse(text, parsePlain);
  return isObject(value) ? value : undefined;
}

function tryParse(text: string, how: (text: string) => Json): Json | undefined {
  try {
    return how(text);
  } catch {
    return undefined;
  }
}
