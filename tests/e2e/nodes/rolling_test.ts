import { assertEquals, assertGreater } from "@std/assert";
import { HAS_POSTGRES, HAS_REDIS, startPostgres } from "../../support/databases.ts";
import { createLoad, KEY } from "../program/load.ts";
import { seeded } from "../../support/random.ts";
import { isInstalled } from "../deploy/programs.ts";
import { assertSound, type Cluster, readEntries, startCluster } from "./cluster.ts";
import { served, startProxy } from "./haproxy.ts";
import { assertServed, configFor, ENV, type Mix, startCounter, startTraffic } from "./rolling.ts";
import { until } from "../../support/soon.ts";

/**
 * Two checks take a node out; it continues to serve for many times as long, as others use the machine. No check fails
 * because of them.
 */
const CHECKS = "timeout check 30s\n    default-server check inter 100ms fall 2 rise 2";
const SHUTDOWN = { ready_delay_ms: 4_000, drain_seconds: 60, images_drain_seconds: 60 };

/** Requests that the budget pays for: it is spent during the restarts. */
const PAID = 40;

const MIX: Mix = {
  whole: { clients: 2, restMs: 500 },
  streamed: { clients: 2, restMs: 500 },
  slowly: { clients: 2, restMs: 500 },
  long: { clients: 6, restMs: 40 },
  echo: { clients: 2, restMs: 600 },
  // To paint one takes half a second of CPU time.
  image: { clients: 1, restMs: 8_000 },
  limited: { clients: 2, restMs: 500 },
  slots: { clients: 4, restMs: 250 },
  budget: { clients: 2, restMs: 500 },
};

Deno.test({
  name: "three nodes restart one after the other under load without an error, and all requests are entered once",
  ignore: !(HAS_POSTGRES && HAS_REDIS && await isInstalled("haproxy")),
  fn: async () => {
    await using load = createLoad(seeded(17).next);
    await using counter = startCounter(PAID);
    const behind = { shutdown: SHUTDOWN, trusted_proxies: ["127.0.0.1"] };
    const first = { ...configFor({ load, counter }), ...behind };
    const changed = { ...configFor({ load, counter }, true), ...behind };
    // Other tests must not starve it: no request may fail.
    await using postgres = await startPostgres();
    await using cluster = await startCluster({ config: first, env: ENV, postgres });
    await using proxy = await startProxy(cluster.nodes, { checks: CHECKS });
    const traffic = startTraffic(proxy.origin, { load, mix: MIX });
    const isAnswered = (kind: string, status: number, from = 0) =>
      traffic.answered.slice(from).some((one) => one.kind === kind && one.status === status);

    await until("answers of every kind", () => ["echo", "image", "limited"].every((kind) => isAnswered(kind, 200)));
    for (const node of [...cluster.nodes]) {
      await until("it serves", async () => await served(node) > 10);
      const finish = await load.hold(node.origin);
      node.kill("SIGTERM");
      await until("the node takes no more connections", () => isRefused(node.origin));
      await finish();
      const { code, err } = await node.ended;
      assertEquals([code, /"outcome":"(\w+)"/.exec(err)?.[1]], [0, "drained"], err);
      assertGreater(Number(/"texts":(\d+)/.exec(err)?.[1]), 0, err);
      const again = await cluster.again(node, changed);
      await until("it serves again", async () => await served(again) > 10);
    }
    assertEquals(await asksNew(cluster), [200, 200, 200]);
    const changedAt = traffic.answered.length;
    await until("an answer at the new price", () => isAnswered("echo", 200, changedAt));
    for (const kind of ["limited", "slots", "budget"]) {
      await until(`the limit of ${kind} is reached`, () => isAnswered(kind, 429));
    }
    await traffic.stop();

    const entries = (await cluster.withLedger(readEntries)).filter(({ model }) => model !== "acme/new");
    assertServed(entries, { load, traffic, counter });
    assertEquals(await cluster.withLedger((ledger) => ledger.holds()), []);
    await assertSound(cluster);
  },
});

async function isRefused(origin: string): Promise<boolean> {
  try {
    (await Deno.connect({ hostname: "127.0.0.1", port: Number(new URL(origin).port) })).close();
    return false;
  } catch {
    return true;
  }
}

/** Asks each node for the model that only the changed configuration has. */
async function asksNew({ nodes }: Cluster): Promise<number[]> {
  return await Promise.all(nodes.map(async ({ origin }) => {
    const response = await fetch(`${origin}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${KEY.secret}` },
      body: JSON.stringify({ model: "acme/new", messages: [{ role: "user", content: "Hello" }] }),
    });
    await response.text();
    return response.status;
  }));
}
