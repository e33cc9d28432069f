/**
 * Writes OpenTelemetry spans if Deno's support is on (`OTEL_DENO=true`). Deno then registers its implementation under
 * the global symbol that all copies of the OpenTelemetry API use; without it, tracing is off.
 */
import { inputTokensOf } from "../store/ledger.ts";
import { endpointOf, type RequestRecord } from "./request_record.ts";

type Attribute = string | number | readonly string[];

/** The span of an upstream request. */
export interface CallSpan {
  /** Headers that propagate the trace context. */
  headers: Readonly<Record<string, string>>;
  /** Ends the span. @param status HTTP status; absent: there was no response */
  end(status?: number): void;
}

/** The part of the OpenTelemetry API that is used: a span. */
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

/** Symbol under which the API is registered, in all versions 1.x. */
const API = Symbol.for("opentelemetry.js.api.1");
/** Symbol of the span in a context, in all versions 1.x. */
const SPAN = Symbol.for("OpenTelemetry Context Key SPAN");

/** `SpanKind.CLIENT`, which the GenAI conventions require. */
const CLIENT = 2;
/** `SpanStatusCode.ERROR`. */
const ERROR = 2;

/** Values of `gen_ai.operation.name` by endpoint; `chat` for all others. */
const OPERATIONS: Readonly<Record<string, string>> = {
  "images.generations": "generate_content",
  "images.edits": "generate_content",
  embeddings: "embeddings",
  rerank: "rerank",
};

/** The API if Deno has registered it, which happens before any module runs. */
const api = (globalThis as { [API]?: Api })[API];

/** Returns the active trace context; `undefined` if tracing is off. */
export function captureTraceContext(): unknown {
  return api?.context?.active();
}

/** Sets the name and route of Deno's own span of the request, which ends with the head of the response. */
export function nameServerSpan({ trace, method, route }: RequestRecord): void {
  if (trace === undefined || route === "") return;
  const span = (trace as Context).getValue(SPAN) as Span | undefined;
  span?.updateName(`${method} ${route}`);
  span?.setAttribute("http.route", route);
}

/**
 * Starts the span of an upstream request; `undefined` if tracing is off. Requests by `fetch` do not need it: Deno writes
 * their spans itself.
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

/**
 * Writes the span of a model request, which lasts until the end of the stream.
 * @param end `ms`: duration in milliseconds; `now` returns the Unix time in milliseconds
 */
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

/** Returns the attributes of the GenAI conventions: names and numbers, never text of a prompt or an answer. */
function attributesOf(record: RequestRecord, operation: string): Record<string, Attribute> {
  const { entry, kind } = record;
  if (entry === undefined) return {};
  const { tokens } = entry;
  const input = inputTokensOf(tokens);
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
