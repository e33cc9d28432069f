/** One worker, as its owner has it, and what the owner offers it. */
import type { Gateway, Whole } from "../gateway.ts";
import { type Isolate, OWNER, WORKER } from "./contract.ts";
import type { OwnerDoors } from "./doors.ts";
import { createDues, type Dues } from "./dues.ts";
import { openDesk } from "./repeats.ts";
import { openWire, type Told } from "./wire.ts";

/** A worker. */
export interface Member {
  /** From 1 on. One that takes the place of another has its number. */
  readonly number: number;
  readonly isolate: Isolate;
  readonly told: Told<Isolate>;
  /** What its requests have taken. */
  readonly dues: Dues;
  /** When it was hired, in milliseconds that only grow. */
  readonly since: number;
  /** Whether it has begun to serve. */
  serves: boolean;
  /** What it was last told of the configuration in force, as JSON. */
  status?: string;
  /** Times it was looked at since it last said something. */
  silent: number;
  /** Its metrics when they were last asked for. */
  lastMetrics: string;
  /** Ends it at once. Its clients at the doors are gone; whoever waits for it gets the reason. */
  leave(reason: Error): void;
}

/** What a worker is hired with. */
export interface Hiring {
  /** The owner's gateway of the moment. */
  gateway: () => Gateway;
  doors: OwnerDoors;
  whole: Whole;
  write: (line: string) => void;
  /** Told where it ends by itself. */
  lost: (member: Member, cause: unknown) => void;
  /** Absent: the module of the workers. */
  module?: URL;
}

/** Starts an isolate, and offers it what is the owner's. */
export function hire(number: number, { gateway, doors, whole, write, lost, module }: Hiring): Member {
  const worker = new Worker(module ?? new URL("./worker.ts", import.meta.url), {
    type: "module",
    name: `worker ${number}`,
  });
  const wire = openWire(worker);
  const { store, limiter, idempotency, now } = gateway();
  const dues = createDues({ ledger: store.ledger, limiter, now });
  const door = doors.open(wire.told(WORKER.door));
  const desk = openDesk(idempotency, { work: wire.remote(WORKER.repeats), told: wire.told(WORKER.repeats) });
  wire.offer(OWNER.keys, store.keys);
  wire.offer(OWNER.ledger, store.ledger, dues.ledger);
  wire.offer(OWNER.answers, store.answers);
  if (store.shared !== undefined) wire.offer(OWNER.configs, store.shared.configs);
  wire.offer(OWNER.limiter, limiter, dues.limiter);
  wire.offer(OWNER.door, door);
  wire.offer(OWNER.repeats, desk);
  wire.offer(OWNER.office, {
    metrics: () => whole.metrics(),
    health: () => whole.health(),
    reload: (trigger) => gateway().reloader.reload(trigger),
    log: (lines) => lines.forEach(write),
  });
  const member: Member = {
    number,
    isolate: wire.remote(WORKER.isolate),
    told: wire.told(WORKER.isolate),
    dues,
    since: performance.now(),
    serves: false,
    silent: 0,
    lastMetrics: "",
    leave(reason) {
      wire.close(reason);
      worker.terminate();
      door.close();
      desk.close();
    },
  };
  worker.onerror = (event) => {
    // What ends a worker is no reason to end the process.
    event.preventDefault();
    lost(member, event.error ?? new Error(event.message));
  };
  return member;
}
