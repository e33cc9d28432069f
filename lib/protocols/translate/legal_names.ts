/** Checks names against an upstream's rules, and makes parts of legal names from a hash or by replacing characters. */
import { hash } from "node:crypto";
import type { TextRule } from "../upstream_codec.ts";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Returns the first `length` (at most 40) base62 digits of a text's hash. */
export function hashText(text: string, length: number): string {
  let remaining = BigInt(`0x${hash("sha256", text, "hex")}`);
  let digits = "";
  for (; digits.length < length; remaining /= 62n) digits += DIGITS[Number(remaining % 62n)];
  return digits;
}

/** Patterns for whole texts, by the pattern for one character. */
const TEXT_PATTERNS = new WeakMap<RegExp, RegExp>();

/** True if a rule allows a text. */
export function isLegal(text: string, { legal, max, exact }: TextRule): boolean {
  if (exact === true ? text.length !== max : text.length > max) return false;
  let pattern = TEXT_PATTERNS.get(legal);
  if (pattern === undefined) TEXT_PATTERNS.set(legal, pattern = new RegExp(`^(?:${legal.source})+$`));
  return pattern.test(text);
}

/** Replaces every character that a rule does not allow. */
export function replaceIllegalCharacters(text: string, rule: TextRule, replacement: string): string {
  return Array.from(text, (character) => isLegal(character, { legal: rule.legal, max: 2 }) ? character : replacement)
    .join("");
}

const CALL_ID_PREFIX = "call_";
/** Base62 digits of a new id, about 142 bits. */
const HASH_LENGTH = 24;

/** Returns the id if it is legal, else an id made of its hash. */
export function legalCallId(id: string, rule: TextRule): string {
  if (isLegal(id, rule)) return id;
  if (rule.exact === true) return hashText(id, rule.max);
  const prefix = isLegal(CALL_ID_PREFIX, { ...rule, exact: false }) && rule.max > 2 * CALL_ID_PREFIX.length
    ? CALL_ID_PREFIX
    : "";
  return prefix + hashText(id, Math.min(HASH_LENGTH, rule.max - prefix.length));
}
