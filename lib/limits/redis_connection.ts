/** A connection to Redis that runs scripts, and is given up as soon as Redis is out of reach. */
import { createHash } from "node:crypto";
import { Redis } from "ioredis";
import type { Secret } from "../secret.ts";
import { type ScriptName, SCRIPTS } from "./redis_scripts.ts";

/** What is thrown where Redis did not answer. Whether it has done what it was asked is not known. */
export class RedisUnreachable extends Error {
  override readonly name = "RedisUnreachable";
}

/** What scripts answer. */
export type ScriptReply = readonly (number | string)[];

/** A connection. It does not come back: once it is lost, everything asked of it fails at once. */
export interface RedisConnection {
  /** Runs a script. In the order of the calls. @throws {RedisUnreachable} */
  run(script: ScriptName, args: readonly (string | number)[]): Promise<ScriptReply>;
  /** Ends it. Resolves when nothing of it is left. */
  close(): Promise<void>;
}

/** What a connection is made with. */
export interface RedisConnectionOptions {
  /** The key that every script is given. */
  prefix: string;
  /** How long an answer may take, in milliseconds. */
  timeoutMs: number;
  /** Told once when it is lost, why in a word; not when it is closed. */
  lost: (cause: string) => void;
}

/** Longest time until a connection can be used, in milliseconds. */
const CONNECT_MS = 2_000;

/** How long the server may take to hang up before the connection is cut, in milliseconds. */
const HANG_UP_MS = 100;

/**
 * Parts in which the time for an answer is waited for. A stall of our own event loop takes no more than one of them: it is
 * none of Redis, which may have been asked only after it.
 */
const PARTS = 5;

/** How often it is looked again at the end, after a turn of the event loop, whether answers that should be there come in after all. */
const LOOKS = 10;

/** Opens a connection with all scripts loaded. @throws {RedisUnreachable} whose message is the cause in a word */
export async function openRedisConnection(
  url: Secret,
  { prefix, timeoutMs, lost }: RedisConnectionOptions,
): Promise<RedisConnection> {
  const redis = new Redis(url.reveal(), {
    lazyConnect: true,
    // What cannot be done now is not done later: nobody waits for it any more.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    connectTimeout: CONNECT_MS,
    disconnectTimeout: HANG_UP_MS,
    // All that is needed, and every server and proxy speaks it.
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

  /** Fails where Redis takes too long, but not before all that it has answered is read. */
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
      // Somebody has made the server forget its scripts.
      if (wordOf(error) !== "NOSCRIPT") throw error;
      return await redis.eval(SCRIPTS[script], 1, prefix, ...args) as ScriptReply;
    }
  }

  // Without a listener it writes to the console.
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

/** An error in a word, without what an address or a reply may hold: `ECONNREFUSED`, `READONLY`, `timeout`. */
function wordOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  if (error instanceof RedisUnreachable) return error.message;
  if ("code" in error && typeof error.code === "string") return error.code;
  return /^[A-Z]{2,}(?= )/.exec(error.message)?.[0] ?? error.name;
}
