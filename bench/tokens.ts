// deno-lint-ignore-file no-console
/**
 * Time and longest stall of the event loop while texts of 100,000 characters are counted, and what loading costs.
 *
 *     deno run -A bench/tokens.ts
 */
import { loadTokenCounter } from "../lib/o200k/mod.ts";
import { seeded } from "../tests/support/random.ts";
import { watch } from "./watch.ts";

const CHARS = 100_000;
const PROSE = "It was the best of times, it was the worst of times; nobody could say which, though many tried. ";
const CODE = "export function add(left: number, right: number): number {\n  return left + right; // sum\n}\n\n";

function rssMB(): number {
  return Deno.memoryUsage().rss / 1e6;
}

function line(name: string, ...columns: string[]): void {
  console.log(name.padEnd(34) + columns.map((column) => column.padStart(14)).join(""));
}

const before = rssMB();
const loaded = await watch(loadTokenCounter);
const counter = loaded.value;
line(
  "load",
  `${loaded.ms.toFixed(0)} ms`,
  `stall ${loaded.stallMs.toFixed(0)} ms`,
  `RSS +${(rssMB() - before).toFixed(0)} MB`,
);

const { below } = seeded(1);
const pick = (length: number, char: () => string) => Array.from({ length }, char).join("");
const fill = (text: string) => text.repeat(Math.ceil(CHARS / text.length)).slice(0, CHARS);
const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const texts: [string, string][] = [
  ['100,000 x "a"', "a".repeat(CHARS)],
  ["100,000 random Han", pick(CHARS, () => String.fromCodePoint(0x4e00 + below(0x5000)))],
  ["100,000 frequent Han", pick(CHARS, () => "的一是不了在人有我他这个们中来上大为和国".charAt(below(20)))],
  ["prose", fill(PROSE)],
  ["code", fill(CODE)],
  ["base64", pick(CHARS, () => base64.charAt(below(64)))],
  ["letters", pick(CHARS, () => base64.charAt(26 + below(26)))],
  ["spaces", " ".repeat(CHARS)],
  ["!", "!".repeat(CHARS)],
  ['1,000,000 x "a"', "a".repeat(10 * CHARS)],
  ["1,000,000 random Han", pick(10 * CHARS, () => String.fromCodePoint(0x4e00 + below(0x5000)))],
  ["10,000,000 x prose", fill(PROSE).repeat(100)],
];

line("text", "tokens", "count", "countLong", "longest stall");
for (const [name, text] of texts) {
  counter.count(text.slice(0, CHARS / 2));
  const start = performance.now();
  const tokens = counter.count(text);
  const atOnce = performance.now() - start;
  const long = await watch(() => counter.countLong(text));
  if (long.value !== tokens) throw new Error(`countLong() and count() differ for ${name}`);
  line(name, `${tokens}`, ...[atOnce, long.ms, long.stallMs].map((ms) => `${ms.toFixed(1)} ms`));
}
line("RSS at the end", `${rssMB().toFixed(0)} MB`);
