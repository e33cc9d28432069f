/** Byte pair encoding: repeatedly merges the neighbouring parts whose bytes form the token with the lowest rank. */
import { Heap } from "./heap.ts";
import type { RankTable } from "./ranks.ts";

/** Longest piece, in bytes, for which a linear search is faster than a heap. */
export const SHORT_PIECE = 64;
/** Operations between two pauses within one piece. */
const OPERATIONS_PER_STEP = 2048;
const WINDOWS: Windows = { bytes: 32_768, overlap: 1024 };
const RANK_UNIT = 2 ** 32;
const NONE = 0x7fffffff;

/** Bytes to merge: `bytes[from]` to `bytes[to]`, exclusive. The ends of their tokens are appended to `ends`. */
export interface Piece {
  bytes: Uint8Array;
  from: number;
  to: number;
  ends: number[] | undefined;
}

let scratchStarts = new Int32Array(SHORT_PIECE + 1);
let scratchRanks = new Int32Array(SHORT_PIECE + 1);

/** Number of tokens of a piece, in quadratic time. */
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
    let best = NONE;
    let at = -1;
    for (let i = 0; i + 1 < parts; i++) {
      const rank = ranks[i] as number;
      if (rank < best) {
        best = rank;
        at = i;
      }
    }
    if (at < 0) break;
    for (let i = at + 1; i < parts; i++) {
      starts[i] = starts[i + 1] as number;
      ranks[i] = ranks[i + 1] as number;
    }
    parts--;
    ranks[at] = at + 1 < parts ? rankOf(table, bytes, starts[at] as number, starts[at + 2] as number) : NONE;
    if (at > 0) ranks[at - 1] = rankOf(table, bytes, starts[at - 1] as number, starts[at + 1] as number);
  }
  for (let i = 1; ends !== undefined && i <= parts; i++) ends.push(starts[i] as number);
  return parts;
}

/** Division of a long piece into windows. */
export interface Windows {
  /** Bytes that are merged together; more than `overlap` and the longest token. */
  bytes: number;
  /** Bytes at the end of a window that are merged again with the following bytes. */
  overlap: number;
}

/**
 * Number of tokens of a piece of any length, in O(n log n) time, with pauses.
 *
 * A long piece is merged in windows, so that memory does not grow with it. This is exact: a list of tokens is the
 * result of merging a text if and only if each two neighbours, merged on their own, stay separate. (The first merge
 * across a border between tokens would also be the first across it in the two on their own.) Within a window that holds
 * by construction, and between windows it is checked; if it fails, the whole piece is merged at once.
 */
export function* mergeLong(table: RankTable, piece: Piece, windows = WINDOWS): Generator<void, number> {
  const { bytes, from, to, ends } = piece;
  const known = ends?.length ?? 0;
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
  if (ends !== undefined) ends.length = known;
  return yield* mergeLong(table, piece, { bytes: to - from, overlap: 0 });
}

/**
 * Returns whether the bytes of two tokens, given by the borders before, between and after them, merge to these tokens.
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
 * Merges up to `length` bytes at a time. Candidates wait in a heap as `rank * 2^32 + position`: lowest rank first, then
 * leftmost. A candidate whose parts have changed is skipped.
 */
class Window {
  // Parts are identified by their first byte, relative to the start of the window.
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  /** Rank of a part merged with the next one; NONE if that is not a token, -1 if the part was merged away. */
  readonly #ranks: Int32Array;
  readonly #heap: Heap;

  constructor(length: number) {
    this.#next = new Int32Array(length + 1);
    this.#previous = new Int32Array(length + 1);
    this.#ranks = new Int32Array(length + 1);
    this.#heap = new Heap(length);
  }

  /** After `merge`: end of the token that begins at an offset. */
  endOf(offset: number): number {
    return this.#next[offset] as number;
  }

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
      const at = key - rank * RANK_UNIT;
      if (ranks[at] !== rank) continue;
      const gone = next[at] as number;
      const end = next[gone] as number;
      next[at] = end;
      previous[end] = at;
      ranks[gone] = -1;
      const right = end < length ? rankOf(table, bytes, from + at, from + (next[end] as number)) : NONE;
      ranks[at] = right;
      if (right !== NONE) heap.push(right * RANK_UNIT + at);
      const left = previous[at] as number;
      if (left >= 0) {
        const joined = rankOf(table, bytes, from + left, from + end);
        ranks[left] = joined;
        if (joined !== NONE) heap.push(joined * RANK_UNIT + left);
      }
    }
  }
}
