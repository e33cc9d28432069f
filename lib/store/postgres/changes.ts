/** Feed of changes by other nodes: notifications, and a poll about every second. */
import type { StoreLine } from "../store.ts";
import { inTime, isOutOfReach, isTimeout, type Pool } from "./client.ts";
import { readChangedKeys, type ReadKey } from "./keys.ts";

/** Notification channel. */
const CHANNEL = "sluice_changes";

/** Time between two looks, in milliseconds: while the database answers, and while it does not. */
const LOOK_MS = 1_000;
const DOWN_LOOK_MS = 500;

/** Longest time that a look may take, in milliseconds: a database that stands still answers nothing. */
const ANSWER_MS = 1_500;

/** More changes of keys than that at once are not read one by one. */
const MOST_CHANGES = 1_000n;

/** Parts of the change feed. */
export interface ChangesParts {
  /** One connection, which listens. The pool calls `heard` and `ended`. */
  pool: Pool;
  /** There is a pooler between: notifications would come to somebody else. */
  isPooled: boolean;
  /** Called when the database stands still, before anybody else is told: what waits for it need not wait longer. */
  stalled: () => void;
  /** Milliseconds that only grow. */
  monotonic: () => number;
  log: (line: StoreLine) => void;
}

/** Callbacks for changes. */
export interface ChangesWatch {
  /** These keys have. `all`: any may have, and what is known of them is to be read anew where that is possible. */
  keys?: (changed: readonly ReadKey[] | "all") => void;
  /** Another configuration was put: its version. */
  config?: (version: number) => void;
  /** The database answers again. */
  up?: () => void;
}

/** The changes of a database. */
export interface Changes {
  /** False from the first look that found the database out of reach to the first that did not. */
  readonly isUp: boolean;
  /** Milliseconds since it was out of reach first; 0 while it is up. */
  readonly downMs: number;
  /** Version of the configuration that was put last, as far as is known; 0: none ever was. */
  readonly config: number;
  /** Milliseconds since the last successful poll: all earlier changes have been reported. */
  ageMs(): number;
  /** Looks now. Resolves when a look that began after the call is over. @throws what it failed of */
  look(): Promise<void>;
  /** Resolves when the look that is under way, or else a new one, is over: whether the database is up. */
  judge(): Promise<boolean>;
  /** Something was told on the channel. */
  heard(): void;
  /** The connection has ended. */
  ended(): void;
  watch(watch: ChangesWatch): void;
  /** Looks no more. The pool stays open. */
  close(): void;
}

/** Numbers of the last changes. */
interface Known {
  keys: bigint;
  config: bigint;
}

/** Begins with nothing known. The first look is the caller's. */
export function createChanges({ pool, isPooled, stalled, monotonic, log }: ChangesParts): Changes {
  const watches: ChangesWatch[] = [];
  let known: Known | undefined;
  let isListening = false;
  let heardAt = -Infinity;
  let downSince: number | undefined;
  let failure: unknown;
  let looking: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isClosed = false;

  async function run(): Promise<void> {
    clearTimeout(timer);
    const begun = monotonic();
    try {
      await inTime(takeAgain(), ANSWER_MS);
      failure = undefined;
      heardAt = begun;
      rise();
    } catch (error) {
      if (!isClosed) fail(error);
    } finally {
      looking = undefined;
      if (!isClosed) timer = setTimeout(() => void begin(), downSince === undefined ? LOOK_MS : DOWN_LOOK_MS);
    }
  }

  function begin(): Promise<void> {
    return looking ??= run();
  }

  /** A connection that was cut says nothing of the database: another one does. */
  async function takeAgain(): Promise<void> {
    try {
      await take();
    } catch (error) {
      if (downSince !== undefined || isClosed || !isOutOfReach(error) || isTimeout(error)) throw error;
      renew();
      await take();
    }
  }

  function renew(): void {
    isListening = false;
    pool.renew();
  }

  /** Takes in what has changed. What comes too late is left alone: the next look finds it. */
  async function take(): Promise<void> {
    const { sql } = pool;
    const isNew = !isListening;
    if (isNew && !isPooled) await sql`LISTEN ${sql(CHANNEL)}`;
    isListening = true;
    const before = known;
    const [now] = await sql<(Known & { keys_gone: bigint })[]>`SELECT keys, keys_gone, config FROM changes`;
    if (now === undefined) throw new Error("Cannot read the count of changes: its row is gone");
    if (before === undefined || isNew) tellKeys("all");
    else if (now.keys !== before.keys) {
      const isMuch = now.keys < before.keys || now.keys_gone > before.keys || now.keys - before.keys > MOST_CHANGES;
      tellKeys(isMuch ? "all" : await readChangedKeys(sql, before.keys));
    }
    known = { keys: now.keys, config: now.config };
    if (before !== undefined && now.config !== before.config) {
      for (const { config } of watches) config?.(Number(now.config));
    }
  }

  function tellKeys(changed: readonly ReadKey[] | "all"): void {
    for (const { keys } of watches) keys?.(changed);
  }

  function rise(): void {
    if (downSince === undefined) return;
    downSince = undefined;
    for (const { up } of watches) up?.();
  }

  function fail(error: unknown): void {
    const isFirst = failure === undefined;
    failure = error;
    renew();
    if (!isOutOfReach(error)) {
      if (isFirst) log({ level: "error", event: "store_changes_unreadable", ...describe(error) });
      return;
    }
    if (downSince === undefined && isTimeout(error)) stalled();
    downSince ??= monotonic();
  }

  return {
    get isUp() {
      return downSince === undefined;
    },
    get downMs() {
      return downSince === undefined ? 0 : monotonic() - downSince;
    },
    get config() {
      return Number(known?.config ?? 0n);
    },
    ageMs: () => monotonic() - heardAt,
    async look() {
      next ??= (looking ?? Promise.resolve()).then(() => {
        next = undefined;
        return begin();
      });
      await next;
      if (failure !== undefined) throw failure;
    },
    async judge() {
      await begin();
      return downSince === undefined;
    },
    heard() {
      this.look().catch(() => {});
    },
    ended() {
      isListening = false;
    },
    watch: (watch) => void watches.push(watch),
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

function describe(error: unknown): { cause: string; code?: string } {
  if (!(error instanceof Error)) return { cause: typeof error };
  return { cause: error.name, ...("code" in error && typeof error.code === "string" && { code: error.code }) };
}
