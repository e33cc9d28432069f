/** Byte pair encoding: repeatedly merges the two neighbouring parts whose bytes form the token with the lowest rank. */
import { Heap } from "./heap.ts";
import type { RankTable } from "./ranks.ts";

/** Longest piece, in bytes, for which a linear search is faster than a heap. */
export const SHORT_PIECE = 64;
/** Operations between two pauses within one piece. */
const OPERATIONS_PER_STEP = 2048;
const DEFAULT_WINDOWS: Windows = { bytes: 32_768, overlap: 1024 };
/** Factor of the rank in a key of the heap. */
const RANK_UNIT = 2 ** 32;
/** Rank of two parts that do not form a token. */
const NONE = 0x7fffffff;

/** The bytes to merge. */
export interface Piece {
  bytes: Uint8Array;
  /** Index of the first byte. */
  from: number;
  /** Index after the last byte. */
  to: number;
  /** Receives the end of each token; undefined if only the number of tokens is needed. */
  ends: number[] | undefined;
}

let scratchStarts = new Int32Array(SHORT_PIECE + 1);
let scratchRanks = new Int32Array(SHORT_PIECE + 1);

/** Returns the number of tokens of a piece. It takes quadratic time. */
export function mergeShort(table: RankTable, { bytes, from, to, ends }: Piece): number {
  let parts = to - from;
  if (scratchStarts.length <= parts) {
    scratchStarts = new Int32Array(parts + 1);
    scratchRanks = new Int32Array(parts + 1);
  }
  const starts = scratchStarts;
  const ranks = scratchRanks;
  for (let i = 0; i < parts; i++) {
    starts[i] = from + i;
    ranks[i] = i + 1 < parts ? pairRank(table, bytes, from + i) : NONE;
  }
  starts[parts] = to;
  for (;;) {
    let lowest = NONE;
    let index = -1;
    for (let i = 0; i + 1 < parts; i++) {
      const rank = ranks[i] as number;
      if (rank < lowest) {
        lowest = rank;
        index = i;
      }
    }
    if (index < 0) break;
    for (let i = index + 1; i < parts; i++) {
      starts[i] = starts[i + 1] as number;
      ranks[i] = ranks[i + 1] as number;
    }
    parts--;
    ranks[index] = index + 1 < parts
      ? rankOf(table, bytes, starts[index] as number, starts[index + 2] as number)
      : NONE;
    if (index > 0) ranks[index - 1] = rankOf(table, bytes, starts[index - 1] as number, starts[index + 1] as number);
  }
  for (let i = 1; ends !== undefined && i <= parts; i++) ends.push(starts[i] as number);
  return parts;
}

/** The division of a long piece into windows. */
export interface Windows {
  /** Bytes that are merged together. It must be more than `overlap` and the longest token. */
  bytes: number;
  /** Bytes at the end of a window that are merged again with the following bytes. */
  overlap: number;
}

/**
 * Returns the number of tokens of a piece of any length. It takes O(n log n) time, with pauses.
 *
 * A long piece is merged in windows, so that memory does not grow with it. This is exact: a list of tokens is the
 * result of merging a text if and only if any two neighbours, merged separately, stay separate. (The first merge across
 * a border between tokens would also be the first one across it if the two were merged separately.) Within a window
 * this holds by construction. Between windows it is checked; if the check fails, the whole piece is merged at once.
 */
export function* mergeLong(table: RankTable, piece: Piece, windows = DEFAULT_WINDOWS): Generator<void, number> {
  const { bytes, from, to, ends } = piece;
  const endsBefore = ends?.length ?? 0;
  const window = new Window(Math.min(windows.bytes, to - from));
  let count = 0;
  let last = -1; // Start of the last settled token
  let settled = from;
  for (;;) {
    const start = settled;
    const stop = Math.min(start + windows.bytes, to);
    yield* window.merge(table, { bytes, from: start, to: stop });
    if (last >= 0 && !areNeighbours(table, bytes, [last, start, start + window.endOf(0)])) break;
    // The last tokens of a window may depend on the bytes after it.
    const limit = stop === to ? to : stop - windows.overlap;
    while (settled < limit) {
      const end = start + window.endOf(settled - start);
      if (end > limit) break;
      last = settled;
      settled = end;
      ends?.push(end);
      count++;
    }
    if (settled === to) return count;
  }
  if (ends !== undefined) ends.length = endsBefore;
  return yield* mergeLong(table, piece, { bytes: to - from, overlap: 0 });
}

