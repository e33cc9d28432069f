/** Holds of running requests: renewed while their requests may last, and voided after that. */
import type { Log } from "../log_events.ts";
import { nameOf } from "../errors.ts";
import type { BudgetClaim, Hold, HoldAnswer, LedgerStore } from "../store/ledger.ts";
import { formatUsd } from "./money.ts";
import { type Later, notEntered } from "./entry_queue.ts";

/** Dependencies. */
export interface LeasesParts {
  store: Pick<LedgerStore, "clock" | "hold" | "renew" | "expire">;
  /** Unix time in milliseconds. */
  now: () => number;
  /** Monotonic time in milliseconds. */
  monotonic: () => number;
  /** Lease of a hold, in milliseconds. */
  leaseMs: number;
  later: Later;
  log: Log;
}

/** Renewals per lease: two may fail in a row. */
const RENEWALS = 3;

/** Most exhausted budgets that are remembered, to log each once. */
const MAX_EXHAUSTED = 1_000;

/** The hold of a request; times are Unix milliseconds. */
interface Lease {
  /** End of the lease, as last renewed. */
  until: number;
  /** Latest time that the lease is renewed to. */
  last: number;
  isRenewed: boolean;
}

/** Holds of this process's running requests. */
export class Leases {
  readonly #parts: LeasesParts;
  readonly #open = new Map<string, Lease>();
  /** Budgets that refused a request in their current period. */
  readonly #exhausted = new Set<string>();
  #offset = 0;
  #sweeps = 0;
  #cancel: (() => void) | undefined;
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
      last: at + Math.ceil(forMs) + this.#parts.leaseMs,
      isRenewed: true,
    };
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
      // The store may hold the amount although its answer was lost.
      lease.isRenewed = false;
      throw notEntered(cause);
    }
  }

  /** Logs the first refusal of a budget in its period. */
  #report({ scope, id, budget, since }: BudgetClaim): void {
    // The log names no end users, and anyone may invent some.
    if (scope === "user") return;
    const name = `${scope} ${id} ${budget} ${since}`;
    if (this.#exhausted.has(name)) return;
    if (this.#exhausted.size === MAX_EXHAUSTED) this.#exhausted.clear();
    this.#exhausted.add(name);
    this.#parts.log({ level: "warn", event: "budget_exhausted", scope, id, budget_usd: formatUsd(budget) });
  }

  /** Stops renewing a hold. `isEntered` false: its entry will never be written, so the hold ends with its lease. */
  end(id: string, isEntered: boolean): void {
    const lease = this.#open.get(id);
    if (lease === undefined) return;
    if (isEntered) this.#open.delete(id);
    else lease.isRenewed = false;
  }

  /** Voids expired holds. Never rejects. */
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
    // Kept until then, because a failed renewal may have reached the store.
    for (const [id, { last }] of this.#open) {
      if (last <= at) this.#open.delete(id);
    }
  }

  /** Stops all renewals. */
  close(): void {
    this.#closed = true;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  /** Unix time that ignores changes of the wall clock while holds are open, since those must not end a lease. */
  #clock(): number {
    if (this.#parts.store.clock !== undefined) return this.#parts.store.clock();
    // Nor during a sweep: the store would void holds that were made under the other offset.
    if (this.#open.size === 0 && this.#sweeps === 0) this.#offset = this.#parts.now() - this.#parts.monotonic();
    return Math.floor(this.#offset + this.#parts.monotonic());
  }

  /** Starts the one timer for all holds, if there are any. */
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
      if (!lease.isRenewed) continue;
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
