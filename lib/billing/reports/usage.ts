/** Makes the bill of a period: costs and tokens by key, group, model, day, end user or tag, or by two of them. */
import { compareValues } from "../../compare_values.ts";
import type { Config } from "../../config.ts";
import { formatUsd } from "../money.ts";
import { mapSliced, sortSliced, yieldToEventLoop } from "../../scheduler.ts";
import { addFigures, byName, needsEntries, noFigures } from "../../store/days.ts";
import type { KeyStore } from "../../store/keys.ts";
import { readKeptEntries } from "./kept_entries.ts";
import { requireKnown, TEST_KEY_ID, TEST_KEY_NAME } from "./usage_filter.ts";
import { ReportQueryError } from "./report_errors.ts";
import type { UsageFigures, UsageLine, UsageReport } from "./schemas.ts";
import {
  type BilledTokens,
  inputTokensOf,
  type LedgerStore,
  type UsageBy,
  type UsageQuery,
  type UsageSum,
} from "../../store/ledger.ts";

/** A grouping of a bill. */
export type UsageGrouping = Exclude<UsageBy, "upstream" | "hour" | "minute">;

/** All groupings of a bill. Two of them can be combined. */
export const USAGE_BY = ["key", "group", "model", "day", "user", "tag"] as const satisfies readonly UsageGrouping[];

/** The sources of sums, keys and the configuration. */
export interface UsageParts {
  ledger: Pick<LedgerStore, "usage" | "start">;
  keys: Pick<KeyStore, "findIds">;
  config: Pick<Config, "keys" | "groups" | "models">;
}

/** Keys that are read at a time. */
const KEYS_PER_READ = 500;

/** Options of a bill. */
export interface UsageReportQuery extends UsageQuery {
  by: UsageGrouping;
  thenBy?: UsageGrouping;
  signal?: AbortSignal;
}

/** Reads one grouping, or two separated by a comma. @throws {ReportQueryError} for any other text */
export function readGroupings(text: string): Pick<UsageReportQuery, "by" | "thenBy"> {
  const [by, thenBy, ...more] = text.split(",").map(readGrouping);
  if (by === undefined || more.length > 0 || by === thenBy) {
    throw new ReportQueryError(
      `Cannot sum up by "${text}": expected one or two different of ${USAGE_BY.join(", ")}`,
      "by",
    );
  }
  return { by, ...(thenBy !== undefined && { thenBy }) };
}

function readGrouping(text: string): UsageGrouping {
  const by = USAGE_BY.find((name) => name === text);
  if (by !== undefined) return by;
  if (text === "upstream") {
    throw new ReportQueryError('Cannot sum up by "upstream" and something else: sum up by it alone', "by");
  }
  throw new ReportQueryError(`Cannot sum up by "${text}"; known: ${USAGE_BY.join(", ")}, upstream`, "by");
}

/**
 * Makes the bill of a period, with pauses: there may be a line for every key.
 * @throws {ReportQueryError} for a group or model that is neither used nor configured
 * @throws {PrunedEntriesError} if the query groups or filters by end user or tag, and entries of the period were pruned
 * @throws the signal's reason if it is aborted
 */
