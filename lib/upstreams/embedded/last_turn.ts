/** What the echo model reads of a conversation: its last turn, with images and files as words in brackets. */
import { modalityOf } from "../../protocols/canonical/media.ts";
import type { ContentBlock, ContentBlockOf, Message, Prompt } from "../../protocols/canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { imageSizeBase64 } from "../../billing/image_size.ts";

const REMINDER = "<system-reminder>";
const REMINDER_END = "</system-reminder>";

/** The last turn of the user's. */
export interface LastTurn {
  /** What the user said, images and files in place; "" where nothing was said. */
  text: string;
  /** What the user said in text, for the choice of a tool. */
  words: string;
  /** Results of the tools that the assistant called before; undefined where the turn brings none. */
  results: string | undefined;
  /** True when the assistant has called tools after this turn already. */
  called: boolean;
}

/**
 * Reads the last turn: the last user message, or the results of tools with everything the user said beside them. System
 * messages are not read, nor are the notes of coding agents; what an assistant says after the turn (a prefill) does not
 * end it.
 * @throws {GatewayError} `invalid`, where the turn holds what cannot be read
 */
export function readLastTurn({ messages }: Pick<Prompt, "messages">): LastTurn {
  const spoken = messages.filter(({ role }) => role !== "system");
  const end = spoken.findLastIndex(({ role }) => role === "user");
  const begin = spoken.slice(0, end + 1).findLastIndex(({ role }) => role === "assistant");
  const turn = spoken.slice(begin + 1, end + 1);
  const firstResult = turn.findIndex(hasResult);
  const read = (firstResult < 0 ? turn.slice(-1) : turn.slice(firstResult)).flatMap(({ blocks }) => blocks);
  const results = read.filter((block) => block.type === "tool_result");
  const said = read.filter((block) => block.type !== "tool_result" && !isReminder(block));
  return {
    text: describe(said),
    words: describe(said.filter((block) => block.type === "text")),
    results: firstResult < 0 ? undefined : results.map(describeResult).join("\n"),
    called: spoken.slice(end + 1).some(({ blocks }) => blocks.some((block) => block.type === "tool_call")),
  };
}

/** A part with nothing but notes that coding agents put beside the user's words. */
function isReminder(block: ContentBlock): boolean {
  if (block.type !== "text") return false;
  let rest = block.text.trimStart();
  if (rest === "") return false;
  while (rest.startsWith(REMINDER)) {
    const end = rest.indexOf(REMINDER_END);
    if (end < 0) return false;
    rest = rest.slice(end + REMINDER_END.length).trimStart();
  }
  return rest === "";
}

function hasResult({ blocks }: Message): boolean {
  return blocks.some((block) => block.type === "tool_result");
}

function describeResult({ blocks, isError }: ContentBlockOf<"tool_result">): string {
  return (isError === true ? "[error] " : "") + describe(blocks);
}

/** Blocks as text, each on a line of its own. */
function describe(blocks: readonly ContentBlock[]): string {
  return blocks.map(describeBlock).filter((text) => text !== "").join("\n");
}

function describeBlock(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "media":
      return describeMedia(block);
    case "vendor_specific":
      throw new GatewayError(
        "invalid",
        `Cannot read a part of type "${String(block.value.type)}": this model reads text, images and files`,
        { param: block.from === "responses" ? "input" : "messages" },
      );
    default:
      return "";
  }
}

/** `[image 64x48 png]`, `[image https://example.com/a.png]`, `[file report.pdf application/pdf]`. */
function describeMedia({ media, name }: ContentBlockOf<"media">): string {
  if (modalityOf(media, name) !== "image") {
    const words = ["file", name ?? (media.kind === "url" ? media.url : undefined), media.mediaType];
    return `[${words.filter((word) => word !== undefined).join(" ")}]`;
  }
  if (media.kind === "url") return `[image ${media.url}]`;
  const size = imageSizeBase64(media.base64);
  return size === undefined
    ? `[image ${media.mediaType.replace(/^image\//, "")}]`
    : `[image ${size.width}x${size.height} ${size.type}]`;
}
