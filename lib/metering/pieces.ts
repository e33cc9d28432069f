/**
 * Cuts UTF-8 text into the pieces within which o200k_base merges bytes: words with one character before them and a
 * contraction after them, up to three digits, punctuation, line ends, spaces. It does by hand what the vocabulary's
 * regular expression says, because an engine backtracks through long runs where one pass will do:
 *
 *     [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+('s|'t|'re|'ve|'m|'ll|'d)?
 *     [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*('s|'t|'re|'ve|'m|'ll|'d)?
 *     \p{N}{1,3}
 *      ?[^\s\p{L}\p{N}]+[\r\n/]*
 *     \s*[\r\n]+
 *     \s+(?!\S)
 *     \s+
 *
 * The first that matches wins; contractions match in either case.
 */

// What a character is. Every character has exactly one class.
const UPPER = 1; // Lu, Lt
const LOWER = 2; // Ll
const LETTER = 4; // Lm, Lo: letters without case, which stand for either
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

const SLASH = 0x2f;
const APOSTROPHE = 0x27;

/** Classes of 256 neighbouring code points, made when the first of them is met. */
const pages: (Uint8Array | undefined)[] = [];
const ascii = page(0);

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

function page(number: number): Uint8Array {
  const made = Uint8Array.from({ length: 256 }, (_, i) => classify(String.fromCodePoint(number * 256 + i)));
  pages[number] = made;
  return made;
}

function classOf(code: number): number {
  return (pages[code >> 8] ?? page(code >> 8))[code & 0xff] as number;
}

/** Class of the character at `at`. The bytes must be well-formed UTF-8, and `at` the first byte of a character. */
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

/** Where the character after the one at `at` begins. */
function after(bytes: Uint8Array, at: number): number {
  const lead = bytes[at] as number;
  if (lead < 0x80) return at + 1;
  if (lead < 0xe0) return at + 2;
  return lead < 0xf0 ? at + 3 : at + 4;
}

/** End of the run of characters of these classes that begins at `at`. */
function runEnd(bytes: Uint8Array, at: number, classes: number): number {
  while (at < bytes.length && (classAt(bytes, at) & classes) !== 0) at = after(bytes, at);
  return at;
}

/** End of `HEAD* TAIL+` at `at`; -1 where it does not match. */
function mixedEnd(bytes: Uint8Array, at: number): number {
  // Caseless letters and marks belong to both runs: the first takes them all and gives back from the last one on.
  let last = -1;
  while (at < bytes.length) {
    const found = classAt(bytes, at);
    if (found === LOWER) return runEnd(bytes, at, TAIL);
    if ((found & HEAD) === 0) break;
    at = after(bytes, at);
    if (found !== UPPER) last = at;
  }
  return last;
}

/** End of `HEAD+ TAIL*` at `at`; -1 where it does not match. */
function capitalEnd(bytes: Uint8Array, at: number): number {
  const head = runEnd(bytes, at, HEAD);
  return head === at ? -1 : runEnd(bytes, head, TAIL);
}

/** End of a word with the contraction that may follow it at `at`. */
function contractionEnd(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== 0x27) return at;
  // Bit 0x20 tells the cases of ASCII letters apart, and no other byte becomes a letter by it but that letter's capital.
  const first = (bytes[at + 1] ?? 0) | 0x20;
  if (first === 0x73 || first === 0x74 || first === 0x6d || first === 0x64) return at + 2; // s t m d
  const second = (bytes[at + 2] ?? 0) | 0x20;
  if ((first === 0x72 || first === 0x76) && second === 0x65) return at + 3; // re ve
  if (first === 0x6c && second === 0x6c) return at + 3; // ll
  return at;
}

/** End of a word at `from`, or of one character and a word; -1 where there is none. */
function wordEnd(bytes: Uint8Array, from: number, first: number): number {
  const prefixed = (first & PREFIX) !== 0;
  let end = prefixed ? mixedEnd(bytes, after(bytes, from)) : -1;
  if (end < 0) end = mixedEnd(bytes, from);
  if (end < 0) end = capitalEnd(bytes, prefixed ? after(bytes, from) : from);
  return end < 0 ? -1 : contractionEnd(bytes, end);
}

function numberEnd(bytes: Uint8Array, from: number): number {
  let at = from;
  for (let digits = 0; digits < 3 && at < bytes.length && classAt(bytes, at) === NUMBER; digits++) {
    at = after(bytes, at);
  }
  return at;
}

/** End of a run of symbols, a space before it or not, with the line ends after it; -1 where there is none. */
function symbolEnd(bytes: Uint8Array, from: number): number {
  const start = bytes[from] === 0x20 ? from + 1 : from;
  let at = runEnd(bytes, start, SYMBOL);
  if (at === start) return -1;
  while (bytes[at] === 0x0d || bytes[at] === 0x0a || bytes[at] === SLASH) at++;
  return at;
}

/** End of a piece of white space: through the last line end; else all but the last, which belongs to what follows. */
function blankEnd(bytes: Uint8Array, from: number): number {
  let line = -1;
  let last = from;
  let at = from;
  while (at < bytes.length) {
    const found = classAt(bytes, at);
    if ((found & BLANK) === 0) break;
    last = at;
    at = after(bytes, at);
    if (found === LINE) line = at;
  }
  if (line >= 0) return line;
  return at === bytes.length || last === from ? at : last;
}

/** End of the piece that begins at byte `from`. The bytes must be well-formed UTF-8, and `from` before their end. */
export function pieceEnd(bytes: Uint8Array, from: number): number {
  const first = classAt(bytes, from);
  if (first === NUMBER) return numberEnd(bytes, from);
  if (first !== LINE) {
    const end = wordEnd(bytes, from, first);
    if (end >= 0) return end;
  }
  if ((first & (SYMBOL | SPACE)) !== 0) {
    const end = symbolEnd(bytes, from);
    if (end >= 0) return end;
  }
  return blankEnd(bytes, from);
}

/**
 * The last place before `end` at which a text can be cut so that the pieces of both sides are those of the whole,
 * whatever comes after; 0 where there is none. The text must begin where a piece does.
 * @param text may go on after it; `end` is a place within it, both in UTF-16 code units
 */
export function lastCut(text: string, end: number): number {
  let cut = 0;
  let before = 0;
  let digits = 0;
  for (let at = 0; at < end;) {
    const code = text.codePointAt(at) as number;
    // Half a character: the other half may still come.
    if (code >= 0xd800 && code < 0xdc00 && at + 1 === text.length) break;
    const found = classOf(code);
    if (at > 0 && (isAlwaysCut(before, { found, code }) || (digits > 0 && digits % 3 === 0))) cut = at;
    digits = found === NUMBER ? digits + 1 : 0;
    before = found;
    at += code > 0xffff ? 2 : 1;
  }
  return cut;
}

/** Whether the expression ends a piece between two neighbours whatever stands around them, and would at a text's end. */
function isAlwaysCut(before: number, { found, code }: { found: number; code: number }): boolean {
  // The last blank of a run belongs to what follows, and at the end of a text to the run.
  if (before === SPACE) return false;
  if (before === NUMBER || found === NUMBER) return before !== found;
  if (before === LINE) return (found & BLANK) === 0 && code !== SLASH;
  if (found === SPACE) return true;
  // Line ends go with symbols, marks are symbols and letters, and a word may have a contraction.
  const isLetter = (before & (UPPER | LOWER | LETTER)) !== 0;
  return isLetter && (found === LINE || (found === OTHER && code !== APOSTROPHE));
}
