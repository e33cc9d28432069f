import { assert, assertEquals, assertThrows } from "@std/assert";
import vocabulary from "js-tiktoken/ranks/o200k_base";
import { mergeLong, mergeShort } from "../../lib/o200k/bpe.ts";
import { runToEnd } from "../../lib/scheduler.ts";
import { readRanks } from "../../lib/o200k/ranks.ts";
import { seeded } from "../support/random.ts";

const SEED = 31_4159;
const table = runToEnd(readRanks(vocabulary.bpe_ranks));

function randomPieces(count: number, length: number): [string, Uint8Array][] {
  const { below } = seeded(SEED);
  const letters = [..."abcdefghijklmnopqrstuvwxyz", ..."ABCDEF", ..."éßж", ..."的一是不", ..."กขค", ..." \n!=-"];
  return Array.from({ length: count }, (_, i) => {
    const alphabet = Array.from({ length: 1 + below(8) }, () => letters[below(letters.length)] ?? "a");
    const text = Array.from({ length: 1 + below(length) }, () => alphabet[below(alphabet.length)]).join("");
    return [`piece ${i} of seed ${SEED}: ${JSON.stringify(text)}`, new TextEncoder().encode(text)];
  });
}

Deno.test("mergeLong() equals mergeShort()", () => {
  for (const [reported, bytes] of randomPieces(400, 200)) {
    const [short, long]: [number[], number[]] = [[], []];
    const count = mergeShort(table, { bytes, from: 0, to: bytes.length, ends: short });
    assertEquals(runToEnd(mergeLong(table, { bytes, from: 0, to: bytes.length, ends: long })), count, reported);
    assertEquals(long, short, reported);
    assertEquals(short.length, count, reported);
  }
});

Deno.test("mergeLong() is independent of the window size", () => {
  for (const [reported, bytes] of randomPieces(120, 1500)) {
    const whole: number[] = [];
    const piece = { bytes, from: 0, to: bytes.length };
    const count = runToEnd(mergeLong(table, { ...piece, ends: whole }));
    // Without any overlap, borders fall anywhere: some pieces must be found not to fit and be merged again as a whole.
    for (const windows of [{ bytes: 130, overlap: 0 }, { bytes: 200, overlap: 16 }, { bytes: 400, overlap: 200 }]) {
      const ends: number[] = [5];
      assertEquals(runToEnd(mergeLong(table, { ...piece, ends }, windows)), count, reported);
      assertEquals(ends, [5, ...whole], reported);
    }
  }
});

Deno.test("mergeLong() of a range reads no other bytes", () => {
  const bytes = new TextEncoder().encode("x".repeat(50) + "tokenization".repeat(20) + "x".repeat(50));
  const [part, alone]: [number[], number[]] = [[], []];
  const inner = bytes.slice(50, bytes.length - 50);
  runToEnd(mergeLong(table, { bytes, from: 50, to: bytes.length - 50, ends: part }));
  runToEnd(mergeLong(table, { bytes: inner, from: 0, to: inner.length, ends: alone }));
  assertEquals(part, alone.map((end) => end + 50));
});

Deno.test("mergeLong() takes steps in proportion to the piece", () => {
  const steps = (length: number) => {
    const bytes = new TextEncoder().encode("a".repeat(length));
    let count = 0;
    for (const _ of mergeLong(table, { bytes, from: 0, to: length, ends: undefined })) count++;
    return count;
  };
  assert(steps(400_000) < 5 * steps(100_000));
});

Deno.test("readRanks() finds every token by its bytes and nothing else", () => {
  const small = runToEnd(readRanks("! 0 YQ== Yg== YWI=\n! 3 YWJi\n"));
  const rank = (text: string) => small.rank(new TextEncoder().encode(text), 0, text.length);
  assertEquals(["a", "b", "ab", "abb"].map(rank), [0, 1, 2, 3]);
  assertEquals(["", "c", "ba", "abba"].map(rank), [-1, -1, -1, -1]);
  assertEquals([small.longest, small.pairs[0x6162], small.pairs[0x6261]], [3, 2, -1]);
});

Deno.test("readRanks() rejects other formats", () => {
  for (const text of ["", "YQ== 0", "! 1 YQ==", "! 0 YQ==\n! 2 Yg==", "! 0 Y?=="]) {
    assertThrows(() => runToEnd(readRanks(text)), SyntaxError, "Cannot read the vocabulary", text);
  }
});
