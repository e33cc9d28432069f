/** The schema of prices, and their form with all defaults. Member names are those of the API. */
import { z } from "zod";

const DECIMAL = /^\d{1,6}(\.\d{1,12})?$/;

/** USD per token as a decimal string with at most 12 decimals, such as `0.00000125`. */
export const priceSchema = z.string().regex(DECIMAL, {
  error: 'Expected USD per token as a decimal string with at most 12 decimals, such as "0.00000125"',
});

/** USD per call as a decimal string with at most 12 decimals, such as `0.01`. */
const callPriceSchema = z.string().regex(DECIMAL, {
  error: 'Expected USD per call as a decimal string with at most 12 decimals, such as "0.01"',
});

/** Name of a hosted tool, of a service tier or of a time window. */
export const extraNameSchema: z.ZodString = z.string().max(64).regex(/^[a-z][a-z0-9_.:-]*$/, {
  error: 'Expected a name such as "web_search", "priority" or "inference_geo:us"',
});

/** A time of day (UTC). */
const timeSchema = z.string().regex(/^(([01]\d|2[0-3]):[0-5]\d|24:00)$/, {
  error: 'Expected a time of day by UTC, such as "16:30"',
});

const TOKEN_PRICES = {
  prompt: priceSchema.describe("USD per input token").meta({ examples: ["0.00000125"] }),
  completion: priceSchema.describe("USD per output token").meta({ examples: ["0.00001"] }),
  input_cache_read: priceSchema.optional()
    .describe("USD per input token read from the vendor's cache. Default: `prompt`; 0 for image models")
    .meta({ examples: ["0.000000125"] }),
  input_cache_write_5m: priceSchema.optional()
    .describe("USD per input token written to the cache for 5 minutes. Default: `prompt`; 0 for image models")
    .meta({ examples: ["0.00000375"] }),
  input_cache_write_1h: priceSchema.optional()
    .describe("USD per input token written to the cache for 1 hour. Default: `prompt`; 0 for image models")
    .meta({ examples: ["0.000006"] }),
};

const TIERED_PRICES = {
  ...TOKEN_PRICES,
  context_tiers: z.array(z.strictObject({
    above: z.number().int().min(1)
      .describe("Requests with more input tokens than this pay these prices for all their tokens")
      .meta({ examples: [200_000] }),
    ...TOKEN_PRICES,
  })).min(1).optional().describe("Prices of requests with a large input. Default: none"),
};

/** Token prices in a daily time window. */
const timeWindowSchema = z.strictObject({
  name: extraNameSchema.describe("Name shown in the ledger").meta({ examples: ["off-peak"] }),
  from: timeSchema.describe("Time of day (UTC) from which these prices apply to requests that begin")
    .meta({ examples: ["16:30"] }),
  until: timeSchema.describe(
    "Time of day (UTC) at which the prices stop applying. A time before `from` is on the next day",
  )
    .meta({ examples: ["00:30"] }),
  ...TIERED_PRICES,
});

/** Members with the prices of everything that can be billed. */
export const PRICES = {
  ...TIERED_PRICES,
  input_image: priceSchema.optional()
    .describe("For image models: USD per token of uploaded images, as reported by the upstream. Default: 0")
    .meta({ examples: ["0.00001"] }),
  request: callPriceSchema.optional()
    .describe(
      "For rerank models: USD per search, which is a query with up to 100 documents. Default: 0",
    ).meta({ examples: ["0.002"] }),
  hosted_tools: z.record(extraNameSchema, callPriceSchema).optional()
    .describe("USD per call of a vendor-hosted tool, by name. Groups must also allow the tool. Default: none")
    .meta({ examples: [{ web_search: "0.01" }] }),
  service_tiers: z.record(extraNameSchema, z.strictObject(TIERED_PRICES)).optional()
    .describe(
      "Prices of service tiers, by name: tiers that groups may request, and tiers that upstreams report. Default: none",
    ).meta({ examples: [{ priority: { prompt: "0.0000025", completion: "0.00002" } }] }),
  time_windows: z.array(timeWindowSchema).min(1).optional()
    .describe("Prices at certain times of day, for requests without a service tier. Default: none"),
};

