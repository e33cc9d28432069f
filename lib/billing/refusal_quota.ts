/** Bounds how fast the refused requests of one API key fill the ledger: a limit refuses without bound at no cost. */
import type { Log } from "../log_events.ts";
import type { Later } from "./entry_queue.ts";

/** Entries of refused requests that one key has in a minute. */
export const MOST_REFUSALS = 600;

/** Length of a window, in milliseconds. */
const WINDOW_MS = 60_000;

/** Counts refused requests by key, in windows of a minute that begin with the first refusal. */
export class RefusalQuota {
  readonly #counts = new Map<string, number>();
  readonly #later: Later;
  readonly #log: Log;
  readonly #timers = new Set<() => void>();
  #isClosed = false;

  constructor({ later, log }: { later: Later; log: Log }) {
    this.#later = later;
    this.#log = log;
  }

  /** Counts a refused request. Returns true if it has an entry of its own. */
  take(keyId: string): boolean {
    if (this.#isClosed) return true;
    const count = (this.#counts.get(keyId) ?? 0) + 1;
    this.#counts.set(keyId, count);
    if (count === 1) {
      const cancel = this.#later(() => {
        this.#timers.delete(cancel);
        this.#end(keyId);
      }, WINDOW_MS);
      this.#timers.add(cancel);
    }
    return count <= MOST_REFUSALS;
  }

  /** Ends all windows. Later refusals are not counted. */
  close(): void {
    this.#isClosed = true;
    for (const cancel of this.#timers) cancel();
    for (const keyId of [...this.#counts.keys()]) this.#end(keyId);
  }

  #end(keyId: string): void {
    const count = (this.#counts.get(keyId) ?? 0) - MOST_REFUSALS;
    this.#counts.delete(keyId);
    if (count > 0) this.#log({ level: "warn", event: "refusals_not_written", key_id: keyId, count });
  }
}
