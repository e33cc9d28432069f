/** Holds of requests that run: kept alive as long as their requests may last, and swept when they are over. */
import { nameOf } from "../errors.ts";
import type { Hold, HoldAnswer, LedgerStore } from "../store/ledger.ts";
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
export function createLeases({ store, now, monotonic, leaseMs, later, log }: LeasesParts): Leases {
  const open = new Map<string, Lease>();
  let offset = 0;
  let sweeps = 0;
  let cancel: (() => void) | undefined;
  let closed = false;

  /** Unix time, untouched by jumps of the wall clock while something is held: they must not end a lease. */
  function clock(): number {
    if (store.clock !== undefined) return store.clock();
    // Nor while the store is asked what is over by this clock: it would void what is held by another one meanwhile.
    if (open.size === 0 && sweeps === 0) offset = now() - monotonic();
    return Math.floor(offset + monotonic());
  }

  /** One timer for all holds; none while there are none. */
  function schedule(): void {
    if (cancel !== undefined || closed) return;
    cancel = later(() => {
      cancel = undefined;
      void tick();
    }, leaseMs / RENEWALS);
  }

  async function tick(): Promise<void> {
    try {
      await renew();
    } catch (cause) {
      log({ level: "error", event: "holds_not_renewed", cause: nameOf(cause) });
    }
    await sweep();
    if (open.size > 0) schedule();
  }

  async function renew(): Promise<void> {
    const until = clock() + leaseMs;
    const usual: string[] = [];
    const last: [string, Lease][] = [];
    for (const [id, lease] of open) {
      if (!lease.lives) continue;
      if (lease.last >= until) usual.push(id);
      else if (lease.last > lease.until) last.push([id, lease]);
    }
    if (usual.length > 0) await store.renew(usual, until);
    for (const id of usual) {
      const lease = open.get(id);
      if (lease !== undefined) lease.until = until;
    }
    for (const [id, lease] of last) {
      await store.renew([id], lease.last);
      lease.until = lease.last;
    }
  }

  async function sweep(): Promise<void> {
    const at = clock();
    sweeps++;
    try {
      for (const id of await store.expire(at)) {
        open.delete(id);
        log({ level: "warn", event: "hold_expired", request_id: id });
      }
    } catch (cause) {
      log({ level: "error", event: "holds_not_swept", cause: nameOf(cause) });
      return;
    } finally {
      sweeps--;
    }
    // Not before: a renewal may have worked although it failed.
    for (const [id, { last }] of open) {
      if (last <= at) open.delete(id);
    }
  }

  return {
    async hold(hold, forMs) {
      const at = clock();
      const lease = { until: at + leaseMs, last: at + Math.ceil(forMs) + leaseMs, lives: true };
      open.set(hold.id, lease);
      schedule();
      try {
        const answer = await store.hold({ ...hold, leaseUntil: lease.until });
        if (!answer.held) open.delete(hold.id);
        return answer;
      } catch (cause) {
        // It may be held all the same.
        lease.lives = false;
        throw notEntered(cause);
      }
    },
    end(id, kept) {
      const lease = open.get(id);
      if (lease === undefined) return;
      if (kept) open.delete(id);
      else lease.lives = false;
    },
    sweep,
    close() {
      closed = true;
      cancel?.();
      cancel = undefined;
    },
  };
}
