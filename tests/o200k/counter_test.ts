import { assert, assertEquals } from "@std/assert";
import { Tiktoken } from "js-tiktoken/lite";
import vocabulary from "js-tiktoken/ranks/o200k_base";
import { COUNTED_AT_ONCE, loadTokenCounter } from "../../lib/o200k/counter.ts";
import { seeded } from "../support/random.ts";
import { randomText } from "./random_text.ts";
import { rounds, skipInQuick } from "../support/skip.ts";

const SEED = 20_240_513;
const TEXTS = rounds(6000);

let reference: Tiktoken | undefined;

/** The other tokenizer takes a second to begin. */
const ignore = skipInQuick("The tokenizer compared with js-tiktoken");

function openReference(): Tiktoken {
  return reference ??= new Tiktoken(vocabulary);
}

/**
 * Number of turns of the event loop during the work of `start`. The work sees a clock that advances by a millisecond
 * with each read, so the number does not depend on the machine.
 */
async function turnsDuring(start: () => Promise<unknown>): Promise<number> {
  const { now } = performance;
  let ms = 0;
  performance.now = () => ms++;
  try {
    let turns = 0;
    let done = false;
    const finished = start().finally(() => done = true);
    while (!done) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      turns++;
    }
    await finished;
    return turns;
  } finally {
    performance.now = now;
  }
}

Deno.test("encode() equals js-tiktoken for short texts of every script", { ignore }, async () => {
  const counter = await loadTokenCounter();
  const reference = openReference();
  const random = seeded(SEED);
  for (let i = 0; i < TEXTS; i++) {
    const text = randomText(random, 60);
    const expected = reference.encode(text, [], []);
    const content = `text ${i} of seed ${SEED}: ${JSON.stringify(text)}`;
    assertEquals(counter.encode(text), expected, content);
    assertEquals(counter.count(text), expected.length, content);
  }
});

Deno.test("count() agrees with encode() and split() on longer texts, short pieces or long", async () => {
  const counter = await loadTokenCounter();
  const random = seeded(SEED + 1);
  for (let i = 0; i < rounds(300); i++) {
    const text = randomText(random, 60).repeat(1 + random.below(40));
    const content = `text ${i} of seed ${SEED + 1}: ${JSON.stringify(text)}`;
    const count = counter.count(text);
    assertEquals(counter.encode(text).length, count, content);
    assertEquals(await counter.countLong(text), count, content);
    assertEquals(counter.split(text).join(""), text, content);
    assert(counter.split(text).length <= count, content);
  }
});

Deno.test("encode() merges long pieces like js-tiktoken", { ignore }, async () => {
  const counter = await loadTokenCounter();
  const reference = openReference();
  const random = seeded(SEED + 2);
  const letters = [..."abcdefghij", ..."ABC", ..."éßж", ..."的一是不", ..."กขค"];
  for (let i = 0; i < rounds(40); i++) {
    const alphabet = Array.from({ length: 1 + random.below(5) }, () => letters[random.below(letters.length)] ?? "a");
    const text = Array.from({ length: 70 + random.below(80) }, () => alphabet[random.below(alphabet.length)]).join("");
    assertEquals(counter.encode(text), reference.encode(text, [], []), `text ${i} of seed ${SEED + 2}: ${text}`);
  }
});

Deno.test("encode() returns the known ids of sample texts", async () => {
  const counter = await loadTokenCounter();
  const cases: [string, number[]][] = [
    ["", []],
    ["hello world", [24912, 2375]],
    ["Hello, world!", [13225, 11, 2375, 0]],
    ["tokenizer", [10346, 4492]],
    ["don't", [91418]],
    ["你好,世界", [177519, 11, 28428]],
    ["👍", [82514]],
    ["𐐀", [172, 238, 238, 222]],
    ["  \n\n x", [11691, 1215]],
    ["1234567", [7633, 19354, 22]],
    ["<|endoftext|>", [27, 91, 419, 1440, 919, 91, 29]],
  ];
  for (const [text, ids] of cases) assertEquals(counter.encode(text), ids, JSON.stringify(text));
});

Deno.test("encode() treats special tokens as ordinary text", async () => {
  const counter = await loadTokenCounter();
  for (const text of ["<|endoftext|>", "<|endofprompt|>", "a<|endoftext|>b"]) {
    const ids = counter.encode(text);
    assert(ids.length > 3, text);
    assert(ids.every((id) => id < 199_998), text);
  }
});

Deno.test("lone surrogates count as U+FFFD and survive split()", async () => {
  const counter = await loadTokenCounter();
  for (const text of ["\ud800", "a\udc00b", "\ud83d \ude00", "\udc00\ud800", "x\ud83d"]) {
    assertEquals(counter.encode(text), counter.encode(text.toWellFormed()), JSON.stringify(text));
    assertEquals(counter.split(text).join(""), text);
  }
});

Deno.test("split() cuts one piece for each token, except within a character", async () => {
  const counter = await loadTokenCounter();
  assertEquals(counter.split("Hello, world!"), ["Hello", ",", " world", "!"]);
  assertEquals(counter.split(""), []);
  const rare = "𐐀𐐨🜁"; // Characters that no token holds whole.
  assert(counter.count(rare) > 3);
  assertEquals(counter.split(rare).join(""), rare);
  for (const piece of counter.split(rare)) assertEquals(piece, piece.toWellFormed());
  assertEquals(counter.split("\ufeffa").join(""), "\ufeffa");
});

Deno.test("loadTokenCounter() loads only once", async () => {
  const [first, ...others] = await Promise.all(Array.from({ length: 10 }, () => loadTokenCounter()));
  for (const other of others) assert(other === first);
});

Deno.test("countLong() of hostile runs is exact and yields to the event loop", async () => {
  const counter = await loadTokenCounter();
  const random = seeded(SEED + 3);
  const han = Array.from({ length: 40_000 }, () => String.fromCodePoint(0x4e00 + random.below(0x5000))).join("");
  const cases: [string, string][] = [
    ["a", "a".repeat(40_000)],
    ["Han", han],
    ["spaces", " ".repeat(40_000)],
    ["!", "!".repeat(40_000)],
    ["lines", "\n".repeat(40_000)],
    ["capitals", "ABCDEFGH".repeat(5_000)],
    ["marks", "\u0301".repeat(40_000)],
  ];
  for (const [name, text] of cases) {
    let count = 0;
    const turns = await turnsDuring(async () => count = await counter.countLong(text));
    assertEquals(count, counter.count(text), name);
    assertEquals(counter.split(text).join("") === text, true, name);
    assert(turns > 3, `${name}: ${turns} turns`);
  }
});

Deno.test("countLong() pauses within one huge piece", async () => {
  const counter = await loadTokenCounter();
  let count = 0;
  const turns = await turnsDuring(async () => count = await counter.countLong("ab".repeat(500_000)));
  assert(count > 100_000);
  assert(turns > 10, `${turns} turns`);
});

Deno.test("countLong() of concurrent texts is exact for each", async () => {
  const counter = await loadTokenCounter();
  const texts = Array.from({ length: 8 }, (_, i) => `word${i} `.repeat(COUNTED_AT_ONCE / 2 + i));
  assertEquals(await Promise.all(texts.map((text) => counter.countLong(text))), texts.map(counter.count));
});
