/** Bounds how fast the refused requests of one API key fill the ledger: a limit refuses without bound at no cost. */
import type { Log } from "../log_events.ts";
import type { Later } from "./entry_queue.ts";

/** Entries of refused requests that one key has in a minute. */
const MAX_REFUSALS = 600;

/** Length of a window, in milliseconds. */
const WINDOW_MS = 60_000;

/** Refused requests of a key in its window. */
interface RefusalWindow {
  count: number;
  /** Cancels the timer that ends the window. */
  cancel: () => void;
}

/** Counts refused requests by key, in windows of a minute that begin with the first refusal. */
export class RefusalQuota {
  readonly #windows = new Map<string, RefusalWindow>();
  readonly #later: Later;
  readonly #log: Log;
  #isClosed = false;

  constructor({ later, log }: { later: Later; log: Log }) {
    this.#later = later;
    this.#log = log;
  }

  /** Counts a refused request. Returns true if it has an entry of its own. */
  take(keyId: string): boolean {
    if (this.#isClosed) return true;
    let window = this.#windows.get(keyId);
    if (window === undefined) {
      window = { count: 0, cancel: this.#later(() => this.#end(keyId), WINDOW_MS) };
      this.#windows.set(keyId, window);
    }
    return ++window.count <= MAX_REFUSALS;
  }

  /** Ends all windows. Later refusals are not counted. */
  close(): void {
    this.#isClosed = true;
    for (const [keyId, { cancel }] of [...this.#windows]) {
      cancel();
      this.#end(keyId);
    }
  }

  #end(keyId: string): void {
    const count = (this.#windows.get(keyId)?.count ?? 0) - MAX_REFUSALS;
    this.#windows.delete(keyId);
    if (count > 0) this.#log({ level: "warn", event: "refusals_not_written", key_id: keyId, count });
  }
}
