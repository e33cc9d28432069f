/** Decodes the text in `{"input":"…"}` while the JSON arrives, in pieces of any size. */
import { isObject, JsonError, parseJson } from "../../json/mod.ts";
import { isHighSurrogate } from "../../text.ts";

/** Limit of arguments that begin in another way and are kept to be parsed at the end; longer ones pass unchanged. */
const MAX_KEPT = 1_048_576;
/** Limit of characters before the input: some models write endless white space. */
const MAX_OPENING = 1_024;

const OPENING = /^\s*\{\s*"input"\s*:\s*"/;
/** Every prefix of a text that `OPENING` matches. */
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

/** A decoder of one call's arguments. The results of `push` and `end`, joined, are the input. */
export interface InputDecoder {
  push(text: string): string;
  end(): string;
}

/**
 * Creates a decoder of the member `input`. It decodes the text while it arrives if the member is the first one, else at
 * the end. Arguments that are not an object with this text are themselves the input.
 */
export function inputDecoder(): InputDecoder {
  let state: "opening" | "text" | "other" | "raw" | "over" = "opening";
  let pending = "";

  function decodeText(piece: string): string {
    const { text, unread, isClosed } = decodeString(pending + piece);
    pending = isClosed ? "" : unread;
    if (isClosed) state = "over";
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
      pending += piece;
      if (state === "opening") {
        const opening = OPENING.exec(pending);
        if (opening !== null) {
          state = "text";
          const beginning = pending.slice(opening[0].length);
          pending = "";
          return decodeText(beginning);
        }
        if (pending.length > MAX_OPENING || !OPENING_SO_FAR.test(pending)) state = "other";
      }
      if (pending.length <= MAX_KEPT) return "";
      state = "raw";
      const all = pending;
      pending = "";
      return all;
    },
    end() {
      const remaining = pending;
      pending = "";
      // The rest of an incomplete text is at most half a character or escape, and is dropped.
      return state === "opening" || state === "other" ? inputOf(remaining) : "";
    },
  };
}

function inputOf(text: string): string {
  try {
    const value = parseJson(text);
    return isObject(value) && typeof value.input === "string" ? value.input : text;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return text;
  }
}

/**
 * Decodes the inside of a JSON string as far as possible.
 * @returns the text, and what to put before the next piece: half an escape, or half a surrogate pair
 */
function decodeString(source: string): { text: string; unread: string; isClosed: boolean } {
  let text = "";
  let index = 0;
  while (index < source.length) {
    const special = /["\\]/g;
    special.lastIndex = index;
    const next = special.exec(source)?.index ?? source.length;
    text += source.slice(index, next);
    index = next;
    if (source[index] === '"') return { text, unread: "", isClosed: true };
    if (index === source.length) break;
    const escape = readEscape(source, index);
    if (escape === undefined) break;
    text += escape.text;
    index += escape.length;
  }
  const unread = source.slice(index);
  const last = text.charCodeAt(text.length - 1);
  if (!isHighSurrogate(last)) return { text, unread, isClosed: false };
  // The next piece may bring the other half of the character, so this half waits as an escape.
  const escapedHalf = `\\u${last.toString(16)}`;
  return { text: text.slice(0, -1), unread: escapedHalf + unread, isClosed: false };
}

/** Reads the escape at a backslash; undefined while it is incomplete. An invalid escape stays as it is. */
function readEscape(source: string, index: number): { text: string; length: number } | undefined {
  const letter = source[index + 1];
  if (letter === undefined) return undefined;
  if (letter !== "u") return { text: ESCAPES[letter] ?? `\\${letter}`, length: 2 };
  const digits = source.slice(index + 2, index + 6);
  if (/^[0-9a-f]{4}$/i.test(digits)) return { text: String.fromCharCode(parseInt(digits, 16)), length: 6 };
  return digits.length < 4 && /^[0-9a-f]*$/i.test(digits) ? undefined : { text: "\\u", length: 2 };
}
