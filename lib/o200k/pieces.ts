/**
 * Splits UTF-8 text into the pieces within which o200k_base merges bytes: words (with one character before them and a
 * contraction after them), up to three digits, punctuation, line ends, and spaces. It implements the vocabulary's
 * regular expression in one pass, because regex engines would backtrack through long runs:
 *
 *     [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+('s|'t|'re|'ve|'m|'ll|'d)?
 *     [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*('s|'t|'re|'ve|'m|'ll|'d)?
 *     \p{N}{1,3}
 *      ?[^\s\p{L}\p{N}]+[\r\n/]*
 *     \s*[\r\n]+
 *     \s+(?!\S)
 *     \s+
 *
 * The first match wins; contractions match in either case.
 */

import { isHighSurrogate } from "../text.ts";

// Character classes. Each character has exactly one.
const UPPER = 1; // Lu, Lt
const LOWER = 2; // Ll
const LETTER = 4; // Lm, Lo: letters without case, which match both
const MARK = 8;
const NUMBER = 16;
const LINE = 32; // \r and \n
const SPACE = 64; // other white space
const OTHER = 128;

const HEAD = UPPER | LETTER | MARK;
const TAIL = LOWER | LETTER | MARK;
const PREFIX = SPACE | OTHER | MARK;
const SYMBOL = OTHER | MARK;
const BLANK = SPACE | LINE;
const WORD = HEAD | TAIL;

const SLASH = 0x2f;
const APOSTROPHE = 0x27;

/** Bytes of a run that a search reads before it pauses. Reading them takes about 0.1 ms. */
const BYTES_PER_STEP = 32_768;

/** Classes of code points, by pages of 256; 0 if a class was not looked up yet. */
const pages = new Array<Uint8Array | undefined>(0x1100);
const ascii = Uint8Array.from({ length: 128 }, (_, code) => classify(String.fromCharCode(code)));

function classify(char: string): number {
  if (char === "\r" || char === "\n") return LINE;
  if (/\s/u.test(char)) return SPACE;
  if (/[\p{Lu}\p{Lt}]/u.test(char)) return UPPER;
  if (/\p{Ll}/u.test(char)) return LOWER;
  if (/[\p{Lm}\p{Lo}]/u.test(char)) return LETTER;
  if (/\p{M}/u.test(char)) return MARK;
  if (/\p{N}/u.test(char)) return NUMBER;
  return OTHER;
}

function classOf(code: number): number {
  return pages[code >> 8]?.[code & 0xff] || lookUp(code);
}

/**
 * Looks up a single code point. Looking up whole pages would take 200 ms for a text with one character of each page.
 */
function lookUp(code: number): number {
  const page = pages[code >> 8] ??= new Uint8Array(256);
  return page[code & 0xff] = classify(String.fromCodePoint(code));
}

/** Returns the class of the character that starts at `at`. The bytes must be well-formed UTF-8. */
function classAt(bytes: Uint8Array, at: number): number {
  const lead = bytes[at] as number;
  if (lead < 0x80) return ascii[lead] as number;
  const second = (bytes[at + 1] as number) & 0x3f;
  let code: number;
  if (lead < 0xe0) code = (lead & 0x1f) << 6 | second;
  else {
    const third = (bytes[at + 2] as number) & 0x3f;
    if (lead < 0xf0) code = (lead & 0x0f) << 12 | second << 6 | third;
    else code = (lead & 0x07) << 18 | second << 12 | third << 6 | (bytes[at + 3] as number) & 0x3f;
  }
  return classOf(code);
}

/** Returns the start of the character after `at`. */
function after(bytes: Uint8Array, at: number): number {
  const lead = bytes[at] as number;
  if (lead < 0x80) return at + 1;
  if (lead < 0xe0) return at + 2;
  return lead < 0xf0 ? at + 3 : at + 4;
}

