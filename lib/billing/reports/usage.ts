/** The bill: sums over the ledger by key, group, model or day. */
import type { Config } from "../../config.ts";
import { formatUsd } from "../money.ts";
import { mapSliced, sortSliced, yieldToEventLoop } from "../../scheduler.ts";
import { addFigures, byName, NO_TOKENS } from "../../store/days.ts";
import type { KeyStore } from "../../store/keys.ts";
import type { BilledTokens, LedgerStore, UsageBy, UsageSum } from "../../store/ledger.ts";
import type { Period } from "./period.ts";

/** Groupings of the sums. */
export const USAGE_BY: readonly UsageBy[] = ["key", "group", "model", "day"];

/** Sums over requests. Amounts are exact USD, as decimal strings. */
export interface UsageFigures {
  requests: number;
  /** Of them, those that failed, were refused or lost: without charge. */
  failed: number;
  tokens: BilledTokens;
  /** Images delivered. */
  images: number;
  /** Amount that the customer pays. */
  cost_usd: string;
  /** Amount that the operator pays: costs beyond the held amounts. */
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

/** Sources of a bill. */
export interface UsageParts {
  ledger: Pick<LedgerStore, "usage">;
  keys: Pick<KeyStore, "names">;
  config: Pick<Config, "keys">;
}

/** Ids whose names are asked for at once. */
const NAMES_AT_ONCE = 500;

/** Which bill is made. */
export interface UsageQuery extends Period {
  by: UsageBy;
  /** Cancels the work. */
  signal?: AbortSignal;
}

/**
 * Makes the bill of a period, a slice at a time: there may be as many lines as keys.
 * @throws the reason of the signal, where it is given up
 */
export async function usageReport(
  { ledger, keys, config }: UsageParts,
  { since, until, by, signal }: UsageQuery,
): Promise<UsageReport> {
  const sums = await ledger.usage({ since, until, by }, signal);
  signal?.throwIfAborted();
  const names = by === "key" ? await keyNames({ keys, config }, sums.map(({ name }) => name)) : undefined;
  const ordered = await sortSliced(sums, by === "day" ? byName : byCost);
  const total = emptySum();
  return {
    since: new Date(since).toISOString(),
    until: new Date(until).toISOString(),
    by,
    lines: await mapSliced(ordered, (sum) => {
      addFigures(total, sum);
      return {
        ...(names !== undefined && { id: sum.name }),
        name: names?.get(sum.name) ?? sum.name,
        ...figures(sum),
      };
    }),
    total: figures(total),
  };
}

/** Names of the keys with these ids: those of the configuration, and those of the store, ended ones included. */
export async function keyNames(
  { keys, config }: Pick<UsageParts, "keys" | "config">,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const names = new Map(config.keys.map(({ name }) => [`config:${name}`, name]));
  for (let at = 0; at < ids.length; at += NAMES_AT_ONCE) {
    if (at > 0) await yieldToEventLoop();
    for (const [id, name] of await keys.names(ids.slice(at, at + NAMES_AT_ONCE))) names.set(id, name);
  }
  return names;
}

/** A sum without its name. */
type Sum = Omit<UsageSum, "name">;

function figures({ requests, failed, tokens, images, cost, overrun }: Sum): UsageFigures {
  return { requests, failed, tokens, images, cost_usd: formatUsd(cost), overrun_usd: formatUsd(overrun) };
}

function emptySum(): Sum {
  return { requests: 0, failed: 0, tokens: { ...NO_TOKENS }, images: 0, cost: 0n, overrun: 0n };
}

function byCost(one: UsageSum, other: UsageSum): number {
  if (one.cost !== other.cost) return one.cost > other.cost ? -1 : 1;
  return other.requests - one.requests || byName(one, other);
}
