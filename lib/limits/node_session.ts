/** A node's session in Redis: its connection, its heartbeats, and the requests of crashed nodes. */
import { nameOf } from "../errors.ts";
import type { Secret } from "../secret.ts";
import type { AdmittedRequest } from "./limiter.ts";
import type { LimiterOptions } from "./open_limiter.ts";
import { createRedisCommands, type RedisCommands } from "./redis_commands.ts";
import { openRedisConnection, type RedisConnection, RedisUnreachable } from "./redis_connection.ts";

/** Parts of a session. */
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

/** Longest heartbeat interval, in milliseconds; shorter for short leases. */
const HEARTBEAT_MS = 5_000;
const HEARTBEATS_PER_LEASE = 3;

/** Heartbeat interval of nodes that report the reachability of a store, in milliseconds. */
const STORE_HEARTBEAT_MS = 2_000;

/** Interval of reconnects, in milliseconds, plus or minus a fifth. */
const RETRY_MS = 500;

/** Most tries of one call while Redis keeps ending the session. */
const TRIES = 3;

/** The session of one node. A node keeps its name across reconnects, so its reservations in Redis survive an outage. */
export class NodeSession {
  readonly #url: Secret;
  readonly #parts: NodeSessionOptions;
  readonly #running: () => Iterable<string>;
  #connection: RedisConnection | undefined;
  /** Scripts of the current session; absent while Redis is unreachable. Each session has its own object. */
  #commands: RedisCommands | undefined;
  /** Connections that open or close, and pending ledger entries. */
  readonly #pending = new Set<Promise<void>>();
  #rejoining: Promise<void> | undefined;
  #entering = false;
  #nodes = 1;
  /** Time by which all nodes that lost Redis together have had time to reconnect. */
  #settledAt = 0;
  /** When the store last answered another node, by this node's clock; absent if unknown. */
  #othersAnsweredAt: number | undefined;
  #downSince: number | undefined;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #heartbeatTimer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  /** @param running ids of the requests that Redis admitted and that have not ended */
  constructor(url: Secret, { parts, running }: { parts: NodeSessionOptions; running: () => Iterable<string> }) {
    this.#url = url;
    this.#parts = parts;
    this.#running = running;
  }

  /** True while Redis does the counting. */
  get healthy(): boolean {
    return this.#commands !== undefined;
  }

  /** Last known number of nodes, at least 1. */
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
   * @param question returns `undefined` if the session has ended: a new one begins, and it is called again
   * @returns `undefined` if Redis is unreachable
   */
  async ask<Result>(question: (commands: RedisCommands) => Promise<Result | undefined>): Promise<Result | undefined> {
    for (let tries = 0; tries < TRIES; tries++) {
      if (this.#rejoining !== undefined) await this.#rejoining;
      const commands = this.#commands;
      if (commands === undefined) return undefined;
      try {
        const answer = await question(commands);
        if (answer !== undefined) return answer;
      } catch (error) {
        if (error instanceof RedisUnreachable) return undefined;
        throw error;
      }
      await this.#rejoin(commands);
    }
    return undefined;
  }

  /** The node's clock in whole milliseconds. */
  now(): number {
    return Math.floor(this.#parts.monotonic());
  }

  async #connect(): Promise<void> {
    const { prefix, timeoutMs } = this.#parts;
    let connection: RedisConnection | undefined;
    try {
      connection = await openRedisConnection(this.#url, {
        prefix,
        timeoutMs,
        lost: (cause) => this.#lose(connection, cause),
      });
      if (this.#closed) return await connection.close();
      this.#connection = connection;
      await this.#join(connection);
      this.#logUp();
    } catch (error) {
      if (!(error instanceof RedisUnreachable)) throw error;
      this.#lose(connection, error.message);
    }
  }

  /** Handles the loss of Redis. */
  #lose(connection: RedisConnection | undefined, cause: string): void {
    if (this.#closed || connection !== this.#connection) return;
    this.#commands = undefined;
    this.#othersAnsweredAt = undefined;
    this.#disconnect();
    this.#logDown(cause);
    clearTimeout(this.#retryTimer);
    this.#retryTimer = setTimeout(
      () => this.#waitAtClose(this.#connect()),
      RETRY_MS * (0.8 + 0.4 * this.#parts.random()),
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
    this.#settledAt = this.now() + leaseMs + HEARTBEAT_MS;
    const commands = createRedisCommands({ connection, node, ...(clock !== undefined && { clock }) });
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
      msSinceStoreAnswered === undefined ? HEARTBEAT_MS : STORE_HEARTBEAT_MS,
      leaseMs / HEARTBEATS_PER_LEASE,
    );
  }

  /** Renews the session. @returns whether the next heartbeat follows at once */
  async #renew(): Promise<boolean> {
    const { leaseMs, msSinceStoreAnswered } = this.#parts;
    const answer = await this.ask((commands) => commands.renew(leaseMs, msSinceStoreAnswered?.()));
    if (answer === undefined || !this.healthy) return false;
    this.#othersAnsweredAt = answer.msSinceOthersAnswered === undefined
      ? undefined
      : this.now() - answer.msSinceOthersAnswered;
    const isSettled = this.now() >= this.#settledAt;
    this.#nodes = isSettled ? answer.nodes : Math.max(this.#nodes, answer.nodes);
    // Until then, requests of live nodes that are still reconnecting may count as lost.
    if (isSettled && answer.lost > 0) this.#waitAtClose(this.#enterLost());
    return answer.more;
  }

  /**
   * Enters the requests of crashed nodes. Redis forgets them only afterwards: if this node crashes meanwhile, another
   * one enters them.
   */
  async #enterLost(): Promise<void> {
    const { enterLost, log } = this.#parts;
    if (enterLost === undefined || this.#entering) return;
    this.#entering = true;
    try {
      let found = await this.ask((commands) => commands.lost([]));
      while (found !== undefined && found.length > 0) {
        const requests = new Map<string, AdmittedRequest>(found.map(([, request]) => [request.id, request]));
        const isNew = await enterLost([...requests.values()]);
        const entered = isNew.filter(Boolean).length;
        if (entered > 0) log({ level: "warn", event: "requests_lost", requests: entered });
        const ids = found.map(([id]) => id);
        found = await this.ask((commands) => commands.lost(ids));
      }
    } catch (cause) {
      log({ level: "error", event: "lost_requests_not_recorded", cause: nameOf(cause) });
    } finally {
      this.#entering = false;
    }
  }

  #logDown(cause: string): void {
    if (this.#downSince !== undefined) return;
    this.#downSince = this.now();
    const { outage: policy, log } = this.#parts;
    const share = policy === "local" ? { share: `1/${this.#nodes}` } : {};
    log({ level: "error", event: "limits_store_down", policy, ...share, cause });
  }

  #logUp(): void {
    if (this.#downSince === undefined) return;
    const outage_ms = this.now() - this.#downSince;
    this.#downSince = undefined;
    this.#parts.log({ level: "warn", event: "limits_store_up", outage_ms, nodes: this.#nodes });
  }
}
