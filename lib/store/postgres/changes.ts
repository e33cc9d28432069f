/** Feed of changes by other nodes: notifications, and a poll about once a second. */
import type { Log } from "../../log_events.ts";
import { inTime, isOutOfReach, isTimeout, type Pool } from "./client.ts";
import { readChangedKeys, type ReadKey } from "./keys.ts";

/** Notification channel. */
const CHANNEL = "sluice_changes";

/** Poll interval in milliseconds, while the database answers and while it does not. */
const POLL_MS = 1_000;
const DOWN_POLL_MS = 500;

/** Timeout of a poll, in milliseconds: a stalled database answers nothing. */
const ANSWER_MS = 1_500;

/** If more keys changed at once, all cached keys are invalidated instead. */
const MAX_CHANGES = 1_000n;

/** Parts of the change feed. */
export interface ChangesParts {
  /** A single listening connection. The pool calls `notified` and `disconnected`. */
  pool: Pool;
  /** True behind a pooler, which would deliver notifications to another client. */
  isPooled: boolean;
  /** Called first when the database stalls, so that waiting calls end early. */
  stalled: () => void;
  /** Monotonic time in milliseconds. */
  monotonic: () => number;
  log: Log;
}

/** Callbacks for changes. */
export interface ChangesWatch {
  /** Called with the changed keys. `all`: any key may have changed. */
  keys?: (changed: readonly ReadKey[] | "all") => void;
  /** Called with the version of a new configuration. */
  config?: (version: number) => void;
  /** Called when the database answers again. */
  up?: () => void;
}

/** Last known change numbers. */
interface Known {
  keys: bigint;
  config: bigint;
}

/** The changes of a database. */
export class Changes {
  readonly #parts: ChangesParts;
  readonly #watches: ChangesWatch[] = [];
  #known: Known | undefined;
  #isListening = false;
  #heardAt = -Infinity;
  #downSince: number | undefined;
  #failure: unknown;
  #polling: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(parts: ChangesParts) {
    this.#parts = parts;
  }

  /** False from the first failed poll to the next successful one. */
  get isUp(): boolean {
    return this.#downSince === undefined;
  }

  /** Milliseconds since the start of the outage; 0 while it is up. */
  get downMs(): number {
    return this.#downSince === undefined ? 0 : this.#parts.monotonic() - this.#downSince;
  }

  /** Latest known version of the configuration; 0: there is none. */
  get config(): number {
    return Number(this.#known?.config ?? 0n);
  }

  /** Milliseconds since the last successful poll: all earlier changes have been reported. */
  ageMs(): number {
    return this.#parts.monotonic() - this.#heardAt;
  }

  /** Polls now. Resolves after a poll that began after the call. @throws the error of the poll */
  async poll(): Promise<void> {
    this.#next ??= (this.#polling ?? Promise.resolve()).then(() => {
      this.#next = undefined;
      return this.#begin();
    });
    await this.#next;
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Waits for the current poll, or else a new one, and returns whether the database is up. */
  async checkNow(): Promise<boolean> {
    await this.#begin();
    return this.#downSince === undefined;
  }

  /** Called for a notification on the channel. */
  notified(): void {
    this.poll().catch(() => {});
  }

  /** Called when the connection has ended. */
  disconnected(): void {
    this.#isListening = false;
  }

  watch(watch: ChangesWatch): void {
    this.#watches.push(watch);
  }

  /** Stops polling. The pool stays open. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #run(): Promise<void> {
    clearTimeout(this.#timer);
    const startedAt = this.#parts.monotonic();
    try {
      await inTime(this.#takeAgain(), ANSWER_MS);
      this.#failure = undefined;
      this.#heardAt = startedAt;
      this.#rise();
    } catch (error) {
      if (!this.#isClosed) this.#fail(error);
    } finally {
      this.#polling = undefined;
      if (!this.#isClosed) {
        this.#timer = setTimeout(() => void this.#begin(), this.#downSince === undefined ? POLL_MS : DOWN_POLL_MS);
      }
    }
  }

  #begin(): Promise<void> {
    return this.#polling ??= this.#run();
  }

  /** Polls again on a new connection: a lost connection does not mean that the database is down. */
  async #takeAgain(): Promise<void> {
    try {
      await this.#take();
    } catch (error) {
      if (this.#downSince !== undefined || this.#isClosed || !isOutOfReach(error) || isTimeout(error)) throw error;
      this.#renew();
      await this.#take();
    }
  }

  #renew(): void {
    this.#isListening = false;
    this.#parts.pool.renew();
  }

  /** Reads and reports changes. A later change is found by the next poll. */
  async #take(): Promise<void> {
    const { sql } = this.#parts.pool;
    const isNew = !this.#isListening;
    if (isNew && !this.#parts.isPooled) await sql`LISTEN ${sql(CHANNEL)}`;
    this.#isListening = true;
    const before = this.#known;
    const [now] = await sql<(Known & { keys_gone: bigint })[]>`SELECT keys, keys_gone, config FROM changes`;
    if (now === undefined) throw new Error("Cannot read the change counter: its row is missing");
    if (before === undefined || isNew) this.#reportKeys("all");
    else if (now.keys !== before.keys) {
      const isMuch = now.keys < before.keys || now.keys_gone > before.keys || now.keys - before.keys > MAX_CHANGES;
      this.#reportKeys(isMuch ? "all" : await readChangedKeys(sql, before.keys));
    }
    this.#known = { keys: now.keys, config: now.config };
    if (before !== undefined && now.config !== before.config) {
      for (const { config } of this.#watches) config?.(Number(now.config));
    }
  }

  #reportKeys(changed: readonly ReadKey[] | "all"): void {
    for (const { keys } of this.#watches) keys?.(changed);
  }

  #rise(): void {
    if (this.#downSince === undefined) return;
    this.#downSince = undefined;
    for (const { up } of this.#watches) up?.();
  }

  #fail(error: unknown): void {
    const isFirst = this.#failure === undefined;
    this.#failure = error;
    this.#renew();
    if (!isOutOfReach(error)) {
      if (isFirst) this.#parts.log({ level: "error", event: "store_changes_unreadable", ...describe(error) });
      return;
    }
    if (this.#downSince === undefined && isTimeout(error)) this.#parts.stalled();
    this.#downSince ??= this.#parts.monotonic();
  }
}

function describe(error: unknown): { cause: string; code?: string } {
  if (!(error instanceof Error)) return { cause: typeof error };
  return { cause: error.name, ...("code" in error && typeof error.code === "string" && { code: error.code }) };
}
