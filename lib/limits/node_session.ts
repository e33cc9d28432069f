/** A node's session in Redis: keeps it connected and renewed, and enters the requests of crashed nodes. */
import { describeFailure } from "../causes.ts";
import { createOutages, type Outages } from "../outages.ts";
import type { Secret } from "../secret.ts";
import { startTimer } from "../start_timer.ts";
import type { AdmittedRequest } from "./limiter.ts";
import type { LimiterOptions } from "./open_limiter.ts";
import { RedisCommands } from "./redis_commands.ts";
import { RedisConnection, RedisUnreachable } from "./redis_connection.ts";

/** Dependencies of a session. */
export interface NodeSessionOptions extends LimiterOptions {
  /** Random numbers from 0 to 1, exclusive. */
  random: () => number;
  /** Name of the node, never reused. */
  node: string;
  /** Prefix of all keys, with a hash tag. */
  prefix: string;
  /** Replaces the server's clock in tests. */
  clock?: () => number;
}

/** Longest interval of heartbeats, in milliseconds, and the number of heartbeats per lease. */
const MAX_HEARTBEAT_MS = 5_000;
const HEARTBEATS_PER_LEASE = 3;

/** Longest interval of heartbeats of nodes that also report when their store last answered, in milliseconds. */
const STORE_HEARTBEAT_MS = 2_000;

/** Interval of attempts to reconnect, in milliseconds, plus or minus a fifth. */
const RECONNECT_MS = 500;

/** Maximum number of tries of one call, if Redis ends the session each time. */
const MAX_TRIES = 3;

/** The session of one node. The node keeps its name when it reconnects, so that its reservations survive an outage. */
export class NodeSession {
  readonly #url: Secret;
  readonly #parts: NodeSessionOptions;
  readonly #running: () => Iterable<string>;
  #connection: RedisConnection | undefined;
  /** Scripts of the current session; absent while Redis is unreachable. Each session has its own object. */
  #commands: RedisCommands | undefined;
  /** Work that `close` waits for: connections that open or close, and ledger entries being written. */
  readonly #pending = new Set<Promise<void>>();
  #rejoining: Promise<void> | undefined;
  #entering = false;
  #nodes = 1;
  /** Time by which all other nodes that lost Redis at the same moment should have reconnected. */
  #settledAt = 0;
  /** When the store last answered another node, by this node's clock; undefined if unknown. */
  #othersAnsweredAt: number | undefined;
  readonly #outages: Outages<string>;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #heartbeatTimer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  /** @param running ids of the requests that Redis admitted and that have not ended */
  constructor(url: Secret, { parts, running }: { parts: NodeSessionOptions; running: () => Iterable<string> }) {
    this.#url = url;
    this.#parts = parts;
    this.#running = running;
    const { outage: policy, log, monotonic } = parts;
    this.#outages = createOutages({
      isUp: () => this.healthy,
      logDown: (cause) => {
        const share = policy === "local" ? { share: `1/${this.#nodes}` } : {};
        log({ level: "error", event: "limits_store_down", policy, ...share, cause });
      },
      logUp: (outage_ms) => log({ level: "warn", event: "limits_store_up", outage_ms, nodes: this.#nodes }),
      monotonic,
      later: startTimer,
    });
  }

  /** True if the node has a session, so Redis does the counting. */
  get healthy(): boolean {
    return this.#commands !== undefined;
  }

  /** Last known number of nodes, this one included. */
  get nodes(): number {
    return this.#nodes;
  }

  /** Milliseconds since the shared store last answered another node, as far as is known. */
  get msSinceOthersAnswered(): number | undefined {
    return this.#othersAnsweredAt === undefined ? undefined : this.now() - this.#othersAnsweredAt;
  }

  /** Tries to connect once, and keeps trying in the background. */
  async open(): Promise<void> {
    await this.#connect();
    this.#scheduleHeartbeat();
  }

