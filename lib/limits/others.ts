/** What other nodes run, as Redis last told: room that a node leaves for them when it has to do without Redis. */
import { sharesOf } from "./alone.ts";
import type { Claim, Standing } from "./limiter.ts";
import { createSweep, type MemoryLimiter } from "./memory.ts";
import { WINDOW_MS } from "./window.ts";

/** How long what Redis told is believed, in milliseconds. */
const BELIEVED_MS = WINDOW_MS;

/** What others run of one limit, where it is more than their shares. */
interface Told {
  claim: Claim;
  running: number;
  at: number;
}

/** What it is made of. */
export interface OthersParts {
  /** All that the node has admitted itself. */
  own: Pick<MemoryLimiter, "sum" | "take" | "undo">;
  /** Last known number of nodes. */
  nodes: () => number;
  /** Whole milliseconds of the node's clock. */
  now: () => number;
}

/**
 * A limit of 6 among 3 nodes, of which one runs 4: the others must not run 2 each while that lasts, though that is their
 * share. What others run above their shares is taken from the share of the node when it loses Redis, for a minute at most,
 * as it hears nothing of them any more.
 */
export class OtherNodes {
  readonly #parts: OthersParts;
  readonly #told = new Map<string, Told>();
  readonly #sweep = createSweep(this.#told, ({ at }: Told, now) => at + BELIEVED_MS <= now);
  /** Ids under which room is left for others; empty while Redis counts. */
  readonly #left = new Set<string>();
  #isAlone = false;

  constructor(parts: OthersParts) {
    this.#parts = parts;
  }

  /** Takes note of how limits stand in Redis. */
  note(standings: readonly Standing[]): void {
    for (const { claim, remaining } of standings) {
      if (claim.unit !== "concurrency") continue;
      const { own, now } = this.#parts;
      const running = claim.limit - remaining - own.sum(claim);
      if (running > claim.limit - this.#shareOf(claim)) {
        this.#sweep(now());
        this.#told.set(claim.name, { claim, running, at: now() });
      } else if (this.#told.size > 0) this.#told.delete(claim.name);
    }
  }

  /** From now on the node counts alone. */
  leaveRoom(): void {
    if (this.#isAlone) return;
    this.#isAlone = true;
    const { own, now } = this.#parts;
    for (const { claim, running, at } of this.#told.values()) {
      const forMs = at + BELIEVED_MS - now();
      const share = this.#shareOf(claim);
      const cost = Math.min(share, running - (claim.limit - share));
      if (forMs <= 0 || cost <= 0) continue;
      const id = `others ${claim.name}`;
      own.take({ id, claims: [{ ...claim, cost, reportOnly: true }], forMs });
      this.#left.add(id);
    }
  }

  /** Redis counts again. */
  forgetRoom(): void {
    if (!this.#isAlone) return;
    this.#isAlone = false;
    for (const id of this.#left) void this.#parts.own.undo(id);
    this.#left.clear();
    this.#told.clear();
  }

  #shareOf(claim: Claim): number {
    return sharesOf([claim], this.#parts.nodes())[0]?.limit ?? claim.limit;
  }
}
