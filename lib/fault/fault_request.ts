/** Requests to the fault server, and its answers in each protocol, whole and streamed. */
import { aggregateEvents } from "../protocols/canonical/aggregate_events.ts";
import type { Protocol, ReplyEvent } from "../protocols/canonical/types.ts";
import { GatewayError } from "../errors.ts";
import { isObject, type Json, type JsonObject, parseJson, writeJson } from "../json/mod.ts";
import type { Codec, Echo, Frame } from "../protocols/codec.ts";
import type { RawRequest } from "./connection.ts";
import { answerEvents, requestedFault } from "./answer_events.ts";
import { faultOfModel, findFault, type RequestedFault } from "./faults.ts";

/** A request and its possible answers. */
export interface FaultRequest {
  model: string;
  stream: boolean;
  fault: RequestedFault | undefined;
  /** The whole answer as JSON text. */
  replyText(fault: RequestedFault | undefined): string;
  /** The events of a streamed answer. */
  steps(fault: RequestedFault | undefined): Generator<StreamStep, void, undefined>;
  streamError(): string;
  errorBody(status: number): string;
}

/** Events sent together. */
export interface StreamStep {
  text: string;
  /** True for a piece of the answer's text. */
  isPiece: boolean;
}

/** End of the path of each protocol. Gemini's has the model and the streaming mode. */
const PATHS: Readonly<Record<Protocol, RegExp>> = {
  chat: /\/chat\/completions$/,
  responses: /\/responses$/,
  messages: /\/messages$/,
  gemini: /\/models\/(?<model>.+):(?<method>generateContent|streamGenerateContent)(?:\?.*)?$/,
};

/** A PNG of 1x1 pixels. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/** Timestamp (Unix seconds) and id of every answer. */
const CREATED_AT = 1_764_547_200;
const ID = "rehearsal0000000000000000";

/** Parses a request; `undefined` for an unknown path. @throws {GatewayError} `invalid` */
export function parseRequest({ path, body }: RawRequest, codecs: readonly Codec[]): FaultRequest | undefined {
  for (const codec of codecs) {
    const match = PATHS[codec.protocol].exec(path);
    if (match !== null) return textRequest(codec, { ...parse(body), ...membersOf(match) });
  }
  if (path.endsWith("/images/generations")) return imageRequest(parse(body));
  if (path.endsWith("/images/edits")) return imageRequest(formMembers(body));
  if (path.endsWith("/embeddings")) return embeddingsRequest(parse(body));
  if (path.endsWith("/rerank")) return rerankRequest(parse(body));
  return undefined;
}

/** The members of a body that Gemini has in the path. */
function membersOf({ groups }: RegExpExecArray): JsonObject {
  const { model, method } = groups ?? {};
  return model === undefined ? {} : { model: decodeURIComponent(model), stream: method === "streamGenerateContent" };
}

function textRequest(codec: Codec, body: JsonObject): FaultRequest {
  const prompt = codec.readPrompt(body);
  const echo: Echo = { requestId: ID, createdAt: CREATED_AT, model: prompt.model, request: body, prompt };
  const { model } = prompt;
  const write = (text: string, fault: RequestedFault | undefined) => falsifyUsage(text, { fault, codec });
  return {
    model,
    stream: prompt.stream,
    fault: requestedFault(prompt, { model, scope: "wire" }),
    replyText: (fault) => write(writeJson(codec.writeReply(aggregateEvents(answerEvents(fault)), echo)), fault),
    *steps(fault) {
      const writer = codec.writer(echo);
      const format = (event: ReplyEvent) => writer.push(event).map(formatFrame).join("");
      for (const event of answerEvents(fault)) {
        if (event.type === "finish" && fault?.name === "no-end") return;
        yield { text: write(format(event), fault), isPiece: event.type === "delta" };
      }
      yield { text: writer.end().map(formatFrame).join(""), isPiece: false };
    },
    streamError() {
      const writer = codec.writer(echo);
      writer.push({ type: "start" });
      const error = new GatewayError("upstream", "Rehearsal: an error within the answer");
      return [...writer.push({ type: "error", error }), ...writer.end()].map(formatFrame).join("");
    },
    errorBody: (status) => errorText(codec.protocol, status),
  };
}

