/** Parses the `provider` object of a request, in which OpenRouter's clients say which upstreams may answer. */
import { GatewayError } from "../errors.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";

/** Percentiles that a preference for speed may name. */
const PERCENTILES = { p50: 0.5, p75: 0.75, p90: 0.9, p99: 0.99 } as const;

/** A preference for speed: a number for each share of the requests that it names. */
export type SpeedPreference = readonly { share: number; value: number }[];

/** Order of targets. */
export type SortBy = "price" | "latency" | "throughput";

/** The most that a token may cost, in 1e-12 USD. */
export interface PriceLimit {
  prompt?: bigint;
  completion?: bigint;
}

/** Preferences of a client. Members that it does not name are absent. */
export interface ProviderPreferences {
  /** Slugs of the upstreams to ask first, in this order. */
  order?: readonly string[];
  /** Slugs of the only upstreams to ask. */
  only?: ReadonlySet<string>;
  /** Slugs of upstreams not to ask. */
  ignore?: ReadonlySet<string>;
  /** False: only upstreams named in `order` are asked, or else only the first target. */
  allowFallbacks: boolean;
  /** `acrossModels`: targets of all models are sorted together, not those of each model by themselves. */
  sort?: { by: SortBy; acrossModels: boolean };
  maxPrice: PriceLimit;
  /** Soft: the others go last. In tokens per second. */
  minThroughput: SpeedPreference;
  /** Soft: the others go last. In seconds. */
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
 * Parses the object. Members without a meaning here (`data_collection`, `zdr`, `quantizations`, …) are ignored, and so are
 * prices per request, image and audio.
 * @param known slugs of the upstreams: their names, and those of their vendors
 * @throws {GatewayError} `invalid`, for members of a wrong type, and for unknown slugs in `only` or `order`
 */
export function parsePreferences(provider: JsonObject | undefined, known: ReadonlySet<string>): ProviderPreferences {
  if (provider === undefined) return NO_PREFERENCES;
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
  // OpenRouter ranks hosts by how well they call tools; there is no such rank here.
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

/** Decimals between USD per million tokens and 1e-12 USD per token. */
const DECIMALS = 6;
/** More digits than any price has: larger prices are cut to this. */
const MAX_DIGITS = 40;

/**
 * Converts USD per million tokens, a decimal number as text or JSON, to whole 1e-12 USD per token. The result is exact:
 * prices are whole numbers of that unit, and smaller digits cannot change the result of "at most".
 */
function readPrice(value: Json | undefined, param: string): bigint {
  const text = typeof value === "number" ? String(value) : value;
  const match = typeof text === "string"
    ? /^(\d{1,40})(?:\.(\d{1,40}))?(?:e([+-]?\d{1,2}))?$/i.exec(text.trim())
    : null;
  if (match === null) throw invalid(param, 'USD per million tokens, such as "1.25"');
  const [, whole = "", fraction = "", exponent = "0"] = match;
  const places = whole.length + Number(exponent) + DECIMALS;
  if (places > MAX_DIGITS) return 10n ** BigInt(MAX_DIGITS);
  return places <= 0 ? 0n : BigInt((whole + fraction).padEnd(places, "0").slice(0, places));
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
