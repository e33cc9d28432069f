/** Several isolates in each of several processes, on one Postgres and one Redis. */
import { assertEquals, assertGreaterOrEqual, assertLess } from "@std/assert";
import { HAS_POSTGRES, HAS_REDIS } from "../engines/engines.ts";
import { ADMIN_KEY, assertSound, metric, type Node, readEntries, startCluster, until } from "../nodes/cluster.ts";

const KEYS = ["free", "requests", "budget", "slots"];
const SECRETS = Object.fromEntries(KEYS.map((name) => [`KEY_${name.toUpperCase()}`, `key-of-the-isolates-${name}`]));

const PER_MINUTE = 50;
const PAID = 100;
const WORKERS = 2;

/** Each request over a connection of its own. */
const client = Deno.createHttpClient({ poolMaxIdlePerHost: 0 });

const CONFIG = {
  models: [{
    id: "acme/one",
    created: 1,
    context_length: 10_000,
    pricing: { prompt: "0", completion: "0.0001" },
    // The answer of this model has the one word of the question.
    targets: [{ upstream: "embedded", model: "echo" }],
  }],
  keys: [
    { name: "free", key: { env: "KEY_FREE" } },
    { name: "requests", key: { env: "KEY_REQUESTS" }, limits: { requests_per_minute: PER_MINUTE } },
    { name: "budget", key: { env: "KEY_BUDGET" }, budget: { usd: "0.01", period: "total" } },
  ],
  nodes: { limits_timeout_ms: 5_000 },
};

async function ask(node: Node, key: string): Promise<{ status: number; isolate: string }> {
  const response = await fetch(`${node.origin}/v1/chat/completions`, {
    client,
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "acme/one", max_tokens: 1, messages: [{ role: "user", content: "Hello" }] }),
  });
  await response.text();
  return { status: response.status, isolate: response.headers.get("x-request-id")?.slice(0, 20) ?? "" };
}

Deno.test({
  name: "two processes of two isolates are one gateway, on one Postgres and one Redis",
  ignore: !(HAS_POSTGRES && HAS_REDIS),
  async fn(t) {
    const env = { ...SECRETS, SLUICE_WORKERS: String(WORKERS) };
    await using cluster = await startCluster({ config: CONFIG, nodes: 2, env });
    const [first, second] = cluster.nodes as [Node, Node];
    let asked = 0;
    let answered = 0;

    async function hammer(name: string, requests: number): Promise<Awaited<ReturnType<typeof ask>>[]> {
      const answers: Awaited<ReturnType<typeof ask>>[] = [];
      let begun = 0;
      await Promise.all(Array.from({ length: 20 }, async () => {
        while (begun < requests) {
          const node = begun++ % 2 === 0 ? first : second;
          answers.push(await ask(node, SECRETS[`KEY_${name.toUpperCase()}`] ?? name));
        }
      }));
      asked += answers.length;
      answered += count(answers, 200);
      return answers;
    }
    const count = (answers: readonly { status: number }[], status: number) =>
      answers.filter((answer) => answer.status === status).length;

    await t.step("limits and budgets are exact", async () => {
      const free = await hammer("free", 100);
      assertEquals([count(free, 200), new Set(free.map(({ isolate }) => isolate)).size], [100, 2 * WORKERS]);
      const limited = await hammer("requests", 150);
      assertEquals([count(limited, 200), count(limited, 429)], [PER_MINUTE, 150 - PER_MINUTE]);
      const paid = await hammer("budget", 150);
      assertEquals([count(paid, 200), count(paid, 429)], [PAID, 150 - PAID]);
    });

    await t.step("a key that is revoked at one isolate", async () => {
      const headers = { authorization: `Bearer ${ADMIN_KEY}`, "content-type": "application/json" };
      const made = await fetch(`${first.origin}/admin/v1/keys`, {
        method: "POST",
        headers,
        body: JSON.stringify({ name: "soon-gone", group: "default" }),
      });
      const { key, id } = await made.json();
      assertEquals(count(await hammer(key, 40), 200), 40);
      const revoked = await fetch(`${first.origin}/admin/v1/keys/${id}`, { method: "DELETE", headers });
      await revoked.text();
      const at = performance.now();
      await until(async () => count(await hammer(key, 40), 401) === 40, { within: 5_000, what: "refused by all" });
      assertLess(performance.now() - at, 2_000);
    });

    await t.step("the books", async () => {
      const told = await Promise.all(cluster.nodes.map((node) => metric(node, "sluice_workers")));
      assertEquals(told, [WORKERS, WORKERS]);
      assertEquals(await metric(first, "sluice_store_up"), 1);
      const entries = await cluster.withLedger(readEntries);
      // Who has no good key is in no ledger. A revoked one may have been good for some requests more.
      assertEquals(entries.filter(({ ending }) => ending === "length" || ending === "end").length, answered);
      assertGreaterOrEqual(answered, 100 + 50 + 100 + 40);
      assertEquals(entries.length <= asked, true);
      await assertSound(cluster);
      // By whichever process, and whichever of its isolates.
      const counted = entries.filter(({ upstream }) => upstream === "embedded").length;
      for (const { origin } of [first, second, first, second]) {
        const told = await fetch(`${origin}/admin/v1/usage?by=upstream&since=1d`, {
          client,
          headers: { authorization: `Bearer ${ADMIN_KEY}` },
        });
        const { lines } = await told.json();
        const requests = lines.reduce((sum: number, line: { requests: number }) => sum + line.requests, 0);
        assertEquals([told.status, requests], [200, counted]);
      }
    });
  },
});