function imageRequest({ prompt, model, stream }: JsonObject): FaultRequest {
  const image = { b64_json: PNG };
  const completed = `event: image_generation.completed\ndata: ${
    JSON.stringify({ type: "image_generation.completed", ...image, created_at: CREATED_AT })
  }\n\n`;
  const partial = completed.replaceAll("completed", "partial_image").replace(
    /"b64_json"/,
    '"partial_image_index":0,$&',
  );
  return {
    model: String(model ?? ""),
    fault: findFault(String(prompt ?? ""), "wire") ?? faultOfModel(String(model ?? ""), "wire"),
    stream: stream === true || stream === "true",
    replyText: () => JSON.stringify({ created: CREATED_AT, data: [image], usage: { total_tokens: 1 } }),
    *steps(fault) {
      const pieces = fault?.name === "endless" ? Infinity : Math.max(1, (fault?.after ?? 0) + 1);
      for (let piece = 0; piece < pieces; piece++) yield { text: partial, isPiece: true };
      if (fault?.name !== "no-end") yield { text: completed, isPiece: false };
    },
    streamError: () => `event: error\ndata: ${errorText("chat", 500)}\n\n`,
    errorBody: (status) => errorText("chat", status),
  };
}

/** Returns the requested number of constant vectors; the last text requests the fault. */
function embeddingsRequest({ input, model, dimensions }: JsonObject): FaultRequest {
  const inputs = Array.isArray(input) && typeof input[0] !== "number" ? input : [input];
  const vector = Array.from({ length: typeof dimensions === "number" ? dimensions : 8 }, (_, index) => index + 1);
  const data = inputs.map((_, index) => ({ object: "embedding", index, embedding: vector }));
  return wholeRequest({ asks: inputs.at(-1), model, answer: { object: "list", data, model: String(model ?? "") } });
}

/** Returns decreasing scores; the query requests the fault. */
function rerankRequest({ query, documents, model }: JsonObject): FaultRequest {
  const results = (Array.isArray(documents) ? documents : []).map((_, index) => ({
    index,
    relevance_score: 1 / (index + 1),
  }));
  return wholeRequest({ asks: query, model, answer: { model: String(model ?? ""), results } });
}

/** A request that is never streamed. */
function wholeRequest(
  { asks, model, answer }: { asks: Json | undefined; model: Json | undefined; answer: JsonObject },
): FaultRequest {
  const name = String(model ?? "");
  return {
    model: name,
    stream: false,
    fault: findFault(String(asks ?? ""), "wire") ?? faultOfModel(name, "wire"),
    replyText(fault) {
      const tokens = fault?.name === "wrong-usage" ? -5 : 10;
      const usage = fault?.name === "no-usage" ? null : { prompt_tokens: tokens, total_tokens: tokens };
      return JSON.stringify({ ...answer, usage });
    },
    *steps() {},
    streamError: () => "",
    errorBody: (status) => errorText("chat", status),
  };
}

/** Google's names of statuses. https://cloud.google.com/apis/design/errors#handling_errors */
const GOOGLE_STATUSES: ReadonlyMap<number, string> = new Map([
  [401, "UNAUTHENTICATED"],
  [403, "PERMISSION_DENIED"],
  [404, "NOT_FOUND"],
  [409, "ABORTED"],
  [429, "RESOURCE_EXHAUSTED"],
  [501, "UNIMPLEMENTED"],
  [503, "UNAVAILABLE"],
  [504, "DEADLINE_EXCEEDED"],
]);

function errorText(protocol: Protocol, status: number): string {
  const error = { type: status === 429 ? "rate_limit_error" : "api_error", message: `Rehearsal: status ${status}` };
  if (protocol === "gemini") {
    const name = GOOGLE_STATUSES.get(status) ?? (status < 500 ? "INVALID_ARGUMENT" : "INTERNAL");
    return JSON.stringify({ error: { code: status, message: error.message, status: name } });
  }
  return JSON.stringify(
    protocol === "messages" ? { type: "error", error } : { error: { ...error, code: null, param: null } },
  );
}

/** Inserts false token counts, which the codecs would leave out. */
function falsifyUsage(text: string, { fault, codec }: { fault: RequestedFault | undefined; codec: Codec }): string {
  if (fault?.name === "wrong-usage") {
    return text.replace(/"(\w+(?:_tokens|TokenCount))":[-\d.e+]+/g, '"$1":-5');
  }
  if (fault?.name !== "no-usage") return text;
  const none = codec.protocol === "messages" ? "{}" : "null";
  return text.replace(/"usageMetadata":\{[^{}]*\},?/g, "").replace(
    /"usage":\{(?:[^{}]|\{[^{}]*\})*\}/g,
    `"usage":${none}`,
  );
}

/** Members of a multipart form, found by a simple search. */
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
    throw new GatewayError("invalid", "Cannot read the body: it is not JSON");
  }
  if (!isObject(body)) throw new GatewayError("invalid", "Cannot read the body: expected a JSON object");
  return body;
}

function formatFrame({ event, data }: Frame): string {
  return `${event === undefined ? "" : `event: ${event}\n`}data: ${data}\n\n`;
}
