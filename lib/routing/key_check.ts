/**
 * Checks whether an upstream accepts the gateway's key. Only a probe decides: it carries no content of a client, so no
 * request can take an upstream from the others.
 */
import type { ProbeAnswer, UpstreamProbe } from "./health.ts";

/** Least time between two probes caused by requests, in milliseconds. */
const LEAST_GAP_MS = 5_000;
/** Time until a refused key is probed again, in milliseconds: doubled each time, up to the last. */
const AGAIN_MS = 15_000;
const MOST_AGAIN_MS = 300_000;

/** Parts of a check. */
export interface KeyCheckOptions {
  probe: () => ReturnType<UpstreamProbe>;
  /** Milliseconds of a monotonic clock. */
  monotonic: () => number;
  jitter: (ms: number) => number;
  /** Runs something later, and returns a function that cancels it. */
  later: (ms: number, run: () => void) => () => void;
  /** Called when the key is refused, with the time until the next probe, and when it is accepted again. */
  changed: (change: "key_refused" | "key_accepted", forMs: number) => void;
}

/** The key of one upstream. */
export class KeyCheck {
  readonly #options: KeyCheckOptions;
  #isRefused = false;
  /** The probe under way. */
  #probing: Promise<ProbeAnswer> | undefined;
  #probedAt = -Infinity;
  #refusals = 0;
  #nextAt = 0;
  #cancel: (() => void) | undefined;

  constructor(options: KeyCheckOptions) {
    this.#options = options;
  }

  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** When a refused key is probed again. */
  get nextAt(): number {
    return this.#nextAt;
  }

  /** Probes the upstream after a 401 to find out whether it refuses the key. */
  suspect(): void {
    const { monotonic } = this.#options;
    if (this.#isRefused || this.#probing !== undefined || monotonic() - this.#probedAt < LEAST_GAP_MS) return;
    void this.probe();
  }

  /** Probes the upstream. Several callers share one probe; `undefined` where the upstream has no address. */
  probe(): Promise<ProbeAnswer> | undefined {
    if (this.#probing !== undefined) return this.#probing;
    const probing = this.#options.probe();
    if (probing === undefined) return undefined;
    const learning: Promise<ProbeAnswer> = probing.then((answer) => {
      // A newer probe, perhaps with another key, has replaced this one.
      if (this.#probing !== learning) return answer;
      this.#probing = undefined;
      this.#probedAt = this.#options.monotonic();
      this.#learn(answer);
      return answer;
    });
    this.#probing = learning;
    return learning;
  }

  /** Probes a refused key at once, as another one may be configured now, or the vendor may accept it again. */
  renew(): void {
    this.#probing = undefined;
    this.#probedAt = -Infinity;
    if (this.#isRefused && this.probe() === undefined) this.#accept();
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #learn(answer: ProbeAnswer): void {
    if (answer === "refused") this.#refuse();
    else if (answer === "up" && this.#isRefused) this.#accept();
    else if (this.#isRefused) this.#again();
  }

  #refuse(): void {
    const isNew = !this.#isRefused;
    this.#isRefused = true;
    this.#refusals = isNew ? 1 : this.#refusals + 1;
    this.#again();
    if (isNew) this.#options.changed("key_refused", this.#nextAt - this.#options.monotonic());
  }

  #accept(): void {
    this.close();
    this.#isRefused = false;
    this.#options.changed("key_accepted", 0);
  }

  #again(): void {
    const { jitter, later, monotonic } = this.#options;
    const forMs = jitter(Math.min(MOST_AGAIN_MS, AGAIN_MS * 2 ** Math.min(this.#refusals - 1, 10)));
    this.#nextAt = monotonic() + forMs;
    this.#cancel?.();
    this.#cancel = later(forMs, () => {
      this.#cancel = undefined;
      void this.probe();
    });
  }
}
