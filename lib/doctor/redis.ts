/** Checks the Redis server in which nodes count limits: access, speed, version and eviction. */
import { reasonOf } from "../causes.ts";
import type { Redis } from "ioredis";
import type { Config } from "../config.ts";
import { addressWithoutPassword } from "../config/address.ts";
import { createNotes, type Finding, type Notes } from "./finding.ts";
import type { ConnectionCheckOptions } from "./connection.ts";
import { formatMs, shortestRoundTrip, withTimeout } from "./round_trip.ts";

/** Oldest tested major version. */
const OLDEST_VERSION = 7;
/** Longest round trip that is not reported, in milliseconds. Every request with limits waits for one. */
const MAX_ROUND_TRIP_MS = 5;

type RedisSettings = Pick<Config, "limits_store" | "nodes">;

/** Checks the server without storing anything. Returns no findings if limits are counted in memory. */
export async function checkRedis(
  { limits_store: address, nodes }: RedisSettings,
  options: ConnectionCheckOptions,
): Promise<Finding[]> {
  const notes = createNotes("limits_store");
  if (address.kind !== "redis") return notes.found;
  const where = addressWithoutPassword(address);
  // The driver is loaded only if it is needed.
  const { Redis } = await import("ioredis");
  const redis = new Redis(address.url.reveal(), {
    lazyConnect: true,
    enableReadyCheck: false,
    connectTimeout: options.timeoutMs,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // Without a listener, the driver prints errors on the console.
  let lastError: unknown;
  redis.on("error", (error: unknown) => lastError = error);
  try {
    await withTimeout(options.timeoutMs, checkAnswers(notes, { redis, where, timeoutMs: nodes.limits_timeout_ms }));
  } catch (error) {
    const reason = reasonOf(lastError ?? error);
    notes.error(
      `${where} cannot be used: ${reason}`,
      /NOPERM|unknown command/.test(reason)
        ? "Allow this command: check the server's ACL and its rename-command"
        : "Check the address and password in SLUICE_LIMITS_STORE, and whether the server accepts this machine",
    );
  } finally {
    await disconnect(redis);
  }
  return notes.found;
}

/** Closes the connection and waits until it is closed, because that may take up to two seconds. */
async function disconnect(redis: Redis): Promise<void> {
  if (redis.status === "end") return;
  const ended = new Promise((resolve) => redis.once("end", resolve));
  redis.disconnect();
  await ended;
}

interface RedisServer {
  redis: Redis;
  where: string;
  /** Answers that take longer count as unreachable, in milliseconds. */
  timeoutMs: number;
}

async function checkAnswers(notes: Notes, { redis, where, timeoutMs }: RedisServer): Promise<void> {
  await redis.connect();
  await redis.eval("return 1", 0);
  const ms = await shortestRoundTrip(() => redis.ping());
  if (ms <= Math.min(MAX_ROUND_TRIP_MS, timeoutMs / 2)) notes.ok(`${where} answers within ${formatMs(ms)}`);
  else {
    notes.warn(
      `${where} takes ${formatMs(ms)} to answer; after ${timeoutMs} ms it counts as unreachable`,
      "Move gateway and server closer together, or raise nodes.limits_timeout_ms",
    );
  }
  const facts = factsOf(await redis.info());
  checkServer(notes, facts);
  checkMemory(notes, facts);
}

function checkServer(notes: Notes, facts: ReadonlyMap<string, string>): void {
  const valkey = facts.get("valkey_version");
  const version = valkey ?? facts.get("redis_version") ?? "of an unknown version";
  const name = `${valkey === undefined ? "Redis" : "Valkey"} ${version}`;
  if (parseInt(version) >= OLDEST_VERSION) notes.ok(`It is ${name}`);
  else notes.warn(`It is ${name}, which is not tested`, `Use version ${OLDEST_VERSION} or later`);
  if ((facts.get("redis_mode") ?? facts.get("server_mode")) === "cluster") {
    notes.error(
      "It is part of a cluster, and the limits of one request may be on several nodes",
      "Use a single server",
    );
  }
  if (facts.get("role") === "slave") notes.error("It is a read-only replica", "Use the primary server");
}

function checkMemory(notes: Notes, facts: ReadonlyMap<string, string>): void {
  const policy = facts.get("maxmemory_policy");
  const maxMemory = Number(facts.get("maxmemory") ?? 0);
  if (maxMemory > 0 && Number(facts.get("used_memory") ?? 0) >= maxMemory) {
    notes.error(`Its memory is full: all ${maxMemory} bytes of maxmemory are in use`, "Raise maxmemory of the server");
  }
  if (policy === undefined || policy === "noeviction") return notes.ok("It evicts nothing");
  if (maxMemory === 0) {
    notes.warn(
      `maxmemory-policy is ${policy}: once maxmemory is set, it may evict limits`,
      "Set maxmemory-policy to noeviction, or use a separate server for limits",
    );
  } else {
    notes.error(
      `maxmemory-policy is ${policy}: when its memory is full, it evicts limits, and too much is admitted`,
      "Set maxmemory-policy to noeviction, or use a separate server for limits",
    );
  }
}

/** Parses the lines `name:value` of the reply to INFO. */
function factsOf(text: string): ReadonlyMap<string, string> {
  return new Map(
    [...text.matchAll(/^([a-z_0-9]+):(.*?)\r?$/gm)].map(([, name = "", value = ""]) => [name, value]),
  );
}
