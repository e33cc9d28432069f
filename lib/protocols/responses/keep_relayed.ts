/** Stores relayed answers by cutting their items out of the text. */
import { findValue, scanElements } from "../../json/mod.ts";
import type { AnswerKeeper, Frame, KeptAnswer } from "../codec.ts";
import { findInFrame } from "../relay.ts";

type KeptItems = KeptAnswer["output"];

const ITEM_DONE = "response.output_item.done";
const TERMINAL = ["response.completed", "response.incomplete"];

/** Stores a whole answer. */
export function keepReplyText(text: string, keeper: AnswerKeeper | undefined): void {
  if (keeper?.keep === undefined) return;
  const id = stringAt(text, "id");
  const output = findValue(text, ["output"]);
  if (id === undefined || output === undefined) return;
  keeper.keep({ id, output: itemsOf(text.slice(output.start, output.end)) });
}

/** Stores a streamed answer. Some hosts omit the output in the last event, so items are collected as they end. */
export class FrameKeeper {
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
export function stringAt(text: string, name: string): string | undefined {
  const span = findValue(text, [name]);
  return span === undefined ? undefined : /^"([^"\\]*)"$/.exec(text.slice(span.start, span.end))?.[1];
}