/** Returns the end of a word that ends at `at`, including a contraction after it. */
function contractionEnd(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== APOSTROPHE) return at;
  // Setting bit 0x20 lower-cases ASCII letters, and maps no other byte to a letter.
  const first = (bytes[at + 1] ?? 0) | 0x20;
  if (first === 0x73 || first === 0x74 || first === 0x6d || first === 0x64) return at + 2; // s t m d
  const second = (bytes[at + 2] ?? 0) | 0x20;
  if ((first === 0x72 || first === 0x76) && second === 0x65) return at + 3; // re ve
  if (first === 0x6c && second === 0x6c) return at + 3; // ll
  return at;
}

function numberEnd(bytes: Uint8Array, from: number): number {
  let at = from;
  for (let digits = 0; digits < 3 && at < bytes.length && classAt(bytes, at) === NUMBER; digits++) {
    at = after(bytes, at);
  }
  return at;
}

/**
 * The part that a paused search was reading: a word before or after its first lower-case letter, symbols, line ends after
 * symbols, or white space.
 */
type Run = "head" | "tail" | "symbols" | "lines" | "blanks";

/** Searches well-formed UTF-8 for the ends of pieces. A search pauses, because a piece may be as long as the text. */
export class PieceSearch {
  readonly #bytes: Uint8Array;
  readonly #step: number;
  #from = 0;
  // State of a paused search.
  #run: Run = "head";
  #at = 0;
  #last = -1;

  /** @param step number of bytes, at least 1, after which a search pauses */
  constructor(bytes: Uint8Array, step: number = BYTES_PER_STEP) {
    this.#bytes = bytes;
    this.#step = step;
  }

  /** Returns the end of the piece that begins at byte `from`; -1 if the search pauses, to be continued with `goOn`. */
  begin(from: number): number {
    const bytes = this.#bytes;
    const first = classAt(bytes, from);
    this.#from = from;
    if (first === NUMBER) return numberEnd(bytes, from);
    if (first === LINE) return this.#blanks(from, -1);
    if ((first & PREFIX) === 0) return this.#head(from, -1);
    const next = after(bytes, from);
    // A mark can begin a word. If only capitals follow, it is a word by itself.
    if (first === MARK) return this.#head(next, next);
    const second = next < bytes.length ? classAt(bytes, next) : 0;
    if ((second & WORD) !== 0) return this.#head(next, -1);
    return first === OTHER || (second === OTHER && bytes[from] === 0x20) ? this.#symbols(next) : this.#blanks(from, -1);
  }

  /** Continues a paused search. @returns as `begin` */
  resume(): number {
    switch (this.#run) {
      case "head":
        return this.#head(this.#at, this.#last);
      case "tail":
        return this.#tail(this.#at);
      case "symbols":
        return this.#symbols(this.#at);
      case "lines":
        return this.#lines(this.#at);
      case "blanks":
        return this.#blanks(this.#at, this.#last);
    }
  }

