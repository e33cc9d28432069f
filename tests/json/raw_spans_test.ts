import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import { parseFast } from "../../lib/json/fast_parser.ts";
import { type Json, JSON_LIMITS, type JsonObject, writeJson } from "../../lib/json/mod.ts";
import { RAW_SPAN_BYTES, type RawSpanJson, type RawSpanSource, writeWithRawSpans } from "../../lib/json/raw_spans.ts";
import { joinPieces } from "../../lib/http1/mod.ts";
import { seeded } from "../support/random.ts";
import { rounds } from "../support/skip.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const { below, shuffled } = seeded(7);

/** Reads a text as a client's body is read. */
function read(text: string): { value: Json; source: RawSpanSource } {
  const bytes = encoder.encode(text);
  const parsed = parseFast(bytes, JSON_LIMITS);
  assert(parsed !== undefined, text.slice(0, 300));
  return { value: parsed.value, source: { bytes, rawSpans: parsed.rawSpans } };
}

/** The text that is written with copied spans; `undefined` if nothing can be copied. */
function woven(value: Json, source: RawSpanSource): string | undefined {
  const json = writeWithRawSpans(value, source);
  if (json === undefined) return undefined;
  const bytes = joinPieces([json]);
  assertStrictEquals(json.length, bytes.length);
  return decoder.decode(bytes);
}

function assertCopied(value: Json, source: RawSpanSource): void {
  assertStrictEquals(woven(value, source), writeJson(value));
}

const LONG = 'He said "no".\n\tC:\\temp\b\f\r 字😀\u2028\u007f é '.repeat(80);

Deno.test("writeWithRawSpans() equals writeJson() for a parsed value", () => {
  const ask = { model: "m", messages: [{ role: "user", content: LONG }, { role: "assistant", content: `${LONG}.` }] };
  const { value, source } = read(JSON.stringify(ask));
  assertCopied(value, source);
});

Deno.test("writeWithRawSpans() equals writeJson() for random values in any order", () => {
  let count = 0;
  const most = rounds(1_500);
  for (let round = 0; round < most; round++) {
    const { value, source } = read(randomText());
    for (const other of [value, disordered(value), { model: "other", all: [value, value], rest: randomString(12) }]) {
      const text = woven(other, source);
      if (text === undefined) continue;
      assertStrictEquals(text, writeJson(other));
      count++;
    }
  }
  assert(count > most / 2, `${count} were woven`);
});

/** Strings with everything that is escaped, at each place of the text that is copied. */
Deno.test("writeWithRawSpans() handles every character in and beside a literal", () => {
  const specials = Array.from({ length: 0x20 }, (_, code) => String.fromCharCode(code));
  for (const special of [...specials, '"', "\\", "/", "\x7f", "\x80", "\u2028", "😀", "\ufeff", "", '"}', '","']) {
    for (const pad of [0, 1, 15, 16, 31, 63, 64, 300]) {
      const text = special + "x".repeat(pad) + special + "y".repeat(RAW_SPAN_BYTES) + special;
      // Text with six-letter escapes may not be in canonical form: then only the last string is copied.
      const { value, source } = read(JSON.stringify([text, `${text}${text}`, "z".repeat(4_096)]));
      assertCopied(value, source);
    }
  }
});

Deno.test("writeWithRawSpans() rewrites a literal with another spelling", () => {
  for (const spelled of ["\\/", "\\u0041", "\\u4e00", "\\u000A", "\\ud83d\\ude00", "\\ud83d"]) {
    const { value, source } = read(`["${spelled}${"x".repeat(2 * RAW_SPAN_BYTES)}"]`);
    assertStrictEquals(source.rawSpans, undefined, spelled);
    assertStrictEquals(writeWithRawSpans(value, source), undefined, spelled);
  }
});

Deno.test("writeWithRawSpans() escapes half characters beside a literal", () => {
  const { value, source } = read(JSON.stringify([LONG]));
  assertCopied(["\ud83d", value, "a\udc00b", { "\ud800": "\ud800".repeat(300) }], source);
});

Deno.test("writeWithRawSpans() copies strings from a minimum length on", () => {
  const content = RAW_SPAN_BYTES - 2;
  assertStrictEquals(read(JSON.stringify(["x".repeat(content - 1)])).source.rawSpans, undefined);
  const short = read(JSON.stringify(["x".repeat(content)]));
  assertEquals(short.source.rawSpans?.offsets, [1, 1 + RAW_SPAN_BYTES]);
  assertStrictEquals(writeWithRawSpans(short.value, short.source), undefined, "one is too little");
  const many = read(JSON.stringify(Array.from({ length: 10 }, () => "x".repeat(content))));
  assertCopied(many.value, many.source);
  // A character of three bytes is one of the string.
  const han = read(JSON.stringify(Array.from({ length: 10 }, () => "字".repeat(Math.ceil(content / 3)))));
  assertCopied(han.value, han.source);
});

