/** Renews the budget holds of this process's running requests, and voids holds whose leases have ended. */
import type { Log } from "../log_events.ts";
import { describeFailure } from "../causes.ts";
import { MAX_AMOUNT } from "../store/entry_row.ts";
import type { BudgetClaim, Hold, HoldAnswer, LedgerStore } from "../store/ledger.ts";
import { formatUsd } from "./money.ts";
import type { StartTimer } from "../start_timer.ts";
import { notEntered } from "./entry_queue.ts";

/** Dependencies of `Leases`. */
export interface LeasesParts {
  store: Pick<LedgerStore, "clock" | "hold" | "renew" | "expire">;
  /** Unix time in milliseconds. */
  now: () => number;
  /** Monotonic time in milliseconds. */
  monotonic: () => number;
  leaseMs: number;
  later: StartTimer;
  log: Log;
}

/** Renewals per lease: two may fail in a row without an effect. */
const RENEWALS_PER_LEASE = 3;

/** Maximum number of leases that one call renews. A call for all leases of a busy node could count as unanswered. */
const RENEWED_PER_CALL = 1_000;

/** Maximum number of exhausted budgets that are remembered, so that each is logged only once. */
const MAX_EXHAUSTED = 1_000;

/** Lease of the hold of a request; times are Unix milliseconds. */
interface Lease {
  /** End of the lease after its last renewal. */
  until: number;
  /** The lease is renewed while it ends before this time. */
  latestEnd: number;
  isRenewed: boolean;
}

/** Holds of this process's running requests, which one timer renews. */
export class Leases {
  readonly #parts: LeasesParts;
  readonly #leases = new Map<string, Lease>();
  /** Budgets that refused a request in their current period. */
  readonly #exhausted = new Set<string>();
  #clockOffset = 0;
  #runningSweeps = 0;
  #cancelTimer: (() => void) | undefined;
  #closed = false;

  constructor(parts: LeasesParts) {
    this.#parts = parts;
  }

  /**
   * Holds an amount for a request that lasts at most `forMs`, until its entry is written.
   * @throws {GatewayError} `overloaded` if the store cannot be reached
   */
  async hold(hold: Omit<Hold, "leaseUntil">, forMs: number): Promise<HoldAnswer> {
    const at = this.#clock();
    const lease = {
      until: at + this.#parts.leaseMs,
      latestEnd: at + Math.ceil(forMs) + this.#parts.leaseMs,
      isRenewed: true,
    };
    this.#leases.set(hold.id, lease);
    this.#schedule();
    try {
      // Larger amounts cannot be stored. Budgets are smaller, so they refuse this amount as well.
      const amount = hold.amount < MAX_AMOUNT ? hold.amount : MAX_AMOUNT;
      const answer = await this.#parts.store.hold({ ...hold, amount, leaseUntil: lease.until });
      if (!answer.held) {
        this.#leases.delete(hold.id);
        this.#logExhausted(answer.claim);
      }
      return answer;
    } catch (cause) {
      // The store may have made the hold although its answer was lost.
      lease.isRenewed = false;
      throw notEntered(cause);
    }
  }

  /** Logs the first refusal of a budget in its period. */
  #logExhausted({ scope, id, budget, since }: BudgetClaim): void {
    // The log names no end users: clients may invent any number of them.
    if (scope === "user") return;
    const name = `${scope} ${id} ${budget} ${since}`;
    if (this.#exhausted.has(name)) return;
    if (this.#exhausted.size === MAX_EXHAUSTED) this.#exhausted.clear();
    this.#exhausted.add(name);
    this.#parts.log({ level: "warn", event: "budget_exhausted", scope, id, budget_usd: formatUsd(budget) });
  }

  /**
   * Stops renewing a hold.
   * @param isEntered false: the entry of the request will never be written, so the hold ends with its lease
   */
  end(id: string, isEntered: boolean): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) return;
    if (isEntered) this.#leases.delete(id);
    else lease.isRenewed = false;
  }

  /** Voids expired holds. Never rejects. */
  async sweep(): Promise<void> {
    const at = this.#clock();
    this.#runningSweeps++;
    try {
      let ids: string[];
      do {
        ids = await this.#parts.store.expire(at);
        for (const id of ids) {
          this.#leases.delete(id);
          this.#parts.log({ level: "warn", event: "hold_expired", request_id: id });
        }
      } while (ids.length > 0);
    } catch (cause) {
      this.#parts.log({ level: "error", event: "holds_not_swept", ...describeFailure(cause) });
      return;
    } finally {
      this.#runningSweeps--;
    }
    // It is deleted only now, because a renewal that seemed to fail may have reached the store.
    for (const [id, { latestEnd }] of this.#leases) {
      if (latestEnd + this.#parts.leaseMs <= at) this.#leases.delete(id);
    }
  }

  /** Stops all renewals. */
  close(): void {
    this.#closed = true;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  /** Returns the Unix time. While holds are open it ignores changes of the wall clock, which must not end a lease. */
  #clock(): number {
    if (this.#parts.store.clock !== undefined) return this.#parts.store.clock();
    // The offset stays during a sweep, too: otherwise the store would void holds that were made with the former one.
    if (this.#leases.size === 0 && this.#runningSweeps === 0) {
      this.#clockOffset = this.#parts.now() - this.#parts.monotonic();
    }
    return Math.floor(this.#clockOffset + this.#parts.monotonic());
  }

  /** Starts the one timer for all holds, if there are any. */
  #schedule(): void {
    if (this.#cancelTimer !== undefined || this.#closed) return;
    this.#cancelTimer = this.#parts.later(() => {
      this.#cancelTimer = undefined;
      void this.#tick();
    }, this.#parts.leaseMs / RENEWALS_PER_LEASE);
  }

  async #tick(): Promise<void> {
    try {
      await this.#renew();
    } catch (cause) {
      this.#parts.log({ level: "error", event: "holds_not_renewed", ...describeFailure(cause) });
    }
    await this.sweep();
    if (this.#leases.size > 0) this.#schedule();
  }

  async #renew(): Promise<void> {
    const until = this.#clock() + this.#parts.leaseMs;
    const due = [...this.#leases].filter(([, lease]) => lease.isRenewed && lease.until < lease.latestEnd);
    for (let start = 0; start < due.length; start += RENEWED_PER_CALL) {
      const some = due.slice(start, start + RENEWED_PER_CALL);
      await this.#parts.store.renew(some.map(([id]) => id), until);
      for (const [, lease] of some) lease.until = until;
    }
  }
}
