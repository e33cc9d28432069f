/** Limits, budgets, keys and prices are those of all nodes together, to the last request. */
import { assert, assertEquals, assertGreater, assertGreaterOrEqual, assertLessOrEqual } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { formatUsd } from "../../../lib/billing/money.ts";
import { run } from "../../support/program.ts";
import { HAS_POSTGRES, HAS_REDIS, isStarved, startPostgres } from "../../support/databases.ts";
import { countedAnswer } from "../../upstream/counted.ts";
import { type FakeUpstream, startUpstream } from "../../upstream/mod.ts";
import { ADMIN_KEY, assertSound, type Cluster, end, metric, type Node, readEntries, startCluster } from "./cluster.ts";
import { assertContinued } from "./recall.ts";
import { until } from "../../support/soon.ts";
import { plainModel, plainUpstream } from "../../support/plain_model.ts";

const OPTIONS = { ignore: !(HAS_POSTGRES && HAS_REDIS) };

/** Seconds for which a node's holds outlive it. */
const LEASE_SECONDS = 5;

/** USD per token of an answer; prompts are free. An answer has its maximum number of tokens. */
const PRICE = "0.00001";
const TOKENS = 10;

/** Limits that are spent in far less than the minute in which they are counted, on a busy machine, too. */
const REQUESTS = 60;
const TOKENS_PER_MINUTE = 1_000;

/** Requests that the budget of a race pays for. */
const PAID = 100;
/** Their cost, in USD. */
const BUDGET = "0.01";

const SECRETS = Object.fromEntries(
  ["free", "requests", "tokens", "slots", "mortal", "budget"].map((
    name,
  ) => [`KEY_${name.toUpperCase()}`, `key-of-the-cluster-${name}`]),
);

function keyOf(name: string): string {
  return SECRETS[`KEY_${name.toUpperCase()}`] ?? "";
}

function configFor(host: FakeUpstream, price = PRICE): JsonObject {
  const key = (name: string, rules: JsonObject) => ({ name, key: { env: `KEY_${name.toUpperCase()}` }, ...rules });
  return {
    upstreams: { one: plainUpstream(host.url) },
    models: [plainModel({ pricing: { prompt: "0", completion: price }, targets: [{ upstream: "one", model: "m" }] })],
    nodes: { config: "store", lease_seconds: LEASE_SECONDS, limits_timeout_ms: 5_000 },
    keys: [
      key("free", {}),
      key("requests", { limits: { requests_per_minute: REQUESTS } }),
      key("tokens", { limits: { tokens_per_minute: TOKENS_PER_MINUTE } }),
      key("slots", { limits: { concurrency: 7 } }),
      key("mortal", { limits: { concurrency: 4 }, budget: { usd: formatUsd(5n * 200_000_000n), period: "total" } }),
      key("budget", { budget: { usd: BUDGET, period: "total" } }),
    ],
  };
}

/** An upstream whose answers have exactly the maximum number of tokens; streams continue until released. */
function startHost(going: () => Promise<void>): FakeUpstream {
  return startUpstream(({ stream }) => countedAnswer(stream, { completion: TOKENS, going }));
}

/** Answers that a busy machine starved of the database. Limits count some of these requests, which are sent again. */
let starved = 0;

/** Sends a request, and repeats it if a busy machine starves the database. */
async function ask(node: Node, { key, stream = false }: { key: string; stream?: boolean }): Promise<Response> {
  const response = await fetch(`${node.origin}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: "acme/one",
      max_tokens: TOKENS,
      stream,
      messages: [{ role: "user", content: "How are you?" }],
    }),
  });
  if (response.status !== 503) return response;
  const text = await response.text();
  if (!isStarved(response.status, text)) return new Response(text, response);
  starved++;
  return await ask(node, { key, stream });
}

/**
 * Many clients send requests concurrently, each time to another node. Returns the number of answers; all other requests
 * are refused.
 */
async function hammer({ nodes }: Cluster, { key, requests, clients = 30 }: {
  key: string;
  requests: number;
  clients?: number;
}): Promise<number> {
  const statuses: number[] = [];
  let begun = 0;
  starved = 0;
  await Promise.all(Array.from({ length: clients }, async () => {
    while (begun < requests) {
      const node = nodes[begun++ % nodes.length] as Node;
      statuses.push((await readToEnd(ask(node, { key }))).status);
    }
  }));
  const admitted = count(statuses, 200);
  assertEquals(count(statuses, 429), requests - admitted);
  return admitted;
}

/** Asserts that a limit was used up and not exceeded. It may have counted requests that were starved. */
function assertUsedUp(admitted: number, limit: number): void {
  assertLessOrEqual(admitted, limit);
  assertGreaterOrEqual(admitted + starved, limit);
  assertGreater(admitted, limit / 2);
}

function count(statuses: readonly number[], status: number): number {
  return statuses.filter((one) => one === status).length;
}

async function assertRevokedEverywhere(cluster: Cluster): Promise<void> {
  const [first] = cluster.nodes as [Node];
  const added = await run(["keys", "add", "soon-gone"], first.place);
  const key = /sk-sluice-\S+/.exec(added.out)?.[0] ?? "";
  // Every node has it in memory.
  for (const node of cluster.nodes) assertEquals((await readToEnd(ask(node, { key }))).status, 200);
  const response = await fetch(`${first.origin}/admin/v1/keys`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } });
  const { data } = await response.json();
  const { id } = data.find(({ name }: { name: string }) => name === "soon-gone");
  const revoke = await fetch(`${first.origin}/admin/v1/keys/${id}`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${ADMIN_KEY}` },
  });
  await revoke.text();
  assertEquals(revoke.status, 200);
  // The node that was informed rejects at once.
  assertEquals((await readToEnd(ask(first, { key }))).status, 401);
  for (const node of cluster.nodes) {
    await until("it is revoked", async () => (await readToEnd(ask(node, { key }))).status === 401);
    for (let count = 0; count < 20; count++) assertEquals((await readToEnd(ask(node, { key }))).status, 401);
  }
}

