import { assert, assertEquals, assertLess, assertStrictEquals } from "@std/assert";
import { parseSteps } from "../../lib/json/careful_parser.ts";
import { parseFast } from "../../lib/json/fast_parser.ts";
import type { ParsedJson } from "../../lib/json/lexer.ts";
import { type Json, JSON_LIMITS, JsonError, type JsonLimits, writeJson } from "../../lib/json/mod.ts";
import { parseAtOnce } from "../../lib/json/parse.ts";
import { findStrings, forgetNames, MAX_BYTES, STRING_WORDS, tape } from "../../lib/json/strings.ts";
import { runToEnd } from "../../lib/scheduler.ts";
import { type Random, seeded } from "../support/random.ts";
import { rounds, skipInQuick } from "../support/skip.ts";

const encoder = new TextEncoder();

/** Result of the careful parser; `undefined` if it finds a fault. */
function readCarefully(text: string, limits: JsonLimits): ParsedJson | undefined {
  try {
    return runToEnd(parseSteps(text, limits));
  } catch (error) {
    assert(error instanceof JsonError, String(error));
    return undefined;
  }
}

/**
 * Asserts that the fast parser agrees with the careful one, with and without the bytes. Returns whether it gave a
 * result.
 */
function assertSame(text: string, limits = JSON_LIMITS): boolean {
  const careful = readCarefully(text, limits);
  const sources = text.isWellFormed() ? [text, encoder.encode(text)] : [text];
  for (const source of sources) {
    const quick = parseFast(source, limits);
    const at = JSON.stringify(text.slice(0, 300));
    // Replacement characters, which the decoder also makes of invalid UTF-8, are left to the careful parser.
    if (text.includes("\ufffd") && quick === undefined) continue;
    const unread = typeof source === "string" &&
      ((text.length > 4_096 && /[^\0-\xff]/.test(text)) || !text.isWellFormed());
    if (careful === undefined || unread) assertStrictEquals(quick, undefined, at);
    else {
      assert(quick !== undefined, at);
      assertStrictEquals(writeJson(quick.value), writeJson(careful.value), at);
      assertEquals([quick.members, quick.hasRaw], [careful.members, careful.hasRaw], at);
      if (random.below(20) === 0) assertEquals(quick.value, careful.value, at);
      const inBytes = careful.members.map(({ name, before, start, end }) => ({
        name,
        before: encoder.encode(text.slice(0, before)).length,
        start: encoder.encode(text.slice(0, start)).length,
        end: encoder.encode(text.slice(0, end)).length,
      }));
      assertEquals(quick.utf8Members, inBytes, at);
    }
  }
  return careful !== undefined;
}

const random = seeded(23);

/** Parts of strings as they are written; the last ones are faults. */
const PARTS = [
  ..."aaaa {}[],:é字😀\u007f\u2028\ufffd\ufeff",
  ...["n", "r", "t", "b", "f", "/", "\\", '"'].map((letter) => `\\${letter}`),
  "\\\\".repeat(3),
  "\\u0000",
  "\\u4E00",
  "\\ud83d\\ude00",
  "\\ud83d",
  "\ud83d",
  "\\q",
  "\n",
  "\u0000",
  "\\u12",
];
const FAULTS = 6;

function randomString(random: Random, { most, faulty = false }: { most: number; faulty?: boolean }): string {
  const parts = faulty ? PARTS : PARTS.slice(0, -FAULTS);
  return `"${Array.from({ length: random.below(most) }, () => random.pick(parts)).join("")}"`;
}

const NAMES = ["a", "b", "1", "role", "content", "__proto__", "constructor", "\\u0061b", "字", "additionalProperties"];
const NUMBERS = [
  "0",
  "-0",
  "1.0",
  "2.5",
  "1e400",
  "123456789012345",
  "1234567890123456",
  "-7",
  "1E2",
  "7".repeat(1100),
];

function randomJson(random: Random, depth: number): string {
  const space = () => random.below(8) === 0 ? " \n\t\r".repeat(20).slice(0, random.below(70)) : "";
  const many = (make: () => string) => Array.from({ length: random.below(5) }, make).join(",");
  const name = () => random.below(4) === 0 ? randomString(random, { most: 40 }) : `"${random.pick(NAMES)}"`;
  const kind = random.below(depth > 0 ? 8 : 4);
  let text: string;
  if (kind === 0) text = random.pick(NUMBERS);
  else if (kind === 1) text = random.pick(["true", "false", "null"]);
  else if (kind < 4) text = randomString(random, { most: random.pick([3, 20, 90]) });
  else if (kind === 4) text = `[${many(() => randomJson(random, depth - 1))}]`;
  else text = `{${many(() => `${space()}${name()}${space()}:${randomJson(random, depth - 1)}`)}}`;
  return space() + text + space();
}

