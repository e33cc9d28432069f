/** The rule that an invalid request breaks, in the words of its error without any text of the client. */
import type { GatewayError } from "../errors.ts";
import { memberName } from "../observe/request_record.ts";
import { redactShapes } from "../redact.ts";
import { plainText } from "../text.ts";

const LONGEST = 200;

/** Replacement of a text that may be the client's. */
const LEFT_OUT = "…";

/** Quoted words of the gateway's own, beside the names of members. */
const OWN_WORDS: ReadonlySet<string> = new Set(
  "any assistant auto developer form-data high none required tool x-sluice-user x-sluice-tags metadata.user_id".split(
    " ",
  ),
);

/**
 * Returns the rule of an error of kind `invalid`, `too_large` or `unsupported_media_type`, which is the gateway's own. The
 * error's parameter is not repeated.
 */
export function brokenRule({ message, param, rule }: Pick<GatewayError, "message" | "param" | "rule">): string {
  const text = rule ?? withoutQuotes(param === undefined ? message : withoutParameter(message, param));
  return redactShapes(plainText(text, LONGEST), LONGEST);
}

/** Removes a parameter's name from the beginning and the end, and replaces an unknown one elsewhere. */
function withoutParameter(message: string, param: string): string {
  const name = RegExp.escape(param);
  const known = memberName(param.replace(/\[\d*\]/g, ""));
  return message
    .replace(new RegExp(`^(?:Invalid value for |Cannot (?:read|use) )?${name}: `), "")
    .replace(new RegExp(`: ${name}$`), "")
    .replace(new RegExp(`(?<![\\w.])${name}(?![\\w[])`, "g"), known === param ? param : LEFT_OUT);
}

/**
 * Replaces everything from the first quotation mark to the last one, since a quoted text may have marks itself. Lists of
 * known words and punctuation remain.
 */
function withoutQuotes(text: string): string {
  const from = text.indexOf('"');
  const to = text.lastIndexOf('"') + 1;
  if (to - from < 2) return text;
  const quoted = text.slice(from, to);
  const words = quoted.slice(1, -1).split(/"(?:, | or |, or | and | or the header )"/);
  return words.every(isOwnWord) ? text : text.slice(0, from) + LEFT_OUT + text.slice(to);
}

function isOwnWord(word: string): boolean {
  return /^[^\w\s"]$/.test(word) || OWN_WORDS.has(word) || memberName(word) === word && word !== "other";
}
