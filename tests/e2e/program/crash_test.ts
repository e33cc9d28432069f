import { assert, assertEquals, assertLess } from "@std/assert";
import { formatUsd, parseUsd } from "../../../lib/billing/money.ts";
import { openSqliteStore } from "../../../lib/store/sqlite/store.ts";
import type { KeptEntry } from "../../../lib/store/ledger.ts";
import { addKey, inFolder, run, type Running, start } from "../../support/program.ts";

/** Times that the gateway is killed. */
const KILLS = 24;

/** Clients that ask at one time. */
const CLIENTS = 12;

/** Longest time from a start after a kill until the gateway is ready, in milliseconds; most starts take less. */
const READY_MS = 3_000;

/** What all may spend together, in USD. */
const BUDGET = "100000";

const PROMPT_TOKENS = 7;
const PRICES = { prompt: "0.000001", completion: "0.000003" };

/** What became of a request, as far as its client knows. */
type Seen = "complete" | "failed" | "left" | "unknown";

/** What a client did and saw. Each request has a number of its own, which is the number of tokens of its answer. */
interface Asked {
  number: number;
  seen: Seen;
  /** The gateway's id of the request, where a head came. */
  id?: string;
  /** What the client was told of the cost. */
  cost?: string;
}

/** A host whose answers have as many tokens as the prompt says, after a while; some fail, some break off. */
function startHost() {
  const finished = new Set<number>();
  const encoder = new TextEncoder();
  const timers = new Set<() => void>();
  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(done, ms);
      function done(): void {
        clearTimeout(timer);
        timers.delete(done);
        resolve();
      }
      timers.add(done);
    });
  const usageOf = (number: number) => ({
    prompt_tokens: PROMPT_TOKENS,
    completion_tokens: number,
    total_tokens: PROMPT_TOKENS + number,
  });
  const chunk = (members: object) =>
    encoder.encode(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, ...members })}\n\n`);

  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { messages, stream } = await request.json();
    const [, numeral, fault] = /^(\d+) ?(\w*)$/.exec(messages.at(-1).content) ?? [];
    const number = Number(numeral);
    await pause(Math.random() * 15);
    if (fault === "fail") return Response.json({ error: { message: "No", type: "server_error" } }, { status: 400 });
    if (stream !== true) {
      finished.add(number);
      const message = { role: "assistant", content: "one two three" };
      const choices = [{ index: 0, message, finish_reason: "stop" }];
      return Response.json({ id: "c", object: "chat.completion", created: 1, choices, usage: usageOf(number) });
    }
    let step = 0;
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      async pull(controller) {
        step++;
        if (step > 1) await pause(Math.random() * 12);
        if (step <= 4) return controller.enqueue(chunk({ choices: [{ index: 0, delta: { content: `w${step} ` } }] }));
        if (fault === "cut") return controller.close();
        finished.add(number);
        controller.enqueue(chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }));
        controller.enqueue(chunk({ choices: [], usage: usageOf(number) }));
        controller.enqueue(encoder.encode("data: [DONE]\n\n"));
        controller.close();
      },
    }, { highWaterMark: 0 });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  });
  return {
    port: server.addr.port,
    finished,
    async end() {
      for (const done of timers) done();
      await server.shutdown();
    },
  };
}

function configurationFor(port: number): string {
  return JSON.stringify({
    upstreams: { host: { vendor: "openai-compatible", base_url: `http://127.0.0.1:${port}/v1` } },
    models: [{
      id: "acme/one",
      created: 1,
      context_length: 100_000,
      pricing: PRICES,
      targets: [{ upstream: "host", model: "one" }],
    }],
    groups: { default: { budget: { usd: BUDGET, period: "total" }, limits: { concurrency: 1000 } } },
  });
}

/** Every kind of request in turn: protocol, stream or not, and what goes wrong. */
function kindOf(number: number): { native: boolean; stream: boolean; fault: "" | "fail" | "cut" | "leave" } {
  const fault = number % 11 === 0 ? "fail" : number % 13 === 0 ? "cut" : number % 17 === 0 ? "leave" : "";
  const streamed = fault === "cut" || fault === "leave" || number % 2 === 0;
  return { native: number % 3 === 0, stream: streamed, fault };
}

async function ask(asked: Asked, { origin, key }: { origin: string; key: string }): Promise<void> {
  const { native, stream, fault } = kindOf(asked.number);
  const told = fault === "leave" ? "" : fault;
  const body = JSON.stringify({
    model: "acme/one",
    stream,
    max_tokens: 50_000,
    messages: [{ role: "user", content: `${asked.number} ${told}`.trimEnd() }],
    ...(!native && stream && { stream_options: { include_usage: true } }),
  });
  const response = await fetch(origin + (native ? "/anthropic/v1/messages" : "/v1/chat/completions"), {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(native ? { "x-api-key": key, "anthropic-version": "2023-06-01" } : { authorization: `Bearer ${key}` }),
    },
    body,
  });
  asked.id = response.headers.get("x-request-id")?.slice("req_".length) ?? "";
  if (fault === "leave") {
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    asked.seen = "left";
    return;
  }
  const text = await response.text();
  if (response.status !== 200 || text.includes("event: error") || text.includes('data: {"error"')) {
    asked.seen = "failed";
    return;
  }
  if (!stream) {
    JSON.parse(text);
    asked.cost = response.headers.get("x-sluice-cost") ?? "";
    asked.seen = "complete";
  } else if (native ? text.includes("event: message_stop\n") : text.endsWith("data: [DONE]\n\n")) {
    asked.cost = /"sluice_cost":"([\d.]+)"/.exec(text)?.[1] ?? "";
    asked.seen = "complete";
  }
}

