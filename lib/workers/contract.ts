/** What the isolates of one process offer each other. One of them is the owner: it keeps what all of them count. */
import type { Failure } from "../access/failures.ts";
import type { ConfigStatus, Reloaded, ReloadTrigger } from "../config/reloader.ts";
import type { EndTimes, Outcome } from "../cli/shutdown.ts";
import type { IsolateHealth } from "../gateway.ts";
import type { StoredAnswer } from "../images/answer_shelf.ts";
import type { RepeatableRequest } from "../images/idempotency.ts";
import type { Limiter } from "../limits/limiter.ts";
import type { RunningKind } from "../billing/running.ts";
import type { AnswerStore } from "../store/answers.ts";
import type { KeyStore } from "../store/keys.ts";
import type { LedgerStore } from "../store/ledger.ts";
import type { SharedConfigs, StoreReach } from "../store/store.ts";
import type { PackedConfig } from "./packed.ts";
import { deskOf } from "./wire.ts";

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
  /** As `Failures.failed`. */
  failed(address: string | undefined): Failure | Promise<Failure>;
  /** Counts one request more of a client. Returns the ticket to leave with. @throws {GatewayError} `limited` */
  enter(client: string, most: number): number | Promise<number>;
  leave(ticket: number): void;
}

/** What a worker is told of what came to the others' doors. */
export interface DoorNews {
  failed(address: string | undefined): void;
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
  /** As `Limiter.othersHeardMs`. */
  othersHeardMs?: number;
  /** As `LedgerStore.takes`. */
  ledgerTakes?: boolean;
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

/** What the owner offers to each worker. */
export const OWNER = {
  keys: deskOf<Omit<KeyStore, "version">>("keys", {
    add: true,
    findByHash: true,
    list: true,
    summary: true,
    page: true,
    find: true,
    names: true,
    change: true,
    revoke: true,
    rotate: true,
    touch: true,
  }),
  ledger: deskOf<LedgerStore>("ledger", {
    hold: true,
    left: true,
    renew: true,
    append: true,
    expire: true,
    holds: true,
    find: true,
    entries: true,
    entriesWithin: true,
    usage: true,
    days: true,
    prune: true,
    start: true,
  }),
  answers: deskOf<AnswerStore>("answers", {
    find: true,
    begin: true,
    write: true,
    seal: true,
    read: true,
    claim: true,
    isClaimed: true,
    release: true,
    keptBytes: true,
    prune: true,
  }),
  configs: deskOf<Pick<SharedConfigs, "latest" | "put">>("configs", { latest: true, put: true }),
  limiter: deskOf<Limits>("limiter", { take: true, end: true, undo: true, standings: true }),
  office: deskOf<Office>("office", { metrics: true, health: true, reload: true, log: true }),
  door: deskOf<Doorkeeper>("door", { failed: true, enter: true, leave: true }),
  repeats: deskOf<RepeatDesk>("repeats", { run: true, leave: true }),
};

/** What a worker offers. */
export const WORKER = {
  isolate: deskOf<Isolate>("isolate", {
    start: true,
    renew: true,
    learn: true,
    metrics: true,
    health: true,
    running: true,
    end: true,
    cut: true,
    ping: true,
  }),
  door: deskOf<DoorNews>("door", { failed: true }),
  repeats: deskOf<RepeatWork>("repeats", { work: true, stop: true }),
};
