/** Schemas and types of responses of the admin API. Those of reports are in `billing/reports/`. */
import { z } from "zod";
import { type PublicKey, publicKeySchema } from "../access/public_key.ts";
import { CHANGE_ACTIONS, CHANGE_AUTHORS } from "../store/operators.ts";
import type { KeyWithBudget } from "../billing/reports/budget_report.ts";
import { count, exactly, time } from "../billing/reports/schema_parts.ts";
import { budgetStateSchema } from "../billing/reports/schemas.ts";

/** A key with its budget. */
export const keyWithBudgetSchema = exactly<KeyWithBudget>()(publicKeySchema.extend({
  budget: budgetStateSchema.nullable()
    .describe("The budget that applies: the key's own, or its group's `key_budget`; null if there is none"),
}));

/** A key with its secret, which is shown only once. */
export const shownKeySchema = exactly<PublicKey & { key: string }>()(publicKeySchema.extend({
  key: z.string().describe("The secret. It is shown only in this answer"),
}));

/** All keys. */
export const keyListSchema = exactly<{ object: "list"; data: KeyWithBudget[] }>()(z.strictObject({
  object: z.literal("list"),
  data: z.array(keyWithBudgetSchema),
}));

const configStatus = {
  version: z.number().int().min(1).describe("1 at the start; incremented by every reload that changes something"),
  loaded_at: time,
  source: z.string().describe("Path of the file, or name of the variable that holds its text; `store`; `built in`"),
  shared: z.strictObject({
    version: z.number().int().min(1).optional()
      .describe("The version in force; absent if the node uses its own file because no version was valid"),
    latest: z.number().int().min(0).describe("The latest version in the store, as far as this node knows"),
    is_current: z.boolean().describe("Whether the latest version is in force; if not, `last_error` has the reason"),
  }).optional().describe("The configuration shared by all nodes; absent if each has its own"),
  last_error: z.strictObject({ at: time, problems: z.array(z.string()) }).optional()
    .describe("Why the latest configuration was refused; absent if it was not"),
};

const changeValues = z.record(z.string(), z.unknown()).nullable();

const changeLine = z.strictObject({
  at: time,
  author: z.enum(CHANGE_AUTHORS).describe(
    "`configuration`: a change of the configuration that no operator requested; `gateway`: the gateway at its start",
  ),
  address: z.string().nullable().describe("The client's address; null for a command, or if it is unknown"),
  action: z.enum(CHANGE_ACTIONS),
  subject: z.string().nullable().describe("Id of the key, or name of the target"),
  before: changeValues.describe("Previous values of the changed members, without secrets; null if there were none"),
  after: changeValues,
  request_id: z.string().nullable(),
});

/** A page of the log of changes, the latest first. */
export const changePageSchema = z.strictObject({
  object: z.literal("list"),
  data: z.array(changeLine),
  next: z.string().nullable().describe("Cursor of the next page; null on the last one"),
});

/** A logged change in JSON. */
export type ChangeLine = z.output<typeof changeLine>;

/** A page of the log of changes. */
export type ChangePage = z.output<typeof changePageSchema>;

/** The active configuration. */
export const configStateSchema = z.strictObject({
  object: z.literal("config"),
  ...configStatus,
  config: z.record(z.string(), z.unknown()).describe("The file's members and all defaults, without secrets"),
});

/** The response with the active configuration. */
export type ConfigResponse = z.output<typeof configStateSchema>;

/** The health of the gateway. */
export const gatewayHealthSchema = z.strictObject({
  object: z.literal("health"),
  status: z.enum(["ok", "degraded", "unavailable"]).describe("As reported by /readyz"),
  message: z.string().optional().describe("The reasons in one sentence; absent if the status is `ok`"),
  store: z.boolean().describe("Whether the key store answers"),
  ledger: z.boolean().describe("Whether the ledger can be written; if not, requests that cost money are refused"),
  limits_healthy: z.boolean().describe("Whether the limits store answers"),
  upstreams: z.enum(["ok", "some", "none"]).describe("Whether requests can be sent to the targets tried so far"),
  is_current: z.boolean().describe(
    "Whether the latest shared configuration is in force; true if none is shared",
  ),
  config: z.strictObject(configStatus),
  ledger_queue: count.describe("Entries waiting to be written to the ledger"),
  journal_entries: count.describe("Entries waiting in the journal for an unreachable store"),
  limits: z.enum(["memory", "redis"]).describe("Where limits are counted"),
  targets: z.array(z.strictObject({
    upstream: z.string(),
    model: z.string().describe("The upstream's id of the model; for an embedded model, preceded by its public id"),
    state: z.enum(["closed", "open", "half_open", "cooling", "quarantined"])
      .describe("The worst state if it differs by client key"),
    awaits_trial: z.boolean().describe(
      "Whether a circuit breaker is open or half-open and no trial request is running",
    ),
    keys: count.optional().describe("Number of client keys with this state; absent if it applies to all"),
    until: z.number().int().optional().describe("End of the pause, in Unix milliseconds"),
    failures: count.describe("Failures among the samples"),
    samples: count.describe("Number of requests in the last 30 seconds"),
    consecutive_failures: count.describe("Failures since the last success"),
    recent_attempts: count.describe("Number of most recent attempts considered, at most 20"),
    recent_answers: count.describe("Number of these attempts that succeeded"),
    first_ms: z.number().optional().describe("Median time to the first event"),
    tokens_per_second: z.number().optional().describe("Median output speed"),
  })),
  open_requests: count,
  open_streams: count,
  uptime_seconds: count,
  loop_lag_ms: count.describe("Longest delay of the event loop in the last 15 seconds"),
  memory: z.strictObject({ rss_bytes: count, heap_used_bytes: count }),
});

/** The response with the health of the gateway. It contains no addresses and no keys. */
export type HealthResponse = z.output<typeof gatewayHealthSchema>;

/** The outcome of a reload. */
export const reloadSchema = z.strictObject({
  object: z.literal("reload"),
  outcome: z.enum(["changed", "unchanged"]),
  ignored: z.array(z.string()).describe("Members whose change needs a restart"),
  ...configStatus,
});

/** The response to a reload. */
export type ReloadResponse = z.output<typeof reloadSchema>;