Deno.test("parseFast() agrees with the careful parser, and rejects everything invalid", () => {
  const small = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    '"',
    "\\",
    "\\u",
    " ",
    "\n",
    "\f",
    "0",
    "-",
    "1.",
    "tru",
    "null",
    "é",
    "\ud800",
  ];
  let good = 0;
  for (let round = 0; round < rounds(40_000); round++) {
    let text = randomJson(random, 4);
    for (let change = random.below(4) - 1; change > 0; change--) {
      const at = random.below(text.length + 1);
      text = text.slice(0, at) + random.pick(small) + text.slice(at + random.below(3));
    }
    if (assertSame(text, random.pick([JSON_LIMITS, JSON_LIMITS, { depth: 3, nodes: 9, keys: 3 }]))) good++;
  }
  assertLess(rounds(10_000), good);
});

/** Texts before a string, of one, three and four bytes a character, and of escapes. */
const FEW = skipInQuick("Most texts before block borders");
const FILLS = FEW ? ["x", "字"] : ["x", "字", "😀", '\\"', "\\\\"];

Deno.test("parseFast() handles every character at block borders", () => {
  for (let length = 0; length < 140; length++) {
    for (const part of [...PARTS, '"', '\\"', ""]) {
      for (const fill of FILLS) {
        if (FEW && (fill !== "x" || length > 66) && length % 7 > 0) continue;
        const before = fill.repeat(length / fill.length);
        assertSame(`["${before}${part}"]`);
        assertSame(`{"${before}${part}":["${part}",1]}`);
        if (fill === "x") {
          assertSame(`["${before}${part}`);
          assertSame(`["${part}",${" ".repeat(length)}"${part}"]`);
        }
      }
    }
  }
});

/** This many characters, each different from its neighbours. */
function unlike(length: number): string {
  return Array.from({ length }, (_, at) => String.fromCharCode(0x30 + at * 7 % 43)).join("").replaceAll("\\", "~");
}

Deno.test("parseFast() handles escapes anywhere in a block", () => {
  const sample = unlike(200);
  for (let first = 0; first < 130; first++) {
    for (const gap of [0, 1, 13, 14, 15, 16, 30, 33, 47, 48, 61, 62, 63, 64]) {
      for (const [one, other] of [["\\n", '\\"'], ["\\\\", "\\\\"], ["\\t", ""], ["\\/", "\\u0041"]]) {
        const [begin, middle] = [sample.slice(0, first), sample.slice(first, first + gap)];
        const text = `["${begin}${one}${middle}${other}${
          sample.slice(first + gap)
        }","${one}${begin}",{"${one}":"${middle}"}]`;
        assertEquals(parseFast(encoder.encode(text), JSON_LIMITS)?.value, JSON.parse(text), text);
        assertEquals(parseFast(text, JSON_LIMITS)?.value, JSON.parse(text), text);
      }
    }
  }
});

Deno.test("parseFast() handles short strings at any offset", () => {
  for (let before = 0; before < 70; before++) {
    for (let length = 0; length < 70; length++) {
      const sample = unlike(length);
      for (
        const text of [
          `[${" ".repeat(before)}"${sample}","é\\n${sample}"]`,
          `{"${unlike(before)}":"${sample}","${sample}b":"x"}`,
        ]
      ) {
        assertEquals(parseFast(encoder.encode(text), JSON_LIMITS)?.value, JSON.parse(text), text);
        assertEquals(parseFast(text, JSON_LIMITS)?.value, JSON.parse(text), text);
      }
    }
  }
});

Deno.test("parseFast() rejects misplaced backslashes and control characters", () => {
  const sample = unlike(140);
  for (let at = 0; at < 140; at++) {
    const space = " ".repeat(at);
    for (const escape of ["\\", '\\"', "\\n", '\\""', '\\\\"']) {
      for (
        const text of [
          `${space}${escape}["a"]`,
          `[${space}${escape}"a\\n"]`,
          `["a",${space}${escape}]`,
          `["a"]${space}${escape}`,
        ]
      ) {
        assertStrictEquals(assertSame(text), false, text);
      }
    }
    for (const control of ["\n", "\0", "\x1f"]) {
      assertStrictEquals(assertSame(`\n["b", "${sample.slice(0, at)}${control}${sample.slice(at)}", "\\n"]\n`), false);
      assertStrictEquals(assertSame(`\n["字", "${sample.slice(0, at)}${control}"]`), false);
    }
    assert(assertSame(`\n["b",\n${space}"\x7f${sample.slice(at)}",${space}\n"\x7f"\n]`));
  }
});

Deno.test("parseFast() reads long texts of every script like the careful parser", () => {
  for (let round = 0; round < 60; round++) {
    const faulty = round % 6 === 0;
    const turns = Array.from({ length: 30 }, () => {
      return `{"role":${randomString(random, { most: 9 })},"content":${randomString(random, { most: 900, faulty })}}`;
    });
    assertSame(`{"model":"a","messages":[${turns.join(", ")}],"id":12345678901234567890}`);
  }
});

