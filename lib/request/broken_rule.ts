/** Names the rule that an invalid request breaks: the text of its error, without any text of the client. */
import { type GatewayError, isCut } from "../errors.ts";
import { memberName } from "../observe/request_record.ts";
import { redactShapes } from "../redact.ts";
import { plainText } from "../text.ts";

/** Longest rule, in UTF-16 code units. */
const MAX_RULE_LENGTH = 200;

/** Replaces text that may come from the client. */
const ELLIPSIS = "…";

/** Words that the gateway itself quotes in errors, besides member names. */
const GATEWAY_WORDS: ReadonlySet<string> = new Set(
  "any assistant auto developer form-data high none required tool x-sluice-user x-sluice-tags metadata.user_id".split(
    " ",
  ),
);

/**
 * Returns the rule of an error that the gateway itself made, of kind `invalid`, `too_large` or
 * `unsupported_media_type`. The rule does not repeat the error's parameter.
 */
export function brokenRule({ message, param, rule }: Pick<GatewayError, "message" | "param" | "rule">): string {
  // The missing part may have the end of a quoted text or of the parameter's name.
  if (rule === undefined && (isCut(message) || isCut(param ?? ""))) return ELLIPSIS;
  const text = rule ?? withoutQuotes(param === undefined ? message : withoutParameter(message, param));
  return redactShapes(plainText(text, MAX_RULE_LENGTH), MAX_RULE_LENGTH);
}

/** Removes a parameter's name from the start and the end. Elsewhere it replaces the name if it is unknown. */
function withoutParameter(message: string, param: string): string {
  const name = RegExp.escape(param);
  const knownName = memberName(param.replace(/\[\d*\]/g, ""));
  return message
    .replace(new RegExp(`^(?:Invalid value for |Cannot (?:read|use) )?${name}: `), "")
    .replace(new RegExp(`: ${name}$`), "")
    .replace(new RegExp(`(?<![\\w.])${name}(?![\\w[])`, "g"), knownName === param ? param : ELLIPSIS);
}

/**
 * Replaces everything from the first quotation mark to the last one, because a quoted text may itself contain quotation
 * marks. Lists of known words and punctuation stay.
 */
function withoutQuotes(text: string): string {
  const from = text.indexOf('"');
  const to = text.lastIndexOf('"') + 1;
  if (to - from < 2) return text;
  const quoted = text.slice(from, to);
  const quotedWords = quoted.slice(1, -1).split(/"(?:, | or |, or | and | or the header )"/);
  return quotedWords.every(isGatewayWord) ? text : text.slice(0, from) + ELLIPSIS + text.slice(to);
}

function isGatewayWord(word: string): boolean {
  return /^[^\w\s"]$/.test(word) || GATEWAY_WORDS.has(word) || memberName(word) === word && word !== "other";
}
