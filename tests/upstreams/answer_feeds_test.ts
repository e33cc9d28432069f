import { assert, assertEquals } from "@std/assert";
import type { EventTransform, Machine, ReplyEvent } from "../../lib/protocols/canonical/types.ts";
import type { Frame } from "../../lib/protocols/codec.ts";
import { translatedFeed } from "../../lib/upstreams/answer_feeds.ts";
import { runForKey } from "../../lib/scheduler.ts";
import { UsageEstimator } from "../../lib/upstreams/estimates.ts";
import type { EventFeed } from "../../lib/upstreams/upstream.ts";
import { GatewayError } from "../../lib/errors.ts";
import { promptOf, user } from "../protocols/canonical/messages.ts";
import { callOf } from "./embedded/prompts.ts";

const encoder = new TextEncoder();

/** Reads the text of each event as a delta. */
const READER: Machine<Frame, ReplyEvent> = {
  push: ({ data }) => [{ type: "delta", index: 0, text: data }],
  end: () => [],
};

/** A translated answer whose upstream sends what `read` returns; true at its end. */
function feedOf(
  read: () => string | undefined,
  { reader = READER, restore = (event) => [event] }: {
    reader?: Machine<Frame, ReplyEvent>;
    restore?: EventTransform;
  } = {},
): EventFeed {
  return translatedFeed(
    {
      status: 200,
      header: () => "text/event-stream",
      read: () => {
        const text = read();
        return Promise.resolve(text === undefined ? undefined : encoder.encode(text));
      },
      text: () => Promise.resolve(""),
      release() {},
      cancel() {},
    },
    undefined,
    {
      reader,
      restore,
      estimator: new UsageEstimator(callOf(promptOf([user("Hi")]))),
      inClientTerms: (error) => error,
    },
  );
}

Deno.test("comments of an upstream take no memory, however many come", async () => {
  const COMMENTS = 50_000;
  let reads = 0;
  let before = 0;
  let after = 0;
  const collect: unknown = Reflect.get(globalThis, "gc");
  // Without a collection there is garbage of a few megabytes.
  const most = typeof collect === "function" ? 1_250_000 : 20_000_000;
  const used = () => {
    if (typeof collect === "function") collect();
    return Deno.memoryUsage().heapUsed;
  };
  const feed = feedOf(() => {
    if (reads++ === 1_000) before = used();
    if (reads < COMMENTS) return ": alive\n\n";
    after = used();
    return "data: Hello\n\n";
  });
  assertEquals(await feed.read(), [{ type: "delta", index: 0, text: "Hello" }]);
  assert(before > 0 && after - before < most, `${after - before} bytes`);
});

Deno.test("an answer that has more text than any model writes is cut", async () => {
  const feed = feedOf(() => `data: ${"x".repeat(1_000_000)}\n\n`);
  let length = 0;
  for (;;) {
    const events = await feed.read();
    if (events === undefined) break;
    for (const event of events) {
      if (event.type === "delta") length += event.text.length;
      else assert(event.type === "error" && event.error.fault === "oversized");
    }
  }
  assertEquals(length, 17_000_000);
});

Deno.test("an answer that fails has one error, even if it is also too long", async () => {
  const error = new GatewayError("upstream", "Overheated");
  const feed = feedOf(() => "data: 1\n\n", {
    reader: {
      push: () => [{ type: "delta", index: 0, text: "x".repeat(17_000_000) }, { type: "error", error }],
      end: () => [],
    },
  });
  const ends: ReplyEvent[] = [];
  for (let events = await feed.read(); events !== undefined; events = await feed.read()) {
    ends.push(...events.filter(({ type }) => type !== "delta"));
  }
  assertEquals(ends, [{ type: "error", error }]);
});

Deno.test("an answer whose signatures are too long is cut, even while they are held back", async () => {
  const value = "x".repeat(1_000_000);
  let reads = 0;
  const feed = feedOf(() => (reads++, "data: 1\n\n"), {
    reader: {
      push: () => [
        { type: "open", index: 0, block: { type: "reasoning" } },
        { type: "close", index: 0, signature: { issuer: "acme", value } },
      ],
      end: () => [],
    },
    restore: () => [],
  });
  const events = await feed.read();
  assert(events?.[0]?.type === "error" && events[0].error.fault === "oversized");
  assertEquals(reads, 34);
});

Deno.test("the parts of long texts take turns with those of other API keys", async () => {
  const order: string[] = [];
  const feeds = ["a", "a", "a", "b"].map((key) => ({
    key,
    feed: runForKey(key, () => feedOf(() => `data: ${"x".repeat(1_000_001)}\n\n`)),
  }));
  for (const { feed } of feeds) await feed.read();
  await Promise.all(feeds.map(({ key, feed }) => feed.read().then(() => order.push(key))));
  assertEquals(order.join(""), "abaa");
});
