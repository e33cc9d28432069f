/** Removes secrets from texts that leave the process: first by their values, then by the usual forms of keys. */
import { remembered, type Secret } from "./secret.ts";

/** Replacement of a secret. */
const KEY = "[key]";

/** Shortest part of a secret that is removed: a vendor that refuses a key quotes its beginning. */
const PREFIX_CHARACTERS = 9;
/** The same length in base64. */
const PREFIX_BASE64 = 12;

interface Spelling {
  text: string;
  /** Its beginning, which is removed too. */
  prefix: string;
  isBase64: boolean;
}

let spellings: Spelling[] = [];
let spelledVersion = 0;

/**
 * A text without the remembered secrets, nor beginnings of them that are longer than eight characters: for errors, whose
 * words may be an upstream's. A secret is found as it is, in base64 wherever it begins there, and behind the escapes of
 * JSON, URLs and HTML.
 */
export function redactSecrets(text: string): string {
  if (text.length < PREFIX_CHARACTERS - 1 || currentSpellings().length === 0) return text;
  return removeSecrets(text, true);
}

/** The same without the beginnings: for logs and the console, where a word of the operator's may begin as a key does. */
export function redactWholeSecrets(text: string): string {
  if (text.length < PREFIX_CHARACTERS - 1 || currentSpellings().length === 0) return text;
  return removeSecrets(text, false);
}

function removeSecrets(text: string, withPrefixes: boolean): string {
  // A secret that is there as it is, is there without the escapes, too.
  const decoded = decodeEscapes(text);
  const clean = removeSpellings(decoded, withPrefixes);
  return clean === decoded ? text : clean;
}

function currentSpellings(): readonly Spelling[] {
  const { values, version } = remembered;
  if (version !== spelledVersion) {
    spelledVersion = version;
    // The longest first: a secret may begin as another one does.
    spellings = [...values].flatMap(spell).sort((one, other) => other.text.length - one.text.length);
  }
  return spellings;
}

function spell(value: string): Spelling[] {
  const plain = { text: value, prefix: value.slice(0, PREFIX_CHARACTERS), isBase64: false };
  const encoded = base64Cores(value).map((text) => ({ text, prefix: text.slice(0, PREFIX_BASE64), isBase64: true }));
  return [plain, ...encoded];
}

/**
 * A text in base64 as it stands within a longer one, in the alphabet for URLs. Three texts, by where it begins; without the
 * characters that depend on what is around it.
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
  let remaining = text;
  for (const { text: secretText, prefix, isBase64 } of currentSpellings()) {
    const needle = withPrefixes ? prefix : secretText;
    // The length is the same in both alphabets.
    let searched = isBase64 ? toUrlAlphabet(remaining) : remaining;
    for (let at = searched.indexOf(needle); at >= 0; at = searched.indexOf(needle, at + KEY.length)) {
      const end = withPrefixes ? endOfQuote(searched, { at, whole: secretText, isBase64 }) : at + secretText.length;
      remaining = remaining.slice(0, at) + KEY + remaining.slice(end);
      searched = isBase64 ? toUrlAlphabet(remaining) : remaining;
    }
  }
  return remaining;
}

/** Finds the end of a quoted secret, which may be cut or masked. */
function endOfQuote(text: string, { at, whole, isBase64 }: { at: number; whole: string; isBase64: boolean }): number {
  let length = 0;
  while (length < whole.length && text[at + length] === whole[length]) length++;
  const rest = isBase64 ? /[\w=-]*/y : /[\w*•…-]*(?:\.{2,}[\w*•-]*)?/y;
  rest.lastIndex = at + length;
  rest.test(text);
  return Math.max(rest.lastIndex, at + length);
}

/** Most layers of escapes that are taken off. */
const LAYERS = 3;

const ESCAPES = /\\u([0-9a-f]{4})|\\x([0-9a-f]{2})|%([0-9a-f]{2})|&#x([0-9a-f]{1,6});|&#(\d{1,7});|\\(["\\/])|&amp;/gi;