  /**
   * Reads `HEAD* TAIL+`, otherwise `HEAD+`. Letters without case and marks belong to both sets. If no lower-case letter
   * follows, the expression backtracks to the last such character.
   * @param last end of the last letter without case or mark; -1 if there was none
   */
  #head(at: number, last: number): number {
    const bytes = this.#bytes;
    const stop = this.#stop(at);
    while (at < stop) {
      const charClass = classAt(bytes, at);
      if (charClass === LOWER) return this.#tail(at);
      if ((charClass & HEAD) === 0) return contractionEnd(bytes, last < 0 ? at : last);
      at = after(bytes, at);
      if (charClass !== UPPER) last = at;
    }
    return at < bytes.length ? this.#pause("head", at, last) : contractionEnd(bytes, last < 0 ? at : last);
  }

  #tail(at: number): number {
    const bytes = this.#bytes;
    const stop = this.#stop(at);
    while (at < stop) {
      if ((classAt(bytes, at) & TAIL) === 0) return contractionEnd(bytes, at);
      at = after(bytes, at);
    }
    return at < bytes.length ? this.#pause("tail", at) : at;
  }

  #symbols(at: number): number {
    const bytes = this.#bytes;
    const stop = this.#stop(at);
    while (at < stop) {
      if ((classAt(bytes, at) & SYMBOL) === 0) return this.#lines(at);
      at = after(bytes, at);
    }
    return at < bytes.length ? this.#pause("symbols", at) : at;
  }

  /** Reads line ends and slashes after symbols. */
  #lines(at: number): number {
    const bytes = this.#bytes;
    const stop = this.#stop(at);
    while (at < stop) {
      const byte = bytes[at];
      if (byte !== 0x0d && byte !== 0x0a && byte !== SLASH) return at;
      at++;
    }
    return at < bytes.length ? this.#pause("lines", at) : at;
  }

  /**
   * Reads white space: up to the last line end; without one, all but the last character, which belongs to the next
   * piece.
   * @param line offset after the last line end; -1 if there was none
   */
  #blanks(at: number, line: number): number {
    const bytes = this.#bytes;
    const stop = this.#stop(at);
    while (at < stop) {
      const charClass = classAt(bytes, at);
      if ((charClass & BLANK) === 0) return line < 0 ? this.#lessOne(at) : line;
      at = after(bytes, at);
      if (charClass === LINE) line = at;
    }
    if (at < bytes.length) return this.#pause("blanks", at, line);
    return line < 0 ? at : line;
  }

  /** Returns the start of the last of several characters; for a single character, its end. */
  #lessOne(end: number): number {
    let last = end - 1;
    while (((this.#bytes[last] as number) & 0xc0) === 0x80) last--;
    return last === this.#from ? end : last;
  }

  #stop(at: number): number {
    return Math.min(at + this.#step, this.#bytes.length);
  }

  #pause(run: Run, at: number, last = -1): number {
    this.#run = run;
    this.#at = at;
    this.#last = last;
    return -1;
  }
}

/**
 * Returns the last position up to `end` at which a text can be split so that both parts have the same pieces as the
 * whole, whatever text follows; 0 if there is none. The text must begin with a piece.
 * @param end a position in the text, in UTF-16 code units
 */
export function lastCut(text: string, end: number): number {
  let at = startBefore(text, end);
  // The other half of a high surrogate may still follow.
  if (at + 1 === text.length && isHighSurrogate(text.charCodeAt(at))) at = startBefore(text, at);
  if (at <= 0) return 0;
  let code = text.codePointAt(at) as number;
  let charClass = classOf(code);
  while (at > 0) {
    const start = startBefore(text, at);
    const codeBefore = text.codePointAt(start) as number;
    const before = classOf(codeBefore);
    if (isAlwaysCut(before, { charClass, code })) return at;
    if (before === NUMBER && digitsBefore(text, at) % 3 === 0) return at;
    at = start;
    code = codeBefore;
    charClass = before;
  }
  return 0;
}

/** Returns the start of the character that ends at `end`. */
function startBefore(text: string, end: number): number {
  return end > 1 && (text.codePointAt(end - 2) as number) > 0xffff ? end - 2 : end - 1;
}

function digitsBefore(text: string, end: number): number {
  let digits = 0;
  for (let at = end; at > 0; digits++) {
    at = startBefore(text, at);
    if (classOf(text.codePointAt(at) as number) !== NUMBER) break;
  }
  return digits;
}

/** Returns whether two neighbouring characters never belong to one piece. */
function isAlwaysCut(before: number, { charClass, code }: { charClass: number; code: number }): boolean {
  // The last white space of a run belongs to the next piece; only at the end of a text does it belong to the run.
  if (before === SPACE) return false;
  if (before === NUMBER || charClass === NUMBER) return before !== charClass;
  if (before === LINE) return (charClass & BLANK) === 0 && code !== SLASH;
  if (charClass === SPACE) return true;
  // Symbols include the line ends after them, marks can be part of words and symbols, and a word can have a
  // contraction.
  const isLetter = (before & (UPPER | LOWER | LETTER)) !== 0;
  return isLetter && (charClass === LINE || (charClass === OTHER && code !== APOSTROPHE));
}
