/** The bill: sums over the ledger by key, group, model or day. */
import type { Config } from "../config.ts";
import { type Amount, formatUsd } from "../metering/money.ts";
import { NO_TOKENS } from "../store/days.ts";
import type { KeyStore } from "../store/keys.ts";
import type { BilledTokens, LedgerStore, UsageBy, UsageSum } from "../store/ledger.ts";
import type { Period } from "./period.ts";

/** What the sums can be asked by. */
export const USAGE_BY: readonly UsageBy[] = ["key", "group", "model", "day"];

/** What is known of some requests together. Amounts are exact USD, as decimal strings. */
export interface UsageFigures {
  requests: number;
  /** Of them, those that failed, were refused or lost: without charge. */
  failed: number;
  tokens: BilledTokens;
  /** Pictures delivered. */
  images: number;
  /** What the customer pays. */
  cost_usd: string;
  /** What the house pays: costs beyond what was held. */
  overrun_usd: string;
}

/** One line of the bill. */
export interface UsageLine extends UsageFigures {
  /** Id of the key; absent where the lines are not by key. */
  id?: string;
  /** Name of the key (its id where the key is not known any more), group or model, or the day as `2026-11-21`. */
  name: string;
}

/** The bill of a period. */
export interface UsageReport {
  /** Moments by UTC, as `2026-11-01T00:00:00.000Z`; `until` is not part of the period. */
  since: string;
  until: string;
  by: UsageBy;
  /** The dearest first; days in their order. */
  lines: UsageLine[];
  total: UsageFigures;
}

/** What a bill is made from. */
export interface UsageParts {
  ledger: Pick<LedgerStore, "usage">;
  keys: Pick<KeyStore, "list">;
  config: Pick<Config, "keys">;
}

/** Makes the bill of a period. */
export async function usageReport(
  { ledger, keys, config }: UsageParts,
  { since, until, by }: Period & { by: UsageBy },
): Promise<UsageReport> {
  const sums = await ledger.usage({ since, until, by });
  const names = by === "key" ? await keyNames({ keys, config }) : undefined;
  const ordered = sums.toSorted(by === "day" ? byName : byCost);
  return {
    since: new Date(since).toISOString(),
    until: new Date(until).toISOString(),
    by,
    lines: ordered.map((sum) => ({
      ...(names !== undefined && { id: sum.name }),
      name: names?.get(sum.name) ?? sum.name,
      ...figures(sum),
    })),
    total: figures(totalOf(sums)),
  };
}

/** Names of keys by their ids: those of the configuration, and those of the store, ended ones included. */
export async function keyNames(
  { keys, config }: Pick<UsageParts, "keys" | "config">,
): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ...config.keys.map(({ name }) => [`config:${name}`, name] as const),
    ...(await keys.list()).map(({ id, name }) => [id, name] as const),
  ]);
}

/** A sum without its name. */
type Sum = Omit<UsageSum, "name">;

function figures({ requests, failed, tokens, images, cost, overrun }: Sum): UsageFigures {
  return { requests, failed, tokens, images, cost_usd: formatUsd(cost), overrun_usd: formatUsd(overrun) };
}

function totalOf(sums: readonly Sum[]): Sum {
  let cost: Amount = 0n;
  let overrun: Amount = 0n;
  const tokens = { ...NO_TOKENS };
  const counts = { requests: 0, failed: 0, images: 0 };
  for (const sum of sums) {
    cost += sum.cost;
    overrun += sum.overrun;
    counts.requests += sum.requests;
    counts.failed += sum.failed;
    counts.images += sum.images;
    for (const name of Object.keys(tokens) as (keyof BilledTokens)[]) tokens[name] += sum.tokens[name];
  }
  return { ...counts, tokens, cost, overrun };
}

function byName(one: UsageSum, other: UsageSum): number {
  return one.name < other.name ? -1 : 1;
}

function byCost(one: UsageSum, other: UsageSum): number {
  if (one.cost !== other.cost) return one.cost > other.cost ? -1 : 1;
  return other.requests - one.requests || byName(one, other);
}