/** A text without the escapes of JSON, URLs and HTML, as far as they stand for visible ASCII. */
function decodeEscapes(text: string): string {
  let decoded = text;
  for (let layer = 0; layer < LAYERS && /[\\%&]/.test(decoded); layer++) {
    const before = decoded;
    decoded = decoded.replace(ESCAPES, (found, unit, x, percent, html, decimal, itself) => {
      if (itself !== undefined) return itself;
      const hex = unit ?? x ?? percent ?? html;
      const code = hex !== undefined ? parseInt(hex, 16) : decimal !== undefined ? Number(decimal) : 0x26;
      return code > 0x20 && code < 0x7f ? String.fromCharCode(code) : found;
    });
    if (decoded === before) break;
  }
  return decoded;
}

/** Addresses, accounts and keys by what they look like. */
const SHAPES: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s"'<>)]+/gi, "[address]"],
  [/\b[\w-]+\.googleapis\.com\S*/gi, "[address]"],
  [/\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g, "[address]"],
  [/\b(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:local|internal|svc|lan)):?\d*/gi, "[address]"],
  [/\bbearer\s+[\w.~+/=*-]+/gi, KEY],
  [/\bbasic\s+(?=[a-z]*[\d+/=])[\w+/=-]{8,}/gi, KEY],
  [/\b(?:sk|pk|rk|key|gsk|xai)[-_][\w*.-]{4,}/gi, KEY],
  [/\bprojects\/[\w-]+/gi, "[account]"],
  [/\b(?:org|proj)[-_]\w{6,}/g, "[account]"],
  [/\b(?:AIza|AQ\.|ya29\.)[\w.-]{8,}/g, KEY],
  // Ids such as `resp_…` are the client's own.
  [/\b(?![a-z]{2,12}_)(?=[a-z_-]*\d)(?=[\d_-]*[a-z])[\w-]{32,}/gi, KEY],
  // deno-lint-ignore no-control-regex
  [/[\u0000-\u001f\u007f]+/g, " "],
];

/** An upstream's own words as a client may read them: one line of bounded length without addresses, accounts and keys. */
export function redactShapes(text: string, maxCharacters: number): string {
  const head = redactSecrets(text.slice(0, maxCharacters));
  return SHAPES.reduce((redacted, [pattern, replacement]) => redacted.replace(pattern, replacement), head).trim();
}

/** Shortest key that is removed from model output, in characters. */
const CONTENT_CHARACTERS = 12;
/** The same for a key of small letters alone, which may be a word. */
const WORDY_CHARACTERS = 24;
/** Shortest end of a key by which it is looked for. */
const TAIL_CHARACTERS = 8;
/** Characters that are rare in answers, the rarest first: a search skips to the first character of what it looks for. */
const RARE = [/[A-Z+=~]/, /[jqxz]/, /[kvwy\d]/];

/** Removes a secret from an answer's text, which may be JSON. */
export type ContentFilter = (text: string) => string;

/**
 * The filter for what an upstream's models say. It looks for the whole key as it is, in a URL and in JSON, and costs one
 * search per text: 15 to 45 ns for the 350 characters of a usual event, of the 2.3 µs that it takes to be relayed. `undefined` where the key is no more than a word: the model may say it.
 */
export function contentFilter(key: Secret | undefined): ContentFilter | undefined {
  const value = key?.reveal() ?? "";
  const minLength = /[^a-z_.-]/.test(value) ? CONTENT_CHARACTERS : WORDY_CHARACTERS;
  if (value.length < minLength) return undefined;
  const json = JSON.stringify(value).slice(1, -1);
  const spellings = [...new Set([value, json, json.replaceAll("/", "\\/"), encodeURIComponent(value)])];
  const tails = [...new Set(spellings.map(tailOf))];
  return (text) => {
    for (const tail of tails) {
      if (text.includes(tail)) {
        return spellings.reduce((redacted, spelling) => redacted.replaceAll(spelling, KEY), text);
      }
    }
    return text;
  };
}

/** The end of a text that is found fastest. */
function tailOf(text: string): string {
  const last = text.length - TAIL_CHARACTERS;
  const starts = RARE.map((pattern) => text.search(pattern)).filter((at) => at >= 0 && at <= last);
  return text.slice(starts[0] ?? last);
}
