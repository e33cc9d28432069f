/** Shapes of what the admin side answers, for its description. */
import { z } from "zod";
import type { PublicKey } from "../access/key_admin.ts";
import { keyRulesSchema } from "../config.ts";
import { CHANGE_ACTIONS, CHANGE_AUTHORS } from "../store/operators.ts";
import type { ChangePage } from "./changes.ts";
import type { ConfigResponse, ReloadResponse } from "./config.ts";
import type { HealthResponse } from "./health.ts";
import type { AuditReport } from "../billing/reports/audit.ts";
import type { BudgetLine, KeyWithBudget } from "../billing/reports/budget_report.ts";
import { DIFFERENCE_KINDS } from "../billing/reports/audit_findings.ts";
import type { UpstreamReport } from "../billing/reports/upstream_report.ts";
import type { UsageReport } from "../billing/reports/usage.ts";
import { count, exactly, time, tokens, usd } from "./schema_parts.ts";

const keyMembers = {
  id: z.string().describe("Stays the same when the key is rotated"),
  name: z.string(),
  group: z.string(),
  state: z.enum(["active", "disabled", "expired", "revoked"]),
  created_at: time,
  expires_at: time.nullable(),
  last_used_at: time.nullable().describe("To the minute"),
  revoked_at: time.nullable(),
  rules: keyRulesSchema,
  former_until: time.nullable().describe("Until when the secret before the present one is good"),
};

/** A key. */
export const keySchema = exactly<PublicKey>()(z.strictObject(keyMembers));

const budgetMembers = {
  period: z.enum(["day", "week", "month", "total"]),
  budget_usd: usd,
  spent_usd: usd.describe("Costs of the requests that were received in the period"),
  held_usd: usd.describe("Set aside for requests under way"),
  left_usd: usd.describe("Below 0 if the budget was lowered below the spent amount"),
  resets_at: time.nullable().describe("Start of the next period; null for a budget that never resets"),
};

/** A key with its budget. */
export const keyWithBudgetSchema = exactly<KeyWithBudget>()(z.strictObject({
  ...keyMembers,
  budget: z.strictObject(budgetMembers).nullable()
    .describe("The budget that applies to it, its own or that of its group for each key; null where there is none"),
}));

/** All budgets. */
export const budgetListSchema = exactly<{ object: "list"; data: BudgetLine[] }>()(z.strictObject({
  object: z.literal("list"),
  data: z.array(z.strictObject({
    scope: z.enum(["key", "group", "user"]),
    id: z.string().describe("Id of the key, also of an end user's, or name of the group"),
    name: z.string(),
    user: z.string().nullable().describe("End user of the key, empty for requests that name none; null for others"),
    group: z.string().describe("Name of the group, also of the key's"),
    ...budgetMembers,
  })),
}));

/** A key with its secret, once. */
export const shownKeySchema = exactly<PublicKey & { key: string }>()(z.strictObject({
  ...keyMembers,
  key: z.string().describe("The key itself. It is in this answer and nowhere else"),
}));

/** All keys. */
export const keyListSchema = exactly<{ object: "list"; data: KeyWithBudget[] }>()(z.strictObject({
  object: z.literal("list"),
  data: z.array(keyWithBudgetSchema),
}));

const figures = {
  requests: count,
  failed: count.describe("Of them, those that failed, were refused or lost: without charge"),
  tokens,
  cached_percent: z.number().int().min(0).max(100).nullable()
    .describe("Share of the input tokens that were read from prompt caches, rounded down; null without input"),
  cache_saved_usd: usd
    .describe("What prompt caches saved, less what was paid for writing to them; negative where that was more"),
  images: count,
  cost_usd: usd,
  overrun_usd: usd.describe("Costs beyond what was held: paid by the operator"),
};

const period = { since: time, until: time.describe("Not part of the period") };

const grouping = z.enum(["key", "group", "model", "day", "user", "tag"]);

const bill = z.strictObject({
  ...period,
  by: grouping,
  then_by: grouping.optional().describe("The second grouping; absent where there is none"),
  lines: z.array(z.strictObject({
    id: z.string().optional().describe("Id of the key, where the lines are by key"),
    name: z.string(),
    then_id: z.string().optional().describe("Id of the key, where that is the second grouping"),
    then_name: z.string().optional().describe("Name within the second grouping"),
    ...figures,
  })),
  total: z.strictObject(figures).describe("Every request once, also where it has several tags"),
});

const upstreamSums = z.strictObject({
  ...period,
  by: z.literal("upstream"),
  lines: z.array(z.strictObject({
    upstream: z.string(),
    model: z.string().describe(
      "The upstream's own id of it; the public one where today's targets name none or several",
    ),
    day: z.iso.date().describe("By UTC, on which the requests came in"),
    requests: count.describe("Those that it was the last to be asked for"),
    attempts: count.describe("All that was asked for them, here or at others before"),
    failed: count.describe("Requests that came to nothing; they have no tokens here"),
    counted: count.describe("Requests whose numbers of tokens are the gateway's own"),
    tokens,
    images: count,
    unpriced: count.describe("Requests whose target has no prices: their cost is by catalog prices"),
    upstream_usd: usd.describe(
      "Cost at the prices of targets; of `unpriced` requests, at the catalog's without factors",
    ),
    cost_usd: usd.describe("What customers pay"),
    margin_usd: usd.describe("Cost to customers less the cost at the upstream; negative for a loss"),
  })),
});

/** The bill of a period, or what went to upstreams in it. */
export const usageSchema = exactly<UsageReport | UpstreamReport>()(z.discriminatedUnion("by", [bill, upstreamSums]));

