/** Money, exact: prices are decimal strings, amounts are whole numbers of 1e-12 USD. No binary fractions anywhere. */

/** Decimals of an amount. */
const DECIMALS = 12;

/** An amount in 1e-12 USD. */
export type Amount = bigint;

/**
 * Reads USD as a decimal string with at most 12 decimals, such as `0.00000125`.
 * @throws {RangeError} for any other text
 */
export function parseUsd(text: string): Amount {
  const [, whole, fraction = ""] = /^(\d+)(?:\.(\d{1,12}))?$/.exec(text) ?? [];
  if (whole === undefined) {
    throw new RangeError("Cannot read an amount: expected a decimal string, at most 12 decimals");
  }
  return BigInt(whole + fraction.padEnd(DECIMALS, "0"));
}

/** Writes an amount as the shortest decimal string of USD that says the same: `0.031608`, `2`, `0`. */
export function formatUsd(amount: Amount): string {
  const sign = amount < 0n ? "-" : "";
  const digits = (amount < 0n ? -amount : amount).toString().padStart(DECIMALS + 1, "0");
  const fraction = digits.slice(-DECIMALS).replace(/0+$/, "");
  return `${sign}${digits.slice(0, -DECIMALS)}${fraction === "" ? "" : `.${fraction}`}`;
}

/** Decimals of an amount that people read, and the least such amount. */
const READ_DECIMALS = 4;
const LEAST_READ = 10n ** BigInt(DECIMALS - READ_DECIMALS);
const HALF_READ = 5n * 10n ** BigInt(DECIMALS - READ_DECIMALS - 1);

/** Rounds what `formatUsd` writes to 4 decimals, for people: `0.0316`, `2.0000`, `<0.0001`; 0 is `0`. */
export function roundUsd(usd: string): string {
  if (usd.startsWith("-")) return `-${roundUsd(usd.slice(1))}`.replace("-<", ">-");
  const amount = parseUsd(usd);
  if (amount === 0n) return "0";
  const digits = (amount + HALF_READ).toString().padStart(DECIMALS + 1, "0").slice(0, READ_DECIMALS - DECIMALS);
  if (/^0+$/.test(digits)) return `<${formatUsd(LEAST_READ)}`;
  return `${digits.slice(0, -READ_DECIMALS)}.${digits.slice(-READ_DECIMALS)}`;
}

/**
 * What tokens cost.
 * @param tokens a whole number, not negative
 * @param price USD per token, as the catalog writes it
 * @throws {RangeError} for a count that is none
 */
export function costOf(tokens: number, price: string): Amount {
  if (!Number.isSafeInteger(tokens) || tokens < 0) throw new RangeError(`Cannot charge ${tokens} tokens`);
  return BigInt(tokens) * parseUsd(price);
}

/** A factor of prices: `digits` divided by 10 to the power of `decimals`. */
export interface Factor {
  digits: bigint;
  decimals: number;
}

/** Reads a factor, such as `0.8` or `1.25`. @throws {RangeError} for any other text */
export function parseFactor(text: string): Factor {
  const [, whole, fraction = ""] = /^(\d{1,3})(?:\.(\d{1,6}))?$/.exec(text) ?? [];
  if (whole === undefined) throw new RangeError("Cannot read a factor: expected a decimal string, at most 6 decimals");
  return { digits: BigInt(whole + fraction), decimals: fraction.length };
}

/** An amount times a factor. @throws {RangeError} where it has no exact place among whole numbers of 1e-12 USD */
export function timesFactor(amount: Amount, { digits, decimals }: Factor): Amount {
  const product = amount * digits;
  const unit = 10n ** BigInt(decimals);
  if (product % unit !== 0n) throw new RangeError("Cannot multiply: the product has more than 12 decimals");
  return product / unit;
}
