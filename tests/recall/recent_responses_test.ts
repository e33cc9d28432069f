import { assert, assertEquals } from "@std/assert";
import { Recall } from "../../lib/recall/recall.ts";
import { type KeptResponse, RecentResponses } from "../../lib/recall/recent_responses.ts";
import { until } from "../support/soon.ts";

const MEGABYTE = 1024 * 1024;

function response(id: string, bytes = 0, items: string[] = []): KeptResponse {
  return {
    id,
    input: new Uint8Array(bytes),
    output: new Uint8Array(0),
    items: items.map((id) => ({ id, start: 0, end: 0 })),
  };
}

function memory(now: () => number = () => 0, minutes = 60): RecentResponses & Disposable {
  const recent = new RecentResponses({ minutes, megabytes: 1 }, { monotonic: now });
  return Object.assign(recent, { [Symbol.dispose]: () => recent.close() });
}

Deno.test("RecentResponses evicts the least recently used response and never exceeds its bytes", () => {
  using recent = memory();
  for (const id of ["a", "b", "c"]) recent.put("key", response(id, 300_000, [`${id}-item`]));
  assert(recent.bytes > 900_000 && recent.bytes <= MEGABYTE);
  assertEquals(recent.find("key", "a")?.id, "a");
  assertEquals(recent.findByItem("key", "b-item")?.id, "b");
  recent.put("key", response("d", 300_000));
  assertEquals(["a", "b", "c", "d"].map((id) => recent.find("key", id)?.id), ["a", "b", undefined, "d"]);
  assertEquals(recent.findByItem("key", "c-item"), undefined);
  assert(recent.bytes <= MEGABYTE);
});

Deno.test("RecentResponses evicts responses of the key with the most bytes, by connections or not", async () => {
  const recall = new Recall({ limits: { minutes: 60, megabytes: 1 }, monotonic: () => 0 });
  const [small, large] = [{ keyId: "small", secret: "" }, { keyId: "large", secret: "" }];
  void recall.put(small, response("first", 100_000));
  for (let index = 0; index < 20; index++) {
    void recall.put(large, response(`own-${index}`, 90_000));
    recall.openLocal("large").put(response(`local-${index}`, 90_000));
    recall.openLocal("large").put(response(`huge-${index}`, 1_000_000));
  }
  assert(recall.bytes <= MEGABYTE);
  assertEquals((await recall.find(small, "first"))?.id, "first");
  void recall.put(large, response("last", 90_000));
  assertEquals((await recall.find(large, "last"))?.id, "last");
  await recall.close();
});

Deno.test("RecentResponses does not store a response larger than its limit, and evicts nothing for it", () => {
  using recent = memory();
  recent.put("key", response("a"));
  recent.put("key", response("b", MEGABYTE));
  assertEquals([recent.find("key", "a")?.id, recent.find("key", "b")], ["a", undefined]);
});

Deno.test("RecentResponses keeps a response for its lifetime after the last use", () => {
  let now = 0;
  using recent = memory(() => now, 1);
  recent.put("key", response("a"));
  recent.put("key", response("b"));
  now = 59_999;
  assertEquals(recent.find("key", "a")?.id, "a");
  now = 60_000;
  assertEquals([recent.find("key", "a")?.id, recent.find("key", "b")], ["a", undefined]);
  now = 120_000;
  assertEquals([recent.find("key", "a"), recent.bytes], [undefined, 0]);
});

Deno.test("RecentResponses scopes ids to their owner, and the latest response owns an item", () => {
  using recent = memory();
  recent.put("one", response("a", 1, ["item"]));
  recent.put("two", response("a", 2, ["item"]));
  recent.put("two", response("b", 3, ["item"]));
  assertEquals([recent.find("one", "a")?.input.length, recent.find("two", "a")?.input.length], [1, 2]);
  assertEquals([recent.findByItem("one", "item")?.id, recent.findByItem("two", "item")?.id], ["a", "b"]);
  // Removing the older response with this item does not remove it from the later one.
  recent.put("two", response("a", 4));
  assertEquals(recent.findByItem("two", "item")?.id, "b");
});

Deno.test("RecentResponses accounts 0 bytes after everything was replaced, used and removed", () => {
  let now = 0;
  using recent = memory(() => now, 1);
  for (let step = 0; step < 500; step++) {
    recent.put(`key-${step % 3}`, response(`r-${step % 40}`, (step * 7919) % 60_000, [`i-${step % 60}`]));
    recent.find(`key-${step % 3}`, `r-${step % 17}`);
    now += 100;
    assert(recent.bytes <= MEGABYTE);
  }
  now += 60_000;
  assertEquals([recent.find("key-0", "r-0"), recent.bytes], [undefined, 0]);
});

Deno.test("RecentResponses applies new limits at once", () => {
  using recent = memory();
  for (const id of ["a", "b", "c"]) recent.put("key", response(id, 300_000));
  recent.configure({ minutes: 60, megabytes: 0.5 });
  assertEquals(["a", "b", "c"].map((id) => recent.find("key", id)?.id), [undefined, undefined, "c"]);
});

Deno.test("RecentResponses removes expired responses by itself", async () => {
  let now = 0;
  using recent = memory(() => now, 1 / 60_000);
  recent.put("key", response("a"));
  now = 1;
  await until("expiry", () => recent.bytes === 0);
});
