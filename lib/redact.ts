/** Removes secrets from texts that leave the process: first by their values, then by the usual forms of keys. */
import { remembered, type Secret } from "./secret.ts";

const KEY_REPLACEMENT = "[key]";

/**
 * Length of the beginning of a secret by which it is found: a vendor that refuses a key may quote only its beginning.
 */
const PREFIX_CHARACTERS = 9;
/** The same length in base64. */
const PREFIX_BASE64_CHARACTERS = 12;

/** One way in which a secret may be written in a text. */
interface Spelling {
  text: string;
  /** The beginning of `text`, by which a quoted part is found. */
  prefix: string;
  isBase64: boolean;
}

let spellings: Spelling[] = [];
let spelledVersion = 0;

/**
 * Removes the remembered secrets from a text, and beginnings of them of nine characters or more: for errors, which may
 * quote an upstream. It finds a secret as it is, in base64 at any offset, and with escapes of JSON, URLs and HTML.
 */
export function redactSecrets(text: string): string {
  return removeSecrets(text, true);
}

/**
 * Removes only whole secrets from a text: for logs and the console, where a name that the operator chose may begin like
 * a key.
 */
export function redactWholeSecrets(text: string): string {
  return removeSecrets(text, false);
}

function removeSecrets(text: string, withPrefixes: boolean): string {
  if (text.length < PREFIX_CHARACTERS - 1 || currentSpellings().length === 0) return text;
  // Whole secrets are first removed without decoding, so that JSON stays valid. Quoted ones may be escaped in part.
  const raw = withPrefixes ? text : removeSpellings(text, false);
  const decoded = decodeEscapes(raw);
  const clean = removeSpellings(decoded, withPrefixes);
  return clean === decoded ? raw : clean;
}

function currentSpellings(): readonly Spelling[] {
  const { values, version } = remembered;
  if (version !== spelledVersion) {
    spelledVersion = version;
    // The longest first, because a secret may begin with another one.
    spellings = [...values].flatMap(spellingsOf).sort((one, other) => other.text.length - one.text.length);
  }
  return spellings;
}

function spellingsOf(value: string): Spelling[] {
  const plain = { text: value, prefix: value.slice(0, PREFIX_CHARACTERS), isBase64: false };
  const encoded = base64Cores(value).map((text) => ({
    text,
    prefix: text.slice(0, PREFIX_BASE64_CHARACTERS),
    isBase64: true,
  }));
  return [plain, ...encoded];
}

/**
 * Returns how a text looks in base64 (alphabet for URLs) when it is part of a longer text: one result for each of the
 * three offsets that it can have, without the characters that also depend on the surrounding text.
 */
function base64Cores(value: string): string[] {
  const bytes = [...new TextEncoder().encode(value)];
  return [0, 1, 2].map((offset) => {
    const padded = [...new Array<number>(offset).fill(0), ...bytes];
    const encoded = btoa(String.fromCharCode(...padded)).replace(/=+$/, "");
    const core = encoded.slice(Math.ceil(offset * 8 / 6), Math.floor(padded.length * 8 / 6));
    return toUrlAlphabet(core);
  });
}

function toUrlAlphabet(text: string): string {
  return text.includes("+") || text.includes("/") ? text.replaceAll("+", "-").replaceAll("/", "_") : text;
}

function removeSpellings(text: string, withPrefixes: boolean): string {
  let clean = text;
  for (const { text: secret, prefix, isBase64 } of currentSpellings()) {
    const needle = withPrefixes ? prefix : secret;
    // Offsets are the same in both alphabets.
    let searched = isBase64 ? toUrlAlphabet(clean) : clean;
    for (let at = searched.indexOf(needle); at >= 0; at = searched.indexOf(needle, at + KEY_REPLACEMENT.length)) {
      const end = withPrefixes ? endOfQuote(searched, { at, secret, isBase64 }) : at + secret.length;
      clean = clean.slice(0, at) + KEY_REPLACEMENT + clean.slice(end);
      searched = isBase64 ? toUrlAlphabet(clean) : clean;
    }
  }
  return clean;
}

/** Returns the end of a quoted secret, which may be cut or masked with asterisks or dots. */
function endOfQuote(
  text: string,
  { at, secret, isBase64 }: { at: number; secret: string; isBase64: boolean },
): number {
  let length = 0;
  while (length < secret.length && text[at + length] === secret[length]) length++;
  const remainder = isBase64 ? /[\w=-]*/y : /[\w*•…-]*(?:\.{2,}[\w*•-]*)?/y;
  remainder.lastIndex = at + length;
  remainder.test(text);
  return Math.max(remainder.lastIndex, at + length);
}

/** Number of layers of escapes that are decoded: a text may be JSON within JSON within a URL. */
const MAX_ESCAPE_LAYERS = 3;

