/** Gateways under load whose Postgres or Redis fails and recovers. */
import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import { issueKey } from "../../../lib/access/keys.ts";
import { PREFIX } from "../../../lib/limits/redis_scripts.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { KeptEntry } from "../../../lib/store/ledger.ts";
import { run } from "../../support/program.ts";
import { HAS_POSTGRES, HAS_REDIS, startPostgres } from "../../support/databases.ts";
import {
  assertLedgerAgrees,
  createLoad,
  ENV as LOAD_ENV,
  KEY,
  type Load,
  modelConfigOf,
  pricedModel,
} from "../program/load.ts";
import { untilNodesKnow } from "../../support/limit_nodes.ts";
import { seeded } from "../../support/random.ts";
import { ADMIN_KEY, assertSound, end, metric, type Node, readEntries, startCluster } from "./cluster.ts";
import { until } from "../../support/soon.ts";

const OPTIONS = { ignore: !(HAS_POSTGRES && HAS_REDIS) };

/** Time that keys serve without their store, in seconds. */
const KEY_AGE_SECONDS = 30;

const POOR_KEY = "key-of-one-with-a-budget";

/** A request takes at most so long, whatever is unreachable, in milliseconds: 5 seconds, and more on a busy machine. */
const LONGEST_MS = 30_000;

/** Pause of a client between two requests, in milliseconds: an outage lasts, and most of it is waiting. */
const REST_MS = 400;

function configFor(load: Load, nodes: JsonObject): JsonObject {
  const { upstreams, models, routing } = modelConfigOf(load);
  return {
    upstreams,
    routing,
    models: [...models, pricedModel("acme/echo", { upstream: "embedded", model: "echo" })],
    keys: [
      { name: "load", key: { env: KEY.env } },
      { name: "poor", key: { env: "POOR_KEY" }, budget: { usd: "1000", period: "total" } },
    ],
    nodes: { lease_seconds: 5, key_age_seconds: KEY_AGE_SECONDS, ...nodes },
    shutdown: { drain_seconds: 2 },
  };
}

const ENV = { ...LOAD_ENV, POOR_KEY };