  /** Frees what the node holds in Redis, and disconnects. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#retryTimer);
    clearTimeout(this.#heartbeatTimer);
    this.#outages.close();
    await this.ask(async (commands) => {
      await commands.retire();
      return true;
    });
    this.#commands = undefined;
    this.#disconnect();
    await Promise.all(this.#pending);
  }

  /**
   * Calls Redis in the current session.
   * @param call its result is `undefined` if the session has ended: a new session begins, and `call` is called again
   * @returns `undefined` if Redis is unreachable
   */
  async ask<Result>(call: (commands: RedisCommands) => Promise<Result | undefined>): Promise<Result | undefined> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      if (this.#rejoining !== undefined) await this.#rejoining;
      const commands = this.#commands;
      if (commands === undefined) return undefined;
      try {
        const answer = await call(commands);
        if (answer !== undefined) return answer;
      } catch (error) {
        if (error instanceof RedisUnreachable) return undefined;
        throw error;
      }
      await this.#rejoin(commands);
    }
    return undefined;
  }

  /** Returns the time of the node's monotonic clock, in whole milliseconds. */
  now(): number {
    return Math.floor(this.#parts.monotonic());
  }

  async #connect(): Promise<void> {
    const { prefix, timeoutMs } = this.#parts;
    let connection: RedisConnection | undefined;
    try {
      connection = await RedisConnection.open(this.#url, {
        prefix,
        timeoutMs,
        lost: (cause) => this.#lose(connection, cause),
      });
      if (this.#closed) return await connection.close();
      this.#connection = connection;
      await this.#join(connection);
      this.#outages.rose();
    } catch (error) {
      if (!(error instanceof RedisUnreachable)) throw error;
      this.#lose(connection, error.message);
    }
  }

  /** Ends the session after the loss of Redis, and tries to reconnect after a pause. */
  #lose(connection: RedisConnection | undefined, cause: string): void {
    if (this.#closed || connection !== this.#connection) return;
    this.#commands = undefined;
    this.#othersAnsweredAt = undefined;
    this.#disconnect();
    this.#outages.fell(cause);
    clearTimeout(this.#retryTimer);
    this.#retryTimer = setTimeout(
      () => this.#waitAtClose(this.#connect()),
      RECONNECT_MS * (0.8 + 0.4 * this.#parts.random()),
    );
  }

  #disconnect(): void {
    if (this.#connection !== undefined) this.#waitAtClose(this.#connection.close());
    this.#connection = undefined;
  }

  #waitAtClose(work: Promise<void>): void {
    this.#pending.add(work);
    void work.finally(() => this.#pending.delete(work));
  }

  /** Begins a new session after Redis ended or lost the previous one. */
  async #rejoin(ended: RedisCommands): Promise<void> {
    const connection = this.#connection;
    if (this.#commands === ended && this.#rejoining === undefined && connection !== undefined) {
      this.#rejoining = this.#joinAgain(connection).finally(() => this.#rejoining = undefined);
    }
    await this.#rejoining;
  }

  async #joinAgain(connection: RedisConnection): Promise<void> {
    try {
      await this.#join(connection);
      this.#parts.log({ level: "warn", event: "limits_session_ended", nodes: this.#nodes });
    } catch (error) {
      if (!(error instanceof RedisUnreachable)) throw error;
      this.#lose(connection, error.message);
    }
  }

  async #join(connection: RedisConnection): Promise<void> {
    const { leaseMs, node, clock } = this.#parts;
    this.#settledAt = this.now() + leaseMs + MAX_HEARTBEAT_MS;
    const commands = new RedisCommands({ connection, node, ...(clock !== undefined && { clock }) });
    this.#nodes = Math.max(this.#nodes, await commands.join(leaseMs, this.#running()));
    this.#commands = commands;
  }

  #scheduleHeartbeat(ms = this.#heartbeatMs()): void {
    if (this.#closed) return;
    this.#heartbeatTimer = setTimeout(async () => {
      let isMore = false;
      try {
        isMore = await this.#renew();
      } finally {
        this.#scheduleHeartbeat(isMore ? 0 : undefined);
      }
    }, ms);
  }

  #heartbeatMs(): number {
    const { leaseMs, msSinceStoreAnswered } = this.#parts;
    return Math.min(
      msSinceStoreAnswered === undefined ? MAX_HEARTBEAT_MS : STORE_HEARTBEAT_MS,
      leaseMs / HEARTBEATS_PER_LEASE,
    );
  }

  /** Renews the session. Returns whether the next heartbeat should follow at once. */
  async #renew(): Promise<boolean> {
    const { leaseMs, msSinceStoreAnswered } = this.#parts;
    const answer = await this.ask((commands) => commands.renew(leaseMs, msSinceStoreAnswered?.()));
    if (answer === undefined || !this.healthy) return false;
    this.#othersAnsweredAt = answer.msSinceOthersAnswered === undefined
      ? undefined
      : this.now() - answer.msSinceOthersAnswered;
    const isSettled = this.now() >= this.#settledAt;
    this.#nodes = isSettled ? answer.nodes : Math.max(this.#nodes, answer.nodes);
    // Before that, requests of live nodes that have not reconnected yet may count as lost.
    if (isSettled && answer.lost > 0) this.#waitAtClose(this.#enterLost());
    return answer.more;
  }

  /**
   * Enters the requests of crashed nodes into the ledger. Redis keeps the requests until then: if this node crashes
   * too, another node enters them.
   */
  async #enterLost(): Promise<void> {
    const { enterLost, log } = this.#parts;
    if (enterLost === undefined || this.#entering) return;
    this.#entering = true;
    try {
      let lost = await this.ask((commands) => commands.lost([]));
      while (lost !== undefined && lost.length > 0) {
        const requests = new Map<string, AdmittedRequest>(lost.map(([, request]) => [request.id, request]));
        const isNew = await enterLost([...requests.values()]);
        const entered = isNew.filter(Boolean).length;
        if (entered > 0) log({ level: "warn", event: "requests_lost", requests: entered });
        const ids = lost.map(([id]) => id);
        lost = await this.ask((commands) => commands.lost(ids));
      }
    } catch (cause) {
      log({ level: "error", event: "lost_requests_not_recorded", ...describeFailure(cause) });
    } finally {
      this.#entering = false;
    }
  }
}