/** The report of an audit. */
export const auditSchema = exactly<AuditReport>()(z.strictObject({
  ok: z.boolean().describe("True where there is no difference"),
  checked: z.strictObject({
    entries: count,
    first_seq: z.number().int().nullable(),
    last_seq: z.number().int().nullable(),
    day_sums: count,
    day_sums_in_motion: count,
    day_sums_alone: count,
    user_sums: count.describe("Sums of end users in periods of their budgets"),
    user_sums_alone: count.describe("More of them, which can be compared in part only"),
    later_sums: count.describe(
      "Sums per day by upstream, end user and tag, which are made some time after the entries",
    ),
    later_sums_alone: count.describe("More of them, which can be compared in part only"),
    holds: count,
  }),
  difference_count: count,
  differences: z.array(z.strictObject({
    kind: z.enum(DIFFERENCE_KINDS),
    seq: z.number().int().optional(),
    id: z.string().optional(),
    message: z.string(),
  })),
}));

const configStatus = {
  version: z.number().int().min(1).describe("1 at the start; grows with every reload that changes something"),
  loaded_at: time,
  source: z.string().describe("Path of the file, or name of the variable that holds its text; `store`; `built in`"),
  shared: z.strictObject({
    version: z.number().int().min(1).optional()
      .describe("The version in force; absent where the node could use none and obeys its own file"),
    latest: z.number().int().min(0).describe("The version that was put into the store last, as far as is known here"),
    is_current: z.boolean().describe("Whether that is the one in force; `last_error` tells why not"),
  }).optional().describe("The configuration that all nodes obey; absent where each obeys its own"),
  last_error: z.strictObject({ at: time, problems: z.array(z.string()) }).optional()
    .describe("Why the latest file was refused; absent where it was not"),
};

const changeValues = z.record(z.string(), z.unknown()).nullable();

/** A page of the log of changes. */
export const changePageSchema = exactly<ChangePage>()(z.strictObject({
  object: z.literal("list"),
  data: z.array(z.strictObject({
    at: time,
    author: z.enum(CHANGE_AUTHORS).describe(
      "`configuration`: a configuration that was read without an operator's request; `gateway`: at its start",
    ),
    address: z.string().nullable().describe("The client's address; null for a command, and where it is not known"),
    action: z.enum(CHANGE_ACTIONS),
    subject: z.string().nullable().describe("Id of the key, or name of the target"),
    before: changeValues.describe("Values of the members that differ, without secrets; null where there were none"),
    after: changeValues,
    request_id: z.string().nullable(),
  })),
  next: z.string().nullable().describe("Cursor of the next page; null on the last one"),
}));

/** The configuration in force. */
export const configStateSchema = exactly<ConfigResponse>()(z.strictObject({
  object: z.literal("config"),
  ...configStatus,
  config: z.record(z.string(), z.unknown()).describe("As the file says it, every default filled in, without secrets"),
}));

/** The health of the gateway. */
export const gatewayHealthSchema = exactly<HealthResponse>()(z.strictObject({
  object: z.literal("health"),
  status: z.enum(["ok", "degraded", "unavailable"]).describe("As /readyz tells it"),
  message: z.string().optional().describe("A sentence with the reasons; absent where the status is ok"),
  store: z.boolean().describe("Whether the store of keys answers"),
  ledger: z.boolean().describe("Whether the ledger can be written; nothing that costs begins while it cannot"),
  limits_healthy: z.boolean().describe("Whether the store of limits answers"),
  upstreams: z.enum(["ok", "some", "none"]).describe("Whether the targets that were asked so far would be asked again"),
  is_current: z.boolean().describe(
    "Whether it obeys the configuration that was put into the store last, where it shall",
  ),
  config: z.strictObject(configStatus),
  ledger_queue: count.describe("Entries on their way into the ledger"),
  journal_entries: count.describe("Entries that wait in the journal for a store that is out of reach"),
  limits: z.enum(["memory", "redis"]).describe("Where limits are counted"),
  targets: z.array(z.strictObject({
    upstream: z.string(),
    model: z.string().describe("The upstream's own id of it; of an embedded one, behind the id of its row"),
    state: z.enum(["closed", "open", "half_open", "cooling", "quarantined"])
      .describe("The worst, where it differs by client key"),
    awaits_trial: z.boolean().describe("Whether a breaker is open or half-open and no request tries the target now"),
    keys: count.optional().describe("Client keys that the state is for; absent: all"),
    until: z.number().int().optional().describe("Until when it is not asked, in Unix milliseconds"),
    failures: count.describe("Failures among the samples"),
    samples: count.describe("Requests of the last 30 seconds"),
    consecutive_failures: count.describe("Failures since the last success"),
    recent_attempts: count.describe("The last attempts, at most 20 and however long ago"),
    recent_answers: count.describe("Those of them that were answered"),
    first_ms: z.number().optional().describe("Median time to the first event"),
    tokens_per_second: z.number().optional().describe("Median"),
  })),
  open_requests: count,
  open_streams: count,
  uptime_seconds: count,
  loop_lag_ms: count.describe("Longest delay of the event loop in the last 15 seconds"),
  memory: z.strictObject({ rss_bytes: count, heap_used_bytes: count }),
}));

/** The outcome of a reload. */
export const reloadSchema = exactly<ReloadResponse>()(z.strictObject({
  object: z.literal("reload"),
  outcome: z.enum(["changed", "unchanged"]),
  ignored: z.array(z.string()).describe("Members whose change needs a new start"),
  ...configStatus,
}));
