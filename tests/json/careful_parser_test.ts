import { assert, assertEquals, assertLess, assertStrictEquals } from "@std/assert";
import { parseSteps } from "../../lib/json/careful_parser.ts";
import {
  type Json,
  JSON_LIMITS,
  JsonError,
  type JsonLimits,
  parseDocument,
  writeJson,
  writeJsonSliced,
} from "../../lib/json/mod.ts";
import { parseAtOnce } from "../../lib/json/parse.ts";
import { writeSteps } from "../../lib/json/write.ts";
import { LONG_TEXT_CHARS, runToEnd } from "../../lib/scheduler.ts";
import { type Random, seeded } from "../support/random.ts";
import { rounds, skipInQuick } from "../support/skip.ts";
import { workedMs } from "../support/turns.ts";

const ROOMY: JsonLimits = { depth: 1000, nodes: 1e6, keys: 1e6 };

/** Result of reading as text that shows every difference: order, notation of numbers, lone surrogates. */
function outcomeOf(read: () => { value: Json; members: unknown; hasRaw: boolean }): unknown {
  try {
    const { value, members, hasRaw } = read();
    return { text: writeJson(value), members, hasRaw };
  } catch (error) {
    assert(error instanceof JsonError, String(error));
    return { message: error.message, position: error.position };
  }
}

/** Asserts that parsing and writing a text in steps gives the same results as at once. */
function assertSame(text: string, limits = JSON_LIMITS): void {
  const short = outcomeOf(() => parseAtOnce(text, limits));
  assertEquals(outcomeOf(() => runToEnd(parseSteps(text, limits))), short, text.slice(0, 200));
  if (short === null || typeof short !== "object" || !("text" in short)) return;
  const { value } = parseAtOnce(text, limits);
  assertEquals(runToEnd(parseSteps(text, limits)).value, value);
  assertStrictEquals(runToEnd(writeSteps(value)), writeJson(value));
}

const SMALL = [
  ..."{}[],:",
  '"a"',
  '"a"',
  '"b"',
  '"__proto__"',
  '"constructor"',
  '"1"',
  '"\\u0061"',
  '"\\ud83d\\ude00"',
  '"\\ud83d"',
  '"\\ude00\\ud83d"',
  '"字😀"',
  '"\\""',
  '"\\\\"',
  '"\\\\\\""',
  '"\\q"',
  '"\\u12"',
  '"\\u12',
  '"a\nb"',
  '"\\',
  '"',
  "\\",
  ..." \t\n\r\f",
  "0",
  "-0",
  "1.0",
  "-",
  "1e400",
  "12345678901234567890",
  "1.",
  "01",
  "true",
  "false",
  "null",
  "nul",
  `${"7".repeat(1100)}`,
  `${"7".repeat(1101)}`,
];

Deno.test("parseSteps() reads what parseAtOnce() reads, and finds the same fault", () => {
  const random = seeded(11);
  let good = 0;
  for (let round = 0; round < rounds(60_000); round++) {
    const grown = random.below(3) > 0;
    let text = grown ? randomJson(random, 4) : "";
    const changes = grown ? random.below(3) : 1 + random.below(8);
    for (let change = 0; change < changes; change++) {
      const at = random.below(text.length + 1);
      text = text.slice(0, at) + SMALL[random.below(SMALL.length)] + text.slice(at + random.below(3));
    }
    const limits = [JSON_LIMITS, { depth: 2, nodes: 6, keys: 2 }][random.below(2)];
    if (changes === 0) good++;
    assertSame(text, limits);
  }
  assertLess(rounds(10_000), good);
});

/** Random JSON text with all kinds of values and spaces. */
function randomJson(random: Random, depth: number): string {
  const space = () => " \n\t\r".repeat(2).slice(0, random.below(8) === 0 ? random.below(8) : 0);
  const spaced = (text: string) => space() + text + space();
  const many = (make: () => string) => Array.from({ length: random.below(4) }, make).join(",");
  const name = () => ['"a"', '"b"', '"c"', '"1"', '"__proto__"', '"\\u0061b"', '"toJSON"', '"字"'][random.below(8)];
  switch (random.below(depth > 0 ? 7 : 4)) {
    case 0:
      return spaced(["0", "-0", "1.0", "2.5", "1e400", "12345678901234567890", "-7", "1E2"][random.below(8)] ?? "0");
    case 1:
      return spaced(["true", "false", "null"][random.below(3)] ?? "null");
    case 2:
    case 3:
      return spaced(
        `"${Array.from({ length: random.below(5) }, () => CHARACTERS[random.below(CHARACTERS.length)]).join("")}"`,
      );
    case 4:
      return spaced(`[${many(() => randomJson(random, depth - 1))}]`);
    default:
      return spaced(`{${many(() => `${spaced(name() ?? "")}:${randomJson(random, depth - 1)}`)}}`);
  }
}

/** Characters of strings, as they are written. */
const CHARACTERS = [
  ..."a /é字😀\u007f\u2028\ufffd",
  "\ud800",
  "\udc00",
  ...["n", "r", "t", "b", "f", "/", "\\", '"'].map((letter) => `\\${letter}`),
  "\\u0000",
  "\\u4E00",
  "\\ud83d\\ude00",
  "\\ud83d",
  "\\ude00",
];

