/** A hash table of a vocabulary's tokens by their bytes. Lookups allocate nothing. */

/** Maximum number of ranks. A slot stores the rank in 18 bits, and all ones mean an empty slot. */
const MAX_RANKS = 2 ** 18 - 1;
const RANK_BITS = 18;
const RANK_MASK = 2 ** RANK_BITS - 1;
const EMPTY = -1;
/**
 * Number of slots. It is a power of two, and more than twice the number of tokens, so that failing searches end soon.
 */
const SLOTS = 2 ** 19;
/** Tokens that are parsed between two pauses. */
const TOKENS_PER_STEP = 4096;

/** Values of base64 digits by character code; -1 for other characters. */
const BASE64 = base64Values();

function base64Values(): Int8Array {
  const values = new Int8Array(128).fill(-1);
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (let i = 0; i < alphabet.length; i++) values[alphabet.charCodeAt(i)] = i;
  return values;
}

/** The tokens of a vocabulary. A token's rank is also its id. Tokens with lower ranks are merged first. */
export class RankTable {
  /** Length of the longest token, in bytes. */
  readonly longest: number;
  /** Rank of each two-byte token, at the index `first * 256 + second`; -1 if there is no such token. */
  readonly pairs: Int32Array = new Int32Array(65_536).fill(-1);
  /** All tokens, one after another: token `r` is from `bytes[starts[r]]` to before `bytes[starts[r + 1]]`. */
  readonly #bytes: Uint8Array;
  readonly #starts: Uint32Array;
  /**
   * Hash table with open addressing. A slot has a rank, and above it 14 bits of the hash, which reject most other
   * tokens.
   */
  readonly #slots: Int32Array = new Int32Array(SLOTS).fill(EMPTY);

  constructor(bytes: Uint8Array, starts: Uint32Array) {
    this.#bytes = bytes;
    this.#starts = starts;
    let longest = 0;
    for (let rank = 0; rank + 1 < starts.length; rank++) {
      longest = Math.max(longest, (starts[rank + 1] as number) - (starts[rank] as number));
    }
    this.longest = longest;
  }

  /** Adds the token of this rank to the hash table. */
  add(rank: number): void {
    const from = this.#starts[rank] as number;
    const to = this.#starts[rank + 1] as number;
    const hash = hashOf(this.#bytes, from, to);
    let slot = hash & (SLOTS - 1);
    while (this.#slots[slot] !== EMPTY) slot = (slot + 1) & (SLOTS - 1);
    this.#slots[slot] = (hash & ~RANK_MASK) | rank;
    if (to - from === 2) {
      this.pairs[(this.#bytes[from] as number) * 256 + (this.#bytes[from + 1] as number)] = rank;
    }
  }

  /** Returns the rank of the token with the bytes from `from` to before `to`; -1 if there is none. */
  rank(bytes: Uint8Array, from: number, to: number): number {
    const length = to - from;
    if (length > this.longest) return -1;
    const hash = hashOf(bytes, from, to);
    const tag = hash & ~RANK_MASK;
    let slot = hash & (SLOTS - 1);
    for (;;) {
      const entry = this.#slots[slot] as number;
      if (entry === EMPTY) return -1;
      if ((entry & ~RANK_MASK) === tag) {
        const rank = entry & RANK_MASK;
        const start = this.#starts[rank] as number;
        if ((this.#starts[rank + 1] as number) - start === length) {
          let i = 0;
          while (i < length && this.#bytes[start + i] === bytes[from + i]) i++;
          if (i === length) return rank;
        }
      }
      slot = (slot + 1) & (SLOTS - 1);
    }
  }
}

/** Returns the FNV-1a hash with a final mix, because both its low bits (slot) and its high bits (tag) are used. */
function hashOf(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  hash = Math.imul(hash ^ (hash >>> 12), 0x297a2d39);
  return hash ^ (hash >>> 15);
}

/**
 * Parses a vocabulary, with pauses. Its lines are `! <first rank> <token> <token> …`, with tokens in base64 and
 * ascending ranks.
 * @throws {SyntaxError} for another format
 */
export function* readRanks(text: string): Generator<void, RankTable> {
  const bytes = new Uint8Array(Math.ceil(text.length * 3 / 4));
  const starts: number[] = [0];
  let length = 0;
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const header = /^! (\d+) /.exec(line);
    if (header === null || Number(header[1]) !== starts.length - 1) {
      throw new SyntaxError(`Cannot read the vocabulary: a line begins with "${line.slice(0, 20)}"`);
    }
    let bits = 0;
    let pending = 0;
    for (let i = header[0].length; i <= line.length; i++) {
      const code = i < line.length ? line.charCodeAt(i) : 0x20;
      if (code === 0x20) {
        starts.push(length);
        bits = 0;
        pending = 0;
        if (starts.length % TOKENS_PER_STEP === 0) yield;
        continue;
      }
      if (code === 0x3d) continue; // Padding is redundant.
      const value = BASE64[code] ?? -1;
      if (value < 0) throw new SyntaxError(`Cannot read the vocabulary: its token ${starts.length - 1} is not base64`);
      bits = (bits << 6 | value) & 0xffff;
      pending += 6;
      if (pending >= 8) {
        pending -= 8;
        bytes[length++] = bits >> pending;
      }
    }
  }
  const count = starts.length - 1;
  if (count === 0 || count > MAX_RANKS) throw new SyntaxError(`Cannot read the vocabulary: it has ${count} tokens`);
  const table = new RankTable(bytes.slice(0, length), Uint32Array.from(starts));
  for (let rank = 0; rank < count; rank++) {
    table.add(rank);
    if (rank % TOKENS_PER_STEP === 0) yield;
  }
  return table;
}