/**
 * Returns whether the bytes of two tokens merge to these tokens. The tuple has the borders before, between and after
 * them.
 */
function areNeighbours(table: RankTable, bytes: Uint8Array, [from, border, to]: [number, number, number]): boolean {
  const ends: number[] = [];
  return mergeShort(table, { bytes, from, to, ends }) === 2 && ends[0] === border;
}

function pairRank(table: RankTable, bytes: Uint8Array, at: number): number {
  const rank = table.pairs[(bytes[at] as number) * 256 + (bytes[at + 1] as number)] as number;
  return rank < 0 ? NONE : rank;
}

function rankOf(table: RankTable, bytes: Uint8Array, from: number, to: number): number {
  const rank = table.rank(bytes, from, to);
  return rank < 0 ? NONE : rank;
}

/**
 * Merges up to `length` bytes at a time. Possible merges are in a heap as `rank * 2^32 + position`, so that the lowest
 * rank comes first, then the leftmost position. A merge whose parts have changed is skipped.
 */
class Window {
  // A part is identified by the offset of its first byte in the window. These lists link each part to its neighbours.
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  /** Rank of each part merged with the next one; NONE if that is not a token, -1 if the part no longer exists. */
  readonly #ranks: Int32Array;
  readonly #heap: Heap;

  constructor(length: number) {
    this.#next = new Int32Array(length + 1);
    this.#previous = new Int32Array(length + 1);
    this.#ranks = new Int32Array(length + 1);
    this.#heap = new Heap(length);
  }

  /** Returns the end of the token that begins at an offset. May be called after `merge`. */
  endOf(offset: number): number {
    return this.#next[offset] as number;
  }

  /** Merges the bytes of a window, with pauses. */
  *merge(table: RankTable, { bytes, from, to }: Omit<Piece, "ends">): Generator<void, void> {
    const next = this.#next;
    const previous = this.#previous;
    const ranks = this.#ranks;
    const heap = this.#heap;
    const length = to - from;
    heap.clear();
    for (let i = 0; i < length; i++) {
      next[i] = i + 1;
      previous[i] = i - 1;
      const rank = i + 1 < length ? pairRank(table, bytes, from + i) : NONE;
      ranks[i] = rank;
      if (rank !== NONE) heap.append(rank * RANK_UNIT + i);
      if (i % OPERATIONS_PER_STEP === 0) yield;
    }
    for (let i = heap.parents; i >= 0; i--) {
      heap.sift(i);
      if (i % OPERATIONS_PER_STEP === 0) yield;
    }
    let operations = 0;
    for (let key = heap.pop(); key >= 0; key = heap.pop()) {
      if (++operations % OPERATIONS_PER_STEP === 0) yield;
      const rank = Math.floor(key / RANK_UNIT);
      const part = key - rank * RANK_UNIT;
      if (ranks[part] !== rank) continue;
      const removed = next[part] as number;
      const end = next[removed] as number;
      next[part] = end;
      previous[end] = part;
      ranks[removed] = -1;
      const rightRank = end < length ? rankOf(table, bytes, from + part, from + (next[end] as number)) : NONE;
      ranks[part] = rightRank;
      if (rightRank !== NONE) heap.push(rightRank * RANK_UNIT + part);
      const left = previous[part] as number;
      if (left >= 0) {
        const leftRank = rankOf(table, bytes, from + left, from + end);
        ranks[left] = leftRank;
        if (leftRank !== NONE) heap.push(leftRank * RANK_UNIT + left);
      }
    }
  }
}
