/** Alerts of two gateways on one database: one webhook for each event, also when a gateway or the database ends. */
import { assertEquals, assertLess, assertStringIncludes } from "@std/assert";
import postgres from "postgres";
import { HAS_POSTGRES, HAS_REDIS, startPostgres } from "../../support/databases.ts";
import { eventually, soon } from "../../support/soon.ts";
import { assertSigned, startReceiver } from "../../support/webhook_receiver.ts";
import { type ScriptedAnswer, startUpstream } from "../../upstream/mod.ts";
import { ask, configWith, counted, envFor, SECRET, webhooksOf } from "../alerts/alerted.ts";
import { type Cluster, end, type Node, startCluster } from "./cluster.ts";

const ignore = !(HAS_POSTGRES && HAS_REDIS);

/** Time in which another webhook would arrive: a gateway polls every 5 seconds. */
const QUIET_MS = 7_000;

function quiet(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, QUIET_MS));
}

Deno.test({
  name: "two gateways send one webhook per threshold and per change of an upstream",
  ignore,
  async fn() {
    await using receiver = startReceiver();
    let answer: ScriptedAnswer = counted();
    await using upstream = startUpstream(() => answer);
    const config = configWith(upstream, {
      groups: { team: {} },
      keys: [{ name: "client", key: { env: "CLIENT_KEY" }, group: "team", budget: { usd: "8", period: "total" } }],
      routing: { attempts: 1, breaker: { consecutive_failures: 2, open_ms: 100 } },
    });
    await using cluster = await startCluster({ config, env: envFor(receiver), nodes: 2 });
    const [one, two] = cluster.nodes as [Node, Node];
    // A gateway that a busy machine keeps from its database sends an alert itself, with the same id.
    const received = () => [...new Map(receiver.received.map(({ body }) => [body.id, body])).values()];
    const percents = () => received().flatMap(({ type, data }) => type === "budget.threshold" ? [data.percent] : []);
    for (const node of [one, two, one, two]) assertEquals(await ask(node), 200);
    await webhooksOf(receiver, "budget.threshold", 1);
    answer = { status: 500, body: '{"error":{"message":"broken"}}' };
    for (const node of [one, two, one, two]) await ask(node);
    const [down] = await webhooksOf(receiver, "upstream.down", 1);
    assertEquals(down?.body.data.upstream, "one");
    // The second gateway stores its own line meanwhile, before the first one reports the end.
    await quiet();
    answer = counted();
    for (const node of [one, two]) await eventually(async () => assertEquals(await ask(node), 200));
    await webhooksOf(receiver, "upstream.up", 1);
    await eventually(async () => assertEquals(await ask(one), 429));
    await eventually(() => Promise.resolve(assertStringIncludes(String(percents()), "100")));
    await quiet();
    const types = received().map(({ type }) => type);
    assertEquals(types.filter((type) => type.startsWith("upstream.")), ["upstream.down", "upstream.up"]);
    // 80 % is skipped where the last two answers came between two polls.
    assertEquals(percents().filter((percent) => percent !== 80), [50, 100]);
    for (const webhook of receiver.received) assertSigned(webhook, SECRET);
  },
});

Deno.test({
  name: "an alert sent but not marked by a killed gateway is sent by the other with the same id",
  ignore,
  async fn() {
    for (let tries = 1; !await isSentAgain(); tries++) assertLess(tries, 3);
  },
});

/** False if a busy machine starved the database: a gateway keeps its alerts in memory then. */
async function isSentAgain(): Promise<boolean> {
  await using receiver = startReceiver();
  const unanswered = Promise.withResolvers<Response>();
  const arrived = Promise.withResolvers<void>();
  receiver.answer = () => {
    arrived.resolve();
    return unanswered.promise;
  };
  await using upstream = startUpstream(counted);
  await using cluster = await startCluster({ config: configWith(upstream), env: envFor(receiver), nodes: 1 });
  const [one] = cluster.nodes as [Node];
  for (let count = 0; count < 2; count++) assertEquals(await ask(one), 200);
  await soon("a webhook", arrived.promise);
  end(one);
  await one.ended;
  if (await storedAlerts(cluster) === 0) return false;
  unanswered.resolve(new Response(null));
  receiver.answer = () => new Response(null, { status: 200 });
  const two = await cluster.add();
  const [once, again] = await webhooksOf(receiver, "budget.threshold", 2);
  assertEquals(again?.body, once?.body);
  await quiet();
  assertEquals(receiver.received.length, 2);
  two.kill("SIGTERM");
  assertStringIncludes((await two.ended).err, `"event":"alert_delivered","alert_id":"${once?.body.id}"`);
  return true;
}

async function storedAlerts({ postgres: { url } }: Cluster): Promise<number> {
  const sql = postgres(url, { max: 1 });
  try {
    return (await sql`SELECT FROM alerts`).count;
  } finally {
    await sql.end();
  }
}

Deno.test({
  name: "gateways report an outage of their database and its end",
  ignore,
  async fn() {
    await using receiver = startReceiver();
    await using upstream = startUpstream(counted);
    await using postgres = await startPostgres();
    const config = configWith(upstream);
    await using cluster = await startCluster({ config, env: envFor(receiver), nodes: 2, postgres });
    await postgres.stop();
    const down = await webhooksOf(receiver, "store.down", 2);
    assertEquals(down.map(({ body }) => body.data), [{ store: "store" }, { store: "store" }]);
    await postgres.start();
    await webhooksOf(receiver, "store.up", 2);
    // The database stores again.
    const [one] = cluster.nodes as [Node];
    await eventually(async () => assertEquals(await ask(one), 200));
    await ask(one);
    await webhooksOf(receiver, "budget.threshold", 1);
  },
});
