/** Writes the reasoning of an answer as output items. */
import type { Signature } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { writeEncrypted } from "./encrypted_content.ts";
import {
  emptyItem,
  itemAdded,
  itemDone,
  itemId,
  type ItemPosition,
  type ItemStatus,
  type OutputItem,
  type ResponsesEvent,
} from "./output_item.ts";

/** The parts of a reasoning block that the client gets. */
export interface ReasoningView {
  /** True if it gets the item. */
  item: boolean;
  /** True if it gets the text, as a summary. */
  summary: boolean;
  /** True if it gets the signature, as `encrypted_content`. */
  encrypted: boolean;
  /** True if the issuer withheld the text. */
  hidden: boolean;
}

/** Creates the item of reasoning. Its only summary part opens with the first text, so hidden reasoning has none. */
export function reasoningItem(
  view: ReasoningView,
  position: ItemPosition,
): { item: OutputItem; events: ResponsesEvent[] } {
  const id = itemId("rs", position);
  const output_index = position.index;
  const location = { item_id: id, output_index, summary_index: 0 };
  let text = "";
  let signature: Signature | undefined;

  const part = () => ({ type: "summary_text", text });

  /** Returns the item. It has a status only if it is incomplete. */
  function write(status: ItemStatus, encrypted = view.encrypted): JsonObject {
    return {
      type: "reasoning",
      id,
      summary: text === "" ? [] : [part()],
      ...(encrypted && signature !== undefined && { encrypted_content: writeEncrypted(signature, view.hidden) }),
      ...(status === "incomplete" && { status }),
    };
  }

  const item: OutputItem = {
    ...emptyItem(),
    delta(piece) {
      if (!view.summary) return [];
      const events: ResponsesEvent[] = [];
      if (text === "") {
        events.push({ type: "response.reasoning_summary_part.added", members: { ...location, part: part() } });
      }
      text += piece;
      events.push({ type: "response.reasoning_summary_text.delta", members: { ...location, delta: piece } });
      return events;
    },
    close(known) {
      signature = known;
      return [];
    },
    done(status) {
      const events: ResponsesEvent[] = [];
      if (!view.item) return events;
      if (text !== "") {
        events.push(
          { type: "response.reasoning_summary_text.done", members: { ...location, text } },
          { type: "response.reasoning_summary_part.done", members: { ...location, part: part() } },
        );
      }
      events.push(itemDone(output_index, write(status)));
      return events;
    },
    value: (status) => view.item ? write(status) : undefined,
    // Models accept their earlier reasoning only in this form.
    kept: (status) => view.item || signature !== undefined ? write(status, true) : undefined,
  };
  return { item, events: view.item ? [itemAdded(output_index, { type: "reasoning", id, summary: [] })] : [] };
}
