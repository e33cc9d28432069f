/** A connection to Redis that runs scripts and closes at the first failure. */
import { createHash } from "node:crypto";
import { Redis } from "ioredis";
import { redisWordOf } from "../causes.ts";
import type { Secret } from "../secret.ts";
import { startCallTimeout } from "../start_timer.ts";
import { type ScriptName, SCRIPTS } from "./redis_scripts.ts";

/** Thrown if Redis did not answer. It may have run the script nevertheless. */
export class RedisUnreachable extends Error {
  override readonly name = "RedisUnreachable";
}

/** Reply of a script. */
export type ScriptReply = readonly (number | string)[];

/** Options of a connection. */
export interface RedisConnectionOptions {
  /** The one key that is passed to every script: the prefix of all its keys. */
  prefix: string;
  /** Longest wait for a reply, in milliseconds. */
  timeoutMs: number;
  /** Called once when the connection is lost, with the cause in one word; not called by `close`. */
  lost: (cause: string) => void;
}

const CONNECT_TIMEOUT_MS = 2_000;

/** Time for the server to close the socket before it is destroyed, in milliseconds. */
const HANG_UP_MS = 100;

/** A connection. It never reconnects: after its loss, every call fails at once. */
export class RedisConnection {
  readonly #redis: Redis;
  readonly #options: RedisConnectionOptions;
  readonly #ended: Promise<void>;
  /** Functions that reject the calls without a reply. */
  readonly #rejectPending = new Set<(error: RedisUnreachable) => void>();
  #state: "opening" | "open" | "lost" | "closed" = "opening";

  /** Opens a connection and loads all scripts. @throws {RedisUnreachable} whose message is the cause in one word */
  static async open(url: Secret, options: RedisConnectionOptions): Promise<RedisConnection> {
    const connection = new RedisConnection(url, options);
    await connection.#connect();
    return connection;
  }

  private constructor(url: Secret, options: RedisConnectionOptions) {
    this.#options = options;
    this.#redis = createClient(url);
    this.#ended = new Promise((resolve) => this.#redis.once("end", resolve));
    // Without a listener the client prints errors to the console.
    this.#redis.on("error", (error: unknown) => this.#lose(wordOf(error)));
    this.#redis.on("close", () => this.#lose("closed"));
  }

  async #connect(): Promise<void> {
    const redis = this.#redis;
    try {
      await this.#withTimeout(CONNECT_TIMEOUT_MS, redis.connect());
      await this.#withTimeout(
        CONNECT_TIMEOUT_MS,
        Promise.all(Object.values(SCRIPTS).map((text) => redis.script("LOAD", text))),
      );
      this.#state = "open";
    } catch (error) {
      this.#lose(wordOf(error));
      await this.#ended;
      throw error;
    }
  }

  /** Runs a script. Calls run in order. @throws {RedisUnreachable} if Redis does not answer in time */
  run(script: ScriptName, args: readonly (string | number)[]): Promise<ScriptReply> {
    if (this.#state !== "open") return Promise.reject(new RedisUnreachable("closed"));
    return this.#withTimeout(this.#options.timeoutMs, this.#evaluate(script, args));
  }

  /** Closes the connection. Resolves when the socket is closed. */
  async close(): Promise<void> {
    if (this.#state === "open") {
      this.#state = "closed";
      this.#redis.disconnect();
    }
    await this.#ended;
  }

  #lose(cause: string): void {
    if (this.#state === "lost" || this.#state === "closed") return;
    const wasOpen = this.#state === "open";
    this.#state = "lost";
    if (this.#redis.status !== "end") this.#redis.disconnect();
    for (const reject of this.#rejectPending) reject(new RedisUnreachable(cause));
    this.#rejectPending.clear();
    if (wasOpen) this.#options.lost(cause);
  }

  /** Waits for a reply. Loses the connection after a timeout. */
  #withTimeout<Value>(ms: number, reply: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      const cancelTimeout = startCallTimeout(() => this.#lose("timeout"), ms);
      const settle = (): void => {
        cancelTimeout();
        this.#rejectPending.delete(fail);
      };
      const fail = (error: RedisUnreachable): void => {
        settle();
        reject(error);
      };
      this.#rejectPending.add(fail);
      reply.then((value) => {
        settle();
        resolve(value);
      }, (error: unknown) => {
        this.#lose(wordOf(error));
        fail(new RedisUnreachable(wordOf(error)));
      });
    });
  }

  async #evaluate(script: ScriptName, args: readonly (string | number)[]): Promise<ScriptReply> {
    const { prefix } = this.#options;
    try {
      return await this.#redis.evalsha(SHAS[script], 1, prefix, ...args) as ScriptReply;
    } catch (error) {
      // The server has lost its script cache.
      if (wordOf(error) !== "NOSCRIPT") throw error;
      return await this.#redis.eval(SCRIPTS[script], 1, prefix, ...args) as ScriptReply;
    }
  }
}

function createClient(url: Secret): Redis {
  return new Redis(url.reveal(), {
    lazyConnect: true,
    // Failed commands are not retried, since their caller has given up.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    connectTimeout: CONNECT_TIMEOUT_MS,
    disconnectTimeout: HANG_UP_MS,
    // RESP2 is enough, and every server and proxy speaks it.
    protocol: 2,
    disableClientInfo: true,
    connectionName: "sluice",
  });
}

/** SHA-1 digests of the scripts, by which Redis knows them. */
const SHAS = Object.fromEntries(
  Object.entries(SCRIPTS).map(([name, text]) => [name, createHash("sha1").update(text).digest("hex")]),
) as Record<ScriptName, string>;

function wordOf(error: unknown): string {
  return error instanceof RedisUnreachable ? error.message : redisWordOf(error);
}
