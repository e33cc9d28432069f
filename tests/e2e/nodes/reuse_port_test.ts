/** Several processes of one machine on one port, with one Postgres and one Redis. */
import { assert, assertEquals } from "@std/assert";
import { HAS_POSTGRES, HAS_REDIS, isStarved } from "../../support/databases.ts";
import { reservePort } from "../../support/ports.ts";
import { ADMIN_KEY, assertSound, end, type Node, readEntries, startCluster } from "./cluster.ts";

const KEY = "key-of-the-shared-port";

const PROCESSES = 3;

const CONFIG = {
  listen: { reuse_port: true },
  models: [{
    id: "acme/one",
    created: 1,
    context_length: 10_000,
    pricing: { prompt: "0", completion: "0.0001" },
    // The answer repeats the one word of the question.
    targets: [{ upstream: "embedded", model: "echo" }],
  }],
  keys: [{ name: "client", key: { env: "CLIENT_KEY" } }],
  nodes: { limits_timeout_ms: 5_000 },
};

interface Answer {
  status: number;
  /** Identifies a process: the prefix of its request ids. */
  process: string;
}

/** Sends requests over connections of their own, 20 at a time. */
async function askPort(origin: string, requests: number): Promise<Answer[]> {
  using client = Deno.createHttpClient({ poolMaxIdlePerHost: 0 });
  const answers: Answer[] = [];
  let begun = 0;
  await Promise.all(Array.from({ length: 20 }, async () => {
    while (begun < requests) {
      begun++;
      const response = await fetch(`${origin}/v1/chat/completions`, {
        client,
        method: "POST",
        headers: { authorization: `Bearer ${KEY}` },
        body: JSON.stringify({ model: "acme/one", max_tokens: 1, messages: [{ role: "user", content: "Hello" }] }),
      });
      if (isStarved(response.status, await response.text())) begun--;
      const process = response.headers.get("x-request-id")?.slice(0, "req_".length + 16) ?? "";
      answers.push({ status: response.status, process });
    }
  }));
  return answers;
}

function count(answers: readonly Answer[], status: number): number {
  return answers.filter((answer) => answer.status === status).length;
}

function processes(answers: readonly Answer[]): number {
  return new Set(answers.map(({ process }) => process)).size;
}

/** Requests that one process has answered, as its own admin side counts them. */
async function answered({ banner }: Node): Promise<number> {
  const admin = /Admin side: (\S+)\/admin\/v1/.exec(banner)?.[1];
  const response = await fetch(`${admin}/metrics`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } });
  const text = await response.text();
  assertEquals(response.status, 200, text);
  const lines = text.split("\n").filter((line) => line.startsWith("sluice_requests_total{") && line.includes("chat"));
  return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

Deno.test({
  name: "three processes on one port act as one gateway, and survive the kill of one",
  ignore: !(HAS_POSTGRES && HAS_REDIS) || Deno.build.os !== "linux",
  async fn(t) {
    using reserved = reservePort();
    const { port } = reserved;
    const env = { CLIENT_KEY: KEY, SLUICE_ADMIN_PORT: "0" };
    await using cluster = await startCluster({ config: CONFIG, nodes: PROCESSES, env, port });
    const origin = `http://127.0.0.1:${port}`;
    let [requested, good] = [0, 0];

    async function ask(requests: number): Promise<Answer[]> {
      const answers = await askPort(origin, requests);
      requested += answers.length;
      good += count(answers, 200);
      return answers;
    }

    await t.step("requests are spread over all processes", async () => {
      assertEquals(cluster.nodes.map((node) => node.origin), Array(PROCESSES).fill(origin));
      const answers = await ask(120);
      assertEquals([count(answers, 200), processes(answers)], [120, PROCESSES]);
      const counts = await Promise.all(cluster.nodes.map(answered));
      assert(counts.every((requests) => requests > 0), String(counts));
      assertEquals(counts.reduce((sum, requests) => sum + requests), 120);
    });

    await t.step("the other processes continue when one is killed", async () => {
      const last = cluster.nodes.at(-1) as Node;
      end(last);
      await last.ended;
      const free = await ask(120);
      assertEquals([count(free, 200), processes(free)], [120, PROCESSES - 1]);
    });

    await t.step("the ledger is complete", async () => {
      const entries = await cluster.withLedger(readEntries);
      const served = entries.filter(({ ending }) => ending === "length" || ending === "end");
      assertEquals(served.length, good);
      assertEquals(new Set(served.map(({ id }) => id.slice(0, 16))).size, PROCESSES);
      assert(entries.length <= requested);
      await assertSound(cluster);
    });
  },
});