/** A request for a model inside the gateway, which is free. */
async function askEcho(
  node: Node,
  key: string,
  more: JsonObject = {},
): Promise<{ status: number; ms: number; text: string }> {
  const begun = performance.now();
  const response = await fetch(`${node.origin}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "sluice/echo", messages: [{ role: "user", content: "Hello" }], ...more }),
  });
  const text = await response.text();
  return { status: response.status, ms: performance.now() - begun, text };
}

async function complete(load: Load, more: number): Promise<void> {
  const before = count(load);
  await until(`${more} more complete answers`, () => count(load) >= before + more);
}

function count({ requests }: Load): number {
  return requests.filter(({ paid }) => paid !== undefined).length;
}

/** Statuses of the requests from this one on, without those that the upstream rejected. */
function statuses({ requests }: Load, from: number): number[] {
  const seen = requests.slice(from).flatMap(({ status, way }) =>
    status === undefined || way === "refused" ? [] : [status]
  );
  return [...new Set(seen)].sort();
}

/** Without the requests of other tests. */
function ofLoad(entries: readonly KeptEntry[]): KeptEntry[] {
  return entries.filter(({ model }) => model === "acme/one");
}

Deno.test({
  name: "during a Postgres outage known keys work, entries wait, and everything recovers by itself",
  ...OPTIONS,
  fn: async (t) => {
    await using load = createLoad(seeded(11).next);
    await using postgres = await startPostgres();
    await using cluster = await startCluster({ config: configFor(load, {}), nodes: 2, env: ENV, postgres });
    const [first, second] = cluster.nodes as [Node, Node];
    const added = await run(["keys", "add", "known"], first.place);
    const known = /sk-sluice-\S+/.exec(added.out)?.[0] ?? "";
    for (const node of cluster.nodes) assertEquals((await askEcho(node, known)).status, 200);
    const running = cluster.nodes.map((node) => load.run(node.origin, 4, REST_MS));
    await complete(load, 40);

    for (const how of ["crash", "orderly", "still"] as const) {
      await t.step(`outage: ${how}`, async () => {
        const from = load.requests.length;
        if (how === "still") postgres.signal("SIGSTOP");
        else await postgres.stop(how);
        await until("down", async () => await metric(first, "sluice_store_up") === 0);
        // This comes first, because known keys work only for a while.
        for (const { status, ms } of await Promise.all(cluster.nodes.map((node) => askEcho(node, known)))) {
          assertEquals(status, 200);
          assertLess(ms, LONGEST_MS);
        }
        await complete(load, 40);
        for (const node of cluster.nodes) {
          // Budgets and unknown keys cannot be checked.
          const stranger = await askEcho(node, issueKey({ name: "n", group: "default", now: 0 }).key);
          assertEquals(stranger.status, 503, stranger.text);
          const poor = await askEcho(node, POOR_KEY, { model: "acme/echo" });
          assertEquals(poor.status, 503, poor.text);
          assertLess(Math.max(stranger.ms, poor.ms), LONGEST_MS);
          for (const path of ["keys", "changes"]) {
            const headers = { authorization: `Bearer ${ADMIN_KEY}` };
            const listed = await fetch(`${node.origin}/admin/v1/${path}`, { headers });
            assertEquals(listed.status, 503, await listed.text());
          }
          const ready = await fetch(`${node.origin}/readyz`);
          assertEquals([ready.status, /degraded/.test(await ready.text())], [200, true]);
        }
        assertGreater(await metric(first, "sluice_store_journal_entries"), 0);
        if (how === "still") postgres.signal("SIGCONT");
        else await postgres.start();
        for (const node of cluster.nodes) {
          await until(
            "the journal has settled",
            async () =>
              await metric(node, "sluice_store_up") === 1 && await metric(node, "sluice_store_journal_entries") === 0,
          );
          await until(
            "budgets work",
            async () => (await askEcho(node, POOR_KEY, { model: "acme/echo" })).status === 200,
          );
        }
        await complete(load, 20);
        const refusal = load.requests.slice(from).find(({ way, refusal }) =>
          way !== "refused" && refusal !== undefined
        );
        assertEquals(refusal, undefined);
        assertEquals(statuses(load, from), [200]);
      });
    }

    await t.step("an outage longer than cached keys are valid", async () => {
      await postgres.stop();
      const isRefused = async () => (await askEcho(second, known)).status === 503;
      await until("known keys are refused", isRefused, 3 * KEY_AGE_SECONDS * 1_000);
      // Keys of the configuration need no store.
      assertEquals((await askEcho(second, KEY.secret)).status, 200);
      await postgres.start();
      await until("known keys serve", async () => (await askEcho(second, known)).status === 200);
    });

    for (const each of running) await each.stop();
    for (const node of cluster.nodes) {
      await until("settled", async () => await metric(node, "sluice_store_journal_entries") === 0);
      node.kill("SIGTERM");
      assertEquals((await node.ended).code, 0);
    }
    const { complete: seen } = assertLedgerAgrees(ofLoad(await cluster.withLedger(readEntries)), load.requests);
    assertGreater(seen, 150);
    await assertSound(cluster);
  },
});

Deno.test({
  name: "a full journal refuses charged requests, and a killed node replays its journal at restart",
  ...OPTIONS,
  fn: async () => {
    await using load = createLoad(seeded(11).next);
    const config = configFor(load, { journal_entries: 40 });
    await using postgres = await startPostgres();
    await using cluster = await startCluster({ config, nodes: 1, env: ENV, postgres });
    const [node] = cluster.nodes as [Node];
    await load.ask(node.origin, "whole");
    await postgres.stop();
    const from = load.requests.length;
    await until("the journal is full", async () => {
      await load.ask(node.origin, "whole");
      return load.requests.at(-1)?.status === 503;
    });
    assertEquals(statuses(load, from), [200, 503]);
    // About as many as fit, and no other node knows of any of them.
    const settled = load.requests.slice(from).filter(({ paid }) => paid !== undefined);
    assert(settled.length >= 38 && settled.length <= 40, String(settled.length));
    assertEquals(
      (await fetch(`${node.origin}/readyz`).then(async (ready) => [ready.status, await ready.text()]))[0],
      503,
    );
    end(node);
    await node.ended;
    await postgres.start();
    const again = await cluster.add(node.place.folder);
    await until("settled", async () => await metric(again, "sluice_store_journal_entries") === 0);
    await load.ask(again.origin, "streamed");
    const entries = await cluster.withLedger(readEntries);
    assertLedgerAgrees(ofLoad(entries), load.requests);
    const ids = new Set(entries.map(({ id }) => id));
    assert(settled.every(({ id }) => ids.has(id ?? "")));
    await assertSound(cluster);
  },
});

/** Sends requests for a free model to one node after the other. Returns the statuses and the longest time. */
async function hammer(nodes: readonly Node[], key: string, requests: number) {
  const seen = new Map<number, number>();
  let [begun, longestMs] = [0, 0];
  await Promise.all(Array.from({ length: 12 }, async () => {
    while (begun < requests) {
      const { status, ms } = await askEcho(nodes[begun++ % nodes.length] as Node, key);
      seen.set(status, (seen.get(status) ?? 0) + 1);
      longestMs = Math.max(longestMs, ms);
    }
  }));
  return { seen: Object.fromEntries(seen), longestMs };
}

Deno.test({
  name: "while Redis is away each node follows its policy, and exact limits are back by themselves",
  ...OPTIONS,
  fn: async () => {
    await using load = createLoad(seeded(11).next);
    const names = ["during", "after", "free"];
    const env = { ...ENV, ...Object.fromEntries(names.map((name) => [`KEY_${name}`, `key-of-the-outage-${name}`])) };
    const config = (["local", "local", "closed"] as const).map((limits_outage) => ({
      ...configFor(load, { limits_outage }),
      keys: names.map((name) => ({
        name,
        key: { env: `KEY_${name}` },
        ...(name !== "free" && { limits: { requests_per_minute: 60 } }),
      })),
    }));
    await using cluster = await startCluster({ config, env });
    const { nodes, redis } = cluster;
    await untilNodesKnow(redis.url, { count: nodes.length, prefix: PREFIX });
    await redis.stop();
    const [local, closed] = [nodes.slice(0, 2), nodes.slice(2)];
    // 60 of all, so 20 of each.
    const cases = [[local, { 200: 40, 429: 120 }], [closed, { 503: 80 }]] as const;
    for (const [some, expected] of cases) {
      const { seen, longestMs } = await hammer(some, "key-of-the-outage-during", 80 * some.length);
      assertEquals(seen, expected);
      assertLess(longestMs, LONGEST_MS);
    }
    assertEquals((await hammer(nodes, "key-of-the-outage-free", 30)).seen, { 200: 30 });
    for (const node of nodes) await until("down", async () => await metric(node, "sluice_limits_store_up") === 0);
    await redis.start();
    for (const node of nodes) await until("up again", async () => await metric(node, "sluice_limits_store_up") === 1);
    assertEquals((await hammer(nodes, "key-of-the-outage-after", 150)).seen, { 200: 60, 429: 90 });
  },
});
