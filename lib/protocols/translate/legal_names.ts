/** Short legal names for long or illegal ones. The same text always gets the same name. */
import { hash } from "node:crypto";
import type { TextRule } from "../upstream_codec.ts";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Returns the first `length` (at most 40) base62 digits of a text's hash. */
export function hashText(text: string, length: number): string {
  let rest = BigInt(`0x${hash("sha256", text, "hex")}`);
  let digits = "";
  for (; digits.length < length; rest /= 62n) digits += DIGITS[Number(rest % 62n)];
  return digits;
}

/** Expressions for whole texts, by those for one character. */
const WHOLE = new WeakMap<RegExp, RegExp>();

/** True if a rule accepts a text. */
export function isLegal(text: string, { legal, max, exact }: TextRule): boolean {
  if (exact === true ? text.length !== max : text.length > max) return false;
  let pattern = WHOLE.get(legal);
  if (pattern === undefined) WHOLE.set(legal, pattern = new RegExp(`^(?:${legal.source})+$`));
  return pattern.test(text);
}

/** Replaces every character that a rule does not accept. */
export function replaceIllegalCharacters(text: string, rule: TextRule, replacement: string): string {
  return Array.from(text, (character) => isLegal(character, { legal: rule.legal, max: 2 }) ? character : replacement)
    .join("");
}
