import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import { Redis } from "ioredis";
import { GatewayError } from "../../lib/errors.ts";
import type { Limiter, LimitRequest } from "../../lib/limits/limiter.ts";
import { type Engine, HAS_REDIS, redisTest, startRedis } from "../support/databases.ts";
import { leftOf, limitOf, type OpenNode, openNode, takeOne } from "./redis_nodes.ts";
import { untilNodesKnow } from "../support/limit_nodes.ts";
import { until } from "../support/soon.ts";

const NODES = 3;
const TIMEOUT_MS = 500;
/** Rounds of requests that must not wait for Redis: together they would take far longer than `LONGEST_MS`. */
const PROMPT_ROUNDS = 100;
const LEASE_MS = 2_000;

/** Longest time for any request, in milliseconds: the time limit, and what a busy machine adds. */
const LONGEST_MS = 30_000;

/** All ways in which Redis fails and recovers, and how many of five earlier slots it still counts. */
const OUTAGES = {
  crash: {
    kept: false,
    slots: [0],
    go: (redis: Engine) => redis.stop("crash"),
    comeBack: (redis: Engine) => redis.start(),
  },
  still: {
    kept: true,
    slots: [5],
    go: (redis: Engine) => Promise.resolve(redis.signal("SIGSTOP")),
    comeBack: (redis: Engine) => Promise.resolve(redis.signal("SIGCONT")),
  },
  // All sessions have ended: a node that reconnects first may free the slots of the others.
  "still for long": {
    kept: true,
    slots: [0, 1, 2, 3, 4, 5],
    go: (redis: Engine) => Promise.resolve(redis.signal("SIGSTOP")),
    async comeBack(redis: Engine): Promise<void> {
      await new Promise((resolve) => setTimeout(resolve, LEASE_MS));
      redis.signal("SIGCONT");
    },
  },
};

/** Reserves the same number at every node at once. Errors for lack of Redis are counted separately. */
async function burst(
  nodes: readonly OpenNode[],
  { limitRequests, each }: { limitRequests: LimitRequest[]; each: number },
) {
  const seen = {
    admitted: 0,
    refused: 0,
    unavailable: 0,
    longestMs: 0,
    perNode: [] as number[],
    ids: [] as string[][],
  };
  await Promise.all(nodes.map(async ({ limiter }, node) => {
    seen.perNode[node] = 0;
    const ids: string[] = seen.ids[node] = [];
    await Promise.all(Array.from({ length: each }, async () => {
      const begun = performance.now();
      try {
        const { id, admitted } = await takeOne(limiter, limitRequests);
        if (admitted) {
          seen.admitted++;
          seen.perNode[node] = (seen.perNode[node] ?? 0) + 1;
          ids.push(id);
        } else seen.refused++;
      } catch (error) {
        if (!(error instanceof GatewayError && error.kind === "overloaded" && (error.retryAfterMs ?? 0) > 0)) {
          throw error;
        }
        seen.unavailable++;
      }
      seen.longestMs = Math.max(seen.longestMs, performance.now() - begun);
    }));
  }));
  return seen;
}

/**
 * Reserves and releases on all nodes until it is stopped. Any other result than an admission, a refusal or a 503 is a
 * failure.
 */
