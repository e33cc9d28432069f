/** Removes encrypted reasoning from relayed answers whose clients did not request it. */
import { findValue, scanElements, spliceMembers } from "../../json/mod.ts";
import { replaceSpan } from "../../text.ts";
import type { Frame } from "../codec.ts";
import { stringAt } from "./keep_relayed.ts";

const NAME = '"encrypted_content"';

/** An event without encrypted reasoning in its item or response. */
export function hideInFrame(frame: Frame): Frame {
  const { event, data } = frame;
  if (!data.includes(NAME)) return frame;
  return {
    ...(event !== undefined && { event }),
    data: edited(edited(data, "item", hideInItem), "response", hideInResponse),
  };
}

/** A response without encrypted reasoning. */
export function hideInResponse(text: string): string {
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
