/** The server's answers in every protocol: what they are made of, whole and streamed. */
import { fold } from "../protocols/canonical/fold.ts";
import type { Event, Protocol } from "../protocols/canonical/types.ts";
import { GatewayError } from "../errors.ts";
import { formatFrame } from "../server/sse.ts";
import { isObject, type Json, type JsonObject, parseJson, writeJson } from "../json/json.ts";
import { chat } from "../protocols/chat/mod.ts";
import type { Codec, Echo } from "../protocols/codec.ts";
import { messages } from "../protocols/messages/mod.ts";
import { responses } from "../protocols/responses/mod.ts";
import type { RawRequest } from "./connection.ts";
import type { Fault } from "./faults.ts";
import { lastText, said } from "./said.ts";

/** What a request is, as far as the server cares. */
export interface Spoken {
  /** What the user said last. */
  text: string;
  model: string;
  stream: boolean;
  /** The answer as one JSON text. */
  whole(fault: Fault | undefined): string;
  /** The answer's events as they go over the wire. `piece` is true for those with text. */
  steps(fault: Fault | undefined): Generator<Step, void, undefined>;
  /** An error within a stream. */
  failure(): string;
  /** The body of an error with a status. */
  error(status: number): string;
}

/** Events of one step. */
export interface Step {
  wire: string;
  piece: boolean;
}

/** Where each protocol is spoken: how its path ends. */
const CODECS: readonly [end: string, codec: Codec][] = [
  ["/chat/completions", chat],
  ["/responses", responses],
  ["/messages", messages],
];

/** A picture of 1x1 pixels. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/** What stands for what no protocol knows: a time and an id. */
const WHEN = 1_764_547_200;
const ID = "rehearsal0000000000000000";

/** Reads a request; `undefined` where there is nothing at its path. @throws {GatewayError} `invalid` */
export function understand({ path, body }: RawRequest): Spoken | undefined {
  const codec = CODECS.find(([end]) => path.endsWith(end))?.[1];
  if (codec !== undefined) return textRequest(codec, body);
  if (path.endsWith("/images/generations")) return imageRequest(parse(body));
  // The members of a form are not told apart: what matters stands in it as it is.
  if (path.endsWith("/images/edits")) return imageRequest(formMembers(body));
  return undefined;
}

function textRequest(codec: Codec, text: string): Spoken {
  const body = parse(text);
  const prompt = codec.readPrompt(body);
  const echo: Echo = { requestId: ID, createdAt: WHEN, model: prompt.model, request: body, prompt };
  const mend = (written: string, fault: Fault | undefined) => mendUsage(written, { fault, codec });
  return {
    text: lastText(prompt),
    model: prompt.model,
    stream: prompt.stream,
    whole: (fault) => mend(writeJson(codec.writeReply(fold(said(fault)), echo)), fault),
    *steps(fault) {
      const writer = codec.writer(echo);
      const spell = (event: Event) => writer.push(event).map(formatFrame).join("");
      for (const event of said(fault)) {
        if (event.type === "finish" && fault?.name === "no-end") return;
        yield { wire: mend(spell(event), fault), piece: event.type === "delta" };
      }
      yield { wire: writer.end().map(formatFrame).join(""), piece: false };
    },
    failure() {
      const writer = codec.writer(echo);
      writer.push({ type: "start" });
      const error = new GatewayError("upstream", "Rehearsal: an error within the answer");
      return [...writer.push({ type: "error", error }), ...writer.end()].map(formatFrame).join("");
    },
    error: (status) => errorText(codec.protocol, status),
  };
}

function imageRequest({ prompt, model, stream }: JsonObject): Spoken {
  const picture = { b64_json: PNG };
  const completed = `event: image_generation.completed\ndata: ${
    JSON.stringify({ type: "image_generation.completed", ...picture, created_at: WHEN })
  }\n\n`;
  const partial = completed.replaceAll("completed", "partial_image").replace(
    /"b64_json"/,
    '"partial_image_index":0,$&',
  );
  return {
    text: String(prompt ?? ""),
    model: String(model ?? ""),
    stream: stream === true || stream === "true",
    whole: () => JSON.stringify({ created: WHEN, data: [picture], usage: { total_tokens: 1 } }),
    *steps(fault) {
      const pieces = fault?.name === "endless" ? Infinity : Math.max(1, (fault?.after ?? 0) + 1);
      for (let piece = 0; piece < pieces; piece++) yield { wire: partial, piece: true };
      if (fault?.name !== "no-end") yield { wire: completed, piece: false };
    },
    failure: () => `event: error\ndata: ${errorText("chat", 500)}\n\n`,
    error: (status) => errorText("chat", status),
  };
}

function errorText(protocol: Protocol, status: number): string {
  const error = { type: status === 429 ? "rate_limit_error" : "api_error", message: `Rehearsal: status ${status}` };
  return JSON.stringify(
    protocol === "messages" ? { type: "error", error } : { error: { ...error, code: null, param: null } },
  );
}

/** The writers of this program tell no number that cannot be, and none where there should be one. */
function mendUsage(written: string, { fault, codec }: { fault: Fault | undefined; codec: Codec }): string {
  if (fault?.name === "wrong-usage") {
    return written.replace(/"(prompt|completion|input|output|total)_tokens":[-\d.e+]+/g, '"$1_tokens":-5');
  }
  if (fault?.name !== "no-usage") return written;
  const none = codec.protocol === "messages" ? "{}" : "null";
  return written.replace(/"usage":\{(?:[^{}]|\{[^{}]*\})*\}/g, `"usage":${none}`);
}

function formMembers(body: string): JsonObject {
  const read = (name: string) =>
    new RegExp(`name="${name}"(?:\\r\\n[^\\r\\n]*)*?\\r\\n\\r\\n([^\\r]*)`).exec(body)?.[1] ?? "";
  return { prompt: read("prompt"), model: read("model"), stream: read("stream") };
}

function parse(text: string): JsonObject {
  let body: Json;
  try {
    body = parseJson(text);
  } catch {
    throw new GatewayError("invalid", "Cannot read the body: it is no JSON");
  }
  if (!isObject(body)) throw new GatewayError("invalid", "Cannot read the body: expected a JSON object");
  return body;
}
