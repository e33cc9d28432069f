/** The Redis server where nodes count limits: whether it can be used, and whether it forgets. */
import type { Redis } from "ioredis";
import type { Config } from "../config.ts";
import { addressWithoutPassword } from "../config/address.ts";
import { createNotes, type Finding, type Notes, reasonOf } from "./finding.ts";
import type { ConnectionCheckOptions } from "./connection.ts";
import { formatMs, shortestRoundTrip, withTimeout } from "./round_trip.ts";

/** The oldest version that is known to do. */
const OLDEST = 7;
/** A longer round trip is told, in milliseconds: every request that has limits waits for one. */
const SLOW_MS = 5;

/** What is looked at. */
type Looked = Pick<Config, "limits_store" | "nodes">;

/** Looks at the server, and keeps nothing in it. */
export async function checkRedis(
  { limits_store: address, nodes }: Looked,
  steps: ConnectionCheckOptions,
): Promise<Finding[]> {
  const notes = createNotes("limits_store");
  if (address.kind !== "redis") return notes.found;
  const where = addressWithoutPassword(address);
  // Only who has such a server pays for loading what talks to it.
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
    await withTimeout(steps.timeoutMs, look(notes, { redis, where, timeoutMs: nodes.limits_timeout_ms }));
  } catch (error) {
    notes.error(
      `${where} cannot be used: ${reasonOf(last ?? error)}`,
      "Look at the address, at the password in SLUICE_LIMITS_STORE, and whether the server lets this machine in",
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

interface Visit {
  redis: Redis;
  where: string;
  /** How long it may take to answer before it counts as out of reach, in milliseconds. */
  timeoutMs: number;
}

async function look(notes: Notes, { redis, where, timeoutMs }: Visit): Promise<void> {
  await redis.connect();
  await redis.eval("return 1", 0);
  const ms = await shortestRoundTrip(() => redis.ping());
  if (ms <= Math.min(SLOW_MS, timeoutMs / 2)) notes.ok(`${where} answers within ${formatMs(ms)}`);
  else {
    notes.warn(
      `${where} takes ${formatMs(ms)} to answer; after ${timeoutMs} ms it counts as out of reach`,
      "Bring gateway and server nearer to each other, or raise nodes.limits_timeout_ms",
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
  else notes.warn(`It is ${name}, which was never tried`, `Use version ${OLDEST} or later`);
  if ((facts.get("redis_mode") ?? facts.get("server_mode")) === "cluster") {
    notes.error("It is part of a cluster, and one request's limits may be in several parts", "Name a single server");
  }
  if (facts.get("role") === "slave") notes.error("It can only be read: it is a replica", "Name the primary server");
}

function checkMemory(notes: Notes, facts: ReadonlyMap<string, string>): void {
  const policy = facts.get("maxmemory_policy");
  const most = Number(facts.get("maxmemory") ?? 0);
  if (policy === undefined || policy === "noeviction") return notes.ok("It forgets nothing before its time");
  if (most === 0) {
    notes.warn(
      `maxmemory-policy is ${policy}: as soon as a maxmemory is set, it may forget limits`,
      "Set maxmemory-policy noeviction, or give limits a server of their own",
    );
  } else {
    notes.error(
      `maxmemory-policy is ${policy}: when its memory is full, it forgets limits, and they admit too much`,
      "Set maxmemory-policy noeviction, or give limits a server of their own",
    );
  }
}

/** The lines `name:value` of INFO. */
function factsOf(text: string): ReadonlyMap<string, string> {
  return new Map(
    [...text.matchAll(/^([a-z_0-9]+):(.*?)\r?$/gm)].map(([, name = "", value = ""]) => [name, value]),
  );
}
