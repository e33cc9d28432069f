/** Sums over entries by upstream, its model and day, to compare with the upstream's invoice. */
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
   * The upstream's name of the model, by the configuration of today, as the ledger has the public id alone; the public id
   * where that names no target there any more, or several.
   */
  model: string;
  /** Days since 1970-01-01, by UTC, on which requests came in. */
  day: number;
  /** Requests that it was the last to be asked for. */
  requests: number;
  /** All that was asked for them, at this upstream or at others before it. */
  attempts: number;
  /** Requests that came to nothing. They have no tokens here, whatever the upstream takes for them. */
  failed: number;
  /** Requests whose numbers of tokens are the gateway's own: clients that left, upstreams that told none, images. */
  counted: number;
  tokens: BilledTokens;
  images: number;
  /** Cost at given prices, or else at those of the target, or else at catalog prices without group factors. */
  upstreamCost: Amount;
  /** Requests whose upstream cost is that of the catalog's prices, as the prices of their target are not known. */
  unpriced: number;
  /** Amount that customers pay. */
  cost: Amount;
}

/** Prices of an upstream, by its name of the model. */
export type UpstreamPrices = ReadonlyMap<string, Readonly<UpstreamPriceSheet>>;

/** Prices of an upstream's model. What it does not name beside the classes of tokens costs nothing there. */
export type UpstreamPriceSheet = PriceSheet & { input_image?: string; request?: string };

/** Options of the sums. */
export interface UpstreamQuery extends Period {
  /** The only one; absent: all. */
  upstream?: string;
  prices?: UpstreamPrices;
  /** Only requests with these. */
  only?: UsageFilter;
  /** Cancels the work. */
  signal?: AbortSignal;
}

/** An upstream that neither the configuration nor the ledger has. */
export class UnknownUpstreamError extends RangeError {
  override name = "UnknownUpstreamError";
}

/** Entries read between two turns of the event loop. */
const PAGE = 1000;

/**
 * Sums by upstream, model and day, in the order of these.
 * @throws {PrunedEntriesError} where entries of the period are pruned, as sums per day do not have upstreams
 * @throws {UnknownUpstreamError}
 * @throws the reason of the signal before the next page, where it is given up
 */
export async function sumUpstreams(
  { ledger, config }: {
    ledger: Pick<LedgerStore, "entriesWithin" | "start">;
    config: Pick<Config, "models" | "upstreams">;
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
  // Once more: what is forgotten while others are read is missing as well.
  await requireEntries(ledger, { since, by: "upstream" });
  if (upstream !== undefined && sums.size === 0 && !Object.hasOwn(config.upstreams, upstream)) {
    throw new UnknownUpstreamError(
      `Cannot find an upstream "${upstream}": none is configured, and nothing went to one`,
    );
  }
  return await sortSliced(
    [...sums.values()],
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

function upstreamModels({ models }: Pick<Config, "models">): (entry: KeptEntry) => string {
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
  /** False: by the catalog's prices. */
  isKnown: boolean;
}

/** Returns the cost of an entry at an upstream. Frozen sheets have their prices parsed once. */
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

/** The same at the prices of an upstream. */
function repriced(extras: readonly BilledExtra[], prices: Readonly<Partial<Record<string, string>>>): BilledExtra[] {
  return extras.map((extra) => ({ ...extra, price: prices[extra.item] ?? "0" }));
}

function compare(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}
