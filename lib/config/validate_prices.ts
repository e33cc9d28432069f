/** Validates prices of models against the price factors of groups, and against each other. */
import { mayUse } from "../access/permissions.ts";
import { EMBEDDED_MODELS } from "../catalog/embedded.ts";
import { minutesOf } from "../catalog/price_schema.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import { formatProblem, type Path } from "./problems.ts";

/** Prices have at most 12 decimals, even times a factor: then every cost is a multiple of 1e-12 USD. */
const MAX_DECIMALS = 12;

interface Price {
  model: string;
  /** Its path in the model's row, such as `pricing.prompt`. */
  place: string;
  text: string;
}

/**
 * Validates prices and factors of the unparsed file, skipping malformed values as `validateReferences` does. For each
 * group, reports the first price that does not fit its factor, with the number of others.
 */
export function* validatePrices(file: JsonObject): Generator<string> {
  const prices = file.embedded_models === false ? [] : EMBEDDED_MODELS.flatMap((row) => pricesOf(row));
  for (const [index, model] of Array.isArray(file.models) ? file.models.entries() : []) {
    if (!isObject(model)) continue;
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

/** Extras that groups allow: the member of the group, that of prices, and its description. */
const EXTRAS = [
  { member: "hosted_tools", what: "hosted tool" },
  { member: "service_tiers", what: "service tier" },
] as const;

/** Requires a price for every extra that a group allows, at every model that it can be used with. */
function extraProblems(group: JsonObject, { name, file }: { name: string; file: JsonObject }): string[] {
  const models = globsOf(group);
  const billed = (Array.isArray(file.models) ? file.models : []).filter(isObject).filter((model) =>
    typeof model.id === "string" && mayUse({ group: { models }, rules: {} }, model.id) && leavesTheGateway(model, file)
  );
  return EXTRAS.flatMap(({ member, what }) => {
    const allowed = group[member];
    return (Array.isArray(allowed) ? allowed : []).flatMap((extra, index) => {
      if (typeof extra !== "string") return [];
      const missing = billed.flatMap((model) => lackingPrices(model, member, extra));
      const [first, ...others] = missing;
      if (first === undefined) return [];
      const more = others.length === 0 ? "" : `, nor in ${others.length} more places`;
      return [
        formatProblem(
          ["groups", name, member, index],
          `The ${what} "${extra}" has no price in ${first}${more}: set it ("0" is a price), or remove it here`,
        ),
      ];
    });
  });
}

/** Paths of the prices of a model that lack an extra. */
function lackingPrices({ id, pricing, price_changes }: JsonObject, member: string, extra: string): string[] {
  const rows: [place: string, prices: unknown][] = [
    ["pricing", pricing],
    ...(Array.isArray(price_changes) ? price_changes : []).map((change, index): [string, unknown] => [
      `price_changes[${index}]`,
      change,
    ]),
  ];
  return rows.flatMap(([place, prices]) => {
    const listed = isObject(prices) ? prices[member] : undefined;
    return isObject(listed) && Object.hasOwn(listed, extra) ? [] : [`${place}.${member} of model "${id}"`];
  });
}

/** Returns whether a model answers in text, at an upstream that bills more than tokens. Gemini never does. */
function leavesTheGateway({ targets, architecture }: JsonObject, { upstreams }: JsonObject): boolean {
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
  const unfit = prices.filter(({ model, text }) =>
    !fits(text, factor) && mayUse({ group: { models }, rules: {} }, model)
  );
  const [first, ...others] = unfit;
  if (first === undefined) return [];
  const more = others.length === 0 ? "" : `, and ${others.length} more of its prices have`;
  return [
    formatProblem(
      ["groups", name, "price_factor"],
      `"${group.price_factor}" times ${first.place} "${first.text}" of model "${first.model}" has more than ` +
        `${MAX_DECIMALS} decimals${more}`,
    ),
  ];
}

/** A decimal number as digits and number of decimals. */
interface Decimals {
  digits: bigint;
  decimals: number;
}

/** Parses a decimal number; `undefined` for other values, which the schema reports. */
function decimalsOf(text: Json | undefined): Decimals | undefined {
  const [, whole, fraction = ""] = typeof text === "string" ? /^(\d{1,6})(?:\.(\d{1,12}))?$/.exec(text) ?? [] : [];
  return whole === undefined ? undefined : { digits: BigInt(whole + fraction), decimals: fraction.length };
}

/** Returns whether the product has at most 12 decimals, without trailing zeros. */
function fits(price: string, factor: Decimals): boolean {
  const { digits, decimals } = decimalsOf(price) ?? { digits: 0n, decimals: 0 };
  const extra = decimals + factor.decimals - MAX_DECIMALS;
  return extra <= 0 || digits * factor.digits % 10n ** BigInt(extra) === 0n;
}

/** Every price in a row. Defaults are one of these, or 0. */
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
    const place = `${path}.${name}`;
    // Prices of hosted tools, tiers and time windows are nested.
    if (isObject(value)) return pricesIn(value, { model, path: place });
    if (Array.isArray(value)) {
      return value.flatMap((item, index) => pricesIn(item, { model, path: `${place}[${index}]` }));
    }
    return !NO_PRICES.has(name) && typeof value === "string" ? [{ model, place, text: value }] : [];
  });
}

