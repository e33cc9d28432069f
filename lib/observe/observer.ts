/** Observes requests from arrival to end, and writes a log line, metrics and a span for each. */
import { isProbe, memberName, type ObserveOptions, requestLogLine, type RequestRecord } from "./request_record.ts";
import type { GatewayError } from "../errors.ts";
import type { Entry } from "../store/ledger.ts";
import { createEventLoopMonitor, type EventLoopMonitor } from "./event_loop_lag.ts";
import { endingOf, type RequestMetrics, requestMetrics, vitalMetrics, type Vitals } from "./metrics.ts";
import { Registry } from "./registry.ts";
import { captureTraceContext, nameServerSpan, writeRequestSpan } from "./trace.ts";

/** Values of metrics that the observer does not record itself. */
export type GatewayVitals = Omit<
  Vitals,
  "openRequests" | "openStreams" | "heldBytes" | "loopLag" | "linesLost" | "uptime"
>;

/** Receives the events of requests, and writes log lines, metrics and spans. */
export class Observer {
  readonly loop: EventLoopMonitor;
  readonly #monotonic: () => number;
  readonly #now: () => number;
  readonly #registry = new Registry();
  /** Metrics of what happens within requests. */
  readonly counts: RequestMetrics = requestMetrics(this.#registry);
  #requests = 0;
  readonly #bodyBytes: (() => number)[] = [];
  readonly #startedAt: number;
  #linesLost: () => number = () => 0;
  #streams = 0;
  /** Values of the last rendering; `undefined` until the metrics are first rendered. */
  #vitals: Vitals | undefined;

  constructor(monotonic: () => number, now: () => number) {
    this.#monotonic = monotonic;
    this.#now = now;
    this.#startedAt = monotonic();
    this.loop = createEventLoopMonitor(monotonic);
  }

  /** Records that a request has arrived. @returns its record, to which later events are added */
  began({ id, method }: { id: string; method: string }, observeOptions: ObserveOptions): RequestRecord {
    const record: RequestRecord = {
      id,
      method,
      start: this.#monotonic(),
      route: "",
      bytesIn: 0,
      bytesOut: 0,
      streamed: false,
      status: 0,
      waits: 1,
      trace: captureTraceContext(),
      observeOptions,
    };
    this.#requests++;
    return record;
  }

  routed(record: RequestRecord, route: string): void {
    record.route = route;
    if (record.trace !== undefined) nameServerSpan(record);
  }

  /** Records an error, before or within the response. */
  failed(record: RequestRecord, { kind, code, param }: Pick<GatewayError, "kind" | "code" | "param">): void {
    record.kind = kind;
    if (code !== undefined) record.code = code;
    if (param !== undefined) record.param = memberName(param.replace(/\[\d*\]/g, ""));
  }

  /** Records that the request has a response. Its stream and its meter may still be running. */
  answered(record: RequestRecord, status: number): void {
    record.status = status;
    this.#release(record);
  }

  /** Counts the bytes of a response body and waits for its end. @returns the body to send */
  watch(record: RequestRecord, body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    record.waits++;
    if (record.streamed) this.#streams++;
    let hasEnded = false;
    // It may be called twice: when the client disconnects, a pending read ends, too.
    const ended = () => {
      if (hasEnded) return;
      hasEnded = true;
      if (record.streamed) this.#streams--;
      this.#release(record);
    };
    const sent = (bytes: number) => void (record.bytesOut += bytes);
    const writer = OBSERVABLE_BODIES.get(body);
    if (writer !== undefined) {
      writer.listener = { sent, ended };
      return body;
    }
    const reader = body.getReader();
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) {
            if (!hasEnded) controller.close();
            ended();
            return;
          }
          sent(value.byteLength);
          controller.enqueue(value);
        } catch (error) {
          ended();
          throw error;
        }
      },
      async cancel(reason) {
        try {
          await reader.cancel(reason);
        } finally {
          ended();
        }
      },
    }, { highWaterMark: 0 });
  }

  /** Records that the meter of the request has ended with a ledger entry. */
  ended(record: RequestRecord, entry: Entry): void {
    if (record.entry !== undefined) return;
    record.entry = entry;
    this.#release(record);
  }

  /** Adds a function that returns the bytes of request bodies in memory. */
  addBodyBytes(bytes: () => number): void {
    this.#bodyBytes.push(bytes);
  }

  setLostLines(lines: () => number): void {
    this.#linesLost = lines;
  }

  get open(): { requests: number; streams: number } {
    return { requests: this.#requests, streams: this.#streams };
  }

  /** Time since the start, in milliseconds. */
  get uptimeMs(): number {
    return this.#monotonic() - this.#startedAt;
  }

  /** Renders all metrics in Prometheus format. */
  metrics(gatewayVitals: GatewayVitals): string {
    const vitals: Vitals = {
      ...gatewayVitals,
      openRequests: this.#requests,
      openStreams: this.#streams,
      heldBytes: this.#bodyBytes.reduce((sum, bytes) => sum + bytes(), 0),
      loopLag: this.loop.lagMs / 1000,
      linesLost: this.#linesLost(),
      uptime: this.uptimeMs / 1000,
    };
    if (this.#vitals === undefined) vitalMetrics(this.#registry, () => this.#vitals ?? vitals);
    this.#vitals = vitals;
    return this.#registry.render();
  }

  /** Ends the wait for one event. After the last one, writes the log line, metrics and span of the request. */
  #release(record: RequestRecord): void {
    if (--record.waits !== 0) return;
    this.#requests--;
    const ms = this.#monotonic() - record.start;
    // The entry has the final status, which may differ from that of the response: a client can disconnect from a
    // stream.
    if (record.entry !== undefined && record.entry.status > 0) record.status = record.entry.status;
    this.counts.count(record, ms / 1000);
    if (record.trace !== undefined) writeRequestSpan(record, { ms, now: this.#now });
    const { log, logged, probes } = record.observeOptions;
    if (logged === "none") return;
    const isError = record.kind !== undefined || record.status >= 400;
    if (!isError && (logged === "errors" || !probes && isProbe(record))) return;
    log(requestLogLine(record, { ms, ending: endingOf(record) }));
  }
}

/** Receives the events of a response body. */
interface BodyObserver {
  /** Called when bytes were sent. */
  sent(bytes: number): void;
  /** Called when the body has ended, failed or was cancelled. */
  ended(): void;
}

/** A body that reports to a listener what it sends. */
export interface ObservableBody {
  /** Set before anything is read. */
  listener?: BodyObserver;
}

const OBSERVABLE_BODIES = new WeakMap<ReadableStream<Uint8Array>, ObservableBody>();

/** Marks a stream as observable through the object that writes it, which saves a stream in between. */
export function setBodyObservable(body: ReadableStream<Uint8Array>, writer: ObservableBody): void {
  OBSERVABLE_BODIES.set(body, writer);
}
