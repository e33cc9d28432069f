/** Prompt-cache affinity: requests of a conversation go to the upstream whose cache has its prefix. */
import { assert, assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { seeded } from "../../support/random.ts";
import { simulateTime } from "../../support/simulated_time.ts";
import { model, startGateway, type TestGateway, upstream } from "../../support/gateway.ts";
import { WHOLE } from "../../upstream/replies.ts";
import { events, type FakeUpstream, json, startUpstream } from "../../upstream/mod.ts";

const CONVERSATIONS = 12;
const TURNS = 6;
/** Longer than the shortest prompt that vendors cache. */
const RULES = "Answer in plain words. ".repeat(300);

/** A file in the user's first message. */
const FILE = "const value = 1;\n".repeat(500);

/** A host with a prefix cache: prompts that begin as an earlier one did have that part cached. */
interface CachingHost extends FakeUpstream {
  isDown: boolean;
}

function cachingHost(): CachingHost {
  const prefixes = new Set<string>();
  const host: CachingHost = Object.assign(
    startUpstream((request) => {
      if (request.method === "GET") return json({ object: "list", data: [] });
      if (host.isDown) return json({ error: { message: "down", type: "server_error" } }, { status: 503 });
      const messages: JsonObject[] = request.json.messages;
      let cached = 0;
      for (let count = 1; count <= messages.length; count++) {
        const prefix = JSON.stringify(messages.slice(0, count));
        if (prefixes.has(prefix)) cached = prefix.length;
        prefixes.add(prefix);
      }
      const usage = {
        prompt_tokens: JSON.stringify(messages).length,
        completion_tokens: 2,
        total_tokens: JSON.stringify(messages).length + 2,
        prompt_tokens_details: { cached_tokens: cached },
      };
      if (!request.stream) return json({ ...WHOLE.chat, usage });
      const chunk = (choices: unknown[], more = {}) =>
        `data: ${
          JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices, ...more })
        }\n\n`;
      return events(
        chunk([{ index: 0, delta: { role: "assistant", content: "Hello" }, finish_reason: null }]) +
          chunk([{ index: 0, delta: {}, finish_reason: "stop" }]) + chunk([], { usage }) + "data: [DONE]\n\n",
      );
    }),
    { isDown: false },
  );
  return host;
}

function configOf(hosts: Record<string, FakeUpstream>, routing: JsonObject): JsonObject {
  const names = Object.keys(hosts);
  return {
    upstreams: Object.fromEntries(names.map((name) => [name, upstream("openai", hosts[name]?.url ?? "")])),
    models: [model("acme/one", names.map((name) => ({ upstream: name, model: "real-one", protocol: "chat" })), {
      pricing: { prompt: "0.000003", completion: "0.000015", input_cache_read: "0.0000003" },
    })],
    routing,
  };
}

/** One turn of a conversation: every second one is streamed. */
async function sendTurn(gateway: TestGateway, conversation: number, turn: number, headers = {}): Promise<void> {
  const messages: JsonObject[] = [{ role: "system", content: RULES }, {
    role: "user",
    content: `Task ${conversation}: ${FILE}`,
  }];
  for (let past = 0; past < turn; past++) {
    messages.push({ role: "assistant", content: `Answer ${past}` }, { role: "user", content: `Go on ${past}` });
  }
  const body = { model: "acme/one", messages, ...(turn % 2 === 1 && { stream: true }) };
  const response = await gateway.ask("chat", body, { headers });
  const text = await response.text();
  assertEquals(response.status, 200, text);
}

interface Bill {
  /** Share of prompt tokens that were cached. */
  cached: number;
  cost: bigint;
  affinities: Record<string, number>;
}

async function billOf(gateway: TestGateway): Promise<Bill> {
  const entries = await gateway.store.ledger.entries({ after: 0, limit: 1_000 });
  const cached = entries.reduce((sum, { tokens }) => sum + tokens.input_cache_read, 0);
  const all = entries.reduce((sum, { tokens }) => sum + tokens.prompt + tokens.input_cache_read, 0);
  const affinities: Record<string, number> = {};
  for (const { details } of entries) {
    const affinity = details?.affinity ?? "none";
    affinities[affinity] = (affinities[affinity] ?? 0) + 1;
  }
  return { cached: cached / all, cost: entries.reduce((sum, { cost }) => sum + cost, 0n), affinities };
}

/** Total cost of all conversations. @param failing: a host fails in the middle */
async function play(routing: JsonObject, { failing = false }: { failing?: boolean } = {}): Promise<Bill> {
  // A circuit breaker of a busy machine would let requests through again after 30 seconds.
  using _time = simulateTime(0);
  const [a, b, c] = [cachingHost(), cachingHost(), cachingHost()];
  await using _hosts = {
    async [Symbol.asyncDispose]() {
      for (const host of [a, b, c]) await host[Symbol.asyncDispose]();
    },
  };
  await using gateway = startGateway(configOf({ a, b, c }, routing), { random: seeded(7).next, breakers: true });
  for (let turn = 0; turn < TURNS; turn++) {
    if (failing && turn === TURNS / 2) a.isDown = true;
    for (let conversation = 0; conversation < CONVERSATIONS; conversation++) {
      await sendTurn(gateway, conversation, turn);
    }
  }
  return await billOf(gateway);
}

Deno.test("conversations stay at the upstream with their cached prefix, and cost less", async () => {
  const [stuck, drawn] = [await play({}), await play({ affinity_minutes: 0 })];
  // All but the first request of a conversation find its whole history cached.
  assertEquals(stuck.affinities, { miss: CONVERSATIONS, hit: CONVERSATIONS * (TURNS - 1) });
  assertEquals(drawn.affinities, { none: CONVERSATIONS * TURNS });
  assert(stuck.cached > 0.85 && drawn.cached < 0.75, `${stuck.cached} ${drawn.cached}`);
  assert(stuck.cost * 10n < drawn.cost * 8n, `${stuck.cost} ${drawn.cost}`);
});

Deno.test("a conversation whose upstream fails moves once, and stays there", async () => {
  const [stuck, drawn] = [await play({}, { failing: true }), await play({ affinity_minutes: 0 }, { failing: true })];
  const { hit = 0, miss = 0, moved = 0 } = stuck.affinities;
  assertEquals(miss, CONVERSATIONS);
  assert(moved > 0 && moved < CONVERSATIONS, JSON.stringify(stuck.affinities));
  assertEquals(hit, CONVERSATIONS * (TURNS - 1) - moved);
  assert(stuck.cost < drawn.cost, `${stuck.cost} ${drawn.cost}`);
});

Deno.test("two nodes without shared state send a conversation to one upstream", async () => {
  // No time limit sends a request of a busy machine to the other upstream.
  using _time = simulateTime(0);
  await using a = cachingHost();
  await using b = cachingHost();
  const nodes = [1, 2].map((seed) => startGateway(configOf({ a, b }, {}), { random: seeded(seed).next }));
  for (let turn = 0; turn < TURNS; turn++) {
    for (let conversation = 0; conversation < CONVERSATIONS; conversation++) {
      const node = nodes[(turn + conversation) % 2];
      assert(node !== undefined);
      await sendTurn(node, conversation, turn);
    }
  }
  // Both have some, and each conversation is at only one of them.
  const tasks = [a, b].map(({ requests }) =>
    new Set(requests.filter(({ method }) => method === "POST").map(({ json }) => json.messages[1].content))
  );
  assertEquals(tasks.map(({ size }) => size > 0), [true, true]);
  assertEquals([...tasks[0] ?? []].filter((task) => tasks[1]?.has(task)), []);
  for (const node of nodes) await node[Symbol.asyncDispose]();
});

Deno.test("a session named by its client stays together through a compaction", async () => {
  const named: [header: string, body: JsonObject][] = [
    ["x-session-affinity", {}],
    ["x-session-id", {}],
    ["x-claude-code-session-id", {}],
    ["session-id", {}],
    ["", { prompt_cache_key: "one" }],
  ];
  for (const [header, more] of named) {
    await using a = cachingHost();
    await using b = cachingHost();
    await using gateway = startGateway(configOf({ a, b }, {}), { random: seeded(3).next });
    for (let turn = 0; turn < 8; turn++) {
      // Short prompts that have nothing in common.
      const body = { model: "acme/one", messages: [{ role: "user", content: `Other words ${turn}` }], ...more };
      const headers: Record<string, string> = header === "" ? {} : { [header]: "one" };
      await (await gateway.ask("chat", body, { headers })).body?.cancel();
    }
    const calls = [a, b].map(({ requests }) => requests.filter(({ method }) => method === "POST").length);
    assertEquals(calls.toSorted(), [0, 8], header);
  }
});

Deno.test("short prompts without a session are balanced, and conversations of other keys are unknown", async () => {
  await using a = cachingHost();
  await using b = cachingHost();
  await using gateway = startGateway(configOf({ a, b }, {}), { random: seeded(3).next });
  const body = { model: "acme/one", messages: [{ role: "user", content: "Hello" }] };
  for (let sent = 0; sent < 20; sent++) await (await gateway.ask("chat", body)).body?.cancel();
  assertEquals((await billOf(gateway)).affinities, { none: 20 });
  assert([a, b].every(({ requests }) => requests.length > 0));
  const headers = { "x-session-id": "one" };
  const other = await gateway.addKey();
  await (await gateway.ask("chat", body, { headers })).body?.cancel();
  await (await gateway.ask("chat", body, { headers, key: other })).body?.cancel();
  assertEquals((await billOf(gateway)).affinities, { none: 20, miss: 2 });
});
