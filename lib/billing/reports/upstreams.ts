/** Sums of entries by upstream, upstream model and day, to compare with the upstream's invoice. */
import type { Config } from "../../config.ts";
import { type Amount, parseUsd } from "../money.ts";
import { costOfExtras, costOfTokens } from "../price.ts";
import { sortSliced, yieldToEventLoop } from "../../scheduler.ts";
import { addTokens, dayOf, figuresOf, NO_TOKENS } from "../../store/days.ts";
import type { BilledExtra, BilledTokens, KeptEntry, LedgerStore, PriceSheet, UsageFilter } from "../../store/ledger.ts";
import { requireEntries } from "./kept_entries.ts";
import type { Period } from "./period.ts";

/** Requests of one upstream for one of its models on one day. */
export interface UpstreamSum {
  upstream: string;
  /**
   * The upstream's name of the model, by the current configuration, since the ledger has only public ids; the public id
   * if that has no target there any more, or several.
   */
  model: string;
  /** UTC days since 1970-01-01 on which requests arrived. */
  day: number;
  /** Requests whose last attempt went to this upstream. */
  requests: number;
  /** Attempts of these requests, at this or other upstreams. */
  attempts: number;
  /** Failed requests. They count no tokens, even if the upstream bills them. */
  failed: number;
  /** Requests with token counts of the gateway: clients left, the upstream reported none, or images. */
  counted: number;
  tokens: BilledTokens;
  images: number;
  /** Cost at given prices, else at the target's, else at catalog prices without group factors. */
  upstreamCost: Amount;
  /** Requests costed at catalog prices, because the target has no prices. */
  unpriced: number;
  /** Amount that customers pay. */
  cost: Amount;
}

/** Prices of an upstream, by its model names. */
export type UpstreamPrices = ReadonlyMap<string, Readonly<UpstreamPriceSheet>>;

/** Prices of an upstream model. Extras without a price cost nothing there. */
export type UpstreamPriceSheet = PriceSheet & { input_image?: string; request?: string };

/** Options of the sums. */
export interface UpstreamQuery extends Period {
  /** Name of one upstream; absent: all. */
  upstream?: string;
  prices?: UpstreamPrices;
  /** Filter of the requests. */
  only?: UsageFilter;
  /** Cancels the work. */
  signal?: AbortSignal;
}

/** An upstream that is neither in the configuration nor in the ledger. */
export class UnknownUpstreamError extends RangeError {
  override name = "UnknownUpstreamError";
}

/** Models with their targets. */
interface CatalogRows {
  models: readonly Pick<Config["models"][number], "id" | "targets">[];
}

/** Entries read at a time. */
const PAGE = 1000;

/**
 * Sums entries, ordered by upstream, model and day.
 * @throws {PrunedEntriesError} if entries of the period were pruned, since sums per day have no upstreams
 * @throws {UnknownUpstreamError}
 * @throws the signal's reason, before the next page, if it is aborted
 */
export async function sumUpstreams(
  { ledger, config }: {
    ledger: Pick<LedgerStore, "entriesWithin" | "start">;
    /** `models`: those of the catalog, which has embedded ones. */
    config: Pick<Config, "upstreams"> & CatalogRows;
  },
  { since, until, upstream, prices, only = {}, signal }: UpstreamQuery,
): Promise<UpstreamSum[]> {
  const sums = new Map<string, UpstreamSum>();
  const modelOf = upstreamModels(config);
  const costOf = upstreamCosts(prices);
  await requireEntries(ledger, { since, by: "upstream" });
  let page: KeptEntry[] = [];
  do {
    const last = page.at(-1);
    page = await ledger.entriesWithin({ since: last?.at ?? since, after: last?.seq ?? 0, until, limit: PAGE });
    for (const entry of page) {
      if (entry.upstream === "" || (upstream !== undefined && entry.upstream !== upstream)) continue;
      if (!isWanted(entry, only)) continue;
      const model = modelOf(entry);
      const day = dayOf(entry.at);
      const name = [entry.upstream, model, day].join("\n");
      let sum = sums.get(name);
      if (sum === undefined) sums.set(name, sum = { upstream: entry.upstream, model, day, ...nothing() });
      add(sum, entry, costOf(model, entry));
    }
    await yieldToEventLoop();
    signal?.throwIfAborted();
  } while (page.length === PAGE);
  // Checked again: entries may be pruned while others are read.
  await requireEntries(ledger, { since, by: "upstream" });
  if (upstream !== undefined && sums.size === 0 && !Object.hasOwn(config.upstreams, upstream)) {
    throw new UnknownUpstreamError(
      `Cannot find upstream "${upstream}": it is not configured and has no requests`,
    );
  }
  return await sortUpstreamSums([...sums.values()]);
}

