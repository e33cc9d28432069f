/** Reads whole answers and event streams of image hosts as they arrive. */
import { GatewayError } from "../../errors.ts";
import { SseReader } from "../../server/sse.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { isEventStream } from "../answers.ts";
import type { Incoming } from "../transport.ts";
import { ImageCutter, type RawImage } from "./cut_images.ts";
import { innerFailure } from "./map_errors.ts";

/** An image or preview that a host has sent. */
export interface SentImage {
  type: "image" | "preview";
  raw: RawImage;
  /** Index of the image in the answer; absent if the host does not report it. */
  index?: number;
  /** Number of the preview among those of its image; absent if the host does not report it. */
  step?: number;
  /** Tokens of uploaded images that the answer has reported so far. */
  inputImageTokens?: number;
}

/** Largest answer, in bytes: ten images of 40 MB in base64, and some margin. */
const MAX_ANSWER_BYTES = 512 * 1024 * 1024;

/** Longest event, in characters: the largest image and its other members. */
const MAX_EVENT_LENGTH = 136 * 1024 * 1024;

/**
 * Yields the images of an answer as they arrive.
 * @param readsUsage true to delay the last image of a whole answer until its usage has arrived
 * @throws {GatewayError} `upstream` for an incomplete, unreadable or too large answer; the host's own error
 */
export function readAnswer(incoming: Incoming, { readsUsage }: { readsUsage: boolean }): AsyncGenerator<SentImage> {
  if (isEventStream(incoming)) return readStream(incoming);
  return readsUsage ? withUsage(incoming) : readWhole(incoming);
}

/** Yields the images of a whole answer, the last one with the usage unless the answer breaks off. */
async function* withUsage(incoming: Incoming): AsyncGenerator<SentImage> {
  const sent = readWhole(incoming);
  let last: SentImage | undefined;
  try {
    while (true) {
      const { done, value } = await sent.next();
      if (done === true) {
        if (last !== undefined) last.inputImageTokens = reportedTokens(value);
        break;
      }
      if (last !== undefined) yield last;
      last = value;
    }
  } catch (error) {
    if (last !== undefined) yield last;
    throw error;
  }
  if (last !== undefined) yield last;
}

/** Yields the images of a whole answer. @returns the answer without its images */
async function* readWhole(incoming: Incoming): AsyncGenerator<SentImage, JsonObject> {
  const cutter = new ImageCutter("answer");
  for await (const text of texts(incoming)) {
    for (const raw of cutter.push(text)) yield { type: "image", raw };
  }
  const answer = cutter.end();
  if (!isObject(answer)) {
    throw new GatewayError("upstream", "Cannot read the upstream's answer: expected a JSON object");
  }
  const failure = innerFailure(answer);
  if (failure !== undefined) throw failure;
  if (Array.isArray(answer.data) && answer.data.some((item) => isObject(item) && typeof item.url === "string")) {
    throw new GatewayError("upstream", "Cannot use the upstream's answer: it has URLs instead of images");
  }
  return answer;
}

/** Returns the reported tokens of uploaded images; undefined if they are not reported in OpenAI's form. */
function reportedTokens({ usage }: JsonObject): number | undefined {
  const details = isObject(usage) ? usage.input_tokens_details : undefined;
  const tokens = isObject(details) ? details.image_tokens : undefined;
  return typeof tokens === "number" ? tokens : undefined;
}

async function* readStream(incoming: Incoming): AsyncGenerator<SentImage> {
  const reader = new SseReader(MAX_EVENT_LENGTH);
  for await (const text of texts(incoming)) {
    for (const frame of reader.push(text)) yield* readEvent(frame.data, frame.event);
  }
  for (const frame of reader.end()) yield* readEvent(frame.data, frame.event);
}

/**
 * Yields the image of an event. Events without an image or an error are skipped, because hosts have events of their
 * own.
 */
function* readEvent(data: string, eventName: string | undefined): Generator<SentImage> {
  if (data === "[DONE]") return;
  const cutter = new ImageCutter("event");
  const [raw] = cutter.push(data);
  const event = cutter.end();
  if (!isObject(event)) return;
  const failure = innerFailure(eventName === "error" ? { type: "error", ...event } : event);
  if (failure !== undefined) throw failure;
  const type = typeof event.type === "string" ? event.type : eventName ?? "";
  if (raw === undefined) return;
  const index = indexOf(event.index);
  if (type.endsWith(".completed")) yield { type: "image", raw, index, inputImageTokens: reportedTokens(event) };
  if (type.endsWith(".partial_image")) yield { type: "preview", raw, index, step: indexOf(event.partial_image_index) };
}

function indexOf(value: Json | undefined): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : undefined;
}

/** Yields the text of an answer as it arrives. @throws {GatewayError} `upstream` if it is too large */
async function* texts(incoming: Incoming): AsyncGenerator<string> {
  const decode = asciiDecoder();
  let bytes = 0;
  for (let piece = await incoming.read(); piece !== undefined; piece = await incoming.read()) {
    bytes += piece.length;
    if (bytes > MAX_ANSWER_BYTES) {
      throw new GatewayError("upstream", "Cannot read the upstream's answer: it is too large");
    }
    yield decode(piece);
  }
}

/**
 * Returns a decoder for UTF-8 that is nearly all ASCII. A streaming decoder makes strings of two bytes per character. A
 * piece that ends with ASCII can be decoded separately, and takes half of that memory, as do all parts of it.
 */
function asciiDecoder(): (piece: Uint8Array) => string {
  const pieceDecoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const streamDecoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let isInsideCharacter = false;
  return (piece) => {
    const endsInside = (piece.at(-1) ?? 0) >= 0x80;
    const text = isInsideCharacter || endsInside
      ? streamDecoder.decode(piece, { stream: true })
      : pieceDecoder.decode(piece);
    isInsideCharacter = endsInside;
    return text;
  };
}
