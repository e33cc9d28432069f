/** Types of the reports of the ledger, and the schemas that describe them in the admin API. */
import { z } from "zod";
import { USAGE_BY } from "./usage.ts";
import { count, time, tokens, usd } from "./schema_parts.ts";

/** The state of a budget in its current period. */
export const budgetStateSchema = z.strictObject({
  period: z.enum(["day", "week", "month", "total"]),
  budget_usd: usd,
  spent_usd: usd.describe("Costs of the requests received in the period"),
  held_usd: usd.describe("Held for running requests"),
  left_usd: usd.describe("Negative if the budget was lowered below the amount already spent"),
  resets_at: time.nullable().describe("Start of the next period; null for a budget that never resets"),
});

const budgetLine = z.strictObject({
  scope: z.enum(["key", "group", "user"]),
  id: z.string().describe("Id of the key (for an end user, the key they use), or name of the group"),
  name: z.string(),
  user: z.string().nullable().describe(
    "The end user; empty for requests that name none, null for budgets of keys and groups",
  ),
  group: z.string().describe("Name of the group, or of the key's group"),
  ...budgetStateSchema.shape,
});

/** All budgets. */
export const budgetListSchema = z.strictObject({ object: z.literal("list"), data: z.array(budgetLine) });

const figures = z.strictObject({
  requests: count,
  failed: count.describe("Number of these requests that failed, were refused or were lost, and are not charged"),
  tokens,
  cached_percent: z.number().int().min(0).max(100).nullable()
    .describe("Percentage of the input tokens read from prompt caches, rounded down; null without input"),
  cache_saved_usd: usd
    .describe("Savings from prompt caches minus the cost of writing to them; negative if writing cost more"),
  images: count,
  cost_usd: usd,
  overrun_usd: usd.describe("Costs above the held amounts, paid by the operator"),
});

const period = { since: time, until: time.describe("Exclusive") };

const grouping = z.enum(USAGE_BY);

const usageLine = z.strictObject({
  id: z.string().optional().describe("Id of the key, if lines are grouped by key"),
  name: z.string(),
  then_id: z.string().optional().describe("Id of the key, if key is the second grouping"),
  then_name: z.string().optional().describe("Name within the second grouping"),
  ...figures.shape,
});

/**
 * The bill. The most expensive line comes first, days in order; with two groupings, lines of one name stay together.
 */
const bill = z.strictObject({
  ...period,
  by: grouping,
  then_by: grouping.optional().describe("The second grouping; absent if there is none"),
  lines: z.array(usageLine),
  total: figures.describe("Counts each request once, even if it has several tags"),
});

const upstreamFigures = z.strictObject({
  requests: count.describe("Requests whose last attempt went to this upstream"),
  attempts: count.describe("All attempts of these requests, at any upstream"),
  failed: count.describe("Number of failed requests. Their tokens are not included"),
  counted: count.describe("Number of requests whose tokens were counted by the gateway, not reported by the upstream"),
  tokens,
  images: count,
  unpriced: count.describe("Number of requests whose target has no prices, calculated at catalog prices"),
  upstream_usd: usd.describe(
    "Cost at the targets' prices; for `unpriced` requests, at catalog prices without group factors",
  ),
  cost_usd: usd.describe("Amount that customers pay"),
  margin_usd: usd.describe("`cost_usd` minus `upstream_usd`; negative for a loss"),
});

const upstreamLine = z.strictObject({
  upstream: z.string(),
  model: z.string().describe(
    "The upstream's id of the model; the public id if the current targets have none or several",
  ),
  day: z.iso.date().describe("UTC day on which the requests arrived"),
  ...upstreamFigures.shape,
});

/** Ordered by upstream, model and day. */
const upstreamSums = z.strictObject({
  ...period,
  by: z.literal("upstream"),
  lines: z.array(upstreamLine),
  total: upstreamFigures,
});

/** The bill of a period, or its sums by upstream. */
export const usageSchema = z.discriminatedUnion("by", [bill, upstreamSums]);

const auditCounts = z.strictObject({
  entries: count,
  first_seq: z.number().int().nullable(),
  last_seq: z.number().int().nullable(),
  day_sums: count,
  day_sums_in_motion: count,
  day_sums_alone: count,
  user_sums: count.describe("Sums per end user and budget period"),
  user_sums_alone: count.describe("Further sums, which could only be compared in part"),
  later_sums: count.describe(
    "Sums by upstream, hour, end user and tag, which are calculated some time after the entries",
  ),
  later_sums_alone: count.describe("Further sums, which could only be compared in part"),
  holds: count,
});

const difference = z.strictObject({
  kind: z.enum([
    /** An entry is missing or duplicated. */
    "gap",
    /** The checksum of an entry does not match it or the one before. */
    "check",
    /** An impossible number. */
    "number",
    /** The cost differs from tokens times prices. */
    "cost",
    /** A sum per day differs from its entries. */
    "day_sum",
    /** The entries of an end user add up to another sum. */
    "user_sum",
    /** An invalid hold. */
    "hold",
    /** An invalid start of the ledger. */
    "start",
    /** Unreadable data. */
    "unreadable",
    /** A damaged file; found only by the CLI command. */
    "file",
  ]),
  seq: z.number().int().optional(),
  id: z.string().optional(),
  message: z.string(),
});

/** The report of an audit. */
export const auditSchema = z.strictObject({
  ok: z.boolean().describe("True if there are no differences"),
  checked: auditCounts,
  difference_count: count,
  differences: z.array(difference),
});

/** The state of a budget. */
export type BudgetState = z.output<typeof budgetStateSchema>;

/** The budget of a key, a group, or an end user of a key. */
export type BudgetLine = z.output<typeof budgetLine>;

/** Sums over requests. */
export type UsageFigures = z.output<typeof figures>;

/** One line of the bill. */
export type UsageLine = z.output<typeof usageLine>;

/** The bill of a period. */
export type UsageReport = z.output<typeof bill>;

/** One line of an upstream report. */
export type UpstreamLine = z.output<typeof upstreamLine>;

/** The upstream report of a period. */
export type UpstreamReport = z.output<typeof upstreamSums>;

/** Numbers of entries, sums and holds that an audit compared. */
export type AuditCounts = z.output<typeof auditCounts>;

/** A difference that an audit found. */
export type Difference = z.output<typeof difference>;

/** The report of an audit. */
export type AuditReport = z.output<typeof auditSchema>;
