/**
 * Flattens blocks of one protocol for upstreams of another: content that the model must read becomes text and media.
 */
import { readCacheMark } from "../canonical/cache_mark.ts";
import { MESSAGES_RECORDS, RESPONSES_ITEMS } from "../canonical/vendor_blocks.ts";
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { UnsupportedParameters } from "../canonical/unsupported_parameters.ts";
import { normalizeMediaType, readBase64, readMediaUrl } from "../canonical/media.ts";
import type { ContentBlock, ContentBlockOf, Media, Message, Protocol } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { nonEmptyStringOf, objectOf, objectsOf, partTexts, stringOf } from "../members.ts";

/** Types of blocks that record what ran at a vendor. They are dropped: the text around them has the outcome. */
const RECORD_TYPES: Readonly<Record<Protocol, ReadonlySet<string>>> = {
  messages: new Set(MESSAGES_RECORDS),
  responses: new Set(Object.keys(RESPONSES_ITEMS).filter((type) => !type.startsWith("compaction"))),
  chat: new Set(),
  gemini: new Set(["executableCode", "codeExecutionResult", "toolCall", "toolResponse"]),
};

/** Protocols whose upstreams may accept audio. */
const AUDIO_PROTOCOLS: readonly Protocol[] = ["chat", "gemini"];

/**
 * Returns a block as text and media; an empty list if it is dropped, which is added to `dropped`.
 * @throws {GatewayError} `invalid`, for content that the model must read and that cannot be flattened
 */
export function flattenVendorSpecific(
  { from, value, cache }: ContentBlockOf<"vendor_specific">,
  { role, protocol, to, dropped }: {
    role: Message["role"];
    /** The client's protocol, and the target's. */
    protocol: Protocol;
    to: Protocol;
    dropped: UnsupportedParameters;
  },
): ContentBlock[] {
  const type = typeOf(value);
  if (from === "chat" && type === "thinking") {
    // Mistral's thinking is a text or a list of parts.
    return [{ type: "reasoning", text: stringOf(value.thinking) ?? partTexts(value.thinking).join("") }];
  }
  // Others in an assistant message of chat are references, or unknown entries of `reasoning_details`.
  if (RECORD_TYPES[from].has(type) || (from === "chat" && role === "assistant")) {
    dropped.add(type.startsWith("reasoning.") ? PARAMETER_NAMES.chat.signed : type);
    return [];
  }
  let blocks: ContentBlock[] | undefined;
  if (from === "messages") blocks = flattenBlock(value, { type, dropped });
  else if (type === "input_audio" && AUDIO_PROTOCOLS.includes(to)) blocks = flattenAudio(value.input_audio);
  const last = blocks?.at(-1);
  if (blocks === undefined || last === undefined) {
    const message = `Cannot send content of type "${type}": the model's upstream does not accept it`;
    throw new GatewayError("invalid", message, { param: PARAMETER_NAMES[protocol].messages });
  }
  const mark = cache === undefined ? readCacheMark(value) : { cache };
  return [...blocks.slice(0, -1), { ...last, ...mark }];
}

/** Returns the type of a block; for Gemini, whose parts have no type, the name of the part's member. */
function typeOf(value: JsonObject): string {
  if (typeof value.type === "string") return value.type;
  return Object.keys(value).find((name) => name !== "thoughtSignature" && name !== "thought") ?? "unknown";
}

/** Flattens a block of the messages protocol. Returns undefined or an empty list if it cannot be flattened. */
function flattenBlock(
  value: JsonObject,
  { type, dropped }: { type: string; dropped: UnsupportedParameters },
): ContentBlock[] | undefined {
  switch (type) {
    case "search_result": {
      const header = [...labelledLine("Title", value.title), ...labelledLine("Source", value.source)].join("\n");
      const body = partTexts(value.content).join("\n");
      reportCitations(value, dropped);
      return [{ type: "text", text: [header, body].filter((text) => text !== "").join("\n\n") }];
    }
    case "document":
      reportCitations(value, dropped);
      return flattenDocument(value);
    case "tool_reference":
      return [{ type: "text", text: `[Loaded tool: ${stringOf(value.tool_name) ?? ""}]` }];
    case "compaction":
      // A summary of the earlier conversation; if encrypted, only its vendor can read it. Chat joins texts without space.
      return typeof value.content === "string" && value.content !== ""
        ? [{ type: "text", text: `${value.content}\n\n` }]
        : undefined;
    default:
      return undefined;
  }
}

function flattenDocument({ title, context, source }: JsonObject): ContentBlock[] | undefined {
  const header = [...labelledLine("Document", title), ...labelledLine("Context", context)];
  const blocks: ContentBlock[] = header.length === 0 ? [] : [{ type: "text", text: header.join("\n") }];
  for (const part of objectsOf(objectOf(source)?.content)) {
    const media = part.type === "image" && isObject(part.source) ? readImage(part.source) : undefined;
    if (part.type === "text") blocks.push({ type: "text", text: stringOf(part.text) ?? "" });
    else if (media !== undefined) blocks.push({ type: "media", media });
    else return undefined;
  }
  return blocks;
}

function readImage({ type, url, data, media_type: mediaType }: JsonObject): Media | undefined {
  try {
    if (type === "url" && typeof url === "string") return readMediaUrl(url);
    if (type !== "base64" || typeof data !== "string" || typeof mediaType !== "string") return undefined;
    return { kind: "bytes", base64: readBase64(data), mediaType: normalizeMediaType(mediaType) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return undefined;
  }
}

/** Reads the audio of both OpenAI protocols; undefined if it is not base64, such as the address that some hosts open. */
function flattenAudio(audio: Json | undefined): ContentBlock[] | undefined {
  if (!isObject(audio) || typeof audio.data !== "string" || typeof audio.format !== "string") return undefined;
  if (!/^[a-z0-9-]+$/i.test(audio.format)) return undefined;
  const mediaType = audio.format === "mp3" ? "audio/mpeg" : `audio/${audio.format}`;
  try {
    return [{ type: "media", media: { kind: "bytes", base64: readBase64(audio.data), mediaType } }];
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return undefined;
  }
}

function reportCitations({ citations }: JsonObject, dropped: UnsupportedParameters): void {
  if (isObject(citations) && citations.enabled === true) dropped.add("citations");
}

/** Returns a line as the only item of a list; an empty list for an empty or missing text. */
function labelledLine(label: string, value: Json | undefined): string[] {
  const text = nonEmptyStringOf(value);
  return text === undefined ? [] : [`${label}: ${text}`];
}
