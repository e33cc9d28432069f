/**
 * Queues the calls that a simulated process makes to the outside. The simulation decides when each takes effect,
 * whether it fails, and whether the process dies.
 */
import type { Limiter } from "../../../lib/limits/limiter.ts";
import type { LedgerStore } from "../../../lib/store/ledger.ts";
import type { Checker } from "./checker.ts";

/** A call that failed. */
export class Away extends Error {
  override readonly name = "Away";
}

/** A call in progress. */
export interface Call {
  name: string;
  /** True if it may have taken effect although it fails. */
  isVague: boolean;
  /** Makes it take effect. */
  run: () => Promise<unknown>;
  answer: (value: unknown) => void;
  refuse: (cause: Error) => void;
}

/** Queues a call. */
export type Border = <Value>(name: string, run: () => Promise<Value>) => Promise<Value>;

/** Wraps functions so that their calls are queued. */
export function borderOf(calls: Call[]): Border {
  return (name, run) =>
    new Promise((resolve, reject) => {
      calls.push({
        name,
        isVague: name !== "append",
        run,
        answer: (value) => resolve(value as Awaited<ReturnType<typeof run>>),
        refuse: reject,
      });
    });
}

/** A store beyond the border. */
export function storeBeyond(store: LedgerStore, cross: Border): LedgerStore {
  return {
    ...store,
    hold: (hold) => cross("hold", () => store.hold(hold)),
    spending: (spenders) => cross("spending", () => store.spending(spenders)),
    renew: (ids, leaseUntil) => cross("renew", () => store.renew(ids, leaseUntil)),
    release: (ids) => cross("release", () => store.release(ids)),
    append: (entries) => cross("append", () => store.append(entries)),
    expire: (now) => cross("expire", () => store.expire(now)),
    find: (id) => cross("find", () => store.find(id)),
  };
}

/** A store whose answers to holds are checked when they are returned. */
export function watchHolds(store: LedgerStore, checker: Checker): LedgerStore {
  return {
    ...store,
    async hold(hold) {
      await checker.readStore();
      const isOpen = checker.isHeld(hold.id);
      const answer = await store.hold(hold);
      if (!isOpen) checker.answered(hold, answer);
      return answer;
    },
  };
}

/** A limiter beyond the border, as one over the network is. */
export function limiterBeyond(limiter: Limiter, cross: Border): Limiter {
  return {
    take: (request) => cross("take", async () => await limiter.take(request)),
    end: (id, tokens) => cross("end", async () => await limiter.end(id, tokens)),
    undo: (id) => cross("undo", () => limiter.undo(id)),
    statuses: (limitRequests) => cross("statuses", () => limiter.statuses(limitRequests)),
    healthy: true,
    close: () => limiter.close(),
  };
}
