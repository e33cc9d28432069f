/**
 * OpenTelemetry spans, if Deno's own support is on (`OTEL_DENO=true`). Deno registers itself under the name that every
 * copy of the OpenTelemetry API uses; without it tracing is off.
 */
import { endpointOf, type RequestRecord } from "./request_record.ts";

type Attribute = string | number | readonly string[];

/** The span of an upstream request. */
export interface CallSpan {
  /** Headers that propagate the trace context. */
  headers: Readonly<Record<string, string>>;
  /** Ends the span. @param status absent: there was no response */
  end(status?: number): void;
}

/** The used part of the OpenTelemetry API. */
interface Span {
  updateName(name: string): unknown;
  setAttribute(name: string, value: Attribute): unknown;
  setStatus(status: { code: number }): unknown;
  spanContext(): { traceId: string; spanId: string; traceFlags: number };
  end(at?: number): void;
}

interface Context {
  getValue(key: symbol): unknown;
}

interface Api {
  context?: { active(): Context };
  trace?: {
    getTracer(name: string): {
      startSpan(
        name: string,
        options: { startTime?: number; kind: number; attributes: Readonly<Record<string, Attribute>> },
        context: Context,
      ): Span;
    };
  };
}

/** Symbols of the API's registration and of a context's span, in all versions 1.x. */
const API = Symbol.for("opentelemetry.js.api.1");
const SPAN = Symbol.for("OpenTelemetry Context Key SPAN");

/** `SpanKind.CLIENT`, as GenAI conventions require, and `SpanStatusCode.ERROR`. */
const CLIENT = 2;
const ERROR = 2;

const OPERATIONS: Readonly<Record<string, string>> = {
  chat: "chat",
  responses: "chat",
  messages: "chat",
  "images.generations": "generate_content",
  "images.edits": "generate_content",
  embeddings: "embeddings",
  rerank: "rerank",
};

/** The API where Deno has registered it, which it does before any module runs. */
const api = (globalThis as { [API]?: Api })[API];

/** The active trace context; `undefined` if tracing is off. */
export function captureTraceContext(): unknown {
  return api?.context?.active();
}

/** Sets name and route of the server's own span, which exists only until the response. */
export function nameServerSpan({ trace, method, route }: RequestRecord): void {
  if (trace === undefined || route === "") return;
  const span = (trace as Context).getValue(SPAN) as Span | undefined;
  span?.updateName(`${method} ${route}`);
  span?.setAttribute("http.route", route);
}

/**
 * Starts the span of an upstream request, for transports other than `fetch`, which Deno instruments itself. `undefined`
 * if tracing is off.
 */
export function startCallSpan(address: string): CallSpan | undefined {
  const context = api?.context?.active();
  const tracer = api?.trace?.getTracer("sluice");
  if (context === undefined || tracer === undefined) return undefined;
  const { protocol, pathname } = new URL(address);
  const attributes = {
    "http.request.method": "POST",
    "url.full": address,
    "url.scheme": protocol.slice(0, -1),
    "url.path": pathname,
  };
  const span = tracer.startSpan("POST", { kind: CLIENT, attributes }, context);
  const { traceId, spanId, traceFlags } = span.spanContext();
  return {
    headers: { traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}` },
    end(status) {
      if (status !== undefined) span.setAttribute("http.response.status_code", status);
      if (status === undefined || status >= 400) span.setStatus({ code: ERROR });
      span.end();
    },
  };
}

/** Writes the span of a model request. It ends with the stream; the server's own span ends with the head. */
export function writeRequestSpan(record: RequestRecord, { ms, now }: { ms: number; now: () => number }): void {
  const { trace, entry } = record;
  if (trace === undefined || entry === undefined || entry.model === "") return;
  const tracer = api?.trace?.getTracer("sluice");
  if (tracer === undefined) return;
  const operation = OPERATIONS[endpointOf(record)] ?? "chat";
  const endedAt = now();
  const span = tracer.startSpan(
    `${operation} ${entry.model}`,
    { startTime: endedAt - ms, kind: CLIENT, attributes: attributesOf(record, operation) },
    trace as Context,
  );
  if (record.kind !== undefined) span.setStatus({ code: ERROR });
  span.end(endedAt);
}

/** GenAI attributes: names and numbers, never text of a prompt or answer. */
function attributesOf(record: RequestRecord, operation: string): Record<string, Attribute> {
  const { entry, kind } = record;
  if (entry === undefined) return {};
  const { tokens } = entry;
  const input = tokens.prompt + tokens.input_cache_read + tokens.input_cache_write_5m + tokens.input_cache_write_1h;
  return {
    "gen_ai.operation.name": operation,
    "gen_ai.request.model": record.requestedModel ?? entry.model,
    "sluice.request_id": entry.id,
    "sluice.attempts": entry.attempts,
    ...(entry.attempts > 0 && { "gen_ai.response.model": entry.model }),
    ...(entry.upstream !== "" && { "gen_ai.provider.name": entry.upstream }),
    ...(entry.source !== "none" && {
      "gen_ai.usage.input_tokens": input,
      "gen_ai.usage.output_tokens": tokens.completion,
      "gen_ai.response.finish_reasons": [entry.ending],
    }),
    ...(kind !== undefined && { "error.type": kind }),
  };
}
