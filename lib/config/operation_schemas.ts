/** Schemas of the members about running a gateway: `nodes`, `ledger`, `log`, `metrics` and `shutdown`. */
import { z } from "zod";

/** Schema of `nodes`. */
export const nodesSchema = z.strictObject({
  config: z.enum(["own", "store"]).default("own")
    .describe(
      'Where the node gets its configuration: its "own" file, or the latest version in the "store" (Postgres only)',
    ),
  key_age_seconds: z.number().int().min(0).max(86_400).default(300)
    .describe("How long a node accepts cached keys while the store is unreachable, in seconds. `0` accepts none"),
  journal: z.string().min(1).nullable().default("./data/journal")
    .describe(
      "File that holds ledger entries while the store is unreachable. With `null`, requests with a cost are refused " +
        "during that time",
    ),
  journal_entries: z.number().int().min(1).max(10_000_000).default(100_000)
    .describe("Maximum number of entries in the journal. When it is full, requests with a cost are refused"),
  lease_seconds: z.number().int().min(1).max(600).default(30)
    .describe("How long the budget holds and concurrency slots of a crashed node stay reserved, in seconds"),
  limits_outage: z.enum(["local", "closed"]).default("local")
    .describe(
      'While `limits_store` is unreachable: "local" gives each node its share of every limit, "closed" refuses all ' +
        "requests that have limits",
    ),
  limits_timeout_ms: z.number().int().min(10).max(10_000).default(250)
    .describe("Maximum wait for `limits_store`, in milliseconds. After that it counts as unreachable"),
});

/** Schema of `ledger`. */
export const ledgerSchema = z.strictObject({
  keep_days: z.number().int().min(1).max(36_500).default(90)
    .describe("How long individual requests are kept, in days. Daily totals are kept permanently"),
});

/** Schema of `log`. */
export const logSchema = z.strictObject({
  level: z.enum(["info", "warn", "error"]).default("info").describe("Lowest level that is logged"),
  requests: z.enum(["all", "errors", "none"]).default("all")
    .describe("Which requests get a log line when they end: all, only errors, or none"),
  probes: z.boolean().default(true)
    .describe("Whether to log successful requests to /healthz, /readyz and /metrics, too"),
  client_address: z.boolean().default(false).describe("Whether request lines contain the client's address"),
});

/** Schema of `metrics`. */
export const metricsSchema = z.strictObject({
  public: z.boolean().default(false)
    .describe("Whether /metrics is open without a key. If false, it requires the admin key or the viewer key"),
});

/** Schema of `shutdown`. */
export const shutdownSchema = z.strictObject({
  ready_delay_ms: z.number().int().min(0).max(600_000).default(0)
    .describe(
      "How long the gateway keeps serving after SIGTERM while /readyz answers 503, in milliseconds. This gives a " +
        "load balancer time to notice",
    ),
  drain_seconds: z.number().min(0).max(3600).default(30)
    .describe("Maximum time for running requests to finish, in seconds"),
  images_drain_seconds: z.number().min(0).max(3600).default(900)
    .describe("Maximum time for running image requests to finish, in seconds"),
});
