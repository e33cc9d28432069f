/** Exact results over all inputs: token counts against the reference, and streams split at every byte. */
import process from "node:process";
import { assert, assertEquals, assertLessOrEqual } from "@std/assert";
import { Tiktoken } from "js-tiktoken/lite";
import vocabulary from "js-tiktoken/ranks/o200k_base";
import { formatFrame, SseReader } from "../../lib/server/sse.ts";
import { loadTokenCounter } from "../../lib/o200k/mod.ts";
import type { Frame } from "../../lib/protocols/codec.ts";
import { UPSTREAM_CODECS } from "../../lib/upstreams/protocols.ts";
import { RECORDED, type RecordedStream } from "../golden/recorded.ts";
import { randomText } from "../o200k/random_text.ts";
import { seeded } from "../support/random.ts";
import { type Figure, publish } from "./figures.ts";

const SEED = Number(Deno.env.get("SEED") ?? crypto.getRandomValues(new Uint32Array(1))[0]);
/** Texts that are counted twice: by us, and by js-tiktoken. */
const TEXTS = 100_000;
/** Characters of a text that is made to cost, and the longest time of the processor that it may take, in milliseconds. */
const LONG = 1_000_000;
const MAX_MS = 500;
/** Number of repetitions, because other programs do not disturb every one of them. */
const TIMES = 4;
/** Longest allowed turn of the event loop meanwhile, in milliseconds. */
const MAX_TURN_MS = 50;
/** Minimum number of places at which a stream is split in two. */
const MIN_SPLITS = 100_000;

const figures: Record<string, Figure> = { seed: SEED };

Deno.test(`exactness: ${TEXTS} texts have the tokens of js-tiktoken, SEED=${SEED}`, async () => {
  const counter = await loadTokenCounter();
  const reference = new Tiktoken(vocabulary);
  const random = seeded(SEED);
  let tokens = 0;
  for (let i = 0; i < TEXTS; i++) {
    const text = randomText(random, i % 50 === 0 ? 400 : 60);
    const expected = reference.encode(text, [], []);
    const label = `text ${i}: ${JSON.stringify(text)}`;
    assertEquals(counter.encode(text), expected, label);
    assertEquals(counter.count(text), expected.length, label);
    tokens += expected.length;
  }
  figures.tokens = { texts: TEXTS, tokens };
});

Deno.test("exactness: a million characters of any text are counted fast, in slices", async () => {
  const counter = await loadTokenCounter();
  const random = seeded(SEED + 1);
  const han = Array.from({ length: LONG }, () => String.fromCharCode(0x4e00 + random.below(0x5000))).join("");
  const texts: Record<string, string> = {
    "one letter": "a".repeat(LONG),
    spaces: " ".repeat(LONG),
    lines: "\n".repeat(LONG),
    punctuation: "!".repeat(LONG),
    digits: "7".repeat(LONG),
    "lone surrogates": "\ud800".repeat(LONG),
    han,
    random: randomText(random, LONG),
    prose: "All of it was said before. ".repeat(LONG / 27),
  };
  const figuresOfTexts: Record<string, Figure> = {};
  for (const [name, text] of Object.entries(texts)) {
    const times = [];
    for (let time = 0; time < TIMES; time++) times.push(await countWatched(() => counter.countLong(text)));
    const ms = Math.min(...times.map((time) => time.ms));
    const longestTurn = Math.min(...times.map((time) => time.longestTurn));
    figuresOfTexts[name] = { processor_ms: ms, longest_turn_ms: longestTurn };
    assertLessOrEqual(ms, MAX_MS, `${name}: time`);
    assertLessOrEqual(longestTurn, MAX_TURN_MS, `${name}: one turn`);
  }
  figures.million_characters = figuresOfTexts;
});

/** The time of the processor that it takes, and the longest between two turns of the event loop meanwhile, in milliseconds. */
async function countWatched(count: () => Promise<number>): Promise<{ ms: number; longestTurn: number }> {
  const begun = process.cpuUsage();
  let isOver = false;
  let last = performance.now();
  let longestTurn = 0;
  const counting = count().finally(() => isOver = true);
  while (!isOver) {
    await new Promise((resolve) => setTimeout(resolve, 0));
    longestTurn = Math.max(longestTurn, performance.now() - last);
    last = performance.now();
  }
  await counting;
  const { user, system } = process.cpuUsage(begun);
  return { ms: Math.round((user + system) / 1000), longestTurn: Math.round(longestTurn) };
}

Deno.test("exactness: every recorded stream reads the same, split at any byte", () => {
  let splits = 0;
  for (const recorded of RECORDED) {
    const bytes = new TextEncoder().encode(recorded.frames.map(formatFrame).join(""));
    const expected = JSON.stringify(eventsOf(recorded, recorded.frames));
    for (let at = 0; at <= bytes.length; at++) {
      const frames = framesOf([bytes.subarray(0, at), bytes.subarray(at)]);
      assertEquals(frames.length, recorded.frames.length, `${recorded.name} at ${at}`);
      // The same frames give the same result.
      for (const [i, frame] of frames.entries()) {
        if (frame.data !== recorded.frames[i]?.data) {
          assertEquals(frame, recorded.frames[i], `${recorded.name} at ${at}`);
        }
      }
      splits++;
    }
    assertEquals(
      JSON.stringify(eventsOf(recorded, framesOf([...bytes].map((byte) => new Uint8Array([byte]))))),
      expected,
    );
  }
  figures.streams = { recorded: RECORDED.length, splits };
  assert(splits >= MIN_SPLITS, `${splits} splits`);
});

function framesOf(pieces: readonly Uint8Array[]): Frame[] {
  const decoder = new TextDecoder();
  const reader = new SseReader();
  const frames = pieces.flatMap((piece) => reader.push(decoder.decode(piece, { stream: true })));
  return [...frames, ...reader.push(decoder.decode()), ...reader.end()];
}

function eventsOf({ protocol }: RecordedStream, frames: readonly Frame[]): unknown[] {
  const reader = UPSTREAM_CODECS[protocol].reader({ issuer: "x" });
  return [...frames.flatMap((frame) => reader.push(frame)), ...reader.end()]
    .map((event) => event.type === "error" ? { kind: event.error.kind, message: event.error.message } : event);
}

Deno.test("exactness: report", () => publish("exactness", figures));
