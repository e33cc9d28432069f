/** Requests of nodes that die: each is entered once, even if the entering nodes fail, too. */
import { assertEquals } from "@std/assert";
import { Redis } from "ioredis";
import { HAS_REDIS, startRedis } from "../support/databases.ts";
import { type Hammer, startHammer } from "./hammers.ts";
import { leftOf, limitOf, openNode, takeOne } from "./redis_nodes.ts";
import { until } from "../support/soon.ts";

const OPTIONS = { ignore: !HAS_REDIS };

/** A session ends soon after its node. */
const LEASE_MS = 1_000;

const SLOT = limitOf("key:hammered", "concurrency", 300);

/** A node that has ended as many requests as there are slots, none of which is in the ledger. */
async function startUnentered(url: string): Promise<Hammer> {
  const orders = { unit: "concurrency", limit: SLOT.limit, workers: SLOT.limit, holdMs: 0, speed: 1 } as const;
  const hammer = await startHammer({ url, leaseMs: LEASE_MS, ...orders, isUnentered: true });
  await until("all have ended", () => idsOf(hammer).length === SLOT.limit);
  return hammer;
}

/** A node that holds all slots of the limit. */
async function startHolding(url: string): Promise<Hammer> {
  const orders = { unit: "concurrency", limit: SLOT.limit, workers: SLOT.limit, holdMs: 1e9, speed: 1 } as const;
  const hammer = await startHammer({ url, leaseMs: LEASE_MS, ...orders });
  await until("all slots are held", () => idsOf(hammer).length === SLOT.limit);
  return hammer;
}

function idsOf({ reports }: Hammer): string[] {
  return reports.flatMap(({ id }) => id ?? []).sort();
}

async function kill(hammer: Hammer): Promise<void> {
  hammer.kill("SIGKILL");
  await hammer.status;
}

/** Number of requests that wait to be entered. */
async function lostIn(url: string): Promise<number> {
  const redis = new Redis(url);
  const count = await redis.hlen("{test}:lost");
  const ended = new Promise((resolve) => redis.once("end", resolve));
  redis.disconnect();
  await ended;
  return count;
}

Deno.test("requests killed between the end of their slots and their entry are entered as lost", OPTIONS, async () => {
  await using redis = await startRedis();
  const entered: string[] = [];
  await using node = await openNode(redis.url, {
    leaseMs: LEASE_MS,
    enterLost(requests) {
      entered.push(...requests.map(({ id }) => id));
      return Promise.resolve(requests.map(() => true));
    },
  });
  const hammer = await startUnentered(redis.url);
  assertEquals(await leftOf(node.limiter, SLOT), SLOT.limit);
  await kill(hammer);
  await until("all are entered", () => entered.length === SLOT.limit);
  assertEquals(entered.sort(), idsOf(hammer));
  assertEquals(await leftOf(node.limiter, SLOT), SLOT.limit);
});

Deno.test({
  name: "Redis forgets a request once its entry is durable, and keeps it across a new session until then",
  ...OPTIONS,
  async fn() {
    await using redis = await startRedis();
    await using node = await openNode(redis.url, { node: "one" });
    const client = new Redis(redis.url);
    const held = () => client.hkeys("{test}:held:one");
    try {
      const running = { id: "r", at: 1, keyId: "k", group: "g", model: "m", endpoint: "chat" } as const;
      const tokens = limitOf("key:k", "tokens", 100, 10);
      await node.limiter.take({ id: "r", limitRequests: [SLOT, tokens], forMs: 60_000, running });
      await node.limiter.take({ id: "s", limitRequests: [SLOT], forMs: 60_000 });
      await node.limiter.end("s", 0, { isEntered: false });
      await node.limiter.end("r", 30, { isEntered: false });
      assertEquals(await held(), ["r"]);
      assertEquals([await leftOf(node.limiter, SLOT), await leftOf(node.limiter, tokens)], [SLOT.limit, 70]);
      // A session that ends and begins again.
      await client.zrem("{test}:nodes", "one");
      assertEquals([await leftOf(node.limiter, SLOT), await leftOf(node.limiter, tokens)], [SLOT.limit, 70]);
      assertEquals(await held(), ["r"]);
      node.limiter.forget?.("r");
      await until("it is forgotten", async () => (await held()).length === 0);
      assertEquals([await leftOf(node.limiter, SLOT), await leftOf(node.limiter, tokens)], [SLOT.limit, 70]);
    } finally {
      client.disconnect();
    }
  },
});

Deno.test("requests that could not be entered are entered later", OPTIONS, async () => {
  await using redis = await startRedis();
  await kill(await startHolding(redis.url));
  let [failures, entered] = [0, 0];
  await using node = await openNode(redis.url, {
    leaseMs: LEASE_MS,
    enterLost(requests) {
      if (failures++ < 2) return Promise.reject(new TypeError("The store is out of reach"));
      entered += requests.length;
      return Promise.resolve(requests.map(() => true));
    },
  });
  await until("all are entered", () => entered === SLOT.limit);
  const failed = node.lines.filter(({ event }) => event === "lost_requests_not_recorded");
  assertEquals(failed.map(({ cause }) => cause), ["TypeError", "TypeError"]);
});

Deno.test("requests of a node that was only silent are no longer lost when it returns", OPTIONS, async () => {
  await using redis = await startRedis();
  const hammer = await startHolding(redis.url);
  await using node = await openNode(redis.url, { leaseMs: 60_000 });
  hammer.kill("SIGSTOP");
  await until("its session has ended", async () => {
    const { id } = await takeOne(node.limiter, [SLOT]);
    await node.limiter.end(id, 0);
    return await lostIn(redis.url) === SLOT.limit;
  });
  hammer.kill("SIGCONT");
  await until("it is back", async () => await lostIn(redis.url) === 0);
  await kill(hammer);
});

Deno.test("a closing node leaves nothing to be entered", OPTIONS, async () => {
  await using redis = await startRedis();
  {
    await using node = await openNode(redis.url);
    const running = { id: "r", at: 1, keyId: "k", group: "g", model: "m", endpoint: "chat" } as const;
    await node.limiter.take({ id: "r", limitRequests: [SLOT], forMs: 60_000, running });
  }
  assertEquals(await lostIn(redis.url), 0);
  await using other = await openNode(redis.url);
  assertEquals(await leftOf(other.limiter, SLOT), SLOT.limit);
});
