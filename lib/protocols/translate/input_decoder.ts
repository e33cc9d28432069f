/** Decodes `{"input":"…"}` while it arrives, in pieces of any size. */
import { isObject, JsonError, parseJson } from "../../json/mod.ts";
import { isHighSurrogate } from "../../text.ts";

/** Arguments that begin otherwise are kept to be read whole, up to this many characters; beyond, they pass as they are. */
const MAX_KEPT = 1_048_576;
/** Most characters before the input. Models that lose their way write white space without end. */
const MAX_OPENING = 1_024;

const OPENING = /^\s*\{\s*"input"\s*:\s*"/;
/** Every beginning of a text that `OPENING` matches. */
const OPENING_SO_FAR = /^\s*(?:\{\s*(?:"(?:i(?:n(?:p(?:u(?:t(?:"\s*(?::\s*)?)?)?)?)?)?)?)?)?$/;

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

/** A decoder of one call's arguments. What `push` and `end` give, joined, is the input. */
export interface InputDecoder {
  push(text: string): string;
  end(): string;
}

/**
 * The text of the member `input`. Where it comes first it is decoded while it arrives, and what follows it is ignored.
 * Otherwise the arguments are kept and read at the end; where they are no object with such a text, or no JSON at all,
 * they are themselves the input.
 */
export function inputDecoder(): InputDecoder {
  let state: "opening" | "text" | "other" | "raw" | "over" = "opening";
  let kept = "";

  function decodeText(piece: string): string {
    const { text, rest, closed } = decodeString(kept + piece);
    kept = closed ? "" : rest;
    if (closed) state = "over";
    return text;
  }

  return {
    push(piece) {
      switch (state) {
        case "over":
          return "";
        case "raw":
          return piece;
        case "text":
          return decodeText(piece);
      }
      kept += piece;
      if (state === "opening") {
        const opening = OPENING.exec(kept);
        if (opening !== null) {
          state = "text";
          const begun = kept.slice(opening[0].length);
          kept = "";
          return decodeText(begun);
        }
        if (kept.length > MAX_OPENING || !OPENING_SO_FAR.test(kept)) state = "other";
      }
      if (kept.length <= MAX_KEPT) return "";
      state = "raw";
      const all = kept;
      kept = "";
      return all;
    },
    end() {
      const left = kept;
      kept = "";
      // What is left of text that was cut short is half a character.
      return state === "opening" || state === "other" ? wholeInput(left) : "";
    },
  };
}

/** The input in arguments that are there in full. */
function wholeInput(text: string): string {
  try {
    const value = parseJson(text);
    return isObject(value) && typeof value.input === "string" ? value.input : text;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return text;
  }
}

/**
 * Decodes the inside of a JSON string as far as it can be.
 * @returns the text, and what is left for the next piece: half an escape, or half a surrogate pair
 */
function decodeString(source: string): { text: string; rest: string; closed: boolean } {
  let text = "";
  let at = 0;
  while (at < source.length) {
    const special = /["\\]/g;
    special.lastIndex = at;
    const next = special.exec(source)?.index ?? source.length;
    text += source.slice(at, next);
    at = next;
    if (source[at] === '"') return { text, rest: "", closed: true };
    if (at === source.length) break;
    const escape = readEscape(source, at);
    if (escape === undefined) break;
    text += escape.text;
    at += escape.length;
  }
  const rest = source.slice(at);
  const last = text.charCodeAt(text.length - 1);
  if (!isHighSurrogate(last)) return { text, rest, closed: false };
  // The other half of the character may come with the next piece; its own spelling does not matter.
  const half = `\\u${last.toString(16)}`;
  return { text: text.slice(0, -1), rest: half + rest, closed: false };
}

/** The escape at a backslash; undefined where it is not complete yet. What is none stands for itself. */
function readEscape(source: string, at: number): { text: string; length: number } | undefined {
  const letter = source[at + 1];
  if (letter === undefined) return undefined;
  if (letter !== "u") return { text: ESCAPES[letter] ?? `\\${letter}`, length: 2 };
  const digits = source.slice(at + 2, at + 6);
  if (/^[0-9a-f]{4}$/i.test(digits)) return { text: String.fromCharCode(parseInt(digits, 16)), length: 6 };
  return digits.length < 4 && /^[0-9a-f]*$/i.test(digits) ? undefined : { text: "\\u", length: 2 };
}
