/**
 * Relays responses. Edits: the model id and the id of the previous response in events with the response, `[DONE]` at the
 * end, and no events `keepalive`. If the gateway stores the answer, it asks for encrypted reasoning, and removes it from
 * the answer unless the client asked for it, too. An id that an earlier stored answer has is replaced.
 */
import {
  findValue,
  memberText,
  parseJson,
  scanElements,
  scanMembers,
  spliceMembers,
  writeJson,
} from "../../json/mod.ts";
import { replaceSpan } from "../../text.ts";
import type { AnswerKeeper, Frame, KeptAnswer, ResponseContext } from "../codec.ts";
import { listOf } from "../members.ts";
import { editElements, editMember, findInFrame, type Relay } from "../relay.ts";
import { ENCRYPTED } from "./encrypted_content.ts";
import { COMPLETE_EVENTS } from "./output_item.ts";
import { responseId } from "./write_response_object.ts";
import { streamWriter } from "./write_stream.ts";

const DONE: Frame = { data: "[DONE]" };
const KEEP_ALIVE = "keepalive";

/** Events that a new writer writes before an error. In a relayed stream the client has got them already. */
const OPENING_EVENTS = new Set(["response.created", "response.in_progress"]);

/** The relay of responses. OpenAI's streams have no `[DONE]` at the end, unlike other vendors', so it is added. */
export const responsesRelay: Relay = {
  // Without it only the host knows the reasoning, and only if it stores responses.
  keeperEdits(context, body) {
    if (!asksForEncrypted(context)) return {};
    return { include: writeJson([...listOf(parseJson(memberText(body, "include") ?? "[]")), ENCRYPTED]) };
  },
  editReply(answer, context) {
    const named = withId(answer.text, freeId(answer.text, context));
    keepReplyText(named, context.keeper);
    const shown = asksForEncrypted(context) ? hideInResponse(named) : named;
    const text = withPrevious(shown, context.keeper?.previousId);
    return text === answer.text ? answer : scanMembers(text);
  },
  machine(context) {
    /** The data of the last frame that has a sequence number. */
    let lastNumbered = "";
    const keeper = context.keeper?.keep === undefined ? undefined : new FrameKeeper(context.keeper);
    const hidesEncrypted = asksForEncrypted(context);
    /** The id of all frames of a stored answer; undefined before the first frame with one. */
    let id: string | undefined;
    return {
      push(frame) {
        if (isKeepAlive(frame)) return [];
        const { event, data } = frame;
        if (data.includes('"sequence_number"')) lastNumbered = data;
        const span = mayHaveResponse(data) ? findInFrame(frame, ["response"]) : undefined;
        let response = span && data.slice(span.start, span.end);
        if (keeper !== undefined && response !== undefined) {
          id ??= freeId(response, context);
          response = withId(response, id);
        }
        keeper?.push(frame, response);
        let shown = frame;
        if (span !== undefined && response !== undefined) {
          const renamed = editMember(response, "model", () => writeJson(context.model));
          const edited = replaceSpan(data, span, withPrevious(renamed, context.keeper?.previousId));
          shown = { ...(event !== undefined && { event }), data: edited };
        }
        return [hidesEncrypted ? hideInFrame(shown) : shown];
      },
      end: () => [DONE],
      fail(error) {
        let last = sequenceNumber(lastNumbered) ?? -1;
        return streamWriter(context).push({ type: "error", error })
          .filter(({ event }) => last < 0 || event === undefined || !OPENING_EVENTS.has(event))
          .map((frame) => last < 0 ? frame : renumber(frame, () => ++last));
      },
    };
  },
};

/** True for OpenAI's undocumented event `keepalive`, at which some clients fail. The gateway's keep-alives are comments. */
function isKeepAlive({ event, data }: Frame): boolean {
  return event === KEEP_ALIVE || (data.includes(KEEP_ALIVE) && stringAt(data, "type") === KEEP_ALIVE);
}

/**
 * Returns the id of a response, or a new one if an earlier answer has it: hosts such as Ollama choose ids from a million.
 */
function freeId(response: string, context: ResponseContext): string | undefined {
  const id = stringAt(response, "id");
  return id !== undefined && context.keeper?.isTaken?.(id) === true ? responseId(context) : id;
}

function withId(response: string, id: string | undefined): string {
  return id === undefined || id === stringAt(response, "id")
    ? response
    : spliceMembers(response, { id: writeJson(id) });
}

