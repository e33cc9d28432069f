/**
 * Counts the round trips of requests to Postgres and Redis, by the limits and budgets of their key, sequentially and
 * concurrently: `deno run -A bench/round_trips.ts`. The numbers come from the servers' own statistics.
 */
import { Redis } from "ioredis";
import { Secret } from "../lib/secret.ts";
import { connect } from "../lib/store/postgres/client.ts";
import { type Node, startCluster } from "../tests/e2e/nodes/cluster.ts";

/** Requests of one row, and how many of them run concurrently. */
const REQUESTS = 600;
const AT_ONCE = [1, 32];

/** Idle time after which Postgres has counted the statistics of a connection, in milliseconds. */
const COUNTED_MS = 11_000;

const LIMITS = { requests_per_minute: 1_000_000, tokens_per_minute: 1_000_000_000, concurrency: 1_000 };
const BUDGET = { usd: "100000", period: "month" };

/** Keys with different settings. */
const KEYS = {
  "nothing": {},
  "limits": { limits: LIMITS },
  "a budget": { budget: BUDGET },
  "limits and a budget": { limits: LIMITS, budget: BUDGET },
};

const variable = (name: string) => `KEY_${name.replaceAll(" ", "_").toUpperCase()}`;
const env = Object.fromEntries(
  Object.keys(KEYS).map((name) => [variable(name), `bench-key-with-${name.replaceAll(" ", "-")}`]),
);

await using cluster = await startCluster({
  nodes: 1,
  env,
  config: {
    models: [{
      id: "bench/echo",
      created: 1,
      context_length: 10_000,
      pricing: { prompt: "0.000001", completion: "0.000002" },
      targets: [{ upstream: "embedded", model: "echo" }],
    }],
    keys: Object.entries(KEYS).map(([name, rules]) => ({
      name: name.replaceAll(" ", "-"),
      key: { env: variable(name) },
      ...rules,
    })),
    log: { requests: "none" },
  },
});
const [node] = cluster.nodes as [Node];
const sql = connect(new Secret(cluster.postgres.url), 1);
const redis = new Redis(cluster.redis.url);

interface Counted {
  /** Transactions. */
  postgres: number;
  /** Scripts. */
  redis: number;
}

async function read(): Promise<Counted & { at: number }> {
  await new Promise((resolve) => setTimeout(resolve, COUNTED_MS));
  const [row] = await sql<{ count: bigint }[]>`
    SELECT (xact_commit + xact_rollback)::bigint AS count FROM pg_stat_database WHERE datname = current_database()`;
  const stats = await redis.info("commandstats");
  const calls = [...stats.matchAll(/^cmdstat_(?:evalsha|eval|fcall):calls=(\d+)/gm)].map(([, count]) => Number(count));
  return {
    postgres: Number(row?.count ?? 0n),
    redis: calls.reduce((sum, count) => sum + count, 0),
    at: performance.now(),
  };
}

async function ask(key: string): Promise<void> {
  const response = await fetch(`${node.origin}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: "bench/echo",
      max_tokens: 50,
      messages: [{ role: "user", content: "one two three" }],
    }),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(text);
}

async function run(key: string, atOnce: number): Promise<number> {
  const startedAt = performance.now();
  let left = REQUESTS;
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (left-- > 0) await ask(key);
  }));
  return performance.now() - startedAt;
}

for (const key of Object.values(env)) await ask(key);
let before = await read();

/** Returns the counts since the last call, and the time since then, in milliseconds. */
async function since(): Promise<Counted & { ms: number }> {
  const after = await read();
  const [past, ms] = [before, after.at - before.at];
  before = after;
  return { postgres: after.postgres - past.postgres, redis: after.redis - past.redis, ms };
}

// Background work is measured first and subtracted.
const idle = await since();
const rows: (string | number)[][] = [["key has", "at once", "transactions/request", "scripts/request", "ms/request"]];
for (const name of Object.keys(KEYS)) {
  for (const atOnce of AT_ONCE) {
    const elapsed = await run(env[variable(name)] ?? "", atOnce);
    const { postgres, redis, ms } = await since();
    rows.push([
      name,
      atOnce,
      ((postgres - idle.postgres * ms / idle.ms) / REQUESTS).toFixed(2),
      ((redis - idle.redis * ms / idle.ms) / REQUESTS).toFixed(2),
      (elapsed / REQUESTS).toFixed(2),
    ]);
  }
}
// deno-lint-ignore no-console -- a benchmark's only output
console.log([
  ...rows.map((row) => row.map((cell) => String(cell).padEnd(22)).join("")),
  `without requests: ${(idle.postgres / idle.ms * 1000).toFixed(1)} transactions/s, ${
    (idle.redis / idle.ms * 1000).toFixed(1)
  } scripts/s`,
].join("\n"));
redis.disconnect();
await sql.end();
