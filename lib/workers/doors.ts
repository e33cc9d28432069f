/**
 * Who sends requests, known to all isolates: whoever tries wrong keys has as many tries at all of them together as at one,
 * and takes no more places. The owner counts; what it learns of wrong keys it tells the workers, so that a request that
 * sends a good one costs no message.
 */
import { createFailures, type Failures } from "../access/failures.ts";
import { createCrowd, type Crowd } from "../http/crowd.ts";
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
        get watching() {
          return known.watching;
        },
        admit: known.admit,
        // What comes of it is told to all, this isolate included, before the answer.
        failed: (address) => keeper.failed(address),
        worked(address, credential) {
          const isNew = known.worked(address, credential);
          if (isNew) told.worked(address, credential);
          return isNew;
        },
      },
      crowd: {
        async enter(address, most) {
          const ticket = await keeper.enter(address, most);
          return () => told.leave(ticket);
        },
      },
    },
    news: {
      failed: (address) => void known.failed(address),
      worked: (address, key) => void known.worked(address, key),
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

  function failed(address: string | undefined): boolean {
    const isOneTooMany = failures.failed(address);
    for (const worker of workers) worker.failed(address);
    return isOneTooMany;
  }

  function worked(address: string | undefined, credential: string, from?: Told<DoorNews>): boolean {
    const isNew = failures.worked(address, credential);
    for (const worker of workers) if (worker !== from) worker.worked(address, credential);
    return isNew;
  }

  return {
    senders: {
      failures: {
        get watching() {
          return failures.watching;
        },
        admit: failures.admit,
        failed,
        worked,
      },
      crowd,
    },
    open(worker) {
      workers.add(worker);
      const inside = new Map<number, () => void>();
      return {
        failed,
        worked: (address, credential) => void worked(address, credential, worker),
        enter(address, most) {
          const leave = crowd.enter(address, most);
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
