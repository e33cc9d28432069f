/**
 * Computes with exact money: prices are decimal strings, amounts are bigints in 1e-12 USD. Floating point is never
 * used.
 */

const DECIMALS = 12;

/** An amount in 1e-12 USD. */
export type Amount = bigint;

/**
 * Reads USD as a decimal string with at most 12 decimals, such as `0.00000125`.
 * @throws {RangeError} for any other text
 */
export function parseUsd(text: string): Amount {
  const [, integer, fraction = ""] = /^(\d+)(?:\.(\d{1,12}))?$/.exec(text) ?? [];
  if (integer === undefined) {
    throw new RangeError("Cannot read an amount: expected a decimal string, at most 12 decimals");
  }
  return BigInt(integer + fraction.padEnd(DECIMALS, "0"));
}

/** Formats an amount as the shortest exact decimal string of USD: `0.031608`, `2`, `0`. */
export function formatUsd(amount: Amount): string {
  const sign = amount < 0n ? "-" : "";
  const digits = (amount < 0n ? -amount : amount).toString().padStart(DECIMALS + 1, "0");
  const fraction = digits.slice(-DECIMALS).replace(/0+$/, "");
  return `${sign}${digits.slice(0, -DECIMALS)}${fraction === "" ? "" : `.${fraction}`}`;
}

/** Decimals of amounts that people read. */
const DISPLAY_DECIMALS = 4;
/** The smallest amount with these decimals, in 1e-12 USD. */
const SMALLEST_DISPLAYED = 10n ** BigInt(DECIMALS - DISPLAY_DECIMALS);
/** Half of that amount, for rounding. */
const HALF_DISPLAYED = 5n * 10n ** BigInt(DECIMALS - DISPLAY_DECIMALS - 1);

/** Rounds a result of `formatUsd` to 4 decimals, for people: `0.0316`, `2.0000`, `<0.0001`; 0 is `0`. */
export function roundUsd(usd: string): string {
  // `-0.00001` becomes `>-0.0001`.
  if (usd.startsWith("-")) return `-${roundUsd(usd.slice(1))}`.replace("-<", ">-");
  const amount = parseUsd(usd);
  if (amount === 0n) return "0";
  const digits = (amount + HALF_DISPLAYED).toString().padStart(DECIMALS + 1, "0").slice(0, DISPLAY_DECIMALS - DECIMALS);
  if (/^0+$/.test(digits)) return `<${formatUsd(SMALLEST_DISPLAYED)}`;
  return `${digits.slice(0, -DISPLAY_DECIMALS)}.${digits.slice(-DISPLAY_DECIMALS)}`;
}

/**
 * Returns the cost of tokens.
 * @param tokens a non-negative integer
 * @param price USD per token, as in the catalog
 * @throws {RangeError} for an invalid count
 */
export function costOf(tokens: number, price: string): Amount {
  if (!Number.isSafeInteger(tokens) || tokens < 0) throw new RangeError(`Cannot charge ${tokens} tokens`);
  return BigInt(tokens) * parseUsd(price);
}

/** A price factor: `digits` divided by 10 to the power of `decimals`. */
export interface Factor {
  digits: bigint;
  decimals: number;
}

/** Parses a factor, such as `0.8` or `1.25`. @throws {RangeError} for any other text */
export function parseFactor(text: string): Factor {
  const [, integer, fraction = ""] = /^(\d{1,3})(?:\.(\d{1,6}))?$/.exec(text) ?? [];
  if (integer === undefined) {
    throw new RangeError("Cannot read a factor: expected a decimal string, at most 6 decimals");
  }
  return { digits: BigInt(integer + fraction), decimals: fraction.length };
}

/** Multiplies an amount by a factor. @throws {RangeError} if the product is not a multiple of 1e-12 USD */
export function timesFactor(amount: Amount, { digits, decimals }: Factor): Amount {
  const product = amount * digits;
  const unit = 10n ** BigInt(decimals);
  if (product % unit !== 0n) throw new RangeError("Cannot multiply: the product has more than 12 decimals");
  return product / unit;
}

/**
 * Returns the amount whose product with the factor is `product`; `undefined` if there is none, or if the factor is 0.
 */
export function divideByFactor(product: Amount, { digits, decimals }: Factor): Amount | undefined {
  const scaled = product * 10n ** BigInt(decimals);
  return digits === 0n || scaled < 0n || scaled % digits !== 0n ? undefined : scaled / digits;
}

/** Formats the period of a budget, such as `per month`. */
export function periodText(period: string): string {
  return period === "total" ? "in total" : `per ${period}`;
}

/** Formats a price per token as the price of a million tokens. @param price USD per token, as a decimal string */
export function perMillion(price: string): string {
  return formatUsd(parseUsd(price) * 1_000_000n);
}
