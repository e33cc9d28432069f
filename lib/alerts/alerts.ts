/** Runs the alerts of a serving process: creates them from log lines and budgets, stores, delivers and prunes them. */
import type { Gateway } from "../gateway.ts";
import type { LogEntry } from "../log_events.ts";
import { describeCause } from "../causes.ts";
import type { AlertStore } from "../store/alerts.ts";
import { openMemoryAlerts } from "../store/sqlite/memory.ts";
import { BudgetWatch } from "./budget_watch.ts";
import { deliverDue } from "./delivery.ts";
import type { AlertDraft } from "./event.ts";
import { alertOf } from "./log_alerts.ts";
import { Publisher, type PublisherParts } from "./publisher.ts";
import { sendAlert } from "./webhook.ts";
import { Worker } from "./worker.ts";

/** Interval of checks for budget alerts and due deliveries, in milliseconds. */
const CHECK_MS = 5_000;

const PRUNE_MS = 3_600_000;

/** Time after a log line in which lines that would create the same alert are ignored, in milliseconds. */
const REPEAT_WINDOW_MS = 10_000;

/** Maximum number of log lines that wait to become alerts, and of entries of each memory of former lines. */
const MAX_QUEUED_LINES = 100;
const MAX_REMEMBERED = 1_000;

/**
 * The alerts of a process. Log lines are read from the start of the process on; alerts are stored and sent between
 * `start` and `end`.
 */
export interface Alerts {
  /** Logs an entry, and creates alerts from it. */
  readonly log: (entry: LogEntry) => void;
  /**
   * Starts storing and sending alerts.
   * @param current returns the gateway, which a reload of the configuration replaces
   */
  start(current: () => Gateway): void;
  /** Stops the work. Unsent alerts are sent after the next start, or by another node. */
  end(): Promise<void>;
}

/** Creates the alerts of a process. @param write writes an entry to the log */
export function createAlerts(write: (entry: LogEntry) => void): Alerts {
  const budgets = new BudgetWatch();
  const lines = new LineWatch();
  let sending: AlertLoops | undefined;
  return {
    log(entry) {
      write(entry);
      budgets.read(entry);
      if (lines.read(entry)) sending?.collect();
    },
    start(current) {
      sending = new AlertLoops({ current, write, budgets, lines });
    },
    async end() {
      await sending?.end();
    },
  };
}

/** A log line that creates an alert, with the last `target_failed` line of its upstream and model. */
interface AlertLine {
  line: LogEntry;
  failure: LogEntry | undefined;
}

/** Selects and queues the log lines that create alerts. */
class LineWatch {
  #queued: AlertLine[] = [];
  /** Type and monotonic time of the last alert, by its subject. */
  readonly #lastAlerts = new Map<string, { type: string; at: number }>();
  /** The last `target_failed` by upstream and model. */
  readonly #failures = new Map<string, LogEntry>();

