import { assert, assertEquals, assertLess } from "@std/assert";
import { eventsOf } from "../../lib/protocols/canonical/aggregate_events.ts";
import type { ContentBlock, ReplyEvent } from "../../lib/protocols/canonical/types.ts";
import { countReply, type ReplyTokens } from "../../lib/billing/count_prompt.ts";
import { yieldToEventLoop } from "../../lib/scheduler.ts";
import { ReplyTokenCounter } from "../../lib/billing/reply_token_counter.ts";
import { loadTokenCounter } from "../../lib/o200k/mod.ts";
import { type Random, seeded } from "../support/random.ts";
import { randomText } from "../o200k/random_text.ts";
import { rounds, skipInQuick } from "../support/skip.ts";
import { workedMs } from "../support/turns.ts";

const SEED = 31_4159;
const counter = await loadTokenCounter();

/** The events of an answer with its texts in deltas of random lengths, which may split a character. */
function randomEvents(blocks: ContentBlock[], random: Random, usual = 200): ReplyEvent[] {
  return eventsOf({ blocks, finish: "end", usage: {} }).flatMap((event): ReplyEvent[] => {
    if (event.type !== "delta") return [event];
    const deltas: ReplyEvent[] = [];
    for (let at = 0; at < event.text.length;) {
      const end = at + 1 + random.below(random.below(20) === 0 ? 50_000 : usual);
      deltas.push({ ...event, text: event.text.slice(at, end) });
      at = end;
    }
    return deltas;
  });
}

/** Counts events; `slowly`: with time to count in between. */
async function count(events: ReplyEvent[], slowly = false): Promise<ReplyTokens> {
  const running = new ReplyTokenCounter();
  for (const event of events) {
    await running.push(event);
    for (let turns = 0; slowly && turns < 4; turns++) await yieldToEventLoop();
  }
  return await running.finish();
}

/** A long text of random pieces. */
function long(piece: () => string, length = 80_000): string {
  const parts: string[] = [];
  for (let sum = 0; sum < length;) {
    const part = piece();
    parts.push(part);
    sum += part.length;
  }
  return parts.join("");
}

Deno.test("ReplyTokenCounter.finish() agrees with countReply() for all kinds of blocks", async () => {
  const random = seeded(SEED);
  for (let i = 0; i < rounds(300); i++) {
    const text = () => randomText(random, i % 10 === 0 ? 4000 : 100);
    const kinds: (() => ContentBlock)[] = [
      () => ({ type: "text", text: text() }),
      () => ({ type: "reasoning", text: text() }),
      () => ({ type: "refusal", text: text() }),
      () => ({ type: "text", text: "" }),
      () => ({ type: "tool_call", id: "1", name: text(), arguments: text() }),
      () => ({ type: "tool_call", id: "1", name: text(), arguments: "{}", namespace: text() }),
      () => ({ type: "tool_call", id: "1", name: "f", arguments: "", custom: true }),
      () => ({
        type: "vendor_specific",
        from: "messages",
        value: { type: "server_tool_use", input: text().toWellFormed() },
      }),
    ];
    const blocks = Array.from(
      { length: random.below(12) },
      () => kinds[random.below(kinds.length)]?.() as ContentBlock,
    );
    assertEquals(
      await count(randomEvents(blocks, random)),
      await countReply(blocks, counter),
      `answer ${i} of seed ${SEED}`,
    );
  }
});

Deno.test("ReplyTokenCounter counts a call without arguments as an empty object", async () => {
  const block = { type: "tool_call", id: "1", name: "f" } as const;
  const events: ReplyEvent[] = [{ type: "start" }, { type: "open", index: 0, block }];
  assertEquals((await count(events)).completion, 1);
  assertEquals((await count([...events, { type: "close", index: 0 }])).completion, 1 + counter.count("{}"));
});

