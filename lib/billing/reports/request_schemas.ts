/** Types of requests in reports and searches, and the schemas that describe them in the admin API. */
import { z } from "zod";
import { ENDINGS, type EntryAttempt, type EntryReason, REASON_CODES } from "../../store/ledger.ts";
import { count, exactly, time, tokens, usd } from "./schema_parts.ts";

/** One price: `tokens` times `price_usd` times `factor` is `amount_usd`, exactly. */
const priceLine = z.strictObject({
  class: z.string().describe("Name of the price, as in `pricing`"),
  tokens: count.describe("Number of tokens, or of calls to a hosted tool"),
  price_usd: usd.describe("Catalog price of one token or call"),
  factor: z.string().describe("Price factor of the key's group"),
  amount_usd: usd,
});

const limitRefusal = z.strictObject({
  scope: z.enum(["key", "group", "model"]),
  id: z.string().describe("Id of the key or model, or name of the group"),
  unit: z.enum(["requests", "tokens", "concurrency"]),
  limit: count,
  needed: count.describe("Amount that the request needed"),
  remaining: count.optional().describe("Amount that was left"),
  free_after_ms: z.number().optional().describe(
    "Time until the limit would have allowed the request; absent if waiting would not help",
  ),
});

const budgetRefusal = z.strictObject({
  scope: z.enum(["key", "group", "user"]),
  id: z.string().describe("Id of the key, name of the group, or the end user"),
  period: z.enum(["day", "week", "month", "total"]),
  budget_usd: usd,
  left_usd: usd,
  held_usd: usd.describe("Held for running requests"),
  needed_usd: usd.describe("Maximum that the request could cost"),
  resets_on: z.iso.date().optional().describe("Absent for a budget that never resets"),
});

const targetRefusal = z.strictObject({
  upstream: z.string(),
  model: z.string(),
  why: z.enum(["open", "cooling", "quarantined"])
    .describe(
      "`open`: its circuit breaker was open; `cooling`: it was at its limit, or overloaded with `retry-after`; " +
        "`quarantined`: it had refused the gateway's API key",
    ),
  wait_ms: count,
});

const reasonSchema = exactly<EntryReason>()(z.strictObject({
  code: z.enum(REASON_CODES),
  error: z.string().optional().describe("Code of the error sent to the client"),
  param: z.string().optional().describe("Name of the invalid parameter; `other` if no protocol defines it"),
  rule: z.string().optional().describe("The rule that an invalid request violates"),
  limit: limitRefusal.optional(),
  budget: budgetRefusal.optional(),
  permission: z.strictObject({ of: z.enum(["endpoint", "protocol", "model"]), name: z.string() }).optional(),
  targets: z.array(targetRefusal).readonly().optional().describe("Targets that were not tried"),
  outage: z.enum(["ledger", "store", "limits_store"]).optional().describe(
    "The store that could not be reached or written",
  ),
  set_by: z.enum(["key", "group"]).optional().describe(
    "Origin of the key's limit or budget: its own setting, or its group's",
  ),
}));

const attemptSchema = exactly<EntryAttempt>()(z.strictObject({
  upstream: z.string(),
  model: z.string(),
  outcome: z.string().describe(
    "As in the metric sluice_upstream_attempts_total, `unfit`, or `broken`: the answer had begun",
  ),
  ms: count.describe("Milliseconds until the answer began or the attempt failed"),
  status: z.number().int().optional(),
  code: z.string().optional().describe("The vendor's error code"),
  retry_after_ms: count.optional().describe("Milliseconds that the vendor asks to wait"),
  message: z.string().optional().describe("The vendor's message without secrets; absent if it may quote the request"),
  request_id: z.string().optional().describe("The vendor's request id"),
}));

const endingSchema = z.enum(ENDINGS);

const keyName = z.string().describe("Name of the key, or its id if it no longer has a name");

/** The members that name an ended request. */
const names = {
  id: z.string(),
  seq: z.number().int().min(1).describe("Sequence number in the ledger"),
  at: time.describe("Time of arrival"),
  key: keyName,
  key_id: z.string(),
  group: z.string(),
  model: z.string().nullable(),
  upstream: z.string().nullable(),
  endpoint: z.string(),
};