export async function usageReport(
  { ledger, keys, config }: UsageParts,
  { signal, ...query }: UsageReportQuery,
): Promise<UsageReport> {
  const { since, until, by, thenBy } = query;
  const needed = needsEntries(query) ? { since, until, by: "user or tag" } : undefined;
  const { sums, eachOnce } = await readKeptEntries(ledger, needed, async () => {
    const sums = await ledger.usage(query, signal);
    const eachOnce = by === "tag" || thenBy === "tag" ? await ledger.usage(withoutTags(query), signal) : sums;
    signal?.throwIfAborted();
    return { sums, eachOnce };
  });
  if (sums.length === 0) requireKnown(query.only ?? {}, config);
  const ids = by === "key" ? sums.map(({ name }) => name) : sums.map(({ thenName = "" }) => thenName);
  const names = by === "key" || thenBy === "key" ? await keyNames({ keys, config }, [...new Set(ids)]) : new Map();
  const total = emptySum();
  for (const sum of eachOnce) addSum(total, sum);
  const displayName = (by: UsageBy | undefined, name: string) => by === "key" ? names.get(name) ?? name : name;
  return {
    since: new Date(since).toISOString(),
    until: new Date(until).toISOString(),
    by,
    ...(thenBy !== undefined && { then_by: thenBy }),
    lines: await mapSliced(await sortSums(sums, query), (sum): UsageLine => {
      const { name, thenName } = sum;
      return {
        ...(by === "key" && { id: name }),
        name: displayName(by, name),
        ...(thenBy === "key" && thenName !== undefined && { then_id: thenName }),
        ...(thenName !== undefined && { then_name: displayName(thenBy, thenName) }),
        ...figures(sum),
      };
    }),
    total: figures(total),
  };
}

/** Returns a query for the same requests that counts each once: a request may have several tags. */
function withoutTags({ by, thenBy, ...query }: UsageQuery): UsageQuery {
  return { ...query, by: by === "tag" ? thenBy ?? "group" : by };
}

/** Sorts sums by cost, highest first, or by day. With two groupings, sums of one first name stay together. */
async function sortSums(sums: readonly UsageSum[], { by, thenBy }: UsageQuery): Promise<UsageSum[]> {
  if (thenBy === undefined) return await sortSliced(sums, by === "day" ? byName : byCost);
  const totals = new Map<string, Sum>();
  for (const sum of sums) {
    const total = totals.get(sum.name) ?? emptySum();
    addSum(total, sum);
    totals.set(sum.name, total);
  }
  const first = await sortSliced(
    [...totals].map(([name, total]) => ({ name, ...total })),
    by === "day" ? byName : byCost,
  );
  const ranks = new Map(first.map(({ name }, rank) => [name, rank]));
  const rankOf = ({ name }: UsageSum) => ranks.get(name) ?? 0;
  const second = thenBy === "day" ? byName : byCost;
  return await sortSliced(sums, (one, other) => rankOf(one) - rankOf(other) || second(one, other));
}

/**
 * Returns the names of keys by id: of all configured keys, and of those stored keys, revoked or not, that have one of
 * `ids`.
 */
export async function keyNames(
  { keys, config }: Pick<UsageParts, "keys"> & { config: Pick<Config, "keys"> },
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const names = new Map(config.keys.map(({ name }) => [`config:${name}`, name]));
  names.set(TEST_KEY_ID, TEST_KEY_NAME);
  for (let at = 0; at < ids.length; at += KEYS_PER_READ) {
    if (at > 0) await yieldToEventLoop();
    for (const { id, name } of await keys.findIds(ids.slice(at, at + KEYS_PER_READ))) names.set(id, name);
  }
  return names;
}

/** A sum without its names. */
type Sum = Omit<UsageSum, "name" | "thenName">;

function figures({ requests, failed, tokens, images, cost, overrun, saved }: Sum): UsageFigures {
  return {
    ...{ requests, failed, tokens, cached_percent: cachedPercent(tokens), cache_saved_usd: formatUsd(saved), images },
    ...{ cost_usd: formatUsd(cost), overrun_usd: formatUsd(overrun) },
  };
}

function addSum(total: Sum, sum: Sum): void {
  addFigures(total, sum);
  total.saved += sum.saved;
}

function cachedPercent(tokens: BilledTokens): number | null {
  const input = inputTokensOf(tokens);
  return input === 0 ? null : Math.floor(100 * tokens.input_cache_read / input);
}

function emptySum(): Sum {
  return { ...noFigures(), saved: 0n };
}

function byCost(one: UsageSum, other: UsageSum): number {
  return compareValues(other.cost, one.cost) || other.requests - one.requests || byName(one, other);
}
