/** Observes requests from arrival to end: one log line each, metrics, and a span. */
import { isProbe, memberName, type ObserveOptions, requestLogLine, type RequestRecord } from "./request_record.ts";
import type { GatewayError } from "../errors.ts";
import type { Entry } from "../store/ledger.ts";
import { createEventLoopMonitor, type EventLoopMonitor } from "./event_loop_lag.ts";
import { endingOf, type RequestMetrics, requestMetrics, vitalMetrics, type Vitals } from "./metrics.ts";
import { createRegistry } from "./registry.ts";
import { captureTraceContext, nameServerSpan, writeRequestSpan } from "./trace.ts";

/** Values that the rest of the gateway provides. */
export type GatewayVitals = Omit<
  Vitals,
  "openRequests" | "openStreams" | "heldBytes" | "loopLag" | "linesLost" | "uptime"
>;

/** Receives the events of requests, and creates log lines, metrics and spans. */
export class Observer {
  readonly loop: EventLoopMonitor;
  readonly #monotonic: () => number;
  readonly #now: () => number;
  readonly #registry = createRegistry();
  /** Counters of what happens within requests. */
  readonly counts: RequestMetrics = requestMetrics(this.#registry);
  #requests = 0;
  readonly #bodyBytes: (() => number)[] = [];
  readonly #begin: number;
  #linesLost: () => number = () => 0;
  #streams = 0;
  /** Sources of the vitals; declared at the first rendering. */
  #vitals: GatewayVitals | undefined;

  constructor(monotonic: () => number, now: () => number) {
    this.#monotonic = monotonic;
    this.#now = now;
    this.#begin = monotonic();
    this.loop = createEventLoopMonitor(monotonic);
  }

  /** A request has arrived. */
  began({ id, method }: { id: string; method: string }, watching: ObserveOptions): RequestRecord {
    const record: RequestRecord = {
      id,
      method,
      start: this.#monotonic(),
      route: "",
      dropped: [],
      bytesIn: 0,
      bytesOut: 0,
      streamed: false,
      status: 0,
      waits: 1,
      trace: captureTraceContext(),
      watching,
    };
    this.#requests++;
    return record;
  }

  /** The request matched this route. */
  routed(record: RequestRecord, route: string): void {
    record.route = route;
    if (record.trace !== undefined) nameServerSpan(record);
  }

  /** The request failed, before or within its response. */
  failed(record: RequestRecord, { kind, code, param }: Pick<GatewayError, "kind" | "code" | "param">): void {
    record.kind = kind;
    if (code !== undefined) record.code = code;
    if (param !== undefined) record.param = memberName(param.replace(/\[\d*\]/g, ""));
  }

  /** The request has a response. Later events may still be pending. */
  answered(record: RequestRecord, status: number): void {
    record.status = status;
    this.#release(record);
  }

  /** Counts a stream's bytes, and waits for its end. */
  watch(record: RequestRecord, body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    record.waits++;
    if (record.streamed) this.#streams++;
    let isOver = false;
    // A read in progress ends when the client disconnects, too.
    const ended = () => {
      if (isOver) return;
      isOver = true;
      if (record.streamed) this.#streams--;
      this.#release(record);
    };
    const sent = (bytes: number) => void (record.bytesOut += bytes);
    const writer = OBSERVABLE.get(body);
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
            if (!isOver) controller.close();
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

  /** The meter of the request has ended with this entry. */
  ended(record: RequestRecord, entry: Entry): void {
    if (record.entry !== undefined) return;
    record.entry = entry;
    this.#release(record);
  }

  /** A limit or budget refused a request: its owner and unit. */
  refused(owner: string, unit: string): void {
    this.counts.refused(owner, unit);
  }

  /** A report-only limit would have refused a request. */
  exceeded(): void {
    this.counts.exceeded();
  }

  /** Registers a source of the bytes of request bodies in memory. */
  addBodyBytes(bytes: () => number): void {
    this.#bodyBytes.push(bytes);
  }

  /** Registers the counter of lost log lines. */
  setLostLines(lines: () => number): void {
    this.#linesLost = lines;
  }

  /** Open requests and streams. */
  get open(): { requests: number; streams: number } {
    return { requests: this.#requests, streams: this.#streams };
  }

  get uptimeMs(): number {
    return this.#monotonic() - this.#begin;
  }

  /** All metrics in Prometheus format. */
  metrics(vitals: GatewayVitals): string {
    if (this.#vitals === undefined) this.#declare(vitals);
    this.#vitals = vitals;
    return this.#registry.render();
  }

  #declare(first: GatewayVitals): void {
    // After a reload the sources are new; the metrics stay.
    const vitals = () => this.#vitals ?? first;
    vitalMetrics(this.#registry, {
      openRequests: () => this.#requests,
      openStreams: () => this.#streams,
      heldBytes: () => this.#bodyBytes.reduce((sum, bytes) => sum + bytes(), 0),
      loopLag: () => this.loop.lagMs / 1000,
      linesLost: () => this.#linesLost(),
      keptBytes: () => vitals().keptBytes(),
      ledgerQueue: () => vitals().ledgerQueue(),
      ledgerHealthy: () => vitals().ledgerHealthy(),
      storeUp: () => vitals().storeUp(),
      journalEntries: () => vitals().journalEntries(),
      limitsStoreUp: () => vitals().limitsStoreUp(),
      configVersion: () => vitals().configVersion(),
      configCurrent: () => vitals().configCurrent(),
      breakers: () => vitals().breakers(),
      groupBudgets: () => vitals().groupBudgets(),
      groupBudgetsLeft: () => vitals().groupBudgetsLeft(),
      groupLimits: () => vitals().groupLimits(),
      groupLimitsLeft: () => vitals().groupLimitsLeft(),
      memory: () => vitals().memory(),
      uptime: () => this.uptimeMs / 1000,
      version: first.version,
    });
  }

  #release(record: RequestRecord): void {
    if (--record.waits !== 0) return;
    this.#requests--;
    const ms = this.#monotonic() - record.start;
    // The entry has the final status: a client may disconnect from a stream that began well.
    if (record.entry !== undefined && record.entry.status > 0) record.status = record.entry.status;
    this.counts.count(record, ms / 1000);
    if (record.trace !== undefined) writeRequestSpan(record, { ms, now: this.#now });
    const { log, logged, probes } = record.watching;
    if (logged === "none") return;
    const isError = record.kind !== undefined || record.status >= 400;
    if (!isError && (logged === "errors" || !probes && isProbe(record))) return;
    log(requestLogLine(record, { ms, ending: endingOf(record) }));
  }
}

/** Callbacks of a response body. */
interface BodyObserver {
  /** Called when bytes were sent. */
  sent(bytes: number): void;
  /** Called when the body has ended, failed or was cancelled. */
  ended(): void;
}

/** A body that tells a listener what it sends. */
export interface ObservableBody {
  /** Set before anything is read. */
  listener?: BodyObserver;
}

const OBSERVABLE = new WeakMap<ReadableStream<Uint8Array>, ObservableBody>();

/** Makes a body observable, by the object that writes it. */
export function setBodyObservable(body: ReadableStream<Uint8Array>, writer: ObservableBody): void {
  OBSERVABLE.set(body, writer);
}