async function readToEnd(asking: Promise<Response>): Promise<Response> {
  const response = await asking;
  await response.text();
  return response;
}

Deno.test({
  name: "three nodes enforce limits and budgets exactly, and forget a killed node",
  ...OPTIONS,
  fn: async (t) => {
    let release = () => {};
    let going = Promise.resolve();
    await using host = startHost(() => going);
    const config = configFor(host);
    // Other tests must not starve it: a request that is sent again counts twice.
    await using postgres = await startPostgres();
    await using cluster = await startCluster({ config, env: SECRETS, postgres });
    const [first, second, third] = cluster.nodes as [Node, Node, Node];

    await t.step("requests per minute", async () => {
      assertUsedUp(await hammer(cluster, { key: keyOf("requests"), requests: 2 * REQUESTS }), REQUESTS);
    });

    await t.step("tokens per minute", async () => {
      const before = host.requests.length;
      const admitted = await hammer(cluster, { key: keyOf("tokens"), requests: 120 });
      const sent = host.requests.length - before;
      assertGreaterOrEqual(sent, admitted);
      assertLessOrEqual(sent, admitted + starved);
      const perRequest = 7 + TOKENS;
      assertLessOrEqual(admitted * perRequest, TOKENS_PER_MINUTE);
      // The rest is less than the estimate for one request, and estimates are at most twice the actual tokens.
      assertGreater((admitted + starved) * perRequest, TOKENS_PER_MINUTE - 2 * perRequest * 2);
    });

    await t.step("concurrent requests", async () => {
      for (let round = 0; round < 2; round++) {
        ({ promise: going, resolve: release } = Promise.withResolvers<void>());
        const answers = await Promise.all(
          Array.from(
            { length: 30 },
            (_, index) => ask(cluster.nodes[index % 3] as Node, { key: keyOf("slots"), stream: true }),
          ),
        );
        assertEquals(count(answers.map(({ status }) => status), 200), 7);
        release();
        await Promise.all(answers.map((answer) => answer.text()));
      }
    });

    await t.step("budgets", async () => {
      const admitted = await hammer(cluster, { key: keyOf("budget"), requests: PAID + 100 });
      assertUsedUp(admitted, PAID);
      const entries = await cluster.withLedger(readEntries);
      const mine = entries.filter(({ keyId, cost }) => keyId === "config:budget" && cost > 0n);
      const spent = mine.reduce((sum, { cost }) => sum + cost, 0n);
      assertEquals([mine.length, spent], [admitted, BigInt(admitted) * 100_000_000n]);
    });

    await t.step("a key revoked on one node", () => assertRevokedEverywhere(cluster));

    await t.step(
      "a response of one node can be continued on another, by its key only",
      () => assertContinued([first, second], { key: keyOf("free"), stranger: keyOf("slots") }),
    );

    await t.step("a price changed on one node", async () => {
      const path = `${second.place.folder}/sluice.jsonc`;
      const text = JSON.parse(await Deno.readTextFile(path));
      text.models[0].pricing.completion = "0.00002";
      await Deno.writeTextFile(path, JSON.stringify(text));
      for (const node of cluster.nodes) {
        await until("another price", async () => {
          const response = await readToEnd(ask(node, { key: keyOf("free") }));
          return response.headers.get("x-sluice-cost") === "0.0002";
        });
      }
    });

    await t.step("a killed node", async () => {
      const forever = Promise.withResolvers<void>();
      going = forever.promise;
      const streams = await Promise.all(
        Array.from({ length: 4 }, () => ask(third, { key: keyOf("mortal"), stream: true })),
      );
      assertEquals(streams.map(({ status }) => status), [200, 200, 200, 200]);
      // Slots and budget are taken.
      for (const node of [first, second]) {
        assertEquals((await readToEnd(ask(node, { key: keyOf("mortal") }))).status, 429);
      }
      const at = performance.now();
      end(third);
      await third.ended;
      await Promise.all(streams.map((stream) => stream.text().catch(() => {})));
      await until(
        "room for the next request",
        async () => (await readToEnd(ask(first, { key: keyOf("mortal") }))).status === 200,
      );
      assertGreater(performance.now() - at, 1_000);
      await until("no holds", () => cluster.withLedger(async (ledger) => (await ledger.holds()).length === 0));
      // A busy machine lets a node miss its lease, whose requests are lost, too.
      const lost = (await cluster.withLedger(readEntries)).filter(({ ending, keyId }) =>
        ending === "lost" && keyId === "config:mortal"
      );
      assertEquals(lost.map(({ cost }) => cost), Array(4).fill(0n));
      going = Promise.resolve();
      const again = await Promise.all(
        Array.from({ length: 4 }, () => ask(second, { key: keyOf("mortal"), stream: true })),
      );
      assertEquals(again.map(({ status }) => status), [200, 200, 200, 200]);
      await Promise.all(again.map((stream) => stream.text()));
      assertEquals((await readToEnd(ask(first, { key: keyOf("mortal") }))).status, 429);
      forever.resolve();
    });

    await t.step("the ledger", async () => {
      await assertSound(cluster);
      assert(await metric(first, "sluice_store_up") === 1 && await metric(first, "sluice_limits_store_up") === 1);
    });
  },
});
