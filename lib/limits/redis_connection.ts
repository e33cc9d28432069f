/** A connection to Redis that runs scripts and closes as soon as Redis is out of reach. */
import { createHash } from "node:crypto";
import { Redis } from "ioredis";
import type { Secret } from "../secret.ts";
import { type ScriptName, SCRIPTS } from "./redis_scripts.ts";

/** Redis did not answer. It may have run the script all the same. */
export class RedisUnreachable extends Error {
  override readonly name = "RedisUnreachable";
}

/** Reply of a script. */
export type ScriptReply = readonly (number | string)[];

/** A connection. It never reconnects: once it is lost, every call fails at once. */
export interface RedisConnection {
  /** Runs a script, in the order of the calls. @throws {RedisUnreachable} */
  run(script: ScriptName, args: readonly (string | number)[]): Promise<ScriptReply>;
  /** Closes it. Resolves when the socket is closed. */
  close(): Promise<void>;
}

/** Options of a connection. */
export interface RedisConnectionOptions {
  /** Key that every script is given. */
  prefix: string;
  /** Time in which Redis must answer, in milliseconds. */
  timeoutMs: number;
  /** Called once when the connection is lost, with the cause in one word; not when it is closed. */
  lost: (cause: string) => void;
}

/** Time in which a connection must be usable, in milliseconds. */
const CONNECT_MS = 2_000;

/** Time in which the server must close before the connection is cut, in milliseconds. */
const HANG_UP_MS = 100;

/**
 * The timeout consists of this many timers. A stall of our own event loop uses up at most one of them, as Redis may have
 * been asked only after the stall.
 */
const PARTS = 5;

/** Turns of the event loop at the end of the timeout in which replies that have arrived are still read. */
const LOOKS = 10;

/** Opens a connection with all scripts loaded. @throws {RedisUnreachable} with the cause in one word as its message */
export async function openRedisConnection(
  url: Secret,
  { prefix, timeoutMs, lost }: RedisConnectionOptions,
): Promise<RedisConnection> {
  const redis = new Redis(url.reveal(), {
    lazyConnect: true,
    // A command that fails now is not repeated later, as its caller has gone on.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    connectTimeout: CONNECT_MS,
    disconnectTimeout: HANG_UP_MS,
    // RESP2 is enough, and every server and proxy speaks it.
    protocol: 2,
    disableClientInfo: true,
    connectionName: "sluice",
  });
  const ended = new Promise<void>((resolve) => redis.once("end", resolve));
  const waiting = new Set<(error: RedisUnreachable) => void>();
  let [state, answered]: ["opening" | "open" | "lost" | "closed", number] = ["opening", 0];

  function lose(cause: string): void {
    if (state === "lost" || state === "closed") return;
    const wasOpen = state === "open";
    state = "lost";
    if (redis.status !== "end") redis.disconnect();
    for (const reject of waiting) reject(new RedisUnreachable(cause));
    waiting.clear();
    if (wasOpen) lost(cause);
  }

  /** Rejects where Redis takes too long, but not before all its replies are read. */
  function within<Value>(ms: number, reply: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      let timer = setTimeout(() => wait(PARTS - 1), ms / PARTS);
      function wait(parts: number): void {
        if (parts === 0) look({ looks: LOOKS, seen: -1 });
        else timer = setTimeout(() => wait(parts - 1), ms / PARTS);
      }
      function look({ looks, seen }: { looks: number; seen: number }): void {
        if (looks === 0 || seen === answered) return lose("timeout");
        const now = answered;
        timer = setTimeout(() => look({ looks: looks - 1, seen: now }), 0);
      }
      function settle(): void {
        answered++;
        clearTimeout(timer);
        waiting.delete(fail);
      }
      function fail(error: RedisUnreachable): void {
        settle();
        reject(error);
      }
      waiting.add(fail);
      reply.then((value) => {
        settle();
        resolve(value);
      }, (error: unknown) => {
        lose(wordOf(error));
        fail(new RedisUnreachable(wordOf(error)));
      });
    });
  }

  async function evaluate(script: ScriptName, args: readonly (string | number)[]): Promise<ScriptReply> {
    try {
      return await redis.evalsha(SHAS[script], 1, prefix, ...args) as ScriptReply;
    } catch (error) {
      // The server has forgotten its scripts.
      if (wordOf(error) !== "NOSCRIPT") throw error;
      return await redis.eval(SCRIPTS[script], 1, prefix, ...args) as ScriptReply;
    }
  }

  // Without a listener the client writes errors to the console.
  redis.on("error", (error: unknown) => lose(wordOf(error)));
  redis.on("close", () => lose("closed"));
  try {
    await within(CONNECT_MS, redis.connect());
    await within(CONNECT_MS, Promise.all(Object.values(SCRIPTS).map((text) => redis.script("LOAD", text))));
    state = "open";
  } catch (error) {
    lose(wordOf(error));
    await ended;
    throw error;
  }
  return {
    run: (script, args) =>
      state === "open" ? within(timeoutMs, evaluate(script, args)) : Promise.reject(new RedisUnreachable("closed")),
    async close() {
      if (state === "open") {
        state = "closed";
        redis.disconnect();
      }
      await ended;
    },
  };
}

const SHAS = Object.fromEntries(
  Object.entries(SCRIPTS).map(([name, text]) => [name, createHash("sha1").update(text).digest("hex")]),
) as Record<ScriptName, string>;

/** Names an error in one word, without addresses or replies: `ECONNREFUSED`, `READONLY`, `timeout`. */
function wordOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  if (error instanceof RedisUnreachable) return error.message;
  if ("code" in error && typeof error.code === "string") return error.code;
  return /^[A-Z]{2,}(?= )/.exec(error.message)?.[0] ?? error.name;
}
