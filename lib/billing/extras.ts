/**
 * Charges other than the plain token price: service tiers, context tiers, and calls of hosted tools; and the cost of a
 * request at its upstream.
 */
import {
  type ContentBlock,
  type ContentBlockOf,
  type Extras,
  mayRunHostedTools,
  PLAIN_TIERS,
  type Prompt,
  type ReplyEvent,
  type TokenUsage,
} from "../protocols/canonical/types.ts";
import type { JsonObject } from "../json/mod.ts";
import {
  type BilledExtra,
  type BilledTokens,
  type ContextTier,
  type EntryDetails,
  inputTokensOf,
  type PriceSheet,
} from "../store/ledger.ts";
import { type Amount, parseFactor, parseUsd, timesFactor } from "./money.ts";
import { type ContextSheets, costOfExtras, costOfTokens, type ExtraPrices, pricesOf, unitPrices } from "./price.ts";
import type { Target } from "../catalog/model.ts";
import type { Pricing } from "../catalog/price_schema.ts";
import { windowAt } from "../catalog/catalog.ts";

/** Extra usage of an answer, as far as the upstream reports it. */
export type UsedExtras = Pick<TokenUsage, "tiers" | "hostedCalls">;

/** Prices of a request, and the service tier that it requests. */
interface Terms {
  sheet: Readonly<PriceSheet>;
  extraPrices?: ExtraPrices | undefined;
  tier?: string | undefined;
}

/** Calls of one hosted tool that the hold covers if the request sets no maximum. */
const HELD_CALLS = 32;

/** Larger reported counts of hosted calls are implausible and not billed. */
const MAX_PLAUSIBLE_CALLS = 10_000;

/**
 * Returns the price sheet that applies to a request, and the extras that are billed besides its tokens. The service
 * tier that the upstream reports counts if it has a price, otherwise the requested one.
 */
export function billUsed(
  { used, tokens }: { used?: UsedExtras | undefined; tokens: BilledTokens },
  { sheet, extraPrices, tier: requestedTier }: Terms,
): { sheet: Readonly<PriceSheet>; details?: EntryDetails } {
  if (used === undefined && requestedTier === undefined && extraPrices === undefined) return { sheet };
  const { tiers, hostedCalls = {} } = used ?? {};
  const tier = servedTier(tiers, { requestedTier, extraPrices });
  const extras = Object.entries(hostedCalls).sort(byName).flatMap(([name, count]): BilledExtra[] => {
    const price = extraPrices?.hostedTools[name] ?? "0";
    return count > 0 && count <= MAX_PLAUSIBLE_CALLS ? [{ item: `hosted_tools.${name}`, count, price }] : [];
  });
  const tierSheets = tier === undefined ? undefined : extraPrices?.tiers.get(tier);
  const details: EntryDetails = {
    ...(extras.length > 0 && { extras }),
    ...(tier !== undefined && { service_tier: tier }),
    // Time windows do not apply to service tier prices.
    ...(extraPrices?.window !== undefined && tierSheets === undefined && { price_window: extraPrices.window }),
  };
  const served = contextSheetOf(tierSheets ?? extraPrices?.plain, inputTokensOf(tokens));
  if (served?.tier !== undefined) details.context_tier = served.tier;
  return { sheet: served?.sheet ?? sheet, ...(Object.keys(details).length > 0 && { details }) };
}

/** Returns the price sheet for an input of this size, with its context tier if there are several. */
function contextSheetOf(
  sheets: ContextSheets | undefined,
  inputTokens: number,
): { sheet: Readonly<PriceSheet>; tier?: ContextTier } | undefined {
  if (sheets === undefined) return undefined;
  if (sheets.length === 1) return { sheet: sheets[0].sheet };
  const index = Math.max(0, sheets.findLastIndex(({ above }) => inputTokens > above));
  const { above, sheet } = sheets[index] ?? sheets[0];
  const next = sheets[index + 1];
  return { sheet, tier: { above, ...(next !== undefined && { up_to: next.above }) } };
}

function byName([first]: [string, number], [second]: [string, number]): number {
  return first < second ? -1 : 1;
}

/** Returns the service tier to bill: of several reported tiers, the one with the highest price. */
function servedTier(
  reported: readonly string[] | undefined,
  { requestedTier, extraPrices }: Pick<Terms, "extraPrices"> & { requestedTier: string | undefined },
): string | undefined {
  if (reported === undefined) return requestedTier;
  const notPlain = reported.filter((name) => !PLAIN_TIERS.has(name));
  const [priced] = notPlain.filter((name) => extraPrices?.tiers.has(name)).sort((first, second) =>
    rankOf(second, extraPrices) > rankOf(first, extraPrices) ? 1 : -1
  );
  return priced ?? (notPlain.length === 0 ? undefined : requestedTier ?? notPlain[0]);
}

function rankOf(tier: string, extraPrices: ExtraPrices | undefined): Amount {
  const sheets = extraPrices?.tiers.get(tier);
  if (sheets === undefined) return 0n;
  const { prompt, completion } = unitPrices(sheets[0].sheet);
  return prompt + completion;
}

