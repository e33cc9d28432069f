/** What the isolates of one process offer each other. One of them is the owner: it keeps what all of them count. */
import type { ConfigStatus, Reloaded, ReloadTrigger } from "../config/reloader.ts";
import type { EndTimes, Outcome } from "../cli/shutdown.ts";
import type { IsolateHealth } from "../gateway.ts";
import type { StoredAnswer } from "../images/answer_shelf.ts";
import type { RepeatableRequest } from "../images/idempotency.ts";
import type { Limiter } from "../limits/limiter.ts";
import type { RunningKind } from "../metering/running.ts";
import type { StoreReach } from "../store/store.ts";
import type { PackedConfig } from "./packed.ts";

/** Names of what the owner offers, beside the store's parts. */
export const OWNER = { limiter: "limiter", office: "office", door: "door", repeats: "repeats" } as const;

/** Names of the store's parts, which the owner offers. */
export const STORE = { keys: "keys", ledger: "ledger", answers: "answers", configs: "configs" } as const;

/** Names of what a worker offers. */
export const WORKER = { isolate: "isolate", door: "door", repeats: "repeats" } as const;

/** The limiter's methods. */
export type Limits = Omit<Limiter, "healthy" | "close">;

/** What is asked of the owner for the whole process. */
export interface Office {
  metrics(): Promise<string>;
  health(): Promise<IsolateHealth[]>;
  reload(trigger: ReloadTrigger): Promise<Reloaded>;
  /** Lines of the log, whole and in their order. */
  log(lines: string[]): void;
}

/** Who sends requests, for all isolates: the owner counts. An offer to the owner. */
export interface Doorkeeper {
  /** A wrong credential came from there. True where it was one too many. */
  failed(address: string | undefined): boolean | Promise<boolean>;
  /** A right one came from an address that is watched. */
  worked(address: string | undefined, credential: string): void;
  /** Counts one request more of an address. Returns the ticket to leave with. @throws {GatewayError} `limited` */
  enter(address: string, most: number): number | Promise<number>;
  leave(ticket: number): void;
}

/** What a worker is told of what came to the others' doors. */
export interface DoorNews {
  failed(address: string | undefined): void;
  worked(address: string | undefined, credential: string): void;
}

/** A request that may come again, without what only its worker can do; known by a number of the worker's. */
export type Repeat = Omit<RepeatableRequest, "signal" | "work"> & { id: number };

/** Where requests that may come again are brought together. */
export interface RepeatDesk {
  /** As `Idempotency.run`. */
  run(request: Repeat): Promise<StoredAnswer>;
  /** Its client has gone. */
  leave(id: number): void;
}

/** What only the worker of a request can do. */
export interface RepeatWork {
  work(id: number): Promise<StoredAnswer>;
  /** Nobody waits for it any more. */
  stop(id: number): void;
}

/** What a worker starts with. */
export interface WorkerStart {
  config: PackedConfig;
  status: ConfigStatus;
  isolates: number;
  /** 0: any that is free. */
  port: number;
  state: OwnerState;
}

/** What a worker must know of the owner at any time. */
export interface OwnerState {
  /** As `Limiter.healthy`. */
  limitsHealthy: boolean;
  /** As `SharedStore.reach`; absent where the store is one process's own. */
  reach?: StoreReach;
}

/** Where a worker listens. */
export interface Place {
  hostname: string;
  port: number;
}

/** A worker, as the owner has it. */
export interface Isolate {
  /** Begins to serve. Returns where. @throws {ListenError} */
  start(start: WorkerStart): Promise<Place>;
  /** Another configuration is in force, or another one was refused. Resolves when requests get it. */
  renew(config: PackedConfig, status: ConfigStatus): void | Promise<void>;
  learn(state: OwnerState): void;
  metrics(): string | Promise<string>;
  health(): Promise<IsolateHealth>;
  /** Requests under way. */
  running(): Record<RunningKind, number> | Promise<Record<RunningKind, number>>;
  /** Ends in good order: everything is in the store when it resolves. */
  end(times: EndTimes): Promise<Outcome>;
  /** Nobody wants to wait for the end any more. */
  cut(): void;
  /** Resolves as soon as its event loop gets to it. */
  ping(): void | Promise<void>;
}
