/** Reads the last user turn of a conversation, for the echo model. Images and files become descriptions in brackets. */
import { PARAMETER_NAMES } from "../../protocols/canonical/parameter_names.ts";
import { modalityOf } from "../../protocols/canonical/media.ts";
import { type ContentBlock, type ContentBlockOf, hasToolResult, type Prompt } from "../../protocols/canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { imageSizeBase64 } from "../../billing/image_size.ts";

const REMINDER = "<system-reminder>";
const REMINDER_END = "</system-reminder>";

/** The last turn of the user. */
export interface LastUserTurn {
  /** The user's content, with descriptions of images and files; "" if there is none. */
  text: string;
  /** The user's text without images and files, for the choice of a tool. */
  words: string;
  /** Results of the assistant's earlier tool calls; undefined if the turn has none. */
  results: string | undefined;
  /** True if the assistant has already called tools after this turn. */
  called: boolean;
}

/**
 * Reads the last turn: the last user message, or the tool results together with the user's content. System messages and
 * the reminders of coding agents are skipped, and so is an assistant message after the turn (a prefill).
 * @throws {GatewayError} `invalid` if the turn has a part that cannot be read
 */
export function readLastUserTurn({ messages }: Pick<Prompt, "messages">): LastUserTurn {
  const conversation = messages.filter(({ role }) => role !== "system");
  const end = conversation.findLastIndex(({ role }) => role === "user");
  const begin = conversation.slice(0, end + 1).findLastIndex(({ role }) => role === "assistant");
  const turn = conversation.slice(begin + 1, end + 1);
  const firstResult = turn.findIndex(hasToolResult);
  const read = (firstResult < 0 ? turn.slice(-1) : turn.slice(firstResult)).flatMap(({ blocks }) => blocks);
  const results = read.filter((block) => block.type === "tool_result");
  const userBlocks = read.filter((block) => block.type !== "tool_result" && !isReminder(block));
  return {
    text: describe(userBlocks),
    words: describe(userBlocks.filter((block) => block.type === "text")),
    results: firstResult < 0 ? undefined : results.map(describeResult).join("\n"),
    called: conversation.slice(end + 1).some(({ blocks }) => blocks.some((block) => block.type === "tool_call")),
  };
}

/** Returns true for a block with nothing but the reminders that coding agents add to the user's content. */
function isReminder(block: ContentBlock): boolean {
  if (block.type !== "text") return false;
  let remaining = block.text.trimStart();
  if (remaining === "") return false;
  while (remaining.startsWith(REMINDER)) {
    const end = remaining.indexOf(REMINDER_END);
    if (end < 0) return false;
    remaining = remaining.slice(end + REMINDER_END.length).trimStart();
  }
  return remaining === "";
}

function describeResult({ blocks, isError }: ContentBlockOf<"tool_result">): string {
  return (isError === true ? "[error] " : "") + describe(blocks);
}

/** Returns blocks as text, each on its own line. */
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
      // Claude Code's search for tools returns these. Translations have the same text.
      if (block.value.type === "tool_reference") return `[Loaded tool: ${String(block.value.tool_name)}]`;
      throw new GatewayError(
        "invalid",
        `Cannot read a part of type "${String(block.value.type)}": this model accepts text, images and files`,
        { param: PARAMETER_NAMES[block.from].messages },
      );
    default:
      return "";
  }
}

/**
 * Returns text such as `[image 64x48 png]`, `[image https://example.com/a.png]`, `[file report.pdf application/pdf]`.
 */
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