/** Text members of prices that are not prices. */
const NO_PRICES: ReadonlySet<string> = new Set(["from", "until", "name"]);

/** Requires that lists of tiers and windows define one price for each request. */
function tierProblems({ pricing, price_changes, targets }: JsonObject, path: Path): string[] {
  const changes = Array.isArray(price_changes) ? price_changes : [];
  const rows: [Path, unknown][] = [
    [[...path, "pricing"], pricing],
    ...changes.map((change, index): [Path, unknown] => [[...path, "price_changes", index], change]),
    ...(Array.isArray(targets) ? targets : []).map((target, index): [Path, unknown] => [
      [...path, "targets", index, "pricing"],
      isObject(target) ? target.pricing : undefined,
    ]),
  ];
  return rows.flatMap(([place, row]) => {
    if (!isObject(row)) return [];
    const windows = Array.isArray(row.time_windows) ? row.time_windows : [];
    const tiers = isObject(row.service_tiers) ? Object.entries(row.service_tiers) : [];
    const holders: [Path, unknown][] = [
      [place, row],
      ...windows.map((window, index): [Path, unknown] => [[...place, "time_windows", index], window]),
      ...tiers.map(([name, tier]): [Path, unknown] => [[...place, "service_tiers", name], tier]),
    ];
    return [
      ...holders.flatMap(([place, holder]) => thresholdProblems(holder, [...place, "context_tiers"])),
      ...windowProblems(windows, [...place, "time_windows"]),
    ];
  });
}

function thresholdProblems(holder: unknown, path: Path): string[] {
  if (!isObject(holder) || !Array.isArray(holder.context_tiers)) return [];
  const indices = new Map<number, number>();
  return holder.context_tiers.flatMap((tier, index) => {
    if (!isObject(tier) || typeof tier.above !== "number") return [];
    const first = indices.get(tier.above);
    if (first === undefined) indices.set(tier.above, index);
    return first === undefined
      ? []
      : [formatProblem([...path, index, "above"], `${tier.above} is already used by context_tiers[${first}]`)];
  });
}

/** Requires that the windows of a model do not overlap and have distinct names, which the ledger uses. */
function* windowProblems(windows: readonly unknown[], path: Path): Generator<string> {
  const minutes = new Map<number, number>();
  const names = new Map<string, number>();
  for (const [index, window] of windows.entries()) {
    if (!isObject(window)) continue;
    const { name } = window;
    const found = typeof name === "string" ? names.get(name) : undefined;
    if (found !== undefined) {
      yield formatProblem([...path, index, "name"], `"${String(name)}" is already time_windows[${found}]`);
    } else if (typeof name === "string") names.set(name, index);
    const [from, until] = [window.from, window.until].map((time) =>
      typeof time === "string" && /^\d\d:\d\d$/.test(time) ? minutesOf(time) : NaN
    );
    if (from === undefined || until === undefined || !(from <= 1440 && until <= 1440)) continue;
    if (from === until) yield formatProblem([...path, index, "until"], "The window is empty");
    const length = (until - from + 1440) % 1440;
    const all = Array.from({ length }, (_, minute) => (from + minute) % 1440);
    const other = all.map((minute) => minutes.get(minute)).find((index) => index !== undefined);
    if (other !== undefined) {
      yield formatProblem([...path, index], `It overlaps with time_windows[${other}]`);
    } else for (const minute of all) minutes.set(minute, index);
  }
}

/** Rejects two changes at the same time as ambiguous. */
function* changeProblems({ price_changes }: JsonObject, path: Path): Generator<string> {
  const indices = new Map<number, number>();
  for (const [index, change] of Array.isArray(price_changes) ? price_changes.entries() : []) {
    const from = isObject(change) && typeof change.from === "string" ? Date.parse(change.from) : NaN;
    if (Number.isNaN(from)) continue;
    const first = indices.get(from);
    if (first === undefined) indices.set(from, index);
    else yield formatProblem([...path, index, "from"], `The same time is already used by price_changes[${first}]`);
  }
}