/** In the order of upstreams, models and days. */
export function sortUpstreamSums(sums: readonly UpstreamSum[]): Promise<UpstreamSum[]> {
  return sortSliced(
    sums,
    (one, other) => compare(one.upstream, other.upstream) || compare(one.model, other.model) || one.day - other.day,
  );
}

function isWanted({ keyId, group, model, details = {} }: KeptEntry, only: UsageFilter): boolean {
  const { user, tags = [] } = details;
  return (only.keyId ?? keyId) === keyId && (only.group ?? group) === group && (only.model ?? model) === model &&
    (only.user ?? user) === user && (only.tag === undefined || tags.includes(only.tag));
}

function nothing(): Omit<UpstreamSum, "upstream" | "model" | "day"> {
  return {
    requests: 0,
    attempts: 0,
    failed: 0,
    counted: 0,
    tokens: { ...NO_TOKENS },
    images: 0,
    upstreamCost: 0n,
    unpriced: 0,
    cost: 0n,
  };
}

function add(sum: UpstreamSum, entry: KeptEntry, { amount, isKnown }: UpstreamCost): void {
  const { requests, failed, tokens, images, cost } = figuresOf(entry);
  sum.requests += requests;
  sum.attempts += entry.attempts;
  sum.failed += failed;
  if (entry.source !== "upstream" && entry.source !== "none") sum.counted++;
  addTokens(sum.tokens, tokens);
  sum.images += images;
  sum.upstreamCost += amount;
  if (!isKnown) sum.unpriced++;
  sum.cost += cost;
}

function upstreamModels({ models }: CatalogRows): (entry: KeptEntry) => string {
  const names = new Map<string, Set<string>>();
  for (const { id, targets } of models) {
    for (const { upstream, model } of targets) {
      const name = `${upstream}\n${id}`;
      names.set(name, (names.get(name) ?? new Set()).add(model));
    }
  }
  return ({ upstream, model }) => {
    const [only = model, ...others] = names.get(`${upstream}\n${model}`) ?? [];
    return others.length === 0 ? only : model;
  };
}

/** Cost of an entry at its upstream. */
interface UpstreamCost {
  amount: Amount;
  /** False: at catalog prices. */
  isKnown: boolean;
}

/** Returns a function for the upstream cost of an entry. Prices of frozen sheets are parsed once. */
function upstreamCosts(prices: UpstreamPrices | undefined): (model: string, entry: KeptEntry) => UpstreamCost {
  const sheets = new Map<number, Readonly<PriceSheet>>();
  return (model, { tokens, details, sheet, priceVersion = 0 }) => {
    const { extras = [], upstream_usd } = details ?? {};
    const given = prices?.get(model);
    if (given !== undefined) {
      const amount = costOfTokens(tokens, given) + costOfExtras(repriced(extras, given), given);
      return { amount, isKnown: true };
    }
    if (upstream_usd !== undefined) return { amount: parseUsd(upstream_usd), isKnown: true };
    if (sheet === undefined) return { amount: 0n, isKnown: true };
    let plain = sheets.get(priceVersion);
    if (plain === undefined) sheets.set(priceVersion, plain = Object.freeze({ ...sheet, factor: "1" }));
    return { amount: costOfTokens(tokens, plain) + costOfExtras(extras, plain), isKnown: false };
  };
}

/** The extras at the prices of an upstream. */
function repriced(extras: readonly BilledExtra[], prices: Readonly<Partial<Record<string, string>>>): BilledExtra[] {
  return extras.map((extra) => ({ ...extra, price: prices[extra.item] ?? "0" }));
}

function compare(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}
