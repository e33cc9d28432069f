/** Reads whole answers and event streams of image hosts as they arrive. */
import { GatewayError } from "../../errors.ts";
import { SseReader } from "../../server/sse.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import type { Incoming } from "../transport.ts";
import { imageCutter, type RawImage } from "./cut_images.ts";
import { innerFailure } from "./map_errors.ts";

/** An image or preview, with its index as reported by the host. */
export interface Sent {
  type: "image" | "preview";
  raw: RawImage;
  /** Its place among the images of this answer; absent: the host says nothing. */
  index?: number;
  /** Place of a preview among those of its image; absent as above. */
  step?: number;
  /** Tokens of uploaded images, as far as the answer reports them by then. */
  inputImageTokens?: number;
}

/** Most bytes of one answer: ten images of 40 MB in base64, and room. */
const ANSWER_BYTES = 512 * 1024 * 1024;

/** Longest event in characters: the largest image and its other members. */
const EVENT_LENGTH = 136 * 1024 * 1024;

/**
 * Images as they come.
 * @param readsUsage true to delay the last image of a whole answer until its usage has arrived
 * @throws {GatewayError} `upstream` for an incomplete, unreadable or too large answer; the host's own error
 */
export function readAnswer(incoming: Incoming, { readsUsage }: { readsUsage: boolean }): AsyncGenerator<Sent> {
  const isStream = /^text\/event-stream\b/i.test(incoming.header("content-type") ?? "");
  if (isStream) return readStream(incoming);
  return readsUsage ? withUsage(incoming) : readWhole(incoming);
}

/** The last image comes with the usage; without one where the answer breaks off after it. */
async function* withUsage(incoming: Incoming): AsyncGenerator<Sent> {
  const sent = readWhole(incoming);
  let last: Sent | undefined;
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

/** Returns the answer without its images. */
async function* readWhole(incoming: Incoming): AsyncGenerator<Sent, JsonObject> {
  const cutter = imageCutter("answer");
  for await (const text of texts(incoming)) {
    for (const raw of cutter.push(text)) yield { type: "image", raw };
  }
  const rest = cutter.end();
  if (!isObject(rest)) throw new GatewayError("upstream", "Cannot read the upstream's answer: expected a JSON object");
  const failure = innerFailure(rest);
  if (failure !== undefined) throw failure;
  if (Array.isArray(rest.data) && rest.data.some((item) => isObject(item) && typeof item.url === "string")) {
    throw new GatewayError("upstream", "Cannot use the upstream's answer: it has URLs instead of images");
  }
  return rest;
}

/** Tokens of uploaded images, in OpenAI's words. */
function reportedTokens({ usage }: JsonObject): number | undefined {
  const details = isObject(usage) ? usage.input_tokens_details : undefined;
  const tokens = isObject(details) ? details.image_tokens : undefined;
  return typeof tokens === "number" ? tokens : undefined;
}

async function* readStream(incoming: Incoming): AsyncGenerator<Sent> {
  const reader = new SseReader(EVENT_LENGTH);
  for await (const text of texts(incoming)) {
    for (const frame of reader.push(text)) yield* readEvent(frame.data, frame.event);
  }
  for (const frame of reader.end()) yield* readEvent(frame.data, frame.event);
}

/** Events that bring no image and no error are passed over: hosts have their own. */
function* readEvent(data: string, eventName: string | undefined): Generator<Sent> {
  if (data === "[DONE]") return;
  const cutter = imageCutter("event");
  const [raw] = cutter.push(data);
  const event = cutter.end();
  if (!isObject(event)) return;
  const failure = innerFailure(eventName === "error" ? { type: "error", ...event } : event);
  if (failure !== undefined) throw failure;
  const type = typeof event.type === "string" ? event.type : eventName ?? "";
  if (raw === undefined) return;
  const index = placeOf(event.index);
  if (type.endsWith(".completed")) yield { type: "image", raw, index, inputImageTokens: reportedTokens(event) };
  if (type.endsWith(".partial_image")) yield { type: "preview", raw, index, step: placeOf(event.partial_image_index) };
}

function placeOf(value: Json | undefined): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : undefined;
}

/** An answer's text as it arrives. */
async function* texts(incoming: Incoming): AsyncGenerator<string> {
  const decode = asciiDecoder();
  let bytes = 0;
  for (let piece = await incoming.read(); piece !== undefined; piece = await incoming.read()) {
    bytes += piece.length;
    if (bytes > ANSWER_BYTES) throw new GatewayError("upstream", "Cannot read the upstream's answer: it is too large");
    yield decode(piece);
  }
}

/**
 * Decodes UTF-8 that is nearly all ASCII. A decoder that streams makes strings of two bytes per character; a piece that
 * ends in ASCII can be decoded by itself and takes half of that, as does everything made of it.
 */
function asciiDecoder(): (piece: Uint8Array) => string {
  const whole = new TextDecoder("utf-8", { ignoreBOM: true });
  const streaming = new TextDecoder("utf-8", { ignoreBOM: true });
  let open = false;
  return (piece) => {
    const endsInside = (piece.at(-1) ?? 0) >= 0x80;
    const text = open || endsInside ? streaming.decode(piece, { stream: true }) : whole.decode(piece);
    open = endsInside;
    return text;
  };
}