Deno.test("parseSteps() cuts strings where the value does not show it", () => {
  const random = seeded(5);
  const parts = [...CHARACTERS, "\\\\".repeat(7), '\\"'.repeat(5)];
  const step = rounds(100) === 100 ? 1 : 3;
  for (const part of parts.filter((_, index) => index % step === 0)) {
    // The prefix shifts the position of each cut.
    for (let shift = 0; shift < 7; shift += rounds(100) === 100 ? 1 : 7) {
      const inside = "x".repeat(shift) + part.repeat(Math.ceil(70_000 / part.length));
      assertSame(`{"a":"${inside}","${inside}":["${inside}"]}`);
      for (const bad of ["\\q", "\\u12x4", "\n"]) {
        const at = shift + random.below(70_000 / part.length - 1) * part.length;
        assertSame(`["${inside.slice(0, at)}${bad}${inside.slice(at)}"]`);
      }
      for (const end of ["", "\\", "\\u12", "\\u00e", "\\q"]) assertSame(`["${inside}${end}`);
    }
  }
  for (let round = 0; round < rounds(20); round++) {
    const inside = Array.from({ length: 60_000 }, () => CHARACTERS[random.below(CHARACTERS.length)]).join("");
    assertSame(`{"a":"${inside}"}`);
  }
});

const ignore = skipInQuick("JSON texts of megabytes");

Deno.test("long and deep values are read and written in steps as at once", { ignore }, () => {
  const texts = [
    `[${"1.0,".repeat(50_000)}-0]`,
    `[${'{"type":"text","text":"abc"},'.repeat(20_000)}{}]`,
    `{"a":${"[".repeat(60)}${'"x",'.repeat(20_000)}1${"]".repeat(60)}}`,
    `{${Array.from({ length: 9_999 }, (_, at) => `"k${at}":{"${at}":${at}.5}`).join(",")}}`,
    `{${Array.from({ length: 10_001 }, (_, at) => `"k${at}":0`).join(",")}}`,
    `{"a":[${
      Array.from({ length: 5 }, (_, by) => `{${Array.from({ length: 5_000 }, (_, at) => `"${by}k${at}":[]`)}}`)
    }]}`,
    `${" ".repeat(100_000)}{${"\n".repeat(100_000)}"a"${"\t".repeat(100_000)}:${" ".repeat(100_000)}1}x`,
    `[${"[],".repeat(200_000)}0]`,
    `[${"7".repeat(100_000)}]`,
    `{"a":1,"b":"${"x".repeat(100_000)}","a":2}`,
    `{"a":{"b":"${"x".repeat(100_000)}","b":2}}`,
    `{"a":[{"b":"${"x".repeat(100_000)}","b":2}]}`,
    `{"${"n".repeat(100_000)}\\q":1}`,
  ];
  for (const text of texts) {
    assertSame(text);
    assertSame(text, ROOMY);
  }
});

Deno.test(
  "parseDocument() and writeJsonSliced() do at any length what parseAtOnce() and writeJson() do",
  { ignore },
  async () => {
    for (const length of [0, 10, 65_536, LONG_TEXT_CHARS - 20, LONG_TEXT_CHARS + 1]) {
      for (const item of ["1.0", '"\\n\\ud83d\\ude00"', '{"a":"b"}']) {
        const list = Array.from({ length: Math.min(Math.floor(length / item.length), 90_000) }, () => item).join(",");
        const text = `{"a":[${list}],"b":"${'\\"'.repeat(length / 2)}"}`;
        const read = await parseDocument(text);
        assertEquals(read.members, parseAtOnce(text).members);
        assertStrictEquals(await writeJsonSliced(read.value), writeJson(parseAtOnce(text).value));
        const bad = text.replace(/}$/, "]");
        const fault = await parseDocument(bad).catch((error) => error);
        assert(fault instanceof JsonError);
        assertEquals(fault.position, text.length - 1);
      }
    }
  },
);

Deno.test("no step of reading or writing is long", { ignore }, () => {
  const texts = [
    `["${"\\n".repeat(3_000_000)}"]`,
    `["${'\\"'.repeat(3_000_000)}"]`,
    `["${"\\ud800".repeat(1_000_000)}"]`,
    `[${"-0,".repeat(199_990)}0]`,
    `[${" ".repeat(6_000_000)}`,
    `["${"\\\\".repeat(3_000_000)}`,
    `{"${"\\\\".repeat(3_000_000)}":${"8".repeat(3_000_000)}}`,
  ];
  for (const text of texts) {
    const work = parseSteps(text, JSON_LIMITS);
    const steps = [...durations(work)];
    // The median of their CPU time does not depend on other programs, unlike the longest.
    assertLess(steps.sort((a, b) => a - b)[steps.length >> 1] ?? 0, 20, text.slice(0, 10));
    assertLess(60, steps.length, text.slice(0, 10));
  }
  const value = JSON.parse(texts[2] ?? "");
  assertLess(30, [...durations(writeSteps(value))].length);
});

function* durations(work: Generator<void, unknown>): Generator<number> {
  for (;;) {
    const begun = workedMs();
    try {
      if (work.next().done === true) return;
    } catch {
      return;
    }
    yield workedMs() - begun;
  }
}
