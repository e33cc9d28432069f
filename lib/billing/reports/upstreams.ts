/** Adds up requests by upstream, upstream model and day, to compare them with the upstream's invoice. */
import type { Config } from "../../config.ts";
import { type Amount, divideByFactor, parseFactor, parseUsd } from "../money.ts";
import { costOfExtras, costOfTokens } from "../price.ts";
import { sortSliced, yieldToEventLoop } from "../../scheduler.ts";
import { compareValues } from "../../compare_values.ts";
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
import { matchesFilter } from "../../store/search.ts";
import { readKeptEntries } from "./kept_entries.ts";
import type { Period } from "./period.ts";
import { ReportQueryError } from "./report_errors.ts";

/** Requests of one upstream for one of its models on one day. */
export interface UpstreamSum extends UpstreamFigures {
  upstream: string;
  /**
   * The upstream's name of the model. The ledger has only the public id; the name comes from the current configuration.
   * If the model has no target at this upstream any more, or several with different names, this is the public id.
   */
  model: string;
  /** UTC days since 1970-01-01 on which requests arrived. */
  day: number;
}

/** Sums over requests. */
export interface UpstreamFigures {
  /** Requests whose last attempt went to this upstream. */
  requests: number;
  /** Attempts of these requests, at this or other upstreams. */
  attempts: number;
  /** Failed requests. They count no tokens, even if the upstream bills them. */
  failed: number;
  /**
   * Requests whose tokens the gateway counted: the client disconnected, the upstream reported none, or it made images.
   */
  counted: number;
  tokens: BilledTokens;
  images: number;
  /** Cost at the prices of the query, else at the target's prices, else at catalog prices without group factors. */
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
  /** Prices that replace those of targets and catalog; absent: none. */
  prices?: UpstreamPrices;
  only?: UsageFilter;
  signal?: AbortSignal;
}

/** The part of the configuration that names the models at upstreams. */
interface CatalogModels {
  models: readonly Pick<Config["models"][number], "id" | "targets">[];
}

/** Entries that are read at a time. */
const PAGE_ENTRIES = 1000;

/**
 * Adds up requests. The sums are ordered by upstream, model and day.
 * @throws {PrunedEntriesError} if entries of the period were pruned
 * @throws {ReportQueryError} if the upstream is not configured and has no requests
 * @throws the signal's reason, before the next page, if it is aborted
 */
export async function sumUpstreams(
  { ledger, config }: {
    ledger: Pick<LedgerStore, "entriesWithin" | "start" | "upstreamDays">;
    /** `models`: those of the catalog, which includes the embedded models. */
    config: Pick<Config, "upstreams"> & CatalogModels;
  },
  query: UpstreamQuery,
): Promise<UpstreamSum[]> {
  const { since, until, upstream, prices } = query;
  const selected = new SelectedSums(config, upstream);
  await readKeptEntries(ledger, { since, until, by: "upstream" }, async () => {
    // The store has no sums at other prices.
    const isComplete = prices === undefined && addDays(selected, await ledger.upstreamDays(query, query.signal));
    if (isComplete) return;
    selected.clear();
    await addEntries(selected, ledger, query);
  });
  const sums = selected.list();
  if (upstream !== undefined && sums.length === 0 && !Object.hasOwn(config.upstreams, upstream)) {
    throw new ReportQueryError(
      `Cannot find upstream "${upstream}": it is not configured and has no requests`,
      "upstream",
    );
  }
  return await sortUpstreamSums(sums);
}

/** Collects sums of one upstream or of all, by the upstreams' names of models. */
class SelectedSums {
  readonly #modelOf: ReturnType<typeof upstreamModels>;
  readonly #upstream: string | undefined;
  readonly #sums = new Map<string, UpstreamSum>();

  constructor(config: CatalogModels, upstream: string | undefined) {
    this.#modelOf = upstreamModels(config);
    this.#upstream = upstream;
  }

