/** Reads answers for the playground: text, tool calls and images, from a stream or from a whole body. */
import { isObject, type Json, tryParse } from "../json/mod.ts";
import { eventsOf } from "../protocols/canonical/aggregate_events.ts";
import type { Machine, ReplyEvent } from "../protocols/canonical/types.ts";
import type { Frame } from "../protocols/codec.ts";
import { listOf, objectOf, objectsOf, stringOf } from "../protocols/members.ts";
import { UPSTREAM_CODECS } from "../upstreams/protocols.ts";
import { isText, type PlaygroundEndpoint } from "./playground_request.ts";

/** A tool call. */
export interface ToolCallText {
  name: string;
  arguments: string;
}

/** Longest raw answer that is kept, in characters. */
const MAX_RAW_CHARACTERS = 100_000;

/** Signatures are not shown, so their issuer does not matter. */
const ORIGIN = { issuer: "" };

/** The part of an answer that has arrived. */
export class PlaygroundAnswer {
  text = "";
  /** The answer as it arrived, cut after 100,000 characters. */
  raw = "";
  /** Message of an error; `undefined`: there is none. */
  problem: string | undefined;
  readonly calls: ToolCallText[] = [];
  /** Images as `data:` URLs. */
  readonly images: string[] = [];
  readonly #endpoint: PlaygroundEndpoint;
  readonly #reader: Machine<Frame, ReplyEvent> | undefined;
  #block: (ReplyEvent & { type: "open" })["block"]["type"] | undefined;

  constructor(endpoint: PlaygroundEndpoint) {
    this.#endpoint = endpoint;
    this.#reader = isText(endpoint) ? UPSTREAM_CODECS[endpoint].reader(ORIGIN) : undefined;
  }

  /** Reads frames of a stream, or its end. @returns the text that they add */
  addFrames(frames: readonly Frame[] | "end"): string {
    const before = this.text.length;
    if (frames === "end") this.#addEvents(this.#reader?.end());
    else {
      for (const frame of frames) {
        if (frame.data !== "[DONE]") this.#addRaw(`${frame.data}\n`);
        this.#findProblem(tryParse(frame.data));
        this.#addEvents(this.#reader?.push(frame));
      }
    }
    return this.text.slice(before);
  }

  /** Reads the body of an answer that is not streamed. @throws {GatewayError} `upstream` if it cannot be read */
  addBody(body: string): void {
    const value = tryParse(body, JSON.parse);
    this.#findProblem(value);
    if (this.problem !== undefined || isText(this.#endpoint)) this.#addRaw(body);
    if (this.problem !== undefined || !isObject(value)) return;
    switch (this.#endpoint) {
      case "images": {
        const type = stringOf(value.output_format) ?? "png";
        for (const { b64_json } of objectsOf(value.data)) this.images.push(`data:image/${type};base64,${b64_json}`);
        break;
      }
      case "embeddings":
        this.text = objectsOf(value.data).map(({ embedding }) => vectorText(listOf(embedding))).join("\n");
        break;
      case "rerank":
        this.text = objectsOf(value.results)
          .map(({ relevance_score, index }) => `${relevance_score}  document ${Number(index) + 1}`).join("\n");
        break;
      default:
        this.#addEvents(eventsOf(UPSTREAM_CODECS[this.#endpoint].readReply(value, ORIGIN)));
    }
  }

  #addEvents(events: readonly ReplyEvent[] = []): void {
    for (const event of events) {
      if (event.type === "error") this.problem ??= event.error.message;
      if (event.type === "open") {
        this.#block = event.block.type;
        if (event.block.type === "tool_call") this.calls.push({ name: event.block.name, arguments: "" });
      }
      if (event.type !== "delta") continue;
      const call = this.calls.at(-1);
      if (this.#block === "text" || this.#block === "refusal") this.text += event.text;
      else if (this.#block === "tool_call" && call !== undefined) call.arguments += event.text;
    }
  }

  #findProblem(value: Json | undefined): void {
    const body = objectOf(value);
    const error = objectOf(body?.error) ?? objectOf(objectOf(body?.response)?.error);
    this.problem = stringOf(error?.message) ?? this.problem;
  }

  #addRaw(text: string): void {
    if (this.raw.length < MAX_RAW_CHARACTERS) this.raw += text.slice(0, MAX_RAW_CHARACTERS - this.raw.length);
  }
}

/** Number of components of a vector that are shown. */
const SHOWN_NUMBERS = 8;

function vectorText(vector: readonly Json[]): string {
  const more = vector.length > SHOWN_NUMBERS ? ", …" : "";
  return `${vector.length} dimensions: [${vector.slice(0, SHOWN_NUMBERS).join(", ")}${more}]`;
}