Deno.test("writeWithRawSpans() copies nothing if the mark occurs in the text, or little can be copied", () => {
  const { value, source } = read(JSON.stringify({ content: LONG }));
  for (const marked of ["\x7f", "a\x7f", '"\x7f"'] as const) {
    assertStrictEquals(writeWithRawSpans([marked, value], source), undefined);
    assertStrictEquals(writeWithRawSpans([{ [marked]: 1 }, value], source), undefined);
  }
  assertStrictEquals(writeWithRawSpans({ content: `${LONG}!` }, source), undefined);
  const small = read(JSON.stringify({ content: LONG, list: Array.from({ length: LONG.length }, () => 1) }));
  assertStrictEquals(writeWithRawSpans(small.value, small.source), undefined);
  assertStrictEquals(writeWithRawSpans(value, { bytes: source.bytes }), undefined);
});

Deno.test("writeWithRawSpans() keeps raw numbers, even if a literal is equal", () => {
  const digits = "1".repeat(2 * RAW_SPAN_BYTES);
  const { value, source } = read(`{"a":"${digits}","b":${digits},"c":[${digits},1.0],"d":"${"9".repeat(4_000)}"}`);
  assertCopied(value, source);
});

Deno.test("writeWithRawSpans() omits undefined members, and treats __proto__ as a name", () => {
  const { value, source } = read(`{"__proto__":${JSON.stringify(LONG)},"10":1,"a":{"__proto__":{"x":2}}}`);
  assertCopied({ none: undefined, value, 7: LONG, also: { none: undefined, text: LONG } }, source);
  assertCopied(value, source);
});

Deno.test("writeWithRawSpans() does not change the value", () => {
  const { value, source } = read(JSON.stringify({ list: [{ text: LONG }, LONG] }));
  assert(writeWithRawSpans(value, source) !== undefined);
  assertEquals(value, { list: [{ text: LONG }, LONG] });
});

Deno.test("writeWithRawSpans() can write a value several times", () => {
  const one = read(JSON.stringify({ content: LONG, more: "é".repeat(50) }));
  const two = read(
    JSON.stringify([`${LONG}${LONG}`, ...Array.from({ length: 80 }, () => "字".repeat(70)), LONG.repeat(9)]),
  );
  const [first, second] = [writeWithRawSpans(one.value, one.source), writeWithRawSpans(two.value, two.source)];
  assert(first !== undefined && second !== undefined);
  for (let round = 0; round < 2; round++) {
    assertFits(first, writeJson(one.value));
    assertFits(second, writeJson(two.value));
  }
});

function assertFits(json: RawSpanJson, wanted: string): void {
  const into = new Uint8Array(json.length + 10).fill(1);
  json.write(into, 7);
  assertStrictEquals(decoder.decode(into.subarray(7, -3)), wanted);
  assert([...into.subarray(0, 7), ...into.subarray(-3)].every((byte) => byte === 1));
}

Deno.test("writeWithRawSpans() accepts a view of a buffer as source", () => {
  const text = JSON.stringify([LONG]);
  const { value, source } = read(text);
  const buffer = encoder.encode(`junk${text}junk`);
  assertCopied(value, { ...source, bytes: buffer.subarray(4, buffer.length - 4) });
});

Deno.test("writeWithRawSpans() searches reordered strings at only a few positions", () => {
  const texts = Array.from({ length: 500 }, (_, index) => `${index} ${"x".repeat(RAW_SPAN_BYTES)}`);
  const { source: { bytes, rawSpans } } = read(JSON.stringify(texts));
  assert(rawSpans !== undefined);
  let looks = 0;
  const values = new Proxy(rawSpans.values, {
    get(target, name) {
      if (name !== "length") looks++;
      return Reflect.get(target, name);
    },
  });
  for (const order of [texts, texts.toReversed()]) {
    looks = 0;
    assertCopied(order, { bytes, rawSpans: { ...rawSpans, values } });
    assert(looks <= 10 * texts.length, `${looks} offsets`);
  }
});

/** Parts of strings of all kinds. */
const PARTS = [...'aaaa {}[],:é字😀\u2028\ufeff\n\r\t\b\f"\\/', "\u0000", "\u001b", "\ud83d", "\x7f"];

function randomString(length: number): string {
  // Most strings contain nothing that prevents copying.
  const kinds = below(40) === 0 ? PARTS.length : PARTS.length - 4;
  return Array.from({ length }, () => PARTS[below(kinds)]).join("");
}

function randomText(): string {
  return JSON.stringify(randomValue(0)).replace(/\//g, () => below(2_000) === 0 ? "\\/" : "/");
}

function randomValue(depth: number): Json {
  const kind = depth === 0 ? 4 + below(2) : below(depth > 4 ? 4 : 6);
  const length = 1 + below(6);
  if (kind === 0) return [null, true, false, 0, -1.5, 12345678][below(6)] ?? null;
  if (kind === 1) return randomString(below(20));
  if (kind < 4) return randomString(RAW_SPAN_BYTES - 40 + below(below(3) === 0 ? 3_000 : 80));
  if (kind === 4) return Array.from({ length }, () => randomValue(depth + 1));
  return Object.fromEntries(Array.from({ length }, (_, at) => [`${at}${randomName()}`, randomValue(depth + 1)]));
}

function randomName(): string {
  return below(4) === 0 ? "" : below(60) === 0 ? randomString(400) : randomString(8);
}

/** The same values in another order. */
function disordered(value: Json): Json {
  if (Array.isArray(value)) return shuffled(value.map(disordered));
  if (typeof value !== "object" || value === null) return value;
  const members: JsonObject = {};
  for (const [name, member] of Object.entries(value).reverse()) members[`_${name}`] = disordered(member ?? null);
  return members;
}
