/** Holds of requests that run: kept alive as long as their requests may last, and swept when they are over. */
import { nameOf } from "../errors.ts";
import type { BudgetClaim, Hold, HoldAnswer, LedgerStore } from "../store/ledger.ts";
import { formatUsd } from "./money.ts";
import { type Later, type Log, notEntered } from "./entry_queue.ts";

/** Parts. */
export interface LeasesParts {
  store: Pick<LedgerStore, "clock" | "hold" | "renew" | "expire">;
  /** Unix time in milliseconds. */
  now: () => number;
  /** Milliseconds that only grow. */
  monotonic: () => number;
  /** Lease of a hold, in milliseconds. */
  leaseMs: number;
  later: Later;
  log: Log;
}

/** Holds of requests that run here. */
export interface Leases {
  /**
   * Sets an amount aside for a request that lasts at most `forMs`. The hold lives until its entry is there.
   * @throws {GatewayError} `overloaded` where nobody can tell
   */
  hold(hold: Omit<Hold, "leaseUntil">, forMs: number): Promise<HoldAnswer>;
  /** Renews a hold no more: its entry is there, or (`kept` false) will not be, and it ends with its lease. */
  end(id: string, kept: boolean): void;
  /** Voids holds whose lease is over. Never rejects. */
  sweep(): Promise<void>;
  /** Renews nothing more. */
  close(): void;
}

/** Renewals within the time that a hold lives without one: two may fail. */
const RENEWALS = 3;

/** Most budgets that are remembered to have refused a request. */
const MOST_EXHAUSTED = 1_000;

/** The hold of a request, in Unix milliseconds. */
interface Lease {
  /** End of the lease, as far as is known. */
  until: number;
  /** The latest that it is renewed to. */
  last: number;
  /** False: it is not renewed any more. */
  lives: boolean;
}

/** Starts with no holds. */
export function createLeases(parts: LeasesParts): Leases {
  return new LeaseKeeper(parts);
}

class LeaseKeeper implements Leases {
  readonly #parts: LeasesParts;
  readonly #open = new Map<string, Lease>();
  /** Budgets that have refused a request in their period. */
  readonly #exhausted = new Set<string>();
  #offset = 0;
  #sweeps = 0;
  #cancel: (() => void) | undefined;
  #closed = false;

  constructor(parts: LeasesParts) {
    this.#parts = parts;
  }

  async hold(hold: Omit<Hold, "leaseUntil">, forMs: number): Promise<HoldAnswer> {
    const at = this.#clock();
    const lease = { until: at + this.#parts.leaseMs, last: at + Math.ceil(forMs) + this.#parts.leaseMs, lives: true };
    this.#open.set(hold.id, lease);
    this.#schedule();
    try {
      const answer = await this.#parts.store.hold({ ...hold, leaseUntil: lease.until });
      if (!answer.held) {
        this.#open.delete(hold.id);
        this.#report(answer.claim);
      }
      return answer;
    } catch (cause) {
      // It may be held all the same.
      lease.lives = false;
      throw notEntered(cause);
    }
  }

  /** Logs the first refusal of a budget in its period. */
  #report({ scope, id, budget, since }: BudgetClaim): void {
    const name = `${scope} ${id} ${budget} ${since}`;
    if (this.#exhausted.has(name)) return;
    if (this.#exhausted.size === MOST_EXHAUSTED) this.#exhausted.clear();
    this.#exhausted.add(name);
    this.#parts.log({ level: "warn", event: "budget_exhausted", scope, id, budget_usd: formatUsd(budget) });
  }

  end(id: string, kept: boolean): void {
    const lease = this.#open.get(id);
    if (lease === undefined) return;
    if (kept) this.#open.delete(id);
    else lease.lives = false;
  }

  async sweep(): Promise<void> {
    const at = this.#clock();
    this.#sweeps++;
    try {
      for (const id of await this.#parts.store.expire(at)) {
        this.#open.delete(id);
        this.#parts.log({ level: "warn", event: "hold_expired", request_id: id });
      }
    } catch (cause) {
      this.#parts.log({ level: "error", event: "holds_not_swept", cause: nameOf(cause) });
      return;
    } finally {
      this.#sweeps--;
    }
    // Not before: a renewal may have worked although it failed.
    for (const [id, { last }] of this.#open) {
      if (last <= at) this.#open.delete(id);
    }
  }

  close(): void {
    this.#closed = true;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  /** Unix time, untouched by jumps of the wall clock while something is held: they must not end a lease. */
  #clock(): number {
    if (this.#parts.store.clock !== undefined) return this.#parts.store.clock();
    // Nor while the store is asked what is over by this clock: it would void what is held by another one meanwhile.
    if (this.#open.size === 0 && this.#sweeps === 0) this.#offset = this.#parts.now() - this.#parts.monotonic();
    return Math.floor(this.#offset + this.#parts.monotonic());
  }

  /** One timer for all holds; none while there are none. */
  #schedule(): void {
    if (this.#cancel !== undefined || this.#closed) return;
    this.#cancel = this.#parts.later(() => {
      this.#cancel = undefined;
      void this.#tick();
    }, this.#parts.leaseMs / RENEWALS);
  }

  async #tick(): Promise<void> {
    try {
      await this.#renew();
    } catch (cause) {
      this.#parts.log({ level: "error", event: "holds_not_renewed", cause: nameOf(cause) });
    }
    await this.sweep();
    if (this.#open.size > 0) this.#schedule();
  }

  async #renew(): Promise<void> {
    const until = this.#clock() + this.#parts.leaseMs;
    const usual: string[] = [];
    const last: [string, Lease][] = [];
    for (const [id, lease] of this.#open) {
      if (!lease.lives) continue;
      if (lease.last >= until) usual.push(id);
      else if (lease.last > lease.until) last.push([id, lease]);
    }
    if (usual.length > 0) await this.#parts.store.renew(usual, until);
    for (const id of usual) {
      const lease = this.#open.get(id);
      if (lease !== undefined) lease.until = until;
    }
    for (const [id, lease] of last) {
      await this.#parts.store.renew([id], lease.last);
      lease.until = lease.last;
    }
  }
}