/** Returns a response with the id of the previous one. The upstream got its items instead, and answers null. */
function withPrevious(response: string, id: string | undefined): string {
  if (id === undefined || !response.trimStart().startsWith("{")) return response;
  return spliceMembers(response, { previous_response_id: writeJson(id) });
}

/** True if the gateway needs encrypted reasoning to store the answer, and the client did not ask for it. */
function asksForEncrypted({ keeper, prompt, reasons }: ResponseContext): boolean {
  return keeper?.keep !== undefined && reasons === true && prompt.reasoning?.encrypted !== true;
}

function renumber(frame: Frame, next: () => number): Frame {
  const span = findValue(frame.data, ["sequence_number"]);
  return span === undefined ? frame : { ...frame, data: replaceSpan(frame.data, span, String(next())) };
}

function sequenceNumber(data: string): number | undefined {
  const span = findValue(data, ["sequence_number"]);
  const number = span === undefined ? NaN : Number(data.slice(span.start, span.end));
  return Number.isSafeInteger(number) ? number : undefined;
}

/** False if an event certainly has no `response`. The name may contain escapes, so the test is conservative. */
function mayHaveResponse(data: string): boolean {
  return data.includes('"response"') || data.includes("\\u");
}

type KeptItems = KeptAnswer["output"];

const ITEM_DONE = "response.output_item.done";

/** Stores an answer that is not streamed. */
function keepReplyText(text: string, keeper: AnswerKeeper | undefined): void {
  if (keeper?.keep === undefined) return;
  const id = stringAt(text, "id");
  const output = findValue(text, ["output"]);
  if (id === undefined || output === undefined) return;
  keeper.keep({ id, output: itemsOf(text.slice(output.start, output.end)) });
}

/** Longest answer that is stored, in characters. */
const MAX_KEPT_LENGTH = 32 * 1024 * 1024;

/** Stores a streamed answer. It collects items as they end, because some hosts omit the output in the last event. */
class FrameKeeper {
  readonly #keeper: AnswerKeeper;
  readonly #items: KeptItems[number][] = [];
  #length = 0;

  constructor(keeper: AnswerKeeper) {
    this.#keeper = keeper;
  }

  /** Reads the next frame of the upstream. @param response its response; undefined if it has none */
  push(frame: Frame, response: string | undefined): void {
    const { event, data } = frame;
    const type = event ?? stringAt(data, "type");
    if (type === ITEM_DONE) {
      const span = findInFrame(frame, ["item"]);
      if (span === undefined) return;
      this.#length += span.end - span.start;
      if (this.#length <= MAX_KEPT_LENGTH) this.#items.push(itemOf(data.slice(span.start, span.end)));
      else this.#items.length = 0;
    } else if (response !== undefined && type !== undefined && COMPLETE_EVENTS.has(type)) this.#end(response);
  }

  #end(response: string): void {
    const id = stringAt(response, "id");
    if (id === undefined || this.#length > MAX_KEPT_LENGTH) return;
    const output = this.#items.length > 0 ? undefined : findValue(response, ["output"]);
    const items = output === undefined ? this.#items : itemsOf(response.slice(output.start, output.end));
    this.#keeper.keep?.({ id, output: items });
  }
}

function itemsOf(list: string): KeptItems {
  return [...scanElements(list)].map(({ start, end }) => itemOf(list.slice(start, end)));
}

function itemOf(text: string): KeptItems[number] {
  const id = stringAt(text, "id");
  return { text, ...(id !== undefined && { id }) };
}

/** Returns a string member of an object in JSON; undefined if it is not a string, or has escapes. */
function stringAt(text: string, name: string): string | undefined {
  const span = findValue(text, [name]);
  return span === undefined ? undefined : /^"([^"\\]*)"$/.exec(text.slice(span.start, span.end))?.[1];
}

const ENCRYPTED_MEMBER = '"encrypted_content"';

/** Returns an event without encrypted reasoning in its item or response. */
function hideInFrame(frame: Frame): Frame {
  const { event, data } = frame;
  if (!data.includes(ENCRYPTED_MEMBER)) return frame;
  return {
    ...(event !== undefined && { event }),
    data: editMember(editMember(data, "item", hideInItem), "response", hideInResponse),
  };
}

/** Returns a response without encrypted reasoning. */
function hideInResponse(text: string): string {
  return text.includes(ENCRYPTED_MEMBER) ? editMember(text, "output", (list) => editElements(list, hideInItem)) : text;
}

/** Returns an item without encrypted reasoning. Compaction items keep their member of the same name. */
function hideInItem(item: string): string {
  return stringAt(item, "type") === "reasoning" ? spliceMembers(item, { encrypted_content: undefined }) : item;
}