const endedRequest = z.strictObject({
  state: z.literal("ended"),
  ...names,
  status: z.number().int(),
  ending: endingSchema,
  attempts: count,
  attempt_list: z.array(attemptSchema).readonly().describe(
    "Empty if there was no attempt, or if the only one succeeded",
  ),
  skipped: z.array(targetRefusal).readonly().describe("Targets that were skipped because they could not be tried"),
  upstream_request_id: z.string().nullable().describe("The vendor's request id of the attempt that succeeded"),
  reason: reasonSchema.nullable().describe("Reason of the refusal or failure"),
  why: z.string().nullable().describe("The reason in one sentence"),
  dropped: z.array(z.string()).readonly().describe(
    "Parameters that were not sent: unsupported by the upstream, or not permitted to the key",
  ),
  max_tokens: count.nullable().describe(
    "Output limit that the gateway set, because the budget could not pay for a longer answer; null if it set none",
  ),
  requested_max_tokens: count.nullable().describe(
    "Output limit that the client set; null if it set none, or if the answer did not end at an output limit",
  ),
  user: z.string().nullable().describe("The end user that the client named"),
  tags: z.array(z.string()).readonly(),
  first_ms: z.number().nullable(),
  total_ms: z.number(),
  images: count,
  image_sizes: z.strictObject({
    asked: z.string(),
    delivered: z.array(z.string()).readonly().describe(
      "Size of each image; `unknown` if it cannot be read from the image",
    ),
  }).nullable(),
  service_tier: z.string().nullable().describe("Service tier that served the request; null for the default one"),
  context_tier: z.strictObject({ above: count, up_to: count.optional() }).nullable()
    .describe("Range of input sizes that its prices are for; null if the model has no context tiers"),
  price_window: z.string().nullable().describe("Time window that its prices are for; null outside all windows"),
  tokens,
  affinity: z.enum(["hit", "miss", "moved"]).nullable().describe(
    "`hit`: the target with the conversation in its prompt cache answered; null if affinity did not apply",
  ),
  cache_saved_usd: usd.nullable().describe(
    "Savings from the prompt cache minus the cost of writing to it; null if it was not used",
  ),
  source: z.enum(["upstream", "counted", "estimated", "formula", "none"]).describe(
    "Source of the token counts",
  ),
  price_version: z.number().int().nullable(),
  lines: z.array(priceLine),
  sum_usd: usd,
  held_usd: usd,
  released_usd: usd,
  overrun_usd: usd,
  charged_usd: usd.describe("Amount that the customer pays"),
  upstream_usd: usd.nullable().describe("Cost at the target's prices; null if it has none"),
  why_free: z.string().nullable(),
  adds_up: z.boolean().describe("False if the entry or its prices were modified"),
});

/** A running request whose highest possible cost is held. */
const runningRequest = z.strictObject({
  state: z.literal("running"),
  id: z.string(),
  at: time,
  key: keyName,
  key_id: z.string(),
  group: z.string(),
  model: z.string(),
  endpoint: z.string(),
  held_usd: usd,
});

/** One request and how its price is computed. */
export const explanationSchema = z.discriminatedUnion("state", [endedRequest, runningRequest]);

const requestLine = z.strictObject({
  ...names,
  status: z.number().int().nullable().describe("Null if the process ended before the request did (`lost`)"),
  ending: endingSchema,
  reason: z.string().nullable().describe("Code for the reason of the refusal or failure, or `lost`"),
  why: z.string().nullable().describe("The reason in one sentence"),
  attempts: count,
  first_ms: z.number().nullable(),
  total_ms: z.number(),
  prompt_tokens: count.describe("All input tokens, including cached ones"),
  completion_tokens: count,
  images: count,
  cost_usd: usd,
  user: z.string().nullable(),
  tags: z.array(z.string()).readonly(),
});

/** A page of requests. */
export const requestPageSchema = z.strictObject({
  object: z.literal("list"),
  data: z.array(requestLine),
  next: z.string().nullable().describe("Cursor of the next page; null on the last one"),
  last_seq: count.describe("Value of `after_seq` to find requests that end later"),
});

/** A request, ended or running. Amounts are exact USD, as decimal strings; members without a value are `null`. */
export type Explanation = z.output<typeof explanationSchema>;

/** An ended request. */
export type EndedRequest = z.output<typeof endedRequest>;

/** The members that name an ended request. */
export type RequestNames = Pick<EndedRequest, keyof typeof names>;

/** A running request. */
export type RunningRequest = z.output<typeof runningRequest>;

/** One request of a list. */
export type RequestLine = z.output<typeof requestLine>;

/** A page of requests. */
export type RequestPage = z.output<typeof requestPageSchema>;
