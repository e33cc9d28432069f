/**
 * Checks whether an upstream accepts the gateway's key. Only a probe decides, because it contains nothing from a
 * client: no client's request can make an upstream unavailable for others.
 */
import type { StartTimer } from "../start_timer.ts";
import type { HealthChange, ProbeAnswer, UpstreamProbe } from "./health.ts";

/** Shortest time between two probes that requests cause, in milliseconds. */
const MIN_GAP_MS = 5_000;
/** First time until a refused key is probed again, in milliseconds. It doubles after each refusal. */
const REPEAT_MS = 15_000;
/** Longest time until a refused key is probed again, in milliseconds. */
const MAX_REPEAT_MS = 300_000;

/** Options of a key check. */
export interface KeyCheckOptions {
  probe: () => ReturnType<UpstreamProbe>;
  /** A monotonic clock, in milliseconds. */
  monotonic: () => number;
  /** Varies a time at random. */
  jitter: (ms: number) => number;
  later: StartTimer;
  /** Called when the key is refused, with the time until the next probe, and when that has ended. */
  changed: (change: Pick<HealthChange, "change" | "forMs" | "isRemoved">) => void;
}

/** Checks the gateway's key at one upstream. */
export class KeyCheck {
  readonly #options: KeyCheckOptions;
  #isRefused = false;
  #probing: Promise<ProbeAnswer> | undefined;
  #probedAt = -Infinity;
  #refusals = 0;
  #nextAt = 0;
  #cancel: (() => void) | undefined;

  constructor(options: KeyCheckOptions) {
    this.#options = options;
  }

  /** True if the upstream refused the key in the last probe. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** When a refused key is probed again, by the monotonic clock. */
  get nextAt(): number {
    return this.#nextAt;
  }

  /** Probes the upstream after a 401 to find out whether it refuses the key, but not too often. */
  suspect(): void {
    const { monotonic } = this.#options;
    if (this.#isRefused || this.#probing !== undefined || monotonic() - this.#probedAt < MIN_GAP_MS) return;
    void this.probe();
  }

  /** Probes the upstream. Concurrent callers share one probe. @returns `undefined` if the upstream has no address */
  probe(): Promise<ProbeAnswer> | undefined {
    if (this.#probing !== undefined) return this.#probing;
    const probing = this.#options.probe();
    if (probing === undefined) return undefined;
    const result: Promise<ProbeAnswer> = probing.then((answer) => {
      // A newer probe, perhaps with another key, has replaced this one.
      if (this.#probing !== result) return answer;
      this.#probing = undefined;
      this.#probedAt = this.#options.monotonic();
      if (answer === "refused") this.#refuse();
      else if (this.#isRefused && answer === "up") this.#accept();
      else if (this.#isRefused) this.#probeLater();
      return answer;
    });
    this.#probing = result;
    return result;
  }

  /** Probes a refused key at once, because another key may be configured now, or the vendor may accept it again. */
  renew(): void {
    this.#probing = undefined;
    this.#probedAt = -Infinity;
    if (this.#isRefused && this.probe() === undefined) this.#accept();
  }

  /** Ends the check of an upstream that is not used any more. */
  remove(): void {
    this.#probing = undefined;
    this.#cancel?.();
    if (this.#isRefused) this.#options.changed({ change: "key_accepted", forMs: 0, isRemoved: true });
  }

  #refuse(): void {
    const isNew = !this.#isRefused;
    this.#isRefused = true;
    this.#refusals = isNew ? 1 : this.#refusals + 1;
    this.#probeLater();
    if (isNew) {
      this.#options.changed({ change: "key_refused", forMs: this.#nextAt - this.#options.monotonic() });
    }
  }

  #accept(): void {
    this.#cancel?.();
    this.#isRefused = false;
    this.#options.changed({ change: "key_accepted", forMs: 0 });
  }

  #probeLater(): void {
    const { jitter, later, monotonic } = this.#options;
    const forMs = jitter(Math.min(MAX_REPEAT_MS, REPEAT_MS * 2 ** Math.min(this.#refusals - 1, 10)));
    this.#nextAt = monotonic() + forMs;
    this.#cancel?.();
    this.#cancel = later(() => void this.probe(), forMs);
  }
}
