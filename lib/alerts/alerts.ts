/** The alerts of a serving process: sources and delivery loops. */
import { keyNames } from "../billing/reports/usage.ts";
import type { Gateway } from "../gateway.ts";
import type { LogEntry } from "../log_events.ts";
import { describeCause } from "../server/cause.ts";
import type { AlertStore } from "../store/alerts.ts";
import { DAY_MS } from "../store/days.ts";
import { openMemoryAlerts } from "../store/sqlite/memory.ts";
import { BudgetWatch } from "./budget_watch.ts";
import { deliverDue } from "./delivery.ts";
import type { AlertDraft } from "./event.ts";
import { alertOf } from "./log_alerts.ts";
import { publish, type PublisherParts } from "./publisher.ts";
import { sendAlert } from "./webhook.ts";
import { Worker } from "./worker.ts";

/** Interval of checks of budgets and due alerts, in milliseconds. */
const CHECK_MS = 5_000;

/** Interval of pruning, in milliseconds. */
const PRUNE_MS = 3_600_000;

/** Retention of delivered alerts, in milliseconds. */
const KEEP_MS = 30 * DAY_MS;

/** Time in which a repeated log line is ignored, in milliseconds. */
const SAME_MS = 10_000;

/** Most queued alerts, and most remembered log lines. */
const MAX_WAITING = 100;
const MAX_SEEN = 1_000;

/**
 * Creates alerts from log lines and budgets. Lines are read from the start of the process, alerts are sent from `start`
 * to `end`.
 */
export interface Alerts {
  /** Logs an entry, and creates alerts from it. */
  readonly log: (entry: LogEntry) => void;
  /** Starts storing and sending alerts. */
  start(current: () => Gateway): void;
  /** Stops. Unsent alerts are sent after the next start, or by another node. */
  end(): Promise<void>;
}

/** Wraps a log. @param write writes an entry */
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

/** A log line that creates an alert, with the last failure of its target. */
interface AlertLine {
  line: LogEntry;
  failure: LogEntry | undefined;
}

/** Queues log lines that create alerts. */
class LineWatch {
  #waiting: AlertLine[] = [];
  readonly #seen = new Map<string, { type: string; at: number }>();
  /** The last `target_failed` by upstream and model. */
  readonly #failures = new Map<string, LogEntry>();

  /** Returns whether the entry creates an alert. */
  read(line: LogEntry): boolean {
    const target = `${line.upstream}/${line.model}`;
    if (line.event === "target_failed") this.#remember(target, line);
    const draft = alertOf(line);
    if (draft === undefined || this.#waiting.length === MAX_WAITING || this.#isRepeated(draft)) return false;
    this.#waiting.push({ line, failure: this.#failures.get(target) });
    return true;
  }

  take(): AlertLine[] {
    const lines = this.#waiting;
    this.#waiting = [];
    return lines;
  }

  #remember(target: string, line: LogEntry): void {
    const [oldest] = this.#failures.keys();
    if (this.#failures.size === MAX_SEEN && oldest !== undefined) this.#failures.delete(oldest);
    this.#failures.set(target, line);
  }

  #isRepeated({ type, subject }: AlertDraft): boolean {
    const at = performance.now();
    const last = this.#seen.get(subject);
    if (last !== undefined && last.type === type && at - last.at < SAME_MS) return true;
    const [oldest] = this.#seen.keys();
    if (this.#seen.size === MAX_SEEN && oldest !== undefined) this.#seen.delete(oldest);
    this.#seen.set(subject, { type, at });
    return false;
  }
}

interface AlertLoopParts {
  current: () => Gateway;
  write: (entry: LogEntry) => void;
  budgets: BudgetWatch;
  lines: LineWatch;
}

/** Stores alerts, and delivers those in the store and in memory, each in a loop. */
class AlertLoops {
  readonly #parts: AlertLoopParts;
  /** Stores alerts while the store is unreachable. */
  #fallback: AlertStore | undefined;
  readonly #ending = new AbortController();
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
    this.#pruner = this.#worker("prune", () => prune(current()));
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
    this.#ending.abort(new Error("The gateway is shutting down"));
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
    if (this.#ending.signal.aborted) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      run();
    }, ms);
    this.#timers.add(timer);
  }

  async #publishLines(): Promise<void> {
    const lines = this.#parts.lines.take();
    const parts = this.#publisher();
    if (parts === undefined || lines.length === 0) return;
    for (const { line, failure } of lines) {
      const draft = alertOf(line, { failure, keyName: await this.#keyName(line.key_id) });
      if (draft !== undefined) await publish(draft, parts);
    }
    for (const sender of this.#senders) sender.wake();
  }

  /** Absent: the line names no key, or the store does not answer. */
  async #keyName(id: unknown): Promise<string | undefined> {
    if (typeof id !== "string") return undefined;
    const { store: { keys }, config } = this.#parts.current();
    return (await keyNames({ keys, config }, [id]).catch(() => undefined))?.get(id);
  }

  async #checkBudgets(): Promise<void> {
    const parts = this.#publisher();
    if (parts === undefined) return;
    let isNew = false;
    await this.#parts.budgets.check(this.#parts.current(), async (draft, isSent) => {
      await publish(draft, parts, isSent);
      isNew ||= isSent;
    });
    if (isNew) { for (const sender of this.#senders) sender.wake(); }
  }

  /** Absent: no alerts are configured. */
  #publisher(): PublisherParts | undefined {
    const { config: { alerts }, store, now } = this.#parts.current();
    if (alerts === undefined) return undefined;
    this.#fallback ??= openMemoryAlerts();
    return { store: store.alerts, fallback: this.#fallback, events: alerts.events, now };
  }

  async #deliver(store: AlertStore | undefined, wake: () => void): Promise<void> {
    const { config: { alerts, private_networks }, now } = this.#parts.current();
    if (alerts === undefined || store === undefined) return;
    const { signal } = this.#ending;
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

async function prune({ config, store, now }: Gateway): Promise<void> {
  if (config.alerts !== undefined) await store.alerts.prune({ until: now() - KEEP_MS, now: now() });
}