Deno.test("parseFast() leaves long texts and many strings to the careful parser", () => {
  const limits = { depth: 9, nodes: 1e6, keys: 1e6 };
  for (const fill of ["x", '\\"', "é", "\\u00e9"]) {
    for (const more of [0, 1, 64]) {
      const inside = "x".repeat((MAX_BYTES - 4) % 6) +
        fill.repeat(Math.floor((MAX_BYTES - 4) / encoder.encode(fill).length));
      const text = `["${inside.slice(0, MAX_BYTES - 4)}"${" ".repeat(more)}]`;
      const utf8 = encoder.encode(text);
      for (const source of [text, utf8]) {
        const read = parseFast(source, limits);
        assertEquals(read?.value, utf8.length > MAX_BYTES ? undefined : JSON.parse(text));
      }
    }
  }
  for (const strings of [32_767, 32_768, 32_769]) {
    const read = parseFast(`[${'"a",'.repeat(strings - 1)}"b"]`, limits);
    assertEquals(Array.isArray(read?.value) ? read.value.length : undefined, strings > 32_768 ? undefined : strings);
  }
  assertEquals(parseFast('{"a":{"b":"c"}}', limits)?.value, { a: { b: "c" } });
});

Deno.test("parseFast() distinguishes names, even after many names or an invalid text", () => {
  const text = (from: number) => {
    const names = Array.from({ length: 40 }, (_, at) => `"${"n".repeat((from + at) % 34)}${from + at}"`);
    return `{"x":[{${names.map((name, at) => `${name}:${at}`).join(",")},"":0}]}`;
  };
  for (let from = 0; from < 4_000; from += 37) {
    assertSame(text(from));
    parseFast(text(from + 20).slice(0, -random.below(200)), JSON_LIMITS);
    assertSame(text(from + 20));
  }
  const halves: Json = parseAtOnce('{"a":{"\ud83d":1,"\ufffd":2}}').value;
  assertEquals(halves, { a: Object.fromEntries([["\ud83d", 1], ["\ufffd", 2]]) });
});

Deno.test("parseFast() finds repeated names in its cache", () => {
  const names = ["role", "content", "type", "text", "tools", "system", "function", "name", "parameters", "description"];
  const text = JSON.stringify(names.map((name) => ({ [name]: 1 })));
  try {
    forgetNames();
    for (const put of [true, false]) {
      findStrings(text);
      for (const [at, name] of names.entries()) {
        assertEquals((tape[at * STRING_WORDS + 2] ?? 0) <= -1027, put, name);
      }
    }
  } finally {
    forgetNames();
  }
});

Deno.test("parseFast() leaves only unusual escapes to a parser", () => {
  assert(findStrings('["\\n", "\\u0041\\n", "\\n", "a"]') !== undefined);
  assertEquals([0, 1, 2, 3].map((at) => tape[at * STRING_WORDS + 2]), [1, -1, 3, 5]);
});

Deno.test("parseFast() rejects bytes that are not UTF-8", () => {
  const texts = [
    '{"role":"字","content":["é","x"]}',
    '{"字字":[1,"😀\\n"],"b":"\\u5b57字"}',
    `{"a":"${"字".repeat(99)}","b":2}`,
  ];
  let read = 0;
  for (const text of texts) {
    const good = encoder.encode(text);
    for (let round = 0; round < 4_000; round++) {
      const bytes = good.slice();
      for (let changes = 1 + random.below(2); changes > 0; changes--) {
        bytes[random.below(bytes.length)] = 0x80 + random.below(128);
      }
      const quick = parseFast(bytes, JSON_LIMITS);
      if (quick === undefined) continue;
      read++;
      const sample = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
      assertEquals(quick.value, JSON.parse(sample));
    }
  }
  assertLess(500, read);
  // The end of one string and the start of the next would form a character.
  const broken = encoder.encode('["字","x"]');
  assertEquals(parseFast(broken, JSON_LIMITS)?.value, ["字", "x"]);
  const apart = Uint8Array.of(0x5b, 0x22, 0xe5, 0x22, 0x2c, 0x22, 0xad, 0x97, 0x22, 0x5d);
  assertEquals(parseFast(apart, JSON_LIMITS), undefined);
});

Deno.test("parseFast() reads decimal numbers like the engine", () => {
  for (let round = 0; round < rounds(100_000); round++) {
    const whole = String(random.below(10 ** random.below(10)));
    const text = `${random.below(3) === 0 ? "0" : whole}.${
      String(random.below(10 ** random.below(10))).padStart(random.below(9), "0")
    }`;
    const value = parseFast(`[${text}]`, JSON_LIMITS)?.value;
    assertEquals(writeJson(value ?? null), `[${text}]`);
    if (String(Number(text)) === text) assertEquals(value, [Number(text)]);
  }
});

// The engine's parser guesses names from earlier objects, and confuses "\\/" with the "\\" of one of them.
Deno.test("parseFast() reads a name as written, whatever was read before", () => {
  for (const escape of ["/", "n"]) {
    const others = ['{"b":1,"\\\\":2}', '[{"b":1,"\\\\":2},0]'];
    for (const other of others) JSON.parse(other);
    const text = `{"b":1,"\\${escape}":2}`;
    assertEquals(parseAtOnce(text).value, { b: 1, [JSON.parse(`"\\${escape}"`)]: 2 });
    assertEquals(parseAtOnce(text.replace("2", "1.0")).hasRaw, true);
    assertSame(text);
  }
});
