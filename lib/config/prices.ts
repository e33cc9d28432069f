/** What the prices of models demand of the factors of groups, and of each other. */
import { mayUse } from "../access/permissions.ts";
import { EMBEDDED_MODELS } from "../catalog/embedded.ts";
import { isObject, type Json, type JsonObject } from "../json.ts";
import { type Path, problem } from "./problems.ts";

/** Prices have at most 12 decimals, also times a factor: then every cost is a whole number of 1e-12 USD. */
const MAX_DECIMALS = 12;

/** One price of one model. */
interface Price {
  model: string;
  /** Its place in the model's row, such as `pricing.prompt`. */
  place: string;
  text: string;
}

/**
 * Checks prices and factors. Takes the file as it was written and passes over what has the wrong form, as `crossProblems`
 * does. Of a group only the first price that its factor does not fit is told, and how many others there are.
 */
export function priceProblems(file: JsonObject): string[] {
  const problems: string[] = [];
  const prices = file.embedded_models === false ? [] : EMBEDDED_MODELS.flatMap((row) => pricesOf(row));
  for (const [index, model] of Array.isArray(file.models) ? file.models.entries() : []) {
    if (!isObject(model)) continue;
    prices.push(...pricesOf(model));
    problems.push(...changeProblems(model, ["models", index, "price_changes"]));
  }
  for (const [name, group] of Object.entries(isObject(file.groups) ? file.groups : {})) {
    if (isObject(group)) problems.push(...factorProblems(group, { name, prices }));
  }
  return problems;
}

function factorProblems(group: JsonObject, { name, prices }: { name: string; prices: readonly Price[] }): string[] {
  const factor = decimalsOf(group.price_factor);
  if (factor === undefined || factor.digits === 0n) return [];
  const models = Array.isArray(group.models) ? group.models.filter((glob) => typeof glob === "string") : ["*"];
  const unfit = prices.filter(({ model, text }) =>
    !fits(text, factor) && mayUse({ group: { models }, rules: {} }, model)
  );
  const [first, ...others] = unfit;
  if (first === undefined) return [];
  const more = others.length === 0 ? "" : `, and ${others.length} more of its prices have`;
  return [
    problem(
      ["groups", name, "price_factor"],
      `"${group.price_factor}" times ${first.place} "${first.text}" of model "${first.model}" has more than ` +
        `${MAX_DECIMALS} decimals${more}`,
    ),
  ];
}

/** A decimal number without its point, and how many of its digits stood behind it. */
interface Decimals {
  digits: bigint;
  decimals: number;
}

/** `undefined` for what is no decimal number: the schema says so. */
function decimalsOf(text: Json | undefined): Decimals | undefined {
  const [, whole, fraction = ""] = typeof text === "string" ? /^(\d{1,6})(?:\.(\d{1,12}))?$/.exec(text) ?? [] : [];
  return whole === undefined ? undefined : { digits: BigInt(whole + fraction), decimals: fraction.length };
}

/** Whether the product has at most 12 decimals, noughts at its end aside. */
function fits(price: string, factor: Decimals): boolean {
  const { digits, decimals } = decimalsOf(price) ?? { digits: 0n, decimals: 0 };
  const extra = decimals + factor.decimals - MAX_DECIMALS;
  return extra <= 0 || digits * factor.digits % 10n ** BigInt(extra) === 0n;
}

/** Every price that a row names; those that it leaves out are one of these, or 0. */
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
  return Object.entries(row).flatMap(([name, text]) =>
    name !== "from" && typeof text === "string" ? [{ model, place: `${path}.${name}`, text }] : []
  );
}

/** Of two changes at one moment nobody could say which is in force. */
function changeProblems({ price_changes }: JsonObject, path: Path): string[] {
  const problems: string[] = [];
  const taken = new Map<number, number>();
  for (const [index, change] of Array.isArray(price_changes) ? price_changes.entries() : []) {
    const from = isObject(change) && typeof change.from === "string" ? Date.parse(change.from) : NaN;
    if (Number.isNaN(from)) continue;
    const first = taken.get(from);
    if (first === undefined) taken.set(from, index);
    else problems.push(problem([...path, index, "from"], `The same moment is already that of price_changes[${first}]`));
  }
  return problems;
}
