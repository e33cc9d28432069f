/** Nodes that are killed: every request that ran there under a limit is in the ledger, once, as lost. */
import { assertEquals } from "@std/assert";
import postgres from "postgres";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { HAS_POSTGRES, HAS_REDIS } from "../../support/databases.ts";
import { countedAnswer } from "../../upstream/counted.ts";
import { type FakeUpstream, startUpstream } from "../../upstream/mod.ts";
import { assertSound, end, type Node, readEntries, startCluster } from "./cluster.ts";
import { until } from "../../support/soon.ts";
import { plainModel, plainUpstream } from "../../support/plain_model.ts";

const ENV = { LIMITED_KEY: "key-of-the-limited", FREE_KEY: "key-without-limits" };

function configFor(host: FakeUpstream): JsonObject {
  return {
    upstreams: { one: plainUpstream(host.url) },
    models: [plainModel({
      pricing: { prompt: "0", completion: "0.00001" },
      targets: [{ upstream: "one", model: "m" }],
    })],
    keys: [
      { name: "limited", key: { env: "LIMITED_KEY" }, limits: { concurrency: 100 } },
      { name: "free", key: { env: "FREE_KEY" } },
    ],
    nodes: { lease_seconds: 2, limits_timeout_ms: 5_000 },
  };
}

/** Begins a stream and reads none of it. @returns id of the request in the ledger */
async function begin({ origin }: Node, key: string): Promise<string> {
  const response = await fetch(`${origin}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "acme/one", stream: true, messages: [{ role: "user", content: "Hello" }] }),
  });
  assertEquals(response.status, 200);
  void response.text().catch(() => {});
  return response.headers.get("x-request-id")?.replace("req_", "") ?? "";
}

async function kill(node: Node): Promise<void> {
  end(node);
  await node.ended;
}

Deno.test({
  name: "streams of killed nodes are entered as lost once, even if a node is killed while it enters them",
  ignore: !(HAS_POSTGRES && HAS_REDIS),
  async fn() {
    const going = Promise.withResolvers<void>();
    await using host = startUpstream(({ stream }) =>
      countedAnswer(stream, { completion: 10, going: () => going.promise })
    );
    await using cluster = await startCluster({ config: configFor(host), env: ENV, nodes: 2 });
    const [first, second] = cluster.nodes as [Node, Node];
    const at = Date.now();
    const expected = await Promise.all(
      [first, first, first, first, second, second].map((node) => begin(node, ENV.LIMITED_KEY)),
    );
    // Redis and Postgres have no record of it.
    await begin(first, ENV.FREE_KEY);

    const sql = postgres(cluster.postgres.url, { max: 2, onnotice() {} });
    const unlock = Promise.withResolvers<void>();
    try {
      const locked = Promise.withResolvers<void>();
      const locking = sql.begin(async (sql) => {
        await sql`LOCK TABLE entries IN EXCLUSIVE MODE`;
        locked.resolve();
        await unlock.promise;
      });
      await locked.promise;
      await kill(first);
      const isWaiting = async () =>
        (await sql`SELECT 1 FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock' AND state = 'active'`).length > 0;
      await until("the second node enters what ran on the first", isWaiting);
      await kill(second);
      unlock.resolve();
      await locking;
    } finally {
      unlock.resolve();
      await sql.end();
    }

    await cluster.add();
    const readLost = async () => (await cluster.withLedger(readEntries)).filter(({ ending }) => ending === "lost");
    await until("all are entered", async () => (await readLost()).length >= expected.length);
    // Another sweep of the node for lost requests.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    const lost = await readLost();
    assertEquals(lost.map(({ id }) => id).sort(), expected.sort());
    for (const { at: cameIn, keyId, group, model, endpoint, status, cost, held } of lost) {
      assertEquals([keyId, group, model, endpoint, status, cost, held], [
        "config:limited",
        "default",
        "acme/one",
        "chat",
        0,
        0n,
        0n,
      ]);
      assertEquals(Math.abs(cameIn - at) < 60_000, true);
    }
    await assertSound(cluster);
    going.resolve();
  },
});
