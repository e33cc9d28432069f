/** Parses the `provider` object of a request, in which clients choose upstreams as at OpenRouter. */
import { GatewayError } from "../errors.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";

/** Percentiles that a preference of speed may name, as shares of the requests. */
const PERCENTILES = { p50: 0.5, p75: 0.75, p90: 0.9, p99: 0.99 } as const;

/** A preference of speed: a bound for each percentile that the client names. `share` is from 0 to 1. */
type SpeedPreference = readonly { share: number; value: number }[];

/** By what targets are sorted. */
export type SortBy = "price" | "latency" | "throughput";

/** The most that a token may cost, in 1e-12 USD. */
export interface PriceLimit {
  prompt?: bigint;
  completion?: bigint;
}

/** Preferences of a client. Members that it does not name are absent. */
export interface ProviderPreferences {
  /** Slugs of the upstreams to try first, in this order. */
  order?: readonly string[];
  /** Slugs of the only upstreams to try. */
  only?: ReadonlySet<string>;
  /** Slugs of upstreams that must not be tried. */
  ignore?: ReadonlySet<string>;
  /** If false, only the upstreams in `order` are tried, or without `order` only the first target. */
  allowFallbacks: boolean;
  /** With `acrossModels`, targets of all models are sorted together; otherwise model by model. */
  sort?: { by: SortBy; acrossModels: boolean };
  maxPrice: PriceLimit;
  /** In tokens per second. Targets that do not meet it come last. */
  minThroughput: SpeedPreference;
  /** In seconds. Targets that do not meet it come last. */
  maxLatency: SpeedPreference;
}

/** Preferences of a request without a `provider` object. */
export const NO_PREFERENCES: ProviderPreferences = {
  allowFallbacks: true,
  maxPrice: {},
  minThroughput: [],
  maxLatency: [],
};

/**
 * Parses the object. Members that have no meaning here (`data_collection`, `zdr`, `quantizations`, …) are ignored, and
 * so are maximum prices per request, image and audio.
 * @param known slugs of the upstreams: their names and those of their vendors
 * @throws {GatewayError} `invalid` for members of a wrong type, and for unknown slugs in `only` or `order`
 */
export function parsePreferences(provider: JsonObject, known: ReadonlySet<string>): ProviderPreferences {
  const order = readSlugs(provider.order, { param: "provider.order", known });
  const only = readSlugs(provider.only, { param: "provider.only", known });
  const ignore = readSlugs(provider.ignore, { param: "provider.ignore" });
  const sort = readSort(provider.sort);
  return {
    ...(order !== undefined && order.length > 0 && { order }),
    ...(only !== undefined && only.length > 0 && { only: new Set(only) }),
    ...(ignore !== undefined && { ignore: new Set(ignore) }),
    allowFallbacks: readBoolean(provider.allow_fallbacks, "provider.allow_fallbacks") ?? true,
    ...(sort !== undefined && { sort }),
    maxPrice: readMaxPrice(provider.max_price),
    minThroughput: readSpeed(provider.preferred_min_throughput, "provider.preferred_min_throughput"),
    maxLatency: readSpeed(provider.preferred_max_latency, "provider.preferred_max_latency"),
  };
}

/** Returns true if the prices are within the limit. */
export function isPayable({ maxPrice }: ProviderPreferences, price: Readonly<Required<PriceLimit>>): boolean {
  const { prompt, completion } = maxPrice;
  return (prompt === undefined || price.prompt <= prompt) &&
    (completion === undefined || price.completion <= completion);
}

function readSlugs(
  value: Json | undefined,
  { param, known }: { param: string; known?: ReadonlySet<string> },
): string[] | undefined {
  if (isAbsent(value)) return undefined;
  if (!Array.isArray(value)) throw invalid(param, "an array of strings");
  return value.map((slug, index) => {
    if (typeof slug !== "string") throw invalid(`${param}[${index}]`, "a string");
    if (known !== undefined && !known.has(slug)) {
      throw new GatewayError("invalid", `Cannot use ${param}: no upstream is known as ${JSON.stringify(slug)}`, {
        param: `${param}[${index}]`,
      });
    }
    return slug;
  });
}