/** Prices from a date on. */
export const priceChangeSchema = z.strictObject({
  from: z.iso.datetime({ offset: true }).describe(
    "These prices apply to requests that begin at this time or later",
  ).meta({ examples: ["2027-01-01T00:00:00Z"] }),
  ...PRICES,
});

/** Prices as configured, without defaults. */
export type WrittenPricing = Omit<z.output<typeof priceChangeSchema>, "from">;

/** Token prices as configured, without defaults. */
type WrittenTokenPrices = Omit<
  WrittenPricing,
  "input_image" | "request" | "hosted_tools" | "service_tiers" | "time_windows"
>;

/** The prices of cached input. Where they are left out, they are those of `prompt`. */
export const CACHE_PRICES = ["input_cache_read", "input_cache_write_5m", "input_cache_write_1h"] as const;

/** A price for every class of tokens, in USD per token as decimal strings. */
export interface TokenPrices {
  prompt: string;
  completion: string;
  input_cache_read: string;
  input_cache_write_5m: string;
  input_cache_write_1h: string;
}

/** Prices of tokens by the size of the input. */
export interface TieredPrices extends TokenPrices {
  /** Prices of requests with more than `above` input tokens, in ascending order. */
  context_tiers?: readonly (TokenPrices & { above: number })[];
}

/** All prices of a model, as decimal strings. */
export interface Pricing extends TieredPrices {
  /** USD per token of uploaded images. */
  input_image?: string;
  /** USD per search. */
  request?: string;
  /** USD per call of a hosted tool, by its name. */
  hosted_tools?: Readonly<Record<string, string>>;
  service_tiers?: Readonly<Record<string, TieredPrices>>;
  /** Prices at times of the day. */
  time_windows?: readonly TimeWindow[];
  /** Name of the time window of these prices; absent: outside all windows. */
  window?: string;
}

/** A daily time window. If it ends before it begins, it crosses midnight. */
export interface TimeWindow {
  /** Minutes since midnight UTC. */
  from: number;
  /** Minutes since midnight UTC. */
  until: number;
  /** The model's prices in this window. */
  pricing: Pricing;
}

/**
 * Fills in the price of every class of tokens, in every tier and time window.
 * @param makes what the model makes, which decides the default of cache prices
 */
export function wholePricing(written: WrittenPricing, makes: "image" | "text"): Pricing {
  const { input_image, request, hosted_tools, service_tiers, time_windows, ...tokens } = written;
  const extras = {
    ...(input_image !== undefined && { input_image }),
    ...(request !== undefined && { request }),
    ...(hosted_tools !== undefined && { hosted_tools }),
    ...(service_tiers !== undefined && {
      service_tiers: Object.fromEntries(
        Object.entries(service_tiers).map(([name, prices]) => [name, tieredPrices(prices, makes)]),
      ),
    }),
  };
  return {
    ...tieredPrices(tokens, makes),
    ...extras,
    ...(time_windows !== undefined && {
      time_windows: time_windows.map(({ name, from, until, ...prices }): TimeWindow => ({
        from: minutesOf(from),
        until: minutesOf(until),
        pricing: { ...tieredPrices(prices, makes), ...extras, window: name },
      })),
    }),
  };
}

function tieredPrices({ context_tiers, ...written }: WrittenTokenPrices, makes: "image" | "text"): TieredPrices {
  const prices = tokenPrices(written, makes);
  if (context_tiers === undefined) return prices;
  const tiers = context_tiers.map(({ above, ...tier }) => ({ above, ...tokenPrices(tier, makes) }));
  return { ...prices, context_tiers: tiers.sort((one, other) => one.above - other.above) };
}

function tokenPrices(written: Omit<WrittenTokenPrices, "context_tiers">, makes: "image" | "text"): TokenPrices {
  // Image models do not bill cached input separately.
  const defaultCachePrice = makes === "image" ? "0" : written.prompt;
  return {
    prompt: written.prompt,
    completion: written.completion,
    input_cache_read: written.input_cache_read ?? defaultCachePrice,
    input_cache_write_5m: written.input_cache_write_5m ?? defaultCachePrice,
    input_cache_write_1h: written.input_cache_write_1h ?? defaultCachePrice,
  };
}

/** Returns the minutes since midnight of a time such as `16:30`. */
export function minutesOf(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
}