const ESCAPES = /\\u([0-9a-f]{4})|\\x([0-9a-f]{2})|%([0-9a-f]{2})|&#x([0-9a-f]{1,6});|&#(\d{1,7});|\\(["\\/])|&amp;/gi;

/** Decodes those escapes of JSON, URLs and HTML that stand for visible ASCII characters. */
function decodeEscapes(text: string): string {
  let decoded = text;
  for (let layer = 0; layer < MAX_ESCAPE_LAYERS && /[\\%&]/.test(decoded); layer++) {
    const before = decoded;
    decoded = decoded.replace(ESCAPES, (escape, unit, x, percent, html, decimal, literal) => {
      if (literal !== undefined) return literal;
      const hex = unit ?? x ?? percent ?? html;
      // Without a number it is `&amp;`.
      let code = 0x26;
      if (hex !== undefined) code = parseInt(hex, 16);
      else if (decimal !== undefined) code = Number(decimal);
      return code > 0x20 && code < 0x7f ? String.fromCharCode(code) : escape;
    });
    if (decoded === before) break;
  }
  return decoded;
}

/** Patterns of addresses, accounts and keys, with their replacements. */
const SHAPES: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s"'<>)]+/gi, "[address]"],
  [/\b[\w-]+\.googleapis\.com\S*/gi, "[address]"],
  [/\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g, "[address]"],
  [/\b(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:local|internal|svc|lan)):?\d*/gi, "[address]"],
  [/\bbearer\s+[\w.~+/=*-]+/gi, KEY_REPLACEMENT],
  [/\bbasic\s+(?=[a-z]*[\d+/=])[\w+/=-]{8,}/gi, KEY_REPLACEMENT],
  [/\b(?:sk|pk|rk|key|gsk|xai)[-_][\w*.-]{4,}/gi, KEY_REPLACEMENT],
  [/\bprojects\/[\w-]+/gi, "[account]"],
  [/\b(?:org|proj)[-_]\w{6,}/g, "[account]"],
  [/\b(?:AIza|AQ\.|ya29\.)[\w.-]{8,}/g, KEY_REPLACEMENT],
  // Ids with a prefix, such as `resp_…`, stay: clients need them.
  [/\b(?![a-z]{2,12}_)(?=[a-z_-]*\d)(?=[\d_-]*[a-z])[\w-]{32,}/gi, KEY_REPLACEMENT],
  // deno-lint-ignore no-control-regex
  [/[\u0000-\u001f\u007f-\u009f]+/g, " "],
];

/**
 * Returns an upstream's message in a form that a client may read: one line of at most `maxCharacters` before redaction,
 * without addresses, accounts and keys.
 */
export function redactShapes(text: string, maxCharacters: number): string {
  const head = redactSecrets(text.slice(0, maxCharacters));
  return SHAPES.reduce((clean, [pattern, replacement]) => clean.replace(pattern, replacement), head).trim();
}

/** Shortest key that is removed from model output, in characters. */
const MIN_KEY_CHARACTERS = 12;
/** The same for a key of lower-case letters only, which may be a word. */
const MIN_WORD_KEY_CHARACTERS = 24;
/** Shortest end of a key by which it is searched for. */
const TAIL_CHARACTERS = 8;
/** Characters that are rare in answers, the rarest first. A search for a text with a rare first character is faster. */
const RARE_CHARACTERS = [/[A-Z+=~]/, /[jqxz]/, /[kvwy\d]/];

/** Returns the text of an answer, which may be JSON, without a secret. */
export type ContentFilter = (text: string) => string;

/**
 * Creates the filter that removes an upstream's key from the answers of its models. It finds the whole key, also as
 * escaped in a URL or in JSON, and usually costs one search per text: 15 to 45 ns for the 350 characters of a usual
 * event, which takes 2.3 µs to relay. Returns `undefined` if there is no key, or if it could be a word that the model
 * writes.
 */
export function contentFilter(key: Secret | undefined): ContentFilter | undefined {
  const value = key?.reveal() ?? "";
  const minLength = /[^a-z_.-]/.test(value) ? MIN_KEY_CHARACTERS : MIN_WORD_KEY_CHARACTERS;
  if (value.length < minLength) return undefined;
  const json = JSON.stringify(value).slice(1, -1);
  const spellings = [...new Set([value, json, json.replaceAll("/", "\\/"), encodeURIComponent(value)])];
  const tails = [...new Set(spellings.map(tailOf))];
  return (text) => {
    for (const tail of tails) {
      if (!text.includes(tail)) continue;
      return spellings.reduce((clean, spelling) => clean.replaceAll(spelling, KEY_REPLACEMENT), text);
    }
    return text;
  };
}

/** Returns the end of a key that is found fastest: it begins with the rarest character. */
function tailOf(text: string): string {
  const last = text.length - TAIL_CHARACTERS;
  const starts = RARE_CHARACTERS.map((pattern) => text.search(pattern)).filter((at) => at >= 0 && at <= last);
  return text.slice(starts[0] ?? last);
}
