/** Restarts three gateways in turn, repeatedly, behind the HAProxy of docs/how-to/rolling-restart.md. */
import { assertEquals, assertGreater } from "@std/assert";
import { formatUsd } from "../../lib/billing/money.ts";
import { isInstalled } from "../e2e/deploy/programs.ts";
import { HAS_POSTGRES, HAS_REDIS } from "../support/databases.ts";
import { assertSound, type Node, readEntries, startCluster } from "../e2e/nodes/cluster.ts";
import { served, startProxy } from "../e2e/nodes/haproxy.ts";
import { assertServed, configFor, ENV, type Mix, startCounter, startTraffic } from "../e2e/nodes/rolling.ts";
import { createLoad } from "../e2e/program/load.ts";
import { seeded } from "../support/random.ts";
import { publish } from "./figures.ts";
import { until } from "../support/soon.ts";

const ROUNDS = Number(Deno.env.get("HEAVY_ROUNDS") ?? 3);
const SEED = Number(Deno.env.get("HEAVY_SEED") ?? 23);

/** The guide's values. */
const SHUTDOWN = { ready_delay_ms: 5_000, drain_seconds: 30, images_drain_seconds: 60 };

const NODES = 3;

/** Requests that the budget pays for: about as many as are asked for in a round. */
const PAID = 300;

/** About 200 requests per second. */
const MIX: Mix = {
  whole: { clients: 6, restMs: 50 },
  streamed: { clients: 5, restMs: 50 },
  slowly: { clients: 5, restMs: 50 },
  long: { clients: 30, restMs: 50 },
  echo: { clients: 2, restMs: 80 },
  image: { clients: 1, restMs: 2_000 },
  limited: { clients: 2, restMs: 250 },
  slots: { clients: 4, restMs: 150 },
  budget: { clients: 2, restMs: 250 },
};

Deno.test({
  name: `three nodes restart in turn, ${ROUNDS} times, behind HAProxy, without an error for clients`,
  ignore: !(HAS_POSTGRES && HAS_REDIS && await isInstalled("haproxy")),
  fn: async () => {
    await using load = createLoad(seeded(SEED).next);
    await using counter = startCounter(PAID);
    const config = (changed: boolean) => ({
      ...configFor({ load, counter }, changed),
      shutdown: SHUTDOWN,
      // Of the proxy.
      trusted_proxies: ["127.0.0.1"],
    });
    await using cluster = await startCluster({ config: config(false), nodes: NODES, env: ENV });
    await using proxy = await startProxy(cluster.nodes);
    const traffic = startTraffic(proxy.origin, { load, mix: MIX });
    const begun = performance.now();
    const [ends, starts]: [number[], number[]] = [[], []];
    let under = 0;
    await until("all is under way", () => traffic.count() > 500);
    for (let round = 0; round < ROUNDS; round++) {
      for (let index = 0; index < NODES; index++) {
        const node = cluster.nodes[index] as Node;
        let at = performance.now();
        node.kill("SIGTERM");
        const { code, err } = await node.ended;
        ends.push(performance.now() - at);
        assertEquals([code, /"outcome":"(\w+)"/.exec(err)?.[1]], [0, "drained"], err.slice(-3_000));
        under += Number(/"texts":(\d+)/.exec(err)?.[1]);
        at = performance.now();
        const again = await cluster.again(node, config(true));
        starts.push(performance.now() - at);
        // The next one ends when this one has its share again, and not before.
        await until("it serves", async () => await served(again) > 50);
      }
    }
    await until(
      "the budget is spent",
      () => traffic.answered.some(({ kind, status }) => kind === "budget" && status === 429),
    );
    const seconds = (performance.now() - begun) / 1000;
    await traffic.stop();

    const summary = assertServed(await cluster.withLedger(readEntries), { load, traffic, counter });
    assertEquals(await cluster.withLedger((ledger) => ledger.holds()), []);
    await assertSound(cluster);
    assertGreater(under, ROUNDS * NODES);
    await publish("rolling", {
      nodes: NODES,
      rounds: ROUNDS,
      seconds: Math.round(seconds),
      requests: summary.requests,
      per_second: Math.round(summary.requests / seconds),
      errors: 0,
      cut_streams: 0,
      entered: summary.requests,
      under_way_when_told_to_end: under,
      end_ms: { least: Math.round(Math.min(...ends)), most: Math.round(Math.max(...ends)) },
      start_ms: { least: Math.round(Math.min(...starts)), most: Math.round(Math.max(...starts)) },
      admitted_per_minute: summary.mostPerMinute,
      slots_at_once: summary.slotsAtOnce,
      budget_usd: formatUsd(summary.budgetSpent),
      spent_usd: formatUsd(summary.budgetSpent),
    });
  },
});
