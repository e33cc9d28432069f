/**
 * Who sends requests, known to all isolates: an address has as many tries of wrong keys at all of them together as at one,
 * and a client takes no more places. The owner counts, and reports wrong keys to the workers: a request with a good key
 * costs no message, and one with a wrong key none once its address has sent too many.
 */
import { createFailures, type Failure, type Failures } from "../access/failures.ts";
import { createCrowd, type Crowd } from "../server/crowd.ts";
import type { Doorkeeper, DoorNews } from "./contract.ts";
import type { Told } from "./wire.ts";

/** The doors of one worker. */
export interface WorkerDoors {
  /** For its app. */
  senders: { failures: Failures; crowd: Crowd };
  /** For the owner. */
  news: DoorNews;
}

/** A worker's doors. `monotonic`: milliseconds that only grow. */
export function createWorkerDoors(
  { keeper, told, monotonic }: { keeper: Doorkeeper; told: Told<Doorkeeper>; monotonic: () => number },
): WorkerDoors {
  const known = createFailures({ monotonic });
  return {
    senders: {
      failures: {
        // The owner reports the count to all, this isolate included, before it answers.
        failed(address) {
          const retryAfterMs = known.retryAfterMs(address);
          return retryAfterMs === undefined ? keeper.failed(address) : { retryAfterMs };
        },
      },
      crowd: {
        async enter(client, most) {
          const ticket = await keeper.enter(client, most);
          return () => told.leave(ticket);
        },
      },
    },
    news: {
      failed: (address) => void known.failed(address),
    },
  };
}

/** The doors of all isolates, at the owner. */
export interface OwnerDoors {
  /** For an app of the owner's own. */
  senders: { failures: Failures; crowd: Crowd };
  /** Opens the door of a worker. `close` when it has gone: so have those whom it let in. */
  open(worker: Told<DoorNews>): Doorkeeper & { close(): void };
}

/** Begins with nobody known. `monotonic`: milliseconds that only grow. */
export function createOwnerDoors({ monotonic }: { monotonic: () => number }): OwnerDoors {
  const failures = createFailures({ monotonic });
  const crowd = createCrowd();
  const workers = new Set<Told<DoorNews>>();
  let count = 0;

  function failed(address: string | undefined): Failure {
    const failure = failures.failed(address);
    // One that is throttled changes no count.
    if (failure.retryAfterMs === undefined) { for (const worker of workers) worker.failed(address); }
    return failure;
  }

  return {
    senders: { failures: { failed }, crowd },
    open(worker) {
      workers.add(worker);
      const inside = new Map<number, () => void>();
      return {
        failed,
        enter(client, most) {
          const leave = crowd.enter(client, most);
          inside.set(count, leave);
          return count++;
        },
        leave(ticket) {
          inside.get(ticket)?.();
          inside.delete(ticket);
        },
        close() {
          workers.delete(worker);
          for (const leave of inside.values()) leave();
          inside.clear();
        },
      };
    },
  };
}