  /** Returns the sum that these requests belong to; `undefined` if they are of an upstream that was not requested. */
  of({ upstream, model: id, day }: { upstream: string; model: string; day: number }): UpstreamSum | undefined {
    if (upstream === "" || (this.#upstream !== undefined && upstream !== this.#upstream)) return undefined;
    const model = this.#modelOf({ upstream, model: id });
    const name = [upstream, model, day].join("\n");
    let sum = this.#sums.get(name);
    if (sum === undefined) this.#sums.set(name, sum = { upstream, model, day, ...emptyFigures() });
    return sum;
  }

  clear(): void {
    this.#sums.clear();
  }

  list(): UpstreamSum[] {
    return [...this.#sums.values()];
  }
}

/** Adds sums of the store. Returns false if a cost at an upstream cannot be computed without single entries. */
function addDays(selected: SelectedSums, days: readonly UpstreamDaySum[]): boolean {
  for (const day of days) {
    const sum = selected.of(day);
    if (sum === undefined) continue;
    const upstreamCost = day.hasTargetPrice ? day.targetCost : catalogCost(day);
    if (upstreamCost === undefined) return false;
    const unpriced = day.hasTargetPrice || day.sheet === undefined ? 0 : day.requests;
    addTo(sum, { ...day, upstreamCost, unpriced });
  }
  return true;
}

/**
 * Returns the cost of requests at catalog prices: that of their tokens and of their extras. The cost of the extras is
 * the part of the charge that the tokens do not account for. `undefined` if that is unknown, as with a factor of 0.
 */
function catalogCost({ sheet, tokens, cost, overrun }: UpstreamDaySum): Amount | undefined {
  if (sheet === undefined) return 0n;
  const extras = divideByFactor(cost + overrun - costOfTokens(tokens, sheet), parseFactor(sheet.factor));
  return extras === undefined ? undefined : costOfTokens(tokens, { ...sheet, factor: "1" }) + extras;
}

async function addEntries(
  selected: SelectedSums,
  ledger: Pick<LedgerStore, "entriesWithin">,
  { since, until, prices, only = {}, signal }: UpstreamQuery,
): Promise<void> {
  const costOf = upstreamCosts(prices);
  const filter = { ...only, since, until };
  let page: KeptEntry[] = [];
  do {
    const last = page.at(-1);
    page = await ledger.entriesWithin({ since: last?.at ?? since, after: last?.seq ?? 0, until, limit: PAGE_ENTRIES });
    for (const entry of page) {
      if (!matchesFilter(entry, filter)) continue;
      const sum = selected.of({ ...entry, day: dayOf(entry.at) });
      if (sum === undefined) continue;
      const { amount, isKnown } = costOf(sum.model, entry);
      const counted = entry.source === "upstream" || entry.source === "none" ? 0 : 1;
      addTo(sum, {
        ...figuresOf(entry),
        ...{ attempts: entry.attempts, counted, upstreamCost: amount, unpriced: isKnown ? 0 : 1 },
      });
    }
    await yieldToEventLoop();
    signal?.throwIfAborted();
  } while (page.length === PAGE_ENTRIES);
}

/** Sorts sums by upstream, model and day, with pauses. */
function sortUpstreamSums(sums: readonly UpstreamSum[]): Promise<UpstreamSum[]> {
  return sortSliced(
    sums,
    (one, other) =>
      compareValues(one.upstream, other.upstream) || compareValues(one.model, other.model) || one.day - other.day,
  );
}

/** Adds up the days of each upstream and model. */
export function sumsByModel(sums: readonly UpstreamSum[]): Omit<UpstreamSum, "day">[] {
  return [...Map.groupBy(sums, ({ upstream, model }) => `${upstream}\n${model}`)].map(([name, ofModel]) => {
    const [upstream = "", model = ""] = name.split("\n");
    return { upstream, model, ...totalOf(ofModel) };
  });
}

/** Adds up all sums. */
export function totalOf(sums: readonly UpstreamFigures[]): UpstreamFigures {
  const total = emptyFigures();
  for (const sum of sums) addTo(total, sum);
  return total;
}

function addTo(total: UpstreamFigures, more: UpstreamFigures): void {
  for (const count of ["requests", "attempts", "failed", "counted", "images", "unpriced"] as const) {
    total[count] += more[count];
  }
  addTokens(total.tokens, more.tokens);
  total.upstreamCost += more.upstreamCost;
  total.cost += more.cost;
}

function emptyFigures(): UpstreamFigures {
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

function upstreamModels({ models }: CatalogModels): (of: Pick<KeptEntry, "upstream" | "model">) => string {
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

interface UpstreamCost {
  amount: Amount;
  /** False if the upstream's prices are unknown, and the amount is at catalog prices. */
  isKnown: boolean;
}

/** Returns a function for the upstream cost of an entry. It freezes sheets, so that their prices are parsed once. */
function upstreamCosts(prices: UpstreamPrices | undefined): (model: string, entry: KeptEntry) => UpstreamCost {
  const sheets = new Map<number, Readonly<PriceSheet>>();
  return (model, { tokens, details, sheet, priceVersion = 0 }) => {
    const { extras = [], upstream_usd } = details ?? {};
    const listed = prices?.get(model);
    if (listed !== undefined) {
      const amount = costOfTokens(tokens, listed) + costOfExtras(repriceExtras(extras, listed), listed);
      return { amount, isKnown: true };
    }
    if (upstream_usd !== undefined) return { amount: parseUsd(upstream_usd), isKnown: true };
    if (sheet === undefined) return { amount: 0n, isKnown: true };
    let plain = sheets.get(priceVersion);
    if (plain === undefined) sheets.set(priceVersion, plain = Object.freeze({ ...sheet, factor: "1" }));
    return { amount: costOfTokens(tokens, plain) + costOfExtras(extras, plain), isKnown: false };
  };
}

/** Returns the extras at the prices of an upstream. */
function repriceExtras(
  extras: readonly BilledExtra[],
  prices: Readonly<Partial<Record<string, string>>>,
): BilledExtra[] {
  return extras.map((extra) => ({ ...extra, price: prices[extra.item] ?? "0" }));
}