function keepBusy(nodes: readonly OpenNode[]) {
  let [isOver, requests, longestMs] = [false, 0, 0];
  const limitRequests = [limitOf("key:busy", "tokens", 1_000_000, 100), limitOf("key:busy", "concurrency", 6)];
  async function work(limiter: Limiter): Promise<void> {
    while (!isOver) {
      const begun = performance.now();
      try {
        const { id, admitted } = await takeOne(limiter, limitRequests);
        longestMs = Math.max(longestMs, performance.now() - begun);
        if (admitted) await limiter.end(id, 10);
      } catch (error) {
        if (!(error instanceof GatewayError && error.kind === "overloaded")) throw error;
      }
      requests++;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
  const working = Promise.all(nodes.flatMap(({ limiter }) => Array.from({ length: 4 }, () => work(limiter))));
  return {
    limitRequests,
    get requests() {
      return requests;
    },
    async end() {
      isOver = true;
      await working;
      return { longestMs };
    },
  };
}

async function openAll(
  redis: Engine,
  outage: "local" | "closed",
): Promise<AsyncDisposableStack & { nodes: OpenNode[] }> {
  const stack = new AsyncDisposableStack();
  const nodes: OpenNode[] = [];
  for (let count = 0; count < NODES; count++) {
    nodes.push(stack.use(await openNode(redis.url, { outage, timeoutMs: TIMEOUT_MS, leaseMs: LEASE_MS })));
  }
  await untilNodesKnow(redis.url, { count: NODES, prefix: "{test}:" });
  return Object.assign(stack, { nodes });
}

redisTest("around an outage a limit is exceeded at most twice minus one share", async () => {
  await using redis = await startRedis();
  await using stack = await openAll(redis, "local");
  const { nodes } = stack;
  const [first, second] = nodes as [OpenNode, OpenNode];
  for (const unit of ["concurrency", "requests"] as const) {
    const limitRequests = [limitOf("key:uneven", unit, 6)];
    // The worst case: one node has used the whole limit.
    const before = await burst([first], { limitRequests, each: 6 });
    assertEquals([before.admitted, (await burst(nodes, { limitRequests, each: 1 })).refused], [6, 3]);

    await redis.stop("crash");
    const during = await burst(nodes, { limitRequests, each: 6 });
    assertEquals(during.perNode, [0, 2, 2], "a share less what the node has taken itself");
    const refused = await takeOne(second.limiter, limitRequests);
    assert(refused.retryAfterMs > 0 && refused.retryAfterMs <= 60_500, `${refused.retryAfterMs}`);

    await redis.start();
    await until("Redis counts again", () => nodes.every(({ limiter }) => limiter.healthy));
    const after = await burst(nodes, { limitRequests, each: 6 });
    assertEquals(before.admitted + during.admitted + after.admitted, 3 * 6 - 2);
  }
});

redisTest("without Redis a node above its share admits again once it is below", async () => {
  await using redis = await startRedis();
  await using stack = await openAll(redis, "local");
  const [first] = stack.nodes as [OpenNode];
  const limitRequests = [limitOf("key:uneven", "concurrency", 6)];
  const busy = await Promise.all(Array.from({ length: 4 }, () => takeOne(first.limiter, limitRequests)));
  await redis.stop("crash");
  assertEquals((await burst([first], { limitRequests, each: 6 })).admitted, 0);
  for (const { id } of busy) await first.limiter.end(id, 0);
  assertEquals((await burst([first], { limitRequests, each: 6 })).admitted, 2);
});

for (const outage of ["local", "closed"] as const) {
  for (const [name, { kept, slots: counted, go, comeBack }] of Object.entries(OUTAGES)) {
    Deno.test({
      name:
        `limits under load while Redis is away (${name}) keep to the policy "${outage}" and are exact again afterwards`,
      ignore: !HAS_REDIS,
      fn: async () => {
        await using redis = await startRedis();
        await using stack = await openAll(redis, outage);
        const { nodes } = stack;
        const [first] = nodes as [OpenNode];
        const rate = (name: string) => [limitOf(`key:${name}`, "requests", 60)];
        const slots = limitOf("key:slots", "concurrency", 30);
        const tokens = limitOf("key:before", "tokens", 1000, 100);
        const before = await burst(nodes, { limitRequests: [...rate("before"), tokens, slots], each: 2 });
        assertEquals(before.admitted, 6);
        const busy = keepBusy(nodes);
        await until("under load", () => busy.requests > 50);

        await go(redis);
        const during = await burst(nodes, { limitRequests: rate("during"), each: 50 });
        if (outage === "local") assertEquals([during.perNode, during.unavailable], [[20, 20, 20], 0]);
        else assertEquals([during.admitted, during.unavailable], [0, 150]);
        assertLess(during.longestMs, LONGEST_MS);
        assertEquals(nodes.map(({ limiter }) => limiter.healthy), [false, false, false]);
        const at = performance.now();
        for (let round = 0; round < PROMPT_ROUNDS; round++) {
          await burst(nodes, { limitRequests: rate("prompt"), each: 1 });
        }
        assertLess(performance.now() - at, LONGEST_MS, "only the first wait for what does not come");
        // An end during the outage reaches Redis only after it.
        await first.limiter.end(before.ids[0]?.[0] ?? "", 40);
        const alone = await burst(nodes, { limitRequests: [slots], each: 3 });
        assertEquals(alone.admitted, outage === "local" ? 9 : 0);
        for (const { lines } of nodes) {
          await until("the outage is logged", () => lines.some(({ event }) => event === "limits_store_down"));
        }
        const was = busy.requests;
        await until("still under load", () => busy.requests > was + 50);

        await comeBack(redis);
        await until("Redis counts again", () => nodes.every(({ limiter }) => limiter.healthy));
        assertLess((await busy.end()).longestMs, LONGEST_MS);
        const after = await burst(nodes, { limitRequests: rate("after"), each: 50 });
        assertEquals([after.admitted, after.refused], [60, 90]);
        for (const { limiter } of nodes) {
          const taken = 30 - await leftOf(limiter, slots);
          assert(counted.includes(taken), `${taken} slots of requests that ran before`);
          const [requests] = rate("before") as [LimitRequest];
          assertEquals(
            [await leftOf(limiter, requests), await leftOf(limiter, tokens)],
            kept ? [60 - 6, 1000 - 600] : [60, 1000],
          );
          // A Redis that paused counts for a minute the requests it got before it was given up.
          if (!kept) assertEquals(await leftOf(limiter, rate("during")[0] as LimitRequest), 60);
          assertEquals(await leftOf(limiter, busy.limitRequests[1] as LimitRequest), 6, "nothing is held by nobody");
        }
        for (const [index, { limiter }] of nodes.entries()) {
          for (const id of [...before.ids[index] ?? [], ...alone.ids[index] ?? []]) await limiter.end(id, 0);
        }
        assertEquals(await leftOf(first.limiter, slots), 30);
        for (const { lines } of nodes) {
          await until("the end is logged", () => lines.some(({ event }) => event === "limits_store_up"));
          const [down, up] = lines.filter(({ event }) => event !== "limits_session_ended");
          assertEquals([down?.event, down?.policy, down?.share], [
            "limits_store_down",
            outage,
            outage === "local" ? "1/3" : undefined,
          ]);
          assertEquals([up?.event, up?.nodes], ["limits_store_up", 3]);
        }
      },
    });
  }
}

redisTest("slots whose reservation Redis never confirmed are freed", async () => {
  await using redis = await startRedis();
  await using node = await openNode(redis.url, { outage: "closed", timeoutMs: 100 });
  await using other = await openNode(redis.url);
  const slot = limitOf("key:a", "concurrency", 100);
  redis.signal("SIGSTOP");
  assertEquals((await burst([node], { limitRequests: [slot], each: 50 })).unavailable, 50);
  redis.signal("SIGCONT");
  await until("Redis counts again", () => node.limiter.healthy && other.limiter.healthy);
  assertEquals(await leftOf(other.limiter, slot), slot.limit);
});

redisTest("a limiter starts without Redis, and its windows start afresh when Redis returns", async () => {
  await using redis = await startRedis();
  await redis.stop();
  await using node = await openNode(redis.url);
  assertEquals(node.limiter.healthy, false);
  await until("the outage is logged", () => node.lines.length > 0);
  assertEquals(node.lines.map(({ event, cause }) => [event, cause]), [["limits_store_down", "ECONNREFUSED"]]);
  const limitRequests = [limitOf("key:a", "tokens", 1000, 100), limitOf("key:a", "concurrency", 5)];
  const [runs, ended] = [await takeOne(node.limiter, limitRequests), await takeOne(node.limiter, limitRequests)];
  assertEquals((await node.limiter.end(ended.id, 40)).map(({ remaining }) => remaining), [860, 4]);
  await redis.start();
  await until("Redis counts again", () => node.limiter.healthy);
  await using other = await openNode(redis.url);
  assert((await takeOne(other.limiter, limitRequests)).admitted);
  await node.limiter.end(runs.id, 10);
  assertEquals((await other.limiter.statuses(limitRequests)).map(({ remaining }) => remaining), [900, 4]);
});

redisTest(
  "connections to Redis that are lost and back within a second are one outage at most",
  async () => {
    await using redis = await startRedis();
    await using node = await openNode(redis.url);
    const admin = new Redis(redis.url);
    for (let count = 0; count < 3; count++) {
      await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      await until("the connection is lost", () => !node.limiter.healthy);
      await until("Redis counts again", () => node.limiter.healthy);
    }
    const ended = new Promise((resolve) => admin.once("end", resolve));
    admin.disconnect();
    await ended;
    await redis.stop();
    await until("the outage is logged", () => node.lines.length > 0);
    assertEquals(node.lines.map(({ event }) => event), ["limits_store_down"]);
  },
);

redisTest("a limiter that is closed without Redis leaves nothing behind", async () => {
  await using redis = await startRedis();
  const node = await openNode(redis.url);
  redis.signal("SIGSTOP");
  await takeOne(node.limiter, [limitOf("key:a", "concurrency", 5)]);
  await node.limiter.close();
  await node.limiter.close();
  redis.signal("SIGCONT");
  await redis.stop();
  await (await openNode(redis.url)).limiter.close();
});

redisTest("a stall of the node itself does not count as an outage of Redis", async () => {
  await using redis = await startRedis();
  await using node = await openNode(redis.url, { timeoutMs: 300 });
  const limitRequests = [limitOf("key:a", "requests", 100_000)];
  for (let round = 0; round < 4; round++) {
    const taking = burst([node], { limitRequests, each: 200 });
    // The commands are written, and in every other round they have been sent.
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    if (round % 2 === 0) await new Promise((resolve) => setTimeout(resolve, 0));
    const last = performance.now() + 600;
    while (performance.now() < last);
    assertEquals((await taking).admitted, 200);
  }
  assertEquals([node.limiter.healthy, node.lines], [true, []]);
});

Deno.test({
  name: "user, password and database come from the address, and a wrong password is an outage without leaking it",
  ignore: !HAS_REDIS,
  fn: async () => {
    await using redis = await startRedis();
    const admin = new Redis(redis.url);
    await admin.call("ACL", "SETUSER", "gateway", "on", ">p@ss/word", "~{test}:*", "+@all");
    const address = (password: string) => redis.url.replace("//", `//gateway:${password}@`) + "/3";
    {
      await using node = await openNode(address("p%40ss%2Fword"));
      assert(node.limiter.healthy);
      assert((await takeOne(node.limiter, [limitOf("key:a", "requests", 5)])).admitted);
      await admin.select(3);
      assertGreater(await admin.exists("{test}:r:key:a"), 0);
    }
    {
      await using node = await openNode(address("wrong-secret"));
      assertEquals(node.limiter.healthy, false);
      await until("the outage is logged", () => node.lines.length > 0);
      assertEquals(node.lines[0]?.cause, "WRONGPASS");
      assert(!JSON.stringify(node.lines).includes("secret"));
    }
    const ended = new Promise((resolve) => admin.once("end", resolve));
    admin.disconnect();
    await ended;
  },
});

redisTest("every key in Redis expires, including those of a dead node", async () => {
  await using redis = await startRedis();
  await using node = await openNode(redis.url);
  await takeOne(node.limiter, [
    limitOf("key:a", "requests", 5),
    limitOf("key:a", "tokens", 5),
    limitOf("key:a", "concurrency", 5),
  ]);
  const reader = new Redis(redis.url);
  const keys = await reader.keys("*");
  assertEquals(keys.length, 5);
  for (const key of keys) assertGreater(await reader.pttl(key), 0, key);
  assertLess(await reader.pttl("{test}:r:key:a"), 62_000);
  const ended = new Promise((resolve) => reader.once("end", resolve));
  reader.disconnect();
  await ended;
});
