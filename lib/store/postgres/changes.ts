/** The feed of changes that other nodes make: notifications of the database, and a poll about once a second. */
import { describeFailure } from "../../causes.ts";
import type { Log } from "../../log_events.ts";
import { inTime } from "../outage/reachability.ts";
import { isOutOfReach, isTimeout, type Pool } from "./client.ts";
import { readChangedKeys, type ReadKey } from "./keys.ts";

const CHANNEL = "sluice_changes";

/** Intervals of polls in milliseconds, while the database answers and while it does not. */
const POLL_INTERVAL_MS = 1_000;
const DOWN_POLL_INTERVAL_MS = 500;

/** Longest duration of a poll, in milliseconds: a stalled database does not answer. */
const POLL_TIMEOUT_MS = 1_500;

/** Time without an answer after which the feed reports it, if the ledger is reachable, in milliseconds. */
const UNREPORTED_MS = 5_000;

/** Longest wait for a read of a key, in milliseconds. */
export const READ_TIMEOUT_MS = 2_000;

/** Maximum number of changed keys that a poll reads. If more have changed, all cached keys become invalid instead. */
const MAX_CHANGED_KEYS = 1_000n;

/** Dependencies of the feed. */
export interface ChangesParts {
  /** A pool with a single connection, which listens. It must call `notified` and `disconnected`. */
  pool: Pool;
  /** True if there is a pooler in between, which would deliver notifications to another client. */
  isPooled: boolean;
  /**
   * Called when the database does not answer in time. It must replace the connections of other pools, which may be lost
   * although no error was reported, and end the calls on them after a while.
   */
  stalled: () => void;
  /** Returns whether the ledger is reachable. If it is not, it reports the outage. */
  isLedgerUp: () => boolean;
  /** Monotonic time in milliseconds. */
  monotonic: () => number;
  log: Log;
}

/** Callbacks for changes. */
export interface ChangesWatch {
  /** Called with the changed keys; with `all` if any key may have changed. */
  keys?: (changed: readonly ReadKey[] | "all") => void;
  config?: (version: number) => void;
}

/** The numbers of the last changes of keys and of the configuration. */
interface ChangeNumbers {
  keys: bigint;
  config: bigint;
}