/** Returns the most that the hosted tools of a request can cost, for its hold. */
export function toolCostBound(
  { extras, n = 1 }: Pick<Prompt, "extras" | "n">,
  prices: ExtraPrices | undefined,
): Amount {
  if (extras === undefined || prices === undefined || extras.hostedTools.length === 0) return 0n;
  const factor = parseFactor(prices.plain[0].sheet.factor);
  let sum = 0n;
  let highestPrice = 0n;
  for (const { name, maxCalls = HELD_CALLS } of extras.hostedTools) {
    const price = timesFactor(parseUsd(prices.hostedTools[name] ?? "0"), factor);
    sum += BigInt(maxCalls) * price;
    if (price > highestPrice) highestPrice = price;
  }
  const costOfMaxCalls = extras.maxCalls === undefined ? sum : BigInt(extras.maxCalls) * highestPrice;
  return BigInt(n) * (costOfMaxCalls < sum ? costOfMaxCalls : sum);
}

/**
 * Counts the calls of hosted tools in an answer while it is read. A count that the upstream reports takes precedence.
 */
export class HostedCalls {
  readonly #tools: ReadonlySet<string>;
  readonly #counts: Record<string, number> = {};
  #cited = false;

  constructor({ hostedTools }: Pick<Extras, "hostedTools">) {
    this.#tools = new Set(hostedTools.map(({ name }) => name));
  }

  /** Reads an event of a streamed answer. In the Chat protocol, only citations show that a search ran. */
  push(event: ReplyEvent): void {
    if (event.type === "open" && event.block.type === "vendor_specific") this.#count(event.block);
    else if (event.type === "citation") this.#cited = true;
  }

  /** Reads a block of a complete answer. */
  take(block: ContentBlock): void {
    if (block.type === "vendor_specific") this.#count(block);
    else if (block.type === "text" && block.citations !== undefined) this.#cited = true;
  }

  #count(block: Pick<ContentBlockOf<"vendor_specific">, "from" | "value">): void {
    const name = block.from === "responses" ? toolOfItem(block.value) : toolOfBlock(block.value);
    if (name !== undefined && this.#tools.has(name)) this.#counts[name] = (this.#counts[name] ?? 0) + 1;
  }

  /** Returns the extras of the answer: those that the upstream reports, and the counted ones. */
  used({ tiers, hostedCalls }: UsedExtras): UsedExtras | undefined {
    const cited = this.#cited && Object.keys(this.#counts).length === 0
      ? CITING_TOOLS.find((name) => this.#tools.has(name))
      : undefined;
    const calls = { ...(cited !== undefined && { [cited]: 1 }), ...this.#counts, ...hostedCalls };
    return usedExtras({ ...(tiers !== undefined && { tiers }), hostedCalls: calls });
  }
}

/** Hosted tools whose answers contain citations. */
const CITING_TOOLS: readonly string[] = ["web_search", "plugins"];

/** Returns the extras that a usage report contains; `undefined` if there are none. */
export function usedExtras({ tiers, hostedCalls }: UsedExtras): UsedExtras | undefined {
  if (tiers === undefined && hostedCalls === undefined) return undefined;
  return { ...(tiers !== undefined && { tiers }), ...(hostedCalls !== undefined && { hostedCalls }) };
}

/** Returns a counter for an answer in which hosted tools may run; `undefined` if none may. */
export function hostedCallsOf(prompt: Pick<Prompt, "extras">): HostedCalls | undefined {
  return prompt.extras !== undefined && mayRunHostedTools(prompt) ? new HostedCalls(prompt.extras) : undefined;
}

/**
 * Returns the hosted tool that an output item of the Responses protocol calls, such as `web_search_call`. Vendors bill
 * searches; the actions that open a page or search within it are not counted.
 */
function toolOfItem({ type, action }: JsonObject): string | undefined {
  if (typeof type !== "string" || !type.endsWith("_call")) return undefined;
  const actionType = typeof action === "object" && action !== null && "type" in action ? action.type : undefined;
  if (type === "web_search_call" && actionType !== undefined && actionType !== "search") return undefined;
  return type.slice(0, -"_call".length);
}

/**
 * Returns the hosted tool that a `server_tool_use` block of the Messages protocol calls. The requested tool
 * `code_execution` appears there under two longer names.
 */
function toolOfBlock({ type, name }: JsonObject): string | undefined {
  if (type !== "server_tool_use" || typeof name !== "string") return undefined;
  return name.endsWith("_code_execution") ? "code_execution" : name;
}

/** Billed usage of a request. */
export interface BilledUsage {
  tokens: BilledTokens;
  used?: UsedExtras | undefined;
  /** Extras that do not depend on the upstream's report, such as uploaded images. */
  extras?: readonly BilledExtra[] | undefined;
}

/**
 * Returns what a request costs at the prices of its target; `undefined` if the target has no prices. Items without a
 * price cost nothing.
 * @param options `at`: arrival of the request, Unix time in milliseconds; `tier`: the requested service tier
 */
export function costAtTarget(
  { model, pricing }: Pick<Target, "model" | "pricing">,
  { tokens, used, extras = [] }: BilledUsage,
  { at, tier }: { at: number; tier?: string | undefined },
): Amount | undefined {
  if (pricing === undefined) return undefined;
  const prices = windowAt(pricing, at);
  const scope = { model, factor: "1" };
  const { sheet, details } = billUsed(
    { used, tokens },
    { ...pricesOf(prices, scope), tier },
  );
  const pricedExtras = extras.map((extra) => ({ ...extra, price: priceOfItem(prices, extra) }));
  return costOfTokens(tokens, sheet) + costOfExtras([...pricedExtras, ...details?.extras ?? []], sheet);
}

function priceOfItem(prices: Pick<Pricing, "input_image" | "request">, { item }: BilledExtra): string {
  return (item === "input_image" || item === "request" ? prices[item] : undefined) ?? "0";
}
