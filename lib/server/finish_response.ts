/** Finishes responses: counts their bytes, removes bodies for `HEAD`, adds headers, and writes errors. */
import type { Gateway } from "../gateway.ts";
import type { RequestRecord } from "../observe/request_record.ts";
import { JsonAnswer } from "./json_response.ts";
import type { AnswerHeader } from "./router.ts";
import { type GatewayError, toGatewayError } from "../errors.ts";
import { anthropicErrorReply, googleErrorReply, openaiErrorReply } from "../protocols/error_bodies.ts";
import type { Exchange } from "./exchange.ts";
import { describeCause } from "../causes.ts";

/** Counts the bytes of the body: by its length if that is known, otherwise while the stream is sent. */
export function countBytes(
  response: Response,
  { record, observer }: { record: RequestRecord } & Pick<Gateway, "observer">,
): Response {
  if (response instanceof JsonAnswer) {
    record.bytesOut = response.byteLength;
    return response;
  }
  const length = response.headers.get("content-length");
  record.streamed ||= response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (length !== null) record.bytesOut = Number(length);
  // Reading `response.body` creates a stream, which costs more than a text. Only streams are read.
  else if (record.streamed || record.route.startsWith("/v1/images/")) {
    const { body } = response;
    if (body !== null) return new Response(observer.watch(record, body), response);
  }
  return response;
}

/**
 * Returns the response to `HEAD`, and cancels the body. Without a body, `Deno.serve` would send a length of 0, which is
 * wrong if the length of the body is unknown. Such a response gets an empty stream instead.
 */
export function withoutBody(response: Response): Response {
  const { body, status, headers } = response;
  if (response instanceof JsonAnswer) headers.set("content-length", String(response.byteLength));
  if (body === null) return response;
  body.cancel().catch(() => {});
  return new Response(headers.has("content-length") ? null : new Blob([]).stream(), { status, headers });
}

/** Adds headers to a response, or to a copy if its headers are immutable. */
export function withHeaders(response: Response, headers: readonly AnswerHeader[]): Response {
  if (response instanceof JsonAnswer) {
    response.put(headers);
    return response;
  }
  try {
    addHeaders(response.headers, headers);
    return response;
  } catch {
    const copy = new Response(response.body, { status: response.status, headers: response.headers });
    addHeaders(copy.headers, headers);
    return copy;
  }
}

function addHeaders(to: Headers, headers: readonly AnswerHeader[]): void {
  for (const [name, value] of headers) {
    if (name === "vary") to.append(name, value);
    else to.set(name, value);
  }
}

/** Ends a request whose client disconnected before there was a response. Aborting its work counts as no failure. */
export function writeAbandoned(thrown: unknown, { gateway: { observer }, record }: Exchange): Response {
  const error = toGatewayError(thrown);
  if (!isAbortError(error.cause)) observer.failed(record, error);
  observer.answered(record, 499);
  return new Response(null, { status: 499 });
}

function isAbortError(cause: unknown): boolean {
  return cause instanceof DOMException && cause.name === "AbortError";
}

const ERROR_WRITERS = { openai: openaiErrorReply, anthropic: anthropicErrorReply, google: googleErrorReply };

/** Returns the response for an error, in the format of the path's protocol. The cause of a server error is logged. */
export function writeError(thrown: unknown, { requestId, gateway, record, errors }: Exchange): Response {
  const error = toGatewayError(thrown);
  gateway.observer.failed(record, error);
  if (error.status >= 500) logFailure(error, { gateway, requestId });
  const reply = ERROR_WRITERS[errors](error, requestId);
  return new JsonAnswer(JSON.stringify(reply.body), {
    status: reply.status,
    headers: { ...reply.headers, "cache-control": "no-store" },
  });
}

/** Logs the cause of an error, with the id of the request. */
export function logFailure(
  error: GatewayError,
  { gateway, requestId }: { gateway: Pick<Gateway, "log">; requestId: string },
): void {
  gateway.log({
    level: error.kind === "internal" ? "error" : "warn",
    event: "request_failed",
    request_id: requestId,
    kind: error.kind,
    ...describeCause(error.cause),
  });
}
