import { assertEquals, assertGreater } from "@std/assert";
import vocabulary from "js-tiktoken/ranks/o200k_base";
import { lastCut, PieceSearch } from "../../lib/o200k/pieces.ts";
import { seeded } from "../support/random.ts";
import { randomText } from "./random_text.ts";
import { rounds, skipInQuick } from "../support/skip.ts";

const SEED = 7_1828;

function pieces(text: string, step?: number): string[] {
  const bytes = new TextEncoder().encode(text);
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const found: string[] = [];
  const search = new PieceSearch(bytes, step);
  for (let from = 0; from < bytes.length;) {
    let to = search.begin(from);
    while (to < 0) to = search.resume();
    found.push(decoder.decode(bytes.subarray(from, to)));
    from = to;
  }
  return found;
}

function matches(text: string): string[] {
  return [...text.matchAll(new RegExp(vocabulary.pat_str, "ug"))].map(([match]) => match);
}

const IS_SAMPLE = skipInQuick("Most characters and sequences of the tokenizer");

Deno.test("PieceSearch splits like the vocabulary's regular expression", () => {
  const random = seeded(SEED);
  for (let i = 0; i < rounds(20_000); i++) {
    const text = randomText(random, i % 20 === 0 ? 1000 : 40).toWellFormed();
    const expected = matches(text);
    for (const step of [undefined, 1, 2, 5, 16]) {
      assertEquals(pieces(text, step), expected, `text ${i} of seed ${SEED}, step ${step}: ${JSON.stringify(text)}`);
    }
  }
});

Deno.test("PieceSearch splits every short sequence of character classes like the expression", () => {
  // One or two characters of each class, and those named in the expression.
  const alphabet = ["A", "ǅ", "b", "s", "L", "l", "ʰ", "中", "\u0301", "7", "\n", "\r", " ", "\t", "!", "/", "'"];
  const check = (text: string, depth: number) => {
    if (depth === 0) {
      const expected = matches(text).join("|");
      for (const step of [undefined, 1, 2]) assertEquals(pieces(text, step).join("|"), expected, JSON.stringify(text));
      return;
    }
    for (const char of alphabet) check(text + char, depth - 1);
  };
  for (let length = 1; length <= (IS_SAMPLE ? 3 : 4); length++) check("", length);
});

Deno.test("PieceSearch pauses within long pieces of any kind", () => {
  const long = 100_000;
  const cases: [name: string, piece: string, next: string][] = [
    ["small letters", "a".repeat(long), " "],
    ["capitals", "A".repeat(long), " "],
    ["capitals before a small letter", `${"A".repeat(long)}a`, "B"],
    ["caseless letters", "字".repeat(long), "!"],
    ["caseless letters and marks after a prefix", ` ${"か\u3099".repeat(long)}`, "!"],
    ["letters and a contraction", `${"a".repeat(long)}'ll`, "l"],
    ["letters that are given back", "A字", "B".repeat(long)],
    ["symbols", ` ${"!".repeat(long)}\n/`, "a"],
    ["emoji", "😀".repeat(long), "a"],
    ["line ends after a symbol", `!${"\n/".repeat(long)}`, "a"],
    ["blanks", " ".repeat(long), " a"],
    ["wide blanks", "\u3000".repeat(long), "\u3000a"],
    ["blanks before a line end", `${" ".repeat(long)}\n`, "  "],
    ["blanks at the end", " ".repeat(long), ""],
  ];
  for (const [name, piece, next] of cases) {
    const bytes = new TextEncoder().encode(piece + next);
    const search = new PieceSearch(bytes);
    let pauses = 0;
    let to = search.begin(0);
    for (; to < 0; to = search.resume()) pauses++;
    assertEquals(to, new TextEncoder().encode(piece).length, name);
    assertGreater(pauses, 2, name);
  }
});

Deno.test("PieceSearch classifies every code point like the expression", () => {
  const wrong: string[] = [];
  const step = (code: number) =>
    IS_SAMPLE && code >= 0x800 ? 101 : code >= 0x20000 ? 13 : code >= 0x3400 && code < 0xd7a4 ? 7 : 1;
  for (let code = 0; code < 0x110000; code += step(code)) {
    if (code >= 0xd800 && code < 0xe000) continue;
    const char = String.fromCodePoint(code);
    const text = `a${char}B 1${char}${char}`;
    if (pieces(text).join("|") !== matches(text).join("|")) wrong.push(code.toString(16));
  }
  assertEquals(wrong, []);
});

Deno.test("lastCut() splits every short sequence of classes so that both sides keep their pieces", () => {
  const alphabet = ["A", "b", "s", "中", "\u0301", "7", "𝟘", "\n", " ", "\t", "!", "/", "'", "😀"];
  let cuts = 0;
  const check = (text: string, depth: number) => {
    if (depth > 0) {
      for (const char of alphabet) check(text + char, depth - 1);
      return;
    }
    const whole = matches(text).join("|");
    for (let end = 1; end <= text.length; end++) {
      const cut = lastCut(text, end);
      if (cut === 0) continue;
      cuts++;
      assertEquals([...matches(text.slice(0, cut)), ...matches(text.slice(cut))].join("|"), whole, text);
    }
  };
  const longest = rounds(100) === 100 ? 5 : 4;
  for (let length = 1; length <= longest; length++) check("", length);
  assertGreater(cuts, longest === 5 ? 100_000 : 10_000);
});

Deno.test("lastCut() is independent of the following text", () => {
  const random = seeded(SEED);
  for (let i = 0; i < rounds(20_000); i++) {
    const text = randomText(random, 60).toWellFormed();
    const seen = text.slice(0, random.below(text.length + 1));
    const cut = lastCut(seen, seen.length);
    assertEquals(
      [...pieces(text.slice(0, cut)), ...pieces(text.slice(cut))],
      pieces(text),
      JSON.stringify([text, cut]),
    );
  }
});

Deno.test("lastCut() finds a position in every text with words, lines or numbers", () => {
  const cases: [text: string, cut: number][] = [
    ["one two three", 7],
    ["a\nb", 2],
    ["中文，中文", 2],
    ["1234567", 6],
    ["x1234567", 7],
    ["   1234", 6],
    ["x".repeat(50), 0],
    [" ".repeat(50), 0],
    ["!".repeat(50), 0],
    ["don't", 0],
  ];
  for (const [text, cut] of cases) assertEquals(lastCut(text, text.length), cut, text);
});