  /** Reads a log line. Returns whether it was queued, because it creates an alert. */
  read(line: LogEntry): boolean {
    const target = `${line.upstream}/${line.model}`;
    if (line.event === "target_failed") remember(this.#failures, target, line);
    const draft = alertOf(line);
    if (draft === undefined || this.#queued.length === MAX_QUEUED_LINES || this.#isRepeated(draft)) return false;
    this.#queued.push({ line, failure: this.#failures.get(target) });
    return true;
  }

  /** Returns the queued lines and empties the queue. */
  take(): AlertLine[] {
    const lines = this.#queued;
    this.#queued = [];
    return lines;
  }

  #isRepeated({ type, subject }: AlertDraft): boolean {
    const at = performance.now();
    const last = this.#lastAlerts.get(subject);
    if (last !== undefined && last.type === type && at - last.at < REPEAT_WINDOW_MS) return true;
    remember(this.#lastAlerts, subject, { type, at });
    return false;
  }
}

/** Stores a value as the newest one, and drops the oldest one if there are too many. */
function remember<Value>(values: Map<string, Value>, key: string, value: Value): void {
  values.delete(key);
  values.set(key, value);
  const [oldest] = values.keys();
  if (values.size > MAX_REMEMBERED && oldest !== undefined) values.delete(oldest);
}

interface AlertLoopParts {
  current: () => Gateway;
  write: (entry: LogEntry) => void;
  budgets: BudgetWatch;
  lines: LineWatch;
}

/** Runs the steps of storing, delivering and pruning alerts, each repeatedly and independently of the others. */
class AlertLoops {
  readonly #parts: AlertLoopParts;
  /** Memory for alerts while the store is unreachable; absent until alerts are configured. */
  #fallback: AlertStore | undefined;
  #publisher: Publisher | undefined;
  readonly #shutdown = new AbortController();
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  readonly #collector: Worker;
  readonly #watcher: Worker;
  readonly #pruner: Worker;
  readonly #senders: Worker[];

  constructor(parts: AlertLoopParts) {
    const { current } = parts;
    this.#parts = parts;
    this.#collector = this.#worker("collect", () => this.#publishLines());
    this.#watcher = this.#worker("budgets", () => this.#checkBudgets());
    this.#pruner = this.#worker("prune", () => this.#prune());
    const stores = [() => current().store.alerts, () => this.#fallback];
    this.#senders = stores.map((store): Worker => {
      const worker: Worker = this.#worker("deliver", () => this.#deliver(store(), () => worker.wake()));
      return worker;
    });
    this.#repeat(CHECK_MS, [this.#collector, this.#watcher, ...this.#senders]);
    this.#repeat(PRUNE_MS, [this.#pruner]);
  }

  collect(): void {
    this.#collector.wake();
  }

  async end(): Promise<void> {
    this.#shutdown.abort(new Error("The gateway is shutting down"));
    for (const timer of this.#timers) clearTimeout(timer);
    const workers = [this.#collector, this.#watcher, this.#pruner, ...this.#senders];
    await Promise.all(workers.map((worker) => worker.end()));
  }

  #worker(step: string, run: () => Promise<void>): Worker {
    return new Worker(run, (error) => {
      this.#parts.write({ level: "warn", event: "alerts_failed", step, ...describeCause(error) });
    });
  }

  #repeat(ms: number, workers: readonly Worker[]): void {
    for (const worker of workers) worker.wake();
    this.#later(ms, () => this.#repeat(ms, workers));
  }

  #later(ms: number, run: () => void): void {
    if (this.#shutdown.signal.aborted) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      run();
    }, ms);
    this.#timers.add(timer);
  }

  async #publishLines(): Promise<void> {
    const lines = this.#parts.lines.take();
    const publishing = this.#publishing();
    if (publishing === undefined) return;
    const { publisher, parts } = publishing;
    await publisher.retry(parts);
    for (const { line, failure } of lines) {
      const draft = alertOf(line, { failure, keyName: await this.#keyName(line.key_id) });
      if (draft !== undefined) await publisher.publish(draft, parts);
    }
    if (lines.length > 0) this.#wakeSenders();
  }

  /** Returns the name of a key; undefined if the line has no key, or the store does not answer. */
  async #keyName(id: unknown): Promise<string | undefined> {
    if (typeof id !== "string") return undefined;
    const { store: { keys }, config } = this.#parts.current();
    const { keyNames } = await import("../billing/reports/usage.ts");
    return (await keyNames({ keys, config }, [id]).catch(() => undefined))?.get(id);
  }

  async #checkBudgets(): Promise<void> {
    const publishing = this.#publishing();
    if (publishing === undefined) return;
    const { publisher, parts } = publishing;
    let isNew = false;
    await this.#parts.budgets.check(this.#parts.current(), async (draft, isSent) => {
      await publisher.publish(draft, parts, isSent);
      isNew ||= isSent;
    });
    if (isNew) this.#wakeSenders();
  }

  async #prune(): Promise<void> {
    const publishing = this.#publishing();
    await publishing?.publisher.prune(publishing.parts);
  }

  #wakeSenders(): void {
    for (const sender of this.#senders) sender.wake();
  }

  /** Returns the publisher and its settings; `undefined` if no alerts are configured. */
  #publishing(): { publisher: Publisher; parts: PublisherParts } | undefined {
    const { config: { alerts }, store, now } = this.#parts.current();
    if (alerts === undefined) return undefined;
    this.#fallback ??= openMemoryAlerts();
    this.#publisher ??= new Publisher(this.#fallback);
    return { publisher: this.#publisher, parts: { store: store.alerts, events: alerts.events, now } };
  }

  async #deliver(store: AlertStore | undefined, wake: () => void): Promise<void> {
    const { config: { alerts, private_networks }, now } = this.#parts.current();
    if (alerts === undefined || store === undefined) return;
    const { signal } = this.#shutdown;
    const target = { alerts, private_networks };
    await deliverDue({
      store,
      send: (body) => sendAlert(body, target, { now: now(), signal }),
      log: this.#parts.write,
      retryAfter: (ms) => this.#later(ms, wake),
      isOver: () => signal.aborted,
    });
  }
}
