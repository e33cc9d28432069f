/**
 * Relays responses. Edits: the model id in events with the response, and `[DONE]` at the end. If the answer is stored,
 * the request asks for encrypted reasoning.
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
import type { AnswerKeeper, Echo, Frame, KeptAnswer } from "../codec.ts";
import { listOf } from "../members.ts";
import { findInFrame, type Relay, withModel } from "../relay.ts";
import { ENCRYPTED } from "./encrypted_content.ts";
import { streamWriter } from "./write_stream.ts";

const DONE: Frame = { data: "[DONE]" };

/** Events that a new writer sends before an error; here they are sent already. */
const OPENING = new Set(["response.created", "response.in_progress"]);

/** OpenAI's own stream has no end mark, but every other stream of this protocol has one, so it is added. */
export const responsesRelay: Relay = {
  // Otherwise only the host knows the reasoning, and only if it stores responses.
  keeperEdits(echo, body) {
    if (!asksForEncrypted(echo)) return {};
    return { include: writeJson([...listOf(parseJson(memberText(body, "include") ?? "[]")), ENCRYPTED]) };
  },
  keepReply(answer, echo) {
    keepReplyText(answer.text, echo.keeper);
    return asksForEncrypted(echo) ? scanMembers(hideInResponse(answer.text)) : answer;
  },
  machine(echo) {
    /** The last frame with a sequence number. */
    let numbered = "";
    const keeper = echo.keeper?.keep === undefined ? undefined : new FrameKeeper(echo.keeper);
    const hides = asksForEncrypted(echo);
    return {
      push(relayed) {
        const frame = hides ? hideInFrame(relayed) : relayed;
        const { event, data } = frame;
        if (data === DONE.data) return [];
        if (data.includes('"sequence_number"')) numbered = data;
        keeper?.push(relayed);
        if (!mayHave(data, "response")) return [frame];
        return [{ ...(event !== undefined && { event }), data: withModel(frame, ["response", "model"], echo.model) }];
      },
      end: () => [DONE],
      fail(error) {
        let last = sequenceNumber(numbered) ?? -1;
        return streamWriter(echo).push({ type: "error", error })
          .filter(({ event }) => last < 0 || event === undefined || !OPENING.has(event))
          .map((frame) => last < 0 ? frame : renumbered(frame, () => ++last));
      },
    };
  },
};

/** Returns whether the gateway requests encrypted reasoning for the stored answer although the client does not. */
function asksForEncrypted({ keeper, prompt: { reasoning } }: Echo): boolean {
  return keeper?.keep !== undefined && reasoning !== undefined && reasoning.encrypted !== true;
}

function renumbered(frame: Frame, next: () => number): Frame {
  const span = findValue(frame.data, ["sequence_number"]);
  return span === undefined ? frame : { ...frame, data: replaceSpan(frame.data, span, String(next())) };
}

function sequenceNumber(data: string): number | undefined {
  const span = findValue(data, ["sequence_number"]);
  const number = span === undefined ? NaN : Number(data.slice(span.start, span.end));
  return Number.isSafeInteger(number) ? number : undefined;
}

/** False if there is certainly no member of this name, in any spelling. */
function mayHave(data: string, name: string): boolean {
  return data.includes(`"${name}"`) || data.includes("\\u");
}

type KeptItems = KeptAnswer["output"];

const ITEM_DONE = "response.output_item.done";
const TERMINAL = ["response.completed", "response.incomplete"];

/** Stores a whole answer. */
function keepReplyText(text: string, keeper: AnswerKeeper | undefined): void {
  if (keeper?.keep === undefined) return;
  const id = stringAt(text, "id");
  const output = findValue(text, ["output"]);
  if (id === undefined || output === undefined) return;
  keeper.keep({ id, output: itemsOf(text.slice(output.start, output.end)) });
}

/** Stores a streamed answer. Some hosts omit the output in the last event, so items are collected as they end. */
class FrameKeeper {
  readonly #keeper: AnswerKeeper;
  readonly #items: KeptItems[number][] = [];

  constructor(keeper: AnswerKeeper) {
    this.#keeper = keeper;
  }

  push(frame: Frame): void {
    const { event, data } = frame;
    const type = event ?? stringAt(data, "type");
    if (type === ITEM_DONE) {
      const span = findInFrame(frame, ["item"]);
      if (span !== undefined) this.#items.push(itemOf(data.slice(span.start, span.end)));
    } else if (type !== undefined && TERMINAL.includes(type)) {
      const span = findInFrame(frame, ["response"]);
      if (span !== undefined) this.#end(data.slice(span.start, span.end));
    }
  }

  #end(response: string): void {
    const id = stringAt(response, "id");
    if (id === undefined) return;
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

/** The string member of an object's text; absent if it is not a string, or contains an escape. */
function stringAt(text: string, name: string): string | undefined {
  const span = findValue(text, [name]);
  return span === undefined ? undefined : /^"([^"\\]*)"$/.exec(text.slice(span.start, span.end))?.[1];
}

const NAME = '"encrypted_content"';

/** An event without encrypted reasoning in its item or response. */
function hideInFrame(frame: Frame): Frame {
  const { event, data } = frame;
  if (!data.includes(NAME)) return frame;
  return {
    ...(event !== undefined && { event }),
    data: edited(edited(data, "item", hideInItem), "response", hideInResponse),
  };
}

/** A response without encrypted reasoning. */
function hideInResponse(text: string): string {
  return text.includes(NAME) ? edited(text, "output", hideInItems) : text;
}

function hideInItems(list: string): string {
  return `[${[...scanElements(list)].map(({ start, end }) => hideInItem(list.slice(start, end))).join(",")}]`;
}

/** Applies to reasoning only: compaction items have a member of this name, too. */
function hideInItem(item: string): string {
  return stringAt(item, "type") === "reasoning" ? spliceMembers(item, { encrypted_content: undefined }) : item;
}

function edited(text: string, name: string, edit: (value: string) => string): string {
  const span = findValue(text, [name]);
  return span === undefined ? text : replaceSpan(text, span, edit(text.slice(span.start, span.end)));
}
