/** Sums of entries by upstream, upstream model and day, to compare with the upstream's invoice. */
import type { Config } from "../../config.ts";
import { type Amount, parseFactor, parseUsd, withoutFactor } from "../money.ts";
import { costOfExtras, costOfTokens } from "../price.ts";
import { sortSliced, yieldToEventLoop } from "../../scheduler.ts";
import { addTokens, dayOf, figuresOf, NO_TOKENS } from "../../store/days.ts";
import type {
  BilledExtra,
  BilledTokens,
  KeptEntry,
  LedgerStore,
  PriceSheet,
  UpstreamDaySum,
  UsageFilter,
} from "../../store/ledger.ts";
import { requireEntries } from "./kept_entries.ts";
import type { Period } from "./period.ts";
import { ReportQueryError } from "./report_errors.ts";

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
  /** Requests with token counts of the gateway: clients disconnected, the upstream reported none, or images. */
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

/** Models with their targets. */
interface CatalogRows {
  models: readonly Pick<Config["models"][number], "id" | "targets">[];
}

/** Entries read at a time. */
const PAGE = 1000;

/**
 * Sums requests, ordered by upstream, model and day.
 * @throws {PrunedEntriesError} if entries of the period were pruned
 * @throws {ReportQueryError}
 * @throws the signal's reason, before the next page, if it is aborted
 */
export async function sumUpstreams(
  { ledger, config }: {
    ledger: Pick<LedgerStore, "entriesWithin" | "start" | "upstreamDays">;
    /** `models`: those of the catalog, which has embedded ones. */
    config: Pick<Config, "upstreams"> & CatalogRows;
  },
  query: UpstreamQuery,
): Promise<UpstreamSum[]> {
  const { since, upstream, prices } = query;
  await requireEntries(ledger, { since, by: "upstream" });
  const selectedSums = new WantedSums(config, upstream);
  // The store has no sums at other prices.
  const isComplete = prices === undefined && addDays(selectedSums, await ledger.upstreamDays(query, query.signal));
  if (!isComplete) {
    selectedSums.clear();
    await addEntries(selectedSums, ledger, query);
  }
  // Checked again: entries may be pruned while others are read.
  await requireEntries(ledger, { since, by: "upstream" });
  const sums = selectedSums.list();
  if (upstream !== undefined && sums.length === 0 && !Object.hasOwn(config.upstreams, upstream)) {
    throw new ReportQueryError(
      `Cannot find upstream "${upstream}": it is not configured and has no requests`,
      "upstream",
    );
  }
  return await sortUpstreamSums(sums);
}

/** Sums of one upstream or all, by the upstreams' names of models. */
class WantedSums {
  readonly #modelOf: ReturnType<typeof upstreamModels>;
  readonly #upstream: string | undefined;
  readonly #sums = new Map<string, UpstreamSum>();

  constructor(config: CatalogRows, upstream: string | undefined) {
    this.#modelOf = upstreamModels(config);
    this.#upstream = upstream;
  }

  /** The sum for these requests, and the upstream's name of their model; `undefined`: they are not wanted. */
  of({ upstream, model: id, day }: { upstream: string; model: string; day: number }): UpstreamSum | undefined {
    if (upstream === "" || (this.#upstream !== undefined && upstream !== this.#upstream)) return undefined;
    const model = this.#modelOf({ upstream, model: id });
    const name = [upstream, model, day].join("\n");
    let sum = this.#sums.get(name);
    if (sum === undefined) this.#sums.set(name, sum = { upstream, model, day, ...emptySum() });
    return sum;
  }

  clear(): void {
    this.#sums.clear();
  }

  list(): UpstreamSum[] {
    return [...this.#sums.values()];
  }
}

/** Adds sums of the store. False: the cost at the upstream needs single entries. */
function addDays(selectedSums: WantedSums, days: readonly UpstreamDaySum[]): boolean {
  for (const day of days) {
    const sum = selectedSums.of(day);
    if (sum === undefined) continue;
    const upstreamCost = day.hasTargetPrice ? day.targetCost : plainCost(day);
    if (upstreamCost === undefined) return false;
    sum.requests += day.requests;
    sum.attempts += day.attempts;
    sum.failed += day.failed;
    sum.counted += day.counted;
    addTokens(sum.tokens, day.tokens);
    sum.images += day.images;
    sum.upstreamCost += upstreamCost;
    if (!day.hasTargetPrice && day.sheet !== undefined) sum.unpriced += day.requests;
    sum.cost += day.cost;
  }
  return true;
}

/**
 * The cost of requests at the catalog's prices: that of their tokens, and of their extras, which is the rest of what
 * they cost. `undefined`: the rest is unknown, as at a factor of 0.
 */
function plainCost({ sheet, tokens, cost, overrun }: UpstreamDaySum): Amount | undefined {
  if (sheet === undefined) return 0n;
  const extras = withoutFactor(cost + overrun - costOfTokens(tokens, sheet), parseFactor(sheet.factor));
  return extras === undefined ? undefined : costOfTokens(tokens, { ...sheet, factor: "1" }) + extras;
}

async function addEntries(
  selectedSums: WantedSums,
  ledger: Pick<LedgerStore, "entriesWithin">,
  { since, until, prices, only = {}, signal }: UpstreamQuery,
): Promise<void> {
  const costOf = upstreamCosts(prices);
  let page: KeptEntry[] = [];
  do {
    const last = page.at(-1);
    page = await ledger.entriesWithin({ since: last?.at ?? since, after: last?.seq ?? 0, until, limit: PAGE });
    for (const entry of page) {
      if (!isWanted(entry, only)) continue;
      const sum = selectedSums.of({ ...entry, day: dayOf(entry.at) });
      if (sum !== undefined) add(sum, entry, costOf(sum.model, entry));
    }
    await yieldToEventLoop();
    signal?.throwIfAborted();
  } while (page.length === PAGE);
}

/** In the order of upstreams, models and days. */
function sortUpstreamSums(sums: readonly UpstreamSum[]): Promise<UpstreamSum[]> {
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

function emptySum(): Omit<UpstreamSum, "upstream" | "model" | "day"> {
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

function upstreamModels({ models }: CatalogRows): (of: Pick<KeptEntry, "upstream" | "model">) => string {
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
    const listed = prices?.get(model);
    if (listed !== undefined) {
      const amount = costOfTokens(tokens, listed) + costOfExtras(repriced(extras, listed), listed);
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
