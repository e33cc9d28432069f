import { assertEquals } from "@std/assert";
import type { ReplyEvent } from "../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../lib/errors.ts";
import { createMemoryLimiter } from "../../lib/limits/memory_limiter.ts";
import { createAfterwork } from "../../lib/billing/afterwork.ts";
import { createLedger } from "../../lib/billing/ledger.ts";
import { type Meter, openMeter } from "../../lib/billing/meter.ts";
import { sheetAt } from "../../lib/billing/price.ts";
import { modelSchema } from "../../lib/catalog/model.ts";
import { type MeteredFeed, meteredFeed } from "../../lib/request/metered_feed.ts";
import { chat } from "../../lib/protocols/chat/mod.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import type { Step } from "../../lib/upstreams/upstream.ts";
import { entriesOf } from "./world.ts";

const OPEN: ReplyEvent = { type: "open", index: 0, block: { type: "text" } };
const FINISH: ReplyEvent = { type: "finish", reason: "end", usage: { prompt: 7 } };
const BROKEN = new GatewayError("upstream", "Broken");

function says(text: string): Step {
  return { frames: [{ data: text }], events: [{ type: "delta", index: 0, text }], spoken: 1 };
}

/** A feed whose reads a test answers, under a real meter. */
async function world({ countInput = () => Promise.resolve(7) } = {}) {
  const store = openMemoryStore();
  const monotonic = () => 0;
  const now = () => 0;
  const log = () => {};
  const ledger = createLedger({ store: store.ledger, now, monotonic, log });
  const limiter = createMemoryLimiter({ monotonic });
  const afterwork = createAfterwork();
  const model = modelSchema.parse({
    id: "acme/one",
    created: 1,
    context_length: 1_000,
    pricing: { prompt: "0.000001", completion: "0.000001" },
    targets: [{ upstream: "one", model: "m" }],
  });
  const meter: Meter = openMeter({ ledger, limiter, now, monotonic, log }, {
    id: "a",
    keyId: "key_a",
    group: "default",
    endpoint: "chat",
  });
  await meter.admit({
    model,
    sheet: sheetAt(model, { factor: "1", now: 0 }),
    claims: [],
    budgets: [],
    most: 1n,
    forMs: 1,
  });
  meter.attempt("one");
  const interruption = new AbortController();
  const asked: PromiseWithResolvers<Step | undefined>[] = [];
  const metered: MeteredFeed = meteredFeed({
    read() {
      const next = Promise.withResolvers<Step | undefined>();
      asked.push(next);
      return next.promise;
    },
    fail: () => [],
    cancel() {},
  }, {
    meter,
    afterwork,
    codec: chat,
    isEstimate: () => false,
    countInput,
    wantsUsage: false,
    hasLeft: () => false,
    interrupted: interruption.signal,
    failed: () => {},
  });
  return {
    ...metered,
    meter,
    interruption,
    /** Reads one step, and takes it as sent. */
    async pass(step: Step) {
      const reading = metered.feed.read();
      await Promise.resolve();
      asked.at(-1)?.resolve(step);
      await reading;
      metered.sent();
    },
    /** Begins to read; the step comes later. */
    async begin() {
      const reading = metered.feed.read();
      await Promise.resolve();
      return { reading, ...asked.at(-1) ?? Promise.withResolvers<Step | undefined>() };
    },
    async entry() {
      await afterwork.done();
      await ledger.flush();
      const [entry] = await entriesOf(store.ledger, 1);
      return [entry?.ending, entry?.status, entry?.tokens.prompt, entry?.tokens.completion];
    },
  };
}

const SAID: Step = { frames: [{ data: "open" }], events: [OPEN], spoken: 1 };

