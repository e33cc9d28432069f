/** Parses requests to the fault server, and writes the answers in the request's protocol, whole or streamed. */
import { aggregateEvents } from "../protocols/canonical/aggregate_events.ts";
import type { Protocol, ReplyEvent } from "../protocols/canonical/types.ts";
import { GatewayError } from "../errors.ts";
import { isObject, type Json, type JsonObject, parseJson, writeJson } from "../json/mod.ts";
import type { Codec, Frame, ResponseContext } from "../protocols/codec.ts";
import type { RawRequest } from "./connection.ts";
import { answerEvents, requestedFault } from "./answer_events.ts";
import { faultOfModel, findFault, type RequestedFault } from "./faults.ts";

/** A parsed request, with functions that write its answers. */
export interface FaultRequest {
  model: string;
  stream: boolean;
  fault: RequestedFault | undefined;
  /** The whole answer as JSON text. */
  replyText(fault: RequestedFault | undefined): string;
  /** The events of a streamed answer. */
  steps(fault: RequestedFault | undefined): Generator<StreamStep, void, undefined>;
  /** The events of an error within a streamed answer. */
  streamError(): string;
  errorBody(status: number): string;
}

/** Events sent together. */
export interface StreamStep {
  text: string;
  /** True if this is a piece of the answer's text (or a partial image), which counts for `after`. */
  isPiece: boolean;
}

/** End of the path of each text protocol. Gemini's path names the model and says whether to stream. */
const PATHS: Readonly<Record<Protocol, RegExp>> = {
  chat: /\/chat\/completions$/,
  responses: /\/responses$/,
  messages: /\/messages$/,
  gemini: /\/models\/(?<model>.+):(?<method>generateContent|streamGenerateContent)$/,
};

/** A PNG of 1x1 pixels, in base64. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/** Timestamp (Unix seconds) and id of every answer. */
const CREATED_AT = 1_764_547_200;
const ID = "rehearsal0000000000000000";

/** Parses a request; `undefined` for an unknown path. @throws {GatewayError} `invalid` for an unreadable body */
export function parseRequest({ path, body }: RawRequest, codecs: readonly Codec[]): FaultRequest | undefined {
  for (const codec of codecs) {
    const match = PATHS[codec.protocol].exec(path);
    if (match !== null) return textRequest(codec, { ...parseBody(body), ...membersOf(match) });
  }
  if (path.endsWith("/images/generations")) return imageRequest(parseBody(body));
  if (path.endsWith("/images/edits")) return imageRequest(formMembers(body));
  if (path.endsWith("/embeddings")) return embeddingsRequest(parseBody(body));
  if (path.endsWith("/rerank")) return rerankRequest(parseBody(body));
  return undefined;
}

/** Returns the members of a request that Gemini has in the path: the model, and whether to stream. */
function membersOf({ groups }: RegExpExecArray): JsonObject {
  const { model, method } = groups ?? {};
  return model === undefined ? {} : { model: decodeURIComponent(model), stream: method === "streamGenerateContent" };
}

function textRequest(codec: Codec, body: JsonObject): FaultRequest {
  const prompt = codec.readPrompt(body);
  const context: ResponseContext = { requestId: ID, createdAt: CREATED_AT, model: prompt.model, request: body, prompt };
  const { model } = prompt;
  const falsify = (text: string, fault: RequestedFault | undefined) => falsifyUsage(text, { fault, codec });
  return {
    model,
    stream: prompt.stream,
    fault: requestedFault(prompt, { model, scope: "wire" }),
    replyText: (fault) => falsify(writeJson(codec.writeReply(aggregateEvents(answerEvents(fault)), context)), fault),
    *steps(fault) {
      const writer = codec.writer(context);
      const format = (event: ReplyEvent) => writer.push(event).map(formatFrame).join("");
      for (const event of answerEvents(fault)) {
        if (event.type === "finish" && fault?.name === "no-end") return;
        yield { text: falsify(format(event), fault), isPiece: event.type === "delta" };
      }
      yield { text: writer.end().map(formatFrame).join(""), isPiece: false };
    },
    streamError() {
      const writer = codec.writer(context);
      writer.push({ type: "start" });
      const error = new GatewayError("upstream", "Rehearsal: an error within the answer");
      return [...writer.push({ type: "error", error }), ...writer.end()].map(formatFrame).join("");
    },
    errorBody: (status) => errorText(codec.protocol, status),
  };
}

function imageRequest({ prompt, model, stream }: JsonObject): FaultRequest {
  const image = { b64_json: PNG };
  const frame = (event: string, more: JsonObject = {}) =>
    formatFrame({ event, data: JSON.stringify({ type: event, ...more, ...image, created_at: CREATED_AT }) });
  const completed = frame("image_generation.completed");
  const partial = frame("image_generation.partial_image", { partial_image_index: 0 });
  return {
    model: String(model ?? ""),
    fault: findFault(String(prompt ?? ""), "wire") ?? faultOfModel(String(model ?? ""), "wire"),
    stream: stream === true || stream === "true",
    replyText: () => JSON.stringify({ created: CREATED_AT, data: [image], usage: { total_tokens: 1 } }),
    *steps(fault) {
      const count = fault?.name === "endless" ? Infinity : Math.max(1, (fault?.after ?? 0) + 1);
      for (let index = 0; index < count; index++) yield { text: partial, isPiece: true };
      if (fault?.name !== "no-end") yield { text: completed, isPiece: false };
    },
    streamError: () => `event: error\ndata: ${errorText("chat", 500)}\n\n`,
    errorBody: (status) => errorText("chat", status),
  };
}

/** A request for embeddings. The answer has one constant vector per input; the last input requests the fault. */
function embeddingsRequest({ input, model, dimensions }: JsonObject): FaultRequest {
  const inputs = Array.isArray(input) && typeof input[0] !== "number" ? input : [input];
  const vector = Array.from({ length: typeof dimensions === "number" ? dimensions : 8 }, (_, index) => index + 1);
  const data = inputs.map((_, index) => ({ object: "embedding", index, embedding: vector }));
  return unstreamedRequest({
    faultText: inputs.at(-1),
    model,
    answer: { object: "list", data, model: String(model ?? "") },
  });
}

/** A rerank request. The answer has decreasing scores; the query requests the fault. */
function rerankRequest({ query, documents, model }: JsonObject): FaultRequest {
  const results = (Array.isArray(documents) ? documents : []).map((_, index) => ({
    index,
    relevance_score: 1 / (index + 1),
  }));
  return unstreamedRequest({ faultText: query, model, answer: { model: String(model ?? ""), results } });
}

/** A request whose answer is never streamed. `faultText` may request the fault. */
function unstreamedRequest(
  { faultText, model, answer }: { faultText: Json | undefined; model: Json | undefined; answer: JsonObject },
): FaultRequest {
  const name = String(model ?? "");
  return {
    model: name,
    stream: false,
    fault: findFault(String(faultText ?? ""), "wire") ?? faultOfModel(name, "wire"),
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

/** Inserts wrong or missing token counts into the written answer, because the codecs cannot write them. */
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

/** Returns the members of a multipart form that the server needs. A text search is enough for the forms of tests. */
function formMembers(body: string): JsonObject {
  const readField = (name: string) =>
    new RegExp(`name="${name}"(?:\\r\\n[^\\r\\n]*)*?\\r\\n\\r\\n([^\\r]*)`).exec(body)?.[1] ?? "";
  return { prompt: readField("prompt"), model: readField("model"), stream: readField("stream") };
}

/** Parses a body. @throws {GatewayError} `invalid` if it is not a JSON object */
function parseBody(text: string): JsonObject {
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
