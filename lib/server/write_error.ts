/** Writes the response of a request that failed. */
import { toGatewayError } from "../errors.ts";
import { anthropicErrorReply, openaiErrorReply } from "../protocols/error_bodies.ts";
import type { Exchange } from "./exchange.ts";
import { JsonAnswer } from "./json_response.ts";
import { logFailure } from "./log_failure.ts";

/** The client has left before there was a response: to give up its work is no failure. */
export function writeAbandoned(thrown: unknown, { gateway: { observer }, record }: Exchange): Response {
  const error = toGatewayError(thrown);
  if (!isAbortError(error.cause)) observer.failed(record, error);
  observer.answered(record, 499);
  return new Response(null, { status: 499 });
}

function isAbortError(cause: unknown): boolean {
  return cause instanceof DOMException && cause.name === "AbortError";
}

/** The error body of the path's protocol; what went wrong underneath is logged. */
export function writeError(thrown: unknown, { requestId, gateway, record, isNative }: Exchange): Response {
  const error = toGatewayError(thrown);
  gateway.observer.failed(record, error);
  if (error.status >= 500) logFailure(error, { gateway, requestId });
  const reply = isNative ? anthropicErrorReply(error, requestId) : openaiErrorReply(error, requestId);
  return new JsonAnswer(JSON.stringify(reply.body), {
    status: reply.status,
    headers: { ...reply.headers, "cache-control": "no-store" },
  });
}
