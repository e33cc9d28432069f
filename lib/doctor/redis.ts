/** Checks the Redis server in which nodes count limits: access, speed and eviction. */
import type { Redis } from "ioredis";
import type { Config } from "../config.ts";
import { addressWithoutPassword } from "../config/address.ts";
import { createNotes, type Finding, type Notes, reasonOf } from "./finding.ts";
import type { ConnectionCheckOptions } from "./connection.ts";
import { formatMs, shortestRoundTrip, withTimeout } from "./round_trip.ts";

/** The oldest version that is known to do. */
const OLDEST = 7;
/** Longer round trips are reported, in milliseconds: every request with limits waits for one. */
const SLOW_MS = 5;

/** The settings that are checked. */
type Looked = Pick<Config, "limits_store" | "nodes">;

/** Checks the server without storing anything. */
export async function checkRedis(
  { limits_store: address, nodes }: Looked,
  steps: ConnectionCheckOptions,
): Promise<Finding[]> {
  const notes = createNotes("limits_store");
  if (address.kind !== "redis") return notes.found;
  const where = addressWithoutPassword(address);
  // The driver is loaded only where it is needed.
  const { Redis } = await import("ioredis");
  const redis = new Redis(address.url.reveal(), {
    lazyConnect: true,
    enableReadyCheck: false,
    connectTimeout: steps.timeoutMs,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // Without a listener it writes to the console.
  let last: unknown;
  redis.on("error", (error: unknown) => last = error);
  try {
    await withTimeout(steps.timeoutMs, checkAnswers(notes, { redis, where, timeoutMs: nodes.limits_timeout_ms }));
  } catch (error) {
    notes.error(
      `${where} cannot be used: ${reasonOf(last ?? error)}`,
      "Check the address and password in SLUICE_LIMITS_STORE, and whether the server accepts this machine",
    );
  } finally {
    await hangUp(redis);
  }
  return notes.found;
}

/** Ends the connection, and waits until it has ended, as it is being ended for up to two seconds otherwise. */
async function hangUp(redis: Redis): Promise<void> {
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
  if (ms <= Math.min(SLOW_MS, timeoutMs / 2)) notes.ok(`${where} answers within ${formatMs(ms)}`);
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
  if (parseInt(version) >= OLDEST) notes.ok(`It is ${name}`);
  else notes.warn(`It is ${name}, which is not tested`, `Use version ${OLDEST} or later`);
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

/** The lines `name:value` of INFO. */
function factsOf(text: string): ReadonlyMap<string, string> {
  return new Map(
    [...text.matchAll(/^([a-z_0-9]+):(.*?)\r?$/gm)].map(([, name = "", value = ""]) => [name, value]),
  );
}
