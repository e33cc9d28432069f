/** Makes broken JSON: with wrong values, or with an invalid text. */
import { isObject, type Json, type JsonObject } from "../../lib/json/mod.ts";
import type { Random } from "../support/random.ts";

const ODD_VALUES: readonly Json[] = [
  null,
  true,
  0,
  -1,
  0.5,
  2 ** 53,
  1_000_000_000,
  -1e308,
  "",
  "x",
  "\ud800",
  "a\u0000b",
  "\u202e\ufeff",
  "e\u0301".repeat(50),
  "auto",
  "data:image/png;base64,AAAA",
  "data:,%zz",
  "call:f {",
  "<|endoftext|>",
  "x".repeat(3_000),
  " ".repeat(20_000),
  [],
  {},
  [[]],
  [null],
  Array.from({ length: 300 }, () => 0),
  Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`k${index}`, index])),
  { type: null },
  { type: "text" },
  { type: "function" },
  { type: "thinking", thinking: "a", signature: "b" },
  { type: "tool_result", tool_use_id: "t", content: [{ type: "tool_result" }] },
  { role: "assistant", content: [] },
  { role: "system", content: "a" },
  { $ref: "#" },
];
const ODD_NAMES = [
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "type",
  "role",
  "content",
  "id",
  "name",
  "stream",
  "model",
  "n",
  "",
  "\ud800",
  "x".repeat(500),
];
/** Texts that a value is replaced with in the JSON itself: no value could be written as them. */
const ODD_TEXTS = [
  "1e400",
  "-0",
  "1.0",
  "NaN",
  "01",
  "'x'",
  "undefined",
  "/**/1",
  "12345678901234567890",
  '"\\ud83d"',
  '"\\u00"',
  '"\t"',
  "",
  "[".repeat(100),
  "[".repeat(20_000),
  `${"[".repeat(3_000)}${"]".repeat(3_000)}`,
  `${'{"a":'.repeat(1_000)}1${"}".repeat(1_000)}`,
  '{"a":1,"a":2}',
  '{"a":1,"\\u0061":2}',
];

/** Changes a JSON value in up to three places. Returns its text, which may be invalid JSON. */
export function changedJson(sound: JsonObject, random: Random): string {
  const changed = structuredClone(sound);
  const marks: string[] = [];
  for (let times = random.below(4); times > 0; times--) changeValue(changed, { random, marks });
  let text = JSON.stringify(changed);
  for (const mark of marks) text = text.replace(`"${mark}"`, () => random.pick(ODD_TEXTS));
  // Servers differ in which of two members of one name they believe.
  if (random.chance(0.03)) {
    const names = Object.keys(sound);
    text = text.replace("{", () => `{${JSON.stringify(names.length === 0 ? "" : random.pick(names))}:1,`);
  }
  return text;
}

interface Change {
  random: Random;
  /** Strings that mark the places to change in the JSON text. */
  marks: string[];
}

/** Changes one place in a value: replaces, removes, repeats, renames or adds. */
function changeValue(value: JsonObject, { random, marks }: Change): void {
  const places = [...containers(value)];
  const place = random.pick(places);
  const keys = Object.keys(place);
  const key = keys.length === 0 ? "" : random.pick(keys);
  const set = (name: string, member: Json): void => {
    Object.defineProperty(place, name, { value: member, enumerable: true, writable: true, configurable: true });
  };
  const odd = (): Json => structuredClone(random.pick(ODD_VALUES));
  const change = random.next();
  if (Array.isArray(place)) {
    if (change < 0.3 || place.length === 0) place.push(odd());
    else if (change < 0.5) place.splice(Number(key), 1);
    else if (change < 0.7) place.push(...structuredClone(place));
    else if (change < 0.72) { for (let more = 0; more < 5_000; more++) place.push(structuredClone(place[0] ?? null)); }
    else place[Number(key)] = odd();
  } else if (change < 0.2) set(random.pick(ODD_NAMES), odd());
  else if (change < 0.35) delete place[key];
  else if (change < 0.45) {
    const mark = `mark ${marks.length}`;
    marks.push(mark);
    set(key, mark);
  } else if (change < 0.6) set(key, structuredClone(random.pick(places)) as Json);
  else set(key, odd());
}

function* containers(value: Json | undefined): Generator<JsonObject | Json[]> {
  if (!isObject(value) && !Array.isArray(value)) return;
  yield value;
  for (const member of Object.values(value)) yield* containers(member);
}