/** The feed of changes of a database. */
export class Changes {
  readonly #parts: ChangesParts;
  readonly #watches: ChangesWatch[] = [];
  #numbers: ChangeNumbers | undefined;
  #isListening = false;
  /** Monotonic time at which the last successful poll began. */
  #polledAt = -Infinity;
  /** True if the database does not answer. */
  #isDown = false;
  /** True if the log says that the changes cannot be read. */
  #isUnreadable = false;
  /** Monotonic time of the first of the failed polls since the last successful one. */
  #failedSince: number | undefined;
  /** Monotonic time of the last call of `stalled`. */
  #stalledAt = -Infinity;
  #failure: unknown;
  #polling: Promise<void> | undefined;
  /** A poll that begins after the current one. */
  #nextPoll: Promise<void> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(parts: ChangesParts) {
    this.#parts = parts;
  }

  /** False from the first poll without an answer to the next successful one. */
  get isUp(): boolean {
    return !this.#isDown;
  }

  /** True if the last poll succeeded. The database may be up and refuse it. */
  get isReadable(): boolean {
    return this.#failure === undefined;
  }

  /** Milliseconds since the first failed poll; 0 while they succeed. */
  get downMs(): number {
    return this.#failedSince === undefined ? 0 : this.#parts.monotonic() - this.#failedSince;
  }

  /** Latest known version of the configuration; 0 if there is none. */
  get config(): number {
    return Number(this.#numbers?.config ?? 0n);
  }

  /** Returns the milliseconds since the last successful poll began. All changes from before it have been reported. */
  ageMs(): number {
    return this.#parts.monotonic() - this.#polledAt;
  }

  /** Polls the database. Resolves after a poll that began after this call. @throws the error of the poll */
  async poll(): Promise<void> {
    this.#nextPoll ??= (this.#polling ?? Promise.resolve()).then(() => {
      this.#nextPoll = undefined;
      return this.#startPoll();
    });
    await this.#nextPoll;
    if (this.#failure !== undefined) throw this.#failure;
  }

  /**
   * Waits for the poll in progress, or for a new one, because the read of a key has failed. Returns whether the database
   * answers.
   */
  async checkNow(failure: unknown): Promise<boolean> {
    // A read that began before the last replacement says nothing about the new connections.
    const isOld = this.#parts.monotonic() - this.#stalledAt < READ_TIMEOUT_MS;
    if (isTimeout(failure) && !isOld) this.#stall();
    await this.#startPoll();
    return !this.#isDown;
  }

  /** Must be called for each notification on the channel. */
  notified(): void {
    this.poll().catch(() => {});
  }

  /** Must be called when the connection has ended. */
  disconnected(): void {
    this.#isListening = false;
  }

  /** Adds callbacks for all later changes. */
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
      await inTime(this.#readChangesTwice(), POLL_TIMEOUT_MS);
      if (this.#isUnreadable) {
        this.#parts.log({ level: "info", event: "store_changes_readable", down_ms: Math.round(this.downMs) });
      }
      this.#isUnreadable = false;
      this.#failure = undefined;
      this.#polledAt = startedAt;
      this.#isDown = false;
      this.#failedSince = undefined;
    } catch (error) {
      if (!this.#isClosed) this.#recordFailure(error);
    } finally {
      this.#polling = undefined;
      if (!this.#isClosed) {
        this.#timer = setTimeout(
          () => void this.#startPoll(),
          this.#isDown ? DOWN_POLL_INTERVAL_MS : POLL_INTERVAL_MS,
        );
      }
    }
  }

  #startPoll(): Promise<void> {
    return this.#polling ??= this.#run();
  }

  /** Reads changes, a second time on a new connection if the first failed: a lost connection is not an outage. */
  async #readChangesTwice(): Promise<void> {
    try {
      await this.#readChanges();
    } catch (error) {
      if (this.#isDown || this.#isClosed || !isOutOfReach(error) || isTimeout(error)) throw error;
      this.#reconnect();
      await this.#readChanges();
    }
  }

  #reconnect(): void {
    this.#isListening = false;
    this.#parts.pool.renew();
  }

  /** Reads and reports changes. Changes that are made meanwhile are found by the next poll. */
  async #readChanges(): Promise<void> {
    const { sql } = this.#parts.pool;
    const isNew = !this.#isListening;
    if (isNew && !this.#parts.isPooled) await sql`LISTEN ${sql(CHANNEL)}`;
    this.#isListening = true;
    const before = this.#numbers;
    // Fails also if the keys cannot be read: known keys are then valid for a while, whether they have changed or not.
    const [now] = await sql<(ChangeNumbers & { keys_gone: bigint })[]>`
      SELECT keys, keys_gone, config FROM changes LEFT JOIN (SELECT FROM keys LIMIT 0) AS readable ON true`;
    if (now === undefined) throw new Error("Cannot read the change counter: its row is missing");
    if (before === undefined || isNew) this.#reportKeys("all");
    else if (now.keys !== before.keys) {
      const mustReadAll = now.keys < before.keys || now.keys_gone > before.keys ||
        now.keys - before.keys > MAX_CHANGED_KEYS;
      this.#reportKeys(mustReadAll ? "all" : await readChangedKeys(sql, before.keys));
    }
    if (before !== undefined && now.keys < before.keys) {
      this.#parts.log({ level: "error", event: "store_rolled_back", lost: "changes of keys" });
    }
    this.#numbers = { keys: now.keys, config: now.config };
    if (before !== undefined && now.config !== before.config) {
      for (const { config } of this.#watches) config?.(Number(now.config));
    }
  }

  #stall(): void {
    this.#stalledAt = this.#parts.monotonic();
    this.#parts.stalled();
  }

  #reportKeys(changed: readonly ReadKey[] | "all"): void {
    for (const { keys } of this.#watches) keys?.(changed);
  }

  #reportUnreadable(error: unknown): void {
    if (!this.#isUnreadable) {
      this.#parts.log({ level: "error", event: "store_changes_unreadable", ...describeFailure(error) });
    }
    this.#isUnreadable = true;
  }

  #recordFailure(error: unknown): void {
    this.#failure = error;
    this.#failedSince ??= this.#parts.monotonic();
    this.#reconnect();
    const isRefused = !isOutOfReach(error);
    if (isRefused || this.downMs >= UNREPORTED_MS && this.#parts.isLedgerUp()) this.#reportUnreadable(error);
    if (isRefused) return;
    if (!this.#isDown && isTimeout(error)) this.#stall();
    this.#isDown = true;
  }
}
