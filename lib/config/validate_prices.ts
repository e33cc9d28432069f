/** Validates prices of models: their decimals, tiers, windows and changes, and the extras that groups allow. */
import { mayUse } from "../access/permissions.ts";
import { EMBEDDED_MODELS } from "../catalog/embedded.ts";
import { minutesOf } from "../catalog/price_schema.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import { formatProblem, type Path, pathText } from "./problems.ts";
import { objects, priceListsOf } from "./validate_models.ts";

/** Maximum number of decimals of a price times a factor, so that every cost is a multiple of 1e-12 USD. */
const MAX_DECIMALS = 12;

interface Price {
  model: string;
  /** Its path in the model, such as `pricing.prompt`. */
  path: string;
  /** Decimal string. */
  amount: string;
}

/**
 * Yields the problems with prices and factors of the unparsed file. Malformed values are skipped, as in
 * `validateReferences`. For each group, only the first price that does not fit its factor is reported, with the number
 * of others.
 */
export function* validatePrices(file: JsonObject): Generator<string> {
  const prices = file.embedded_models === false ? [] : EMBEDDED_MODELS.flatMap((row) => pricesOf(row));
  for (const [index, model] of objects(file.models)) {
    prices.push(...pricesOf(model));
    yield* changeProblems(model, ["models", index, "price_changes"]);
    yield* tierProblems(model, ["models", index]);
  }
  for (const [name, group] of Object.entries(isObject(file.groups) ? file.groups : {})) {
    if (!isObject(group)) continue;
    yield* factorProblems(group, { name, prices });
    yield* extraProblems(group, { name, file });
  }
}

/** Extras that groups allow: the member, which groups and prices have in common, and its name in messages. */
const EXTRAS = [
  { member: "hosted_tools", noun: "hosted tool" },
  { member: "service_tiers", noun: "service tier" },
] as const;

/** Requires a price for every extra that a group allows, on every model that it can be used with. */
function extraProblems(group: JsonObject, { name, file }: { name: string; file: JsonObject }): string[] {
  const models = globsOf(group);
  const billed = (Array.isArray(file.models) ? file.models : []).filter(isObject).filter((model) =>
    typeof model.id === "string" && mayUse({ group: { models }, rules: {} }, model.id) && canUseExtras(model, file)
  );
  return EXTRAS.flatMap(({ member, noun }) => {
    const allowed = group[member];
    return (Array.isArray(allowed) ? allowed : []).flatMap((extra, index) => {
      if (typeof extra !== "string") return [];
      const missing = billed.flatMap((model) => missingPrices(model, member, extra));
      const [first, ...others] = missing;
      if (first === undefined) return [];
      const more = others.length === 0 ? "" : `, nor in ${others.length} more places`;
      return [
        formatProblem(
          ["groups", name, member, index],
          `The ${noun} "${extra}" has no price in ${first}${more}: set it ("0" is a price), or remove it here`,
        ),
      ];
    });
  });
}

/** Returns the paths of the missing prices of an extra, one for each price list of a model that lacks it. */
function missingPrices(model: JsonObject, member: string, extra: string): string[] {
  const lacking = priceListsOf({ ...model, targets: [] }, []).filter(([, { [member]: extraPrices }]) =>
    !isObject(extraPrices) || !Object.hasOwn(extraPrices, extra)
  );
  return lacking.map(([path]) => `${pathText([...path, member])} of model "${model.id}"`);
}

/**
 * Returns whether a model answers in text and has a target whose upstream may bill extras. Embedded models and Gemini
 * do not.
 */
function canUseExtras({ targets, architecture }: JsonObject, { upstreams }: JsonObject): boolean {
  const output = isObject(architecture) ? architecture.output_modalities : undefined;
  if (Array.isArray(output) && !output.includes("text")) return false;
  return (Array.isArray(targets) ? targets : []).some((target) => {
    if (!isObject(target) || typeof target.upstream !== "string" || target.protocol === "gemini") return false;
    const row = isObject(upstreams) && Object.hasOwn(upstreams, target.upstream)
      ? upstreams[target.upstream]
      : undefined;
    return isObject(row) && row.vendor !== "embedded" && row.vendor !== "gemini";
  });
}

function globsOf({ models }: JsonObject): string[] {
  return Array.isArray(models) ? models.filter((glob) => typeof glob === "string") : ["*"];
}

function factorProblems(group: JsonObject, { name, prices }: { name: string; prices: readonly Price[] }): string[] {
  const factor = decimalsOf(group.price_factor);
  if (factor === undefined || factor.digits === 0n) return [];
  const models = globsOf(group);
  const tooLong = prices.filter(({ model, amount }) =>
    !fits(amount, factor) && mayUse({ group: { models }, rules: {} }, model)
  );
  const [first, ...others] = tooLong;
  if (first === undefined) return [];
  const more = others.length === 0 ? "" : `, and ${others.length} more of its prices have`;
  return [
    formatProblem(
      ["groups", name, "price_factor"],
      `"${group.price_factor}" times ${first.path} "${first.amount}" of model "${first.model}" has more than ` +
        `${MAX_DECIMALS} decimals${more}`,
    ),
  ];
}

/** A decimal number: all its digits, and how many of them are decimals. */
interface Decimals {
  digits: bigint;
  decimals: number;
}

