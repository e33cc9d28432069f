/** Limits how many ledger entries the refused requests of one API key make: they cost their client nothing. */
import type { Log } from "../log_events.ts";
import type { StartTimer } from "../start_timer.ts";

/** Maximum number of entries of refused requests of one key in a window. */
const ENTRIES_PER_WINDOW = 600;

const WINDOW_MS = 60_000;

/** Refused requests of a key in its current window. */
interface RefusalWindow {
  count: number;
  /** Cancels the timer that ends the window. */
  cancel: () => void;
}

/** Counts refused requests by key, in windows of a minute. A window begins with a refusal while the key has none. */
export class RefusalQuota {
  readonly #windows = new Map<string, RefusalWindow>();
  readonly #later: StartTimer;
  readonly #log: Log;
  #isClosed = false;

  constructor({ later, log }: { later: StartTimer; log: Log }) {
    this.#later = later;
    this.#log = log;
  }

  /** Counts a refused request. Returns true if the ledger should have an entry of it. */
  take(keyId: string): boolean {
    if (this.#isClosed) return true;
    let window = this.#windows.get(keyId);
    if (window === undefined) {
      window = { count: 0, cancel: this.#later(() => this.#end(keyId), WINDOW_MS) };
      this.#windows.set(keyId, window);
    }
    return ++window.count <= ENTRIES_PER_WINDOW;
  }

  /** Ends all windows and logs their counts. Later refusals are not counted and have entries. */
  close(): void {
    this.#isClosed = true;
    for (const [keyId, { cancel }] of [...this.#windows]) {
      cancel();
      this.#end(keyId);
    }
  }

  /** Ends the window of a key, and logs the number of refusals without entries. */
  #end(keyId: string): void {
    const count = (this.#windows.get(keyId)?.count ?? 0) - ENTRIES_PER_WINDOW;
    this.#windows.delete(keyId);
    if (count > 0) this.#log({ level: "warn", event: "refusals_not_written", key_id: keyId, count });
  }
}