function readBoolean(value: Json | undefined, param: string): boolean | undefined {
  if (isAbsent(value)) return undefined;
  if (typeof value !== "boolean") throw invalid(param, "a boolean");
  return value;
}

function readSort(value: Json | undefined): ProviderPreferences["sort"] {
  if (isAbsent(value)) return undefined;
  if (!isObject(value)) return sortBy(value, { param: "provider.sort", acrossModels: false });
  const { by, partition } = value;
  if (!isAbsent(partition) && partition !== "model" && partition !== "none") {
    throw invalid("provider.sort.partition", '"model" or "none"');
  }
  return isAbsent(by) ? undefined : sortBy(by, { param: "provider.sort.by", acrossModels: partition === "none" });
}

function sortBy(
  by: Json | undefined,
  { param, acrossModels }: { param: string; acrossModels: boolean },
): ProviderPreferences["sort"] {
  if (by === "price" || by === "latency" || by === "throughput") return { by, acrossModels };
  // `exacto` is OpenRouter's ranking of hosts by the quality of their tool calls, which the gateway does not have.
  if (by === "exacto") return undefined;
  throw invalid(param, '"price", "latency" or "throughput"');
}

function readMaxPrice(value: Json | undefined): PriceLimit {
  if (isAbsent(value)) return {};
  if (!isObject(value)) throw invalid("provider.max_price", "an object");
  const read = (name: string): bigint | undefined => {
    const price = value[name];
    return isAbsent(price) ? undefined : readPrice(price, `provider.max_price.${name}`);
  };
  const [prompt, completion] = [read("prompt"), read("completion")];
  for (const name of ["request", "image", "audio"]) read(name);
  return { ...(prompt !== undefined && { prompt }), ...(completion !== undefined && { completion }) };
}

/** Decimal places by which the point moves from USD per million tokens to 1e-12 USD per token. */
const DECIMALS = 6;
/** More digits than any real price has. Larger prices are replaced by 10 to the power of this. */
const MAX_DIGITS = 40;

/**
 * Converts USD per million tokens, a decimal number as a string or a JSON number, to 1e-12 USD per token. The result is
 * rounded down. This does not affect comparisons, because all prices are whole numbers of that unit.
 */
function readPrice(value: Json | undefined, param: string): bigint {
  const text = typeof value === "number" ? String(value) : value;
  const match = typeof text === "string"
    ? /^(\d{1,40})(?:\.(\d{1,40}))?(?:e([+-]?\d{1,2}))?$/i.exec(text.trim())
    : null;
  if (match === null) throw invalid(param, 'USD per million tokens, such as "1.25"');
  const [, whole = "", fraction = "", exponent = "0"] = match;
  const digits = whole.length + Number(exponent) + DECIMALS;
  if (digits > MAX_DIGITS) return 10n ** BigInt(MAX_DIGITS);
  return digits <= 0 ? 0n : BigInt((whole + fraction).padEnd(digits, "0").slice(0, digits));
}

function readSpeed(value: Json | undefined, param: string): SpeedPreference {
  if (isAbsent(value)) return [];
  if (!isObject(value)) return [{ share: PERCENTILES.p50, value: readPositive(value, param) }];
  return Object.entries(PERCENTILES).flatMap(([name, share]) => {
    const number = value[name];
    return isAbsent(number) ? [] : [{ share, value: readPositive(number, `${param}.${name}`) }];
  });
}

function readPositive(value: Json | undefined, param: string): number {
  if (typeof value !== "number" || value < 0) throw invalid(param, "a number, not negative");
  return value;
}

function isAbsent(value: Json | undefined): value is null | undefined {
  return value === undefined || value === null;
}

function invalid(param: string, expected: string): GatewayError {
  return new GatewayError("invalid", `Invalid value for ${param}: expected ${expected}`, { param });
}