/** Parses a decimal number; `undefined` for other values, which the schema reports. */
function decimalsOf(text: Json | undefined): Decimals | undefined {
  const [, integer, fraction = ""] = typeof text === "string" ? /^(\d{1,6})(?:\.(\d{1,12}))?$/.exec(text) ?? [] : [];
  return integer === undefined ? undefined : { digits: BigInt(integer + fraction), decimals: fraction.length };
}

/** Returns whether a price times a factor has at most 12 decimals, not counting trailing zeros. */
function fits(price: string, factor: Decimals): boolean {
  const { digits, decimals } = decimalsOf(price) ?? { digits: 0n, decimals: 0 };
  const extra = decimals + factor.decimals - MAX_DECIMALS;
  return extra <= 0 || digits * factor.digits % 10n ** BigInt(extra) === 0n;
}

/** Returns all prices of a model. Prices that are left out default to one of these or to 0, so they need no check. */
function pricesOf({ id, pricing, price_changes }: Readonly<Record<string, unknown>>): Price[] {
  if (typeof id !== "string") return [];
  const changes = Array.isArray(price_changes) ? price_changes : [];
  return [
    ...pricesIn(pricing, { model: id, path: "pricing" }),
    ...changes.flatMap((change, index) => pricesIn(change, { model: id, path: `price_changes[${index}]` })),
  ];
}

function pricesIn(row: unknown, { model, path }: { model: string; path: string }): Price[] {
  if (!isObject(row)) return [];
  return Object.entries(row).flatMap(([name, value]) => {
    const memberPath = `${path}.${name}`;
    // Prices of hosted tools, tiers and time windows are nested.
    if (isObject(value)) return pricesIn(value, { model, path: memberPath });
    if (Array.isArray(value)) {
      return value.flatMap((item, index) => pricesIn(item, { model, path: `${memberPath}[${index}]` }));
    }
    return !OTHER_MEMBERS.has(name) && typeof value === "string" ? [{ model, path: memberPath, amount: value }] : [];
  });
}

/** Members of price lists that are strings but no prices. */
const OTHER_MEMBERS: ReadonlySet<string> = new Set(["from", "until", "name"]);

/** Requires that context tiers and time windows define exactly one price for each request. */
function tierProblems(model: JsonObject, path: Path): string[] {
  return priceListsOf(model, path).flatMap(([listPath, prices]) => {
    const windows = Array.isArray(prices.time_windows) ? prices.time_windows : [];
    const tiers = isObject(prices.service_tiers) ? Object.entries(prices.service_tiers) : [];
    const withContextTiers: [Path, unknown][] = [
      [listPath, prices],
      ...windows.map((window, index): [Path, unknown] => [[...listPath, "time_windows", index], window]),
      ...tiers.map(([name, tier]): [Path, unknown] => [[...listPath, "service_tiers", name], tier]),
    ];
    return [
      ...withContextTiers.flatMap(([path, prices]) => thresholdProblems(prices, [...path, "context_tiers"])),
      ...windowProblems(windows, [...listPath, "time_windows"]),
    ];
  });
}

/** Requires that context tiers have distinct thresholds. */
function thresholdProblems(prices: unknown, path: Path): string[] {
  if (!isObject(prices) || !Array.isArray(prices.context_tiers)) return [];
  const indices = new Map<number, number>();
  return prices.context_tiers.flatMap((tier, index) => {
    if (!isObject(tier) || typeof tier.above !== "number") return [];
    const first = indices.get(tier.above);
    if (first === undefined) indices.set(tier.above, index);
    return first === undefined
      ? []
      : [formatProblem([...path, index, "above"], `${tier.above} is already used by context_tiers[${first}]`)];
  });
}

/** Requires that time windows do not overlap, and have distinct names, because ledger entries name them. */
function* windowProblems(windows: readonly unknown[], path: Path): Generator<string> {
  const minutes = new Map<number, number>();
  const names = new Map<string, number>();
  for (const [index, window] of windows.entries()) {
    if (!isObject(window)) continue;
    const { name } = window;
    const first = typeof name === "string" ? names.get(name) : undefined;
    if (first !== undefined) {
      yield formatProblem([...path, index, "name"], `"${String(name)}" is already time_windows[${first}]`);
    } else if (typeof name === "string") names.set(name, index);
    const [from, until] = [window.from, window.until].map((time) =>
      typeof time === "string" && /^\d\d:\d\d$/.test(time) ? minutesOf(time) : NaN
    );
    if (from === undefined || until === undefined || !(from <= 1440 && until <= 1440)) continue;
    // Only a window from 00:00 until 24:00 lasts all day.
    const length = from < until ? until - from : (until - from + 1440) % 1440;
    if (length === 0) yield formatProblem([...path, index, "until"], "The window is empty");
    const covered = Array.from({ length }, (_, minute) => (from + minute) % 1440);
    const other = covered.map((minute) => minutes.get(minute)).find((index) => index !== undefined);
    if (other !== undefined) {
      yield formatProblem([...path, index], `It overlaps with time_windows[${other}]`);
    } else for (const minute of covered) minutes.set(minute, index);
  }
}

/** Rejects price changes at the same time: it would be unclear which of them applies. */
function* changeProblems({ price_changes }: JsonObject, path: Path): Generator<string> {
  const indices = new Map<number, number>();
  for (const [index, change] of objects(price_changes)) {
    const from = typeof change.from === "string" ? Date.parse(change.from) : NaN;
    if (Number.isNaN(from)) continue;
    const first = indices.get(from);
    if (first === undefined) indices.set(from, index);
    else yield formatProblem([...path, index, "from"], `The same time is already used by price_changes[${first}]`);
  }
}