/** Asks without a pause until the gateway is gone. */
async function load(gateway: Running, { key, next }: { key: string; next: () => Asked }): Promise<void> {
  const gone = Promise.withResolvers<void>();
  void gateway.ended.then(() => gone.resolve());
  let over = false;
  void gone.promise.then(() => over = true);
  await Promise.all(Array.from({ length: CLIENTS }, async () => {
    while (!over) {
      // What breaks off with the gateway is not known to its client.
      await ask(next(), { origin: gateway.origin, key }).catch(() => {});
    }
  }));
}

/** Starts the gateway, and waits until it is ready. */
async function startReady(folder: string): Promise<{ gateway: Running; ms: number }> {
  const begun = performance.now();
  const gateway = await start(["serve"], { folder });
  for (;;) {
    const response = await fetch(`${gateway.origin}/readyz`);
    await response.body?.cancel();
    if (response.status === 200) return { gateway, ms: performance.now() - begun };
  }
}

async function readEntries(folder: string): Promise<{ entries: KeptEntry[]; open: number; left: bigint }> {
  const store = openSqliteStore(`${folder}/data/sluice.db`);
  try {
    const entries: KeptEntry[] = [];
    for (let after = 0;;) {
      const page = await store.ledger.entries({ after, limit: 1000 });
      entries.push(...page);
      const last = page.at(-1);
      if (last === undefined) {
        const claim = { scope: "group" as const, id: "default", budget: parseUsd(BUDGET), since: 0 };
        return { entries, open: (await store.ledger.holds()).length, left: await store.ledger.left(claim) };
      }
      after = last.seq;
    }
  } finally {
    await store.close();
  }
}

function costOf(number: number): bigint {
  return BigInt(PROMPT_TOKENS) * parseUsd(PRICES.prompt) + BigInt(number) * parseUsd(PRICES.completion);
}

/** What the clients saw against what the ledger says. */
function compare(
  asked: readonly Asked[],
  { entries, finished }: { entries: readonly KeptEntry[]; finished: Set<number> },
) {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  assertEquals(byId.size, entries.length, "an id is entered twice");
  for (const { number, id = "", seen, cost } of asked) {
    const entry = byId.get(id);
    if (seen === "complete") {
      assertEquals(entry?.cost, costOf(number), `request ${number} was complete`);
      assertEquals(cost, formatUsd(costOf(number)), `request ${number} was told its cost`);
    }
    if (seen === "failed") assertEquals(entry?.cost ?? 0n, 0n, `request ${number} failed`);
  }
  const known = new Map(asked.map((each) => [each.number, each]));
  const charged = new Set<number>();
  for (const { ending, tokens: { completion }, cost, held, overrun, id } of entries) {
    assert(cost <= held && overrun === 0n, `${id} costs more than was held`);
    if (cost === 0n || ending === "abandoned") continue;
    const request = known.get(completion);
    assert(request !== undefined && finished.has(completion), `${id} was charged without an answer`);
    assert(!charged.has(completion), `request ${completion} was charged twice`);
    charged.add(completion);
    assert(
      request.seen === "complete" || request.seen === "unknown" || request.seen === "left",
      `${id}: ${request.seen}`,
    );
  }
  const left = asked.filter(({ number, seen }) => kindOf(number).fault === "leave" && seen !== "failed").length;
  assert(entries.filter(({ ending }) => ending === "abandoned").length <= left + asked.length / 10);
}

Deno.test(`what clients saw complete is in the ledger exactly once through ${KILLS} kills, and nothing else is charged`, async () => {
  const host = startHost();
  try {
    await inFolder(async (folder) => {
      await Deno.writeTextFile(`${folder}/sluice.jsonc`, configurationFor(host.port));
      const place = { folder };
      const asked: Asked[] = [];
      const next = () => {
        const one: Asked = { number: asked.length + 1, seen: "unknown" };
        asked.push(one);
        return one;
      };
      const key = await addKey(folder);
      const times: number[] = [];
      for (let kill = 0; kill < KILLS; kill++) {
        const { gateway, ms } = await startReady(folder);
        times.push(ms);
        // Holds of the process before are void when the next one serves.
        const before = await readEntries(folder);
        const spent = before.entries.reduce((sum, { cost }) => sum + cost, 0n);
        assertEquals([before.open, before.left], [0, parseUsd(BUDGET) - spent]);
        const loading = load(gateway, { key, next });
        await new Promise((resolve) => setTimeout(resolve, 80 + Math.random() * 320));
        gateway.kill("SIGKILL");
        await gateway.ended;
        await loading;
        const { entries } = await readEntries(folder);
        compare(asked, { entries, finished: host.finished });
      }

      const last = await start(["serve"], place);
      const { entries, open } = await readEntries(folder);
      compare(asked, { entries, finished: host.finished });
      assertEquals(open, 0);
      last.kill("SIGTERM");
      assertEquals((await last.ended).code, 0);
      const audit = await run(["audit"], place);
      assertEquals([audit.code, audit.err], [0, ""], audit.out);

      assertLess(times.sort((a, b) => a - b)[KILLS >> 1], READY_MS);
      const seen = Map.groupBy(asked, (each) => each.seen);
      for (const kind of ["complete", "failed", "left", "unknown"] as const) {
        assert((seen.get(kind)?.length ?? 0) > 0, `no request was ${kind}`);
      }
      assert(entries.some(({ ending }) => ending === "lost"), "no kill met a request that held something");
    });
  } finally {
    await host.end();
  }
});
