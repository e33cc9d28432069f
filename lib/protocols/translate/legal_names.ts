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

/** True if a rule accepts a text. */
export function isLegal(text: string, rule: TextRule): boolean {
  if (text === "" || (rule.exact === true ? text.length !== rule.max : text.length > rule.max)) return false;
  const one = stateless(rule.legal);
  for (const character of text) if (!one.test(character)) return false;
  return true;
}

/** Replaces every character that a rule does not accept. */
export function replaceIllegalCharacters(text: string, { legal }: TextRule, instead: string): string {
  const one = stateless(legal);
  return Array.from(text, (character) => one.test(character) ? character : instead).join("");
}

/** A global or sticky expression remembers its position between calls. */
function stateless(legal: RegExp): RegExp {
  return legal.global || legal.sticky ? new RegExp(legal.source, legal.flags.replace(/[gy]/g, "")) : legal;
}
