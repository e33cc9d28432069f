import { assert, assertEquals, assertRejects } from "@std/assert";
import { Redis } from "ioredis";
import { GatewayError } from "../../lib/errors.ts";
import { openSharedResponses } from "../../lib/recall/open_shared_responses.ts";
import { Recall, type SharedResponses } from "../../lib/recall/recall.ts";
import { Secret } from "../../lib/secret.ts";
import { HAS_REDIS, someRedis, startRedis } from "../support/databases.ts";
import { openRelay } from "../support/relay.ts";
import { eventually, until } from "../support/soon.ts";

const test = HAS_REDIS ? Deno.test : Deno.test.ignore;
const encoder = new TextEncoder();
const LIMITS = { minutes: 60, megabytes: 64 };

/** An owner that no other test uses, because all share one Redis. */
function someOwner() {
  return { keyId: `key-${crypto.randomUUID()}`, secret: crypto.randomUUID() };
}

function response(id: string, words: string) {
  return {
    id,
    base: { id: "before", withOutput: true },
    input: encoder.encode(`"${words}"`),
    output: encoder.encode('{"id":"item"}'),
    items: [{ id: "item", start: 0, end: 13 }],
  };
}

async function open(log: string[] = [], url?: string): Promise<SharedResponses> {
  const address = { kind: "redis" as const, url: new Secret(url ?? await someRedis()) };
  const shared = await openSharedResponses(address, ({ event }) => log.push(event));
  assert(shared !== undefined);
  return shared;
}

function nodeWith(shared: SharedResponses): Recall {
  return new Recall({ limits: LIMITS, monotonic: () => 0, shared });
}

test("Redis contains neither plain text nor keys, and every value expires", async () => {
  const owner = someOwner();
  const node = nodeWith(await open());
  await node.put(owner, response("resp", "a secret plan"));
  const redis = new Redis(await someRedis());
  const keys = await redis.keys(`*${owner.keyId}*`);
  assertEquals(keys.length, 2);
  for (const key of keys) {
    const value = await redis.getBuffer(key);
    const text = `${key} ${value?.toString("latin1")}`;
    assert(!text.includes("secret plan") && !text.includes(owner.secret), text);
    const ms = await redis.pttl(key);
    assert(ms > 59 * 60_000 && ms <= 60 * 60_000, `${key}: ${ms}`);
  }
  // A value moved to another key cannot be decrypted.
  const [place = ""] = keys.filter((key) => key.includes(":response:"));
  await redis.copy(place, place.replace(/resp$/, "moved"));
  assertEquals(await node.find(owner, "moved"), undefined);
  redis.disconnect();
  await node.close();
});

test("a response that only its node uses stays in Redis, too", async () => {
  const owner = someOwner();
  let now = 0;
  const node = new Recall({ limits: LIMITS, monotonic: () => now, shared: await open() });
  await node.put(owner, response("resp", "a"));
  const redis = new Redis(await someRedis());
  const keys = await redis.keys(`*${owner.keyId}*`);
  for (const find of [() => node.find(owner, "resp"), () => node.findByItem(owner, "item")]) {
    for (const key of keys) await redis.pexpire(key, 60_000);
    now += 30 * 60_000;
    assertEquals((await find())?.id, "resp");
    await until(
      "the renewal",
      async () => (await Promise.all(keys.map((key) => redis.pttl(key)))).every((ms) => ms > 59 * 60_000),
    );
  }
  redis.disconnect();
  await node.close();
});

test("a response evicted by its node leaves Redis, and one found there does not", async () => {
  const owner = someOwner();
  const limits = { minutes: 60, megabytes: 1 };
  const nodes = [await open(), await open()].map((shared) => new Recall({ limits, monotonic: () => 0, shared }));
  const [one, other] = nodes;
  assert(one !== undefined && other !== undefined);
  const large = (id: string) => ({ ...response(id, "x".repeat(600_000)), items: [{ id, start: 0, end: 1 }] });
  await one.put(owner, large("a"));
  assertEquals((await other.find(owner, "a"))?.id, "a");
  await other.put(owner, large("b"));
  assertEquals((await one.find(owner, "a"))?.id, "a");
  await one.put(owner, large("c"));
  const redis = new Redis(await someRedis());
  const found = await redis.keys(`*${owner.keyId}:response:*`);
  assertEquals(found.map((key) => key.at(-1)).sort(), ["b", "c"]);
  redis.disconnect();
  for (const node of nodes) await node.close();
});

test("a node finds responses again after its connection to Redis was lost without an error", async () => {
  using relay = openRelay(await someRedis());
  const shared = await open([], relay.url);
  const owner = someOwner();
  await shared.put(owner, response("resp", "a"), 60_000);
  relay.lose();
  assertEquals((await eventually(() => shared.find(owner, "resp", 60_000)))?.id, "resp");
  await shared.close();
});

test("a node reconnects when the Redis that it is connected to becomes a replica", async () => {
  await using former = await startRedis();
  const next = await someRedis();
  using relay = openRelay(former.url);
  const shared = await open([], relay.url);
  relay.moveTo(next);
  const redis = new Redis(former.url);
  await redis.replicaof("127.0.0.1", Number(new URL(next).port));
  assertEquals(await eventually(() => shared.find(someOwner(), "resp", 60_000)), undefined);
  redis.disconnect();
  await shared.close();
});

Deno.test({
  name: "a node without Redis finds its own responses, and asks for another try where another node may have one",
  async fn() {
    const log: string[] = [];
    // Nothing listens on port 1.
    const address = { kind: "redis" as const, url: new Secret("redis://127.0.0.1:1") };
    const shared = await openSharedResponses(address, ({ event }) => log.push(event));
    assert(shared !== undefined);
    const node = nodeWith(shared);
    const owner = someOwner();
    await node.put(owner, response("resp", "a"));
    assertEquals((await node.find(owner, "resp"))?.id, "resp");
    for (const find of [() => node.find(owner, "other"), () => node.findByItem(owner, "other item")]) {
      const { kind, retryAfterMs } = await assertRejects(find, GatewayError, "Cannot look up earlier responses");
      assertEquals([kind, retryAfterMs], ["overloaded", 1_000]);
    }
    assertEquals(log, ["recall_not_shared"]);
    await node.close();
  },
});