Deno.test("whatever comes of a read that is under way when the client leaves, what was sent is charged", async () => {
  const comes: [name: string, come: (read: PromiseWithResolvers<Step | undefined>) => void][] = [
    ["nothing", (read) => read.resolve(undefined)],
    ["more", (read) => read.resolve(says(" three four"))],
    ["the end", (read) => read.resolve({ frames: [], events: [FINISH] })],
    ["an error", (read) => read.resolve({ frames: [], events: [{ type: "error", error: BROKEN }] })],
    ["a failure", (read) => read.reject(BROKEN)],
  ];
  for (const [name, come] of comes) {
    const { pass, begin, left, entry, feed } = await world();
    await pass(SAID);
    await pass(says("one two"));
    const read = await begin();
    left(false);
    come(read);
    await read.reading.catch(() => feed.fail(BROKEN));
    assertEquals(await entry(), ["abandoned", 200, 7, 2], name);
  }
});

Deno.test("what was read and not yet sent when the client leaves is not charged", async () => {
  const { pass, begin, left, entry } = await world();
  await pass(SAID);
  await pass(says("one two"));
  const read = await begin();
  read.resolve(says(" three four"));
  await read.reading;
  left(false);
  assertEquals(await entry(), ["abandoned", 200, 7, 2]);
});

Deno.test("a client that leaves when its answer is complete and still being counted pays for all of it", async () => {
  for (const drain of [false, true]) {
    const counting = Promise.withResolvers<number>();
    const { pass, begin, left, entry } = await world({ countInput: () => counting.promise });
    // What is known at the beginning would be charged at once.
    await pass({ ...SAID, events: [{ type: "start", usage: { prompt: 7 } }, OPEN] });
    await pass(says("one two"));
    const read = await begin();
    read.resolve({ ...says(" three"), events: [...says(" three").events, { ...FINISH, usage: {} }] });
    await Promise.resolve();
    await Promise.resolve();
    left(drain);
    await new Promise((resolve) => setTimeout(resolve, 10));
    counting.resolve(9);
    await read.reading;
    assertEquals(await entry(), ["abandoned", 200, 9, 3]);
  }
});

Deno.test("an answer that is read to its end for nobody is charged as a whole, counted where it tells nothing", async () => {
  const { pass, left, entry } = await world();
  await pass(SAID);
  await pass(says("one two"));
  left(true);
  await pass(says(" three four"));
  await pass({ frames: [], events: [FINISH] });
  assertEquals(await entry(), ["abandoned", 200, 7, 4]);
});

Deno.test("an error within the answer is entered before it is told", async () => {
  const { pass, begin, meter, entry } = await world();
  await pass(SAID);
  const read = await begin();
  read.resolve({ frames: [{ data: "error" }], events: [{ type: "error", error: BROKEN }] });
  assertEquals((await read.reading)?.frames, [{ data: "error" }]);
  assertEquals(meter.ended, true);
  assertEquals(await entry(), ["failed", 200, 0, 0]);
});

Deno.test("an answer that reaches a limit of the gateway's is charged by all that came before it", async () => {
  const { pass, begin, meter, entry } = await world();
  await pass(SAID);
  await pass(says("one two"));
  const read = await begin();
  const more = says(" three four");
  const error = new GatewayError("upstream", "Too many", { fault: "oversized" });
  read.resolve({ frames: [...more.frames, { data: "error" }], events: [...more.events, { type: "error", error }] });
  assertEquals((await read.reading)?.frames, [...more.frames, { data: "error" }]);
  assertEquals(meter.ended, true);
  assertEquals(await entry(), ["length", 200, 7, 4]);
});

Deno.test("what cannot be counted is not charged, and ends all the same", async () => {
  for (const leaves of [false, true]) {
    const { pass, begin, left, feed, entry } = await world({ countInput: () => Promise.reject(new Error("No")) });
    await pass(SAID);
    await pass(says("one"));
    if (leaves) left(false);
    else {
      const read = await begin();
      read.resolve({ frames: [], events: [{ ...FINISH, usage: {} }] });
      await read.reading.catch(() => feed.fail(BROKEN));
    }
    assertEquals(await entry(), ["failed", 200, 0, 0]);
  }
});

Deno.test("a stream that the gateway itself cuts is not charged", async () => {
  const { pass, left, interruption, entry } = await world();
  await pass(SAID);
  await pass(says("one"));
  interruption.abort(BROKEN);
  left(false);
  assertEquals(await entry(), ["failed", 200, 0, 0]);
});