Deno.test("ReplyTokenCounter is exact for long texts of any kind", async () => {
  const random = seeded(SEED);
  const char = (from: number, to: number) => String.fromCodePoint(from + random.below(to - from + 1));
  const word = () => Array.from({ length: 1 + random.below(9) }, () => char(0x61, 0x7a)).join("");
  const texts: Record<string, () => string> = {
    words: () => long(() => `${word()} `),
    code: () =>
      long(() =>
        `${" ".repeat(4 * random.below(5))}const ${word()} = ${word()}(${
          random.below(1000)
        }, "${word()}"); // ${word()}\n`
      ),
    json: () =>
      JSON.stringify(Array.from({ length: 3000 }, () => ({ [word()]: random.below(1e9), [word()]: [word()] }))),
    base64: () => long(() => [..."ABCDEFabcdefghijkl0123456789+/"][random.below(30)] ?? ""),
    hex: () => long(() => [..."0123456789abcdef"][random.below(16)] ?? ""),
    digits: () => long(() => String(random.below(1_000_000))),
    "astral digits": () => long(() => char(0x1d7d8, 0x1d7e1)),
    "one digit": () => "7".repeat(150_001),
    "capitals and Han": () => long(() => random.below(2) === 0 ? char(0x4e00, 0x9fff) : char(0x41, 0x5a)),
    "Han with punctuation": () => long(() => random.below(20) === 0 ? "，" : char(0x4e00, 0x9fff)),
    "all scripts": () => long(() => randomText(random, 300)),
    "lines and spaces": () =>
      long(() => random.below(200) === 0 ? "x" : [" ", "\n", "\t", "\r\n"][random.below(4)] ?? ""),
    spaces: () => " ".repeat(80_000),
    "spaces and a word": () => `${" ".repeat(100_000)}word`,
    lines: () => "\n".repeat(80_000),
    "one letter": () => "a".repeat(80_000),
    "one capital": () => "A".repeat(80_000),
    "one Han": () => "中".repeat(100_000),
    Han: () => long(() => char(0x4e00, 0x9fff)),
    Hangul: () => long(() => char(0xac00, 0xd7a3)),
    letters: () => long(() => char(0x61, 0x7a)),
    "words together": () => long(word),
    "camel case": () => long(() => word().replace(/^./, (first) => first.toUpperCase())),
    emoji: () => long(() => ["😀", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪", "❤️", "🏳️‍🌈", "🧑🏿"][random.below(7)] ?? ""),
    "one emoji": () => "👍🏽".repeat(30_000),
    symbols: () => long(() => [..."!?.,;:-_=+*#$%^&(){}[]<>|~"][random.below(26)] ?? ""),
    dashes: () => "-".repeat(80_000),
    marks: () => long(() => char(0x300, 0x36f)),
    "lone surrogates": () => "\ud83d".repeat(100_000),
  };
  const step = skipInQuick("Five of six kinds of long texts") ? 6 : 1;
  for (const [name, make] of Object.entries(texts).filter((_, index) => index % step === 0)) {
    const text = make();
    const type = random.below(2) === 0 ? "text" : "reasoning";
    const blocks: ContentBlock[] = [{ type: "text", text: "before" }, { type, text }, { type: "text", text: "after" }];
    const events = randomEvents(blocks, random, 20_000);
    assertEquals(await count(events, true), await countReply(blocks, counter), name);
  }
});

Deno.test("ReplyTokenCounter.finish() may be called in the middle", async () => {
  const random = seeded(SEED);
  const text = long(() => randomText(random, 200), 100_000);
  const running = new ReplyTokenCounter();
  void running.push({ type: "open", index: 0, block: { type: "text" } });
  for (let at = 0; at < text.length; at += 9000) {
    void running.push({ type: "delta", index: 0, text: text.slice(at, at + 9000) });
    if (random.below(2) === 0) {
      assertEquals((await running.finish()).completion, counter.count(text.slice(0, at + 9000)));
    }
  }
  assertEquals((await running.finish()).completion, counter.count(text));
});

Deno.test("ReplyTokenCounter does not count short texts early, and returns a promise for long backlogs", async () => {
  const running = new ReplyTokenCounter();
  void running.push({ type: "open", index: 0, block: { type: "text" } });
  const text = "word ".repeat(60_000);
  assertEquals(running.push({ type: "delta", index: 0, text }), undefined);
  const waiting = running.push({ type: "delta", index: 0, text });
  assert(waiting !== undefined);
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  await waiting;
  clearInterval(timer);
  assert(turns > 2, `${turns} turns`);
  assertEquals(running.push({ type: "delta", index: 0, text: "end" }), undefined);
  assertEquals((await running.finish()).completion, counter.count(`${text}${text}end`));
});

Deno.test("ReplyTokenCounter.stop() returns the count in progress", async () => {
  const running = new ReplyTokenCounter();
  void running.push({ type: "open", index: 0, block: { type: "text" } });
  void running.push({ type: "delta", index: 0, text: "word ".repeat(60_000) });
  const counting = running.stop();
  assert(counting !== undefined);
  await counting;
  assertEquals(running.stop(), undefined);
});

Deno.test("ReplyTokenCounter.push() is fast, and memory stays bounded for many blocks", async () => {
  const running = new ReplyTokenCounter();
  const start = workedMs();
  for (let index = 0; index < 20_000; index++) {
    await running.push({ type: "open", index, block: { type: "text" } });
    for (let i = 0; i < 10; i++) await running.push({ type: "delta", index, text: "to" });
    await running.push({ type: "close", index });
  }
  assertLess(workedMs() - start, 5000);
  assertEquals((await running.finish()).completion, 20_000 * counter.count("to".repeat(10)));
});
