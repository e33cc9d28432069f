import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { issueKey } from "../../../lib/access/keys.ts";
import { startLiveGateway } from "../../../lib/cli/live_gateway.ts";
import { shutDownServer } from "../../../lib/cli/shutdown.ts";
import { loadConfig } from "../../../lib/config/load.ts";
import { closeGateway, type Gateway, stopRequests, stopTextRequests } from "../../../lib/gateway.ts";
import { createApp } from "../../../lib/server/app.ts";
import { createDrain } from "../../../lib/server/drain.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { routes } from "../../../routes/manifest.ts";
import { type SimulatedTime, simulateTime } from "../../support/simulated_time.ts";
import { json, startUpstream } from "../../upstream/mod.ts";
import { PNG } from "../../upstreams/openai_images/host.ts";
import { plainUpstream } from "../../support/plain_model.ts";
import { availableIn } from "../../support/available.ts";

const BEGIN = Date.UTC(2027, 0, 1);
const MINUTE_MS = 60_000;
/** 100 USD, in 1e-12. */
const BUDGET = 100_000_000_000_000n;
const LIMITS = { concurrency: 1, requests_per_minute: 100, tokens_per_minute: 1_000_000 };

/** A host that paints on command. */
function patientHost() {
  const arrived = Promise.withResolvers<void>();
  const paint = Promise.withResolvers<void>();
  const host = startUpstream(() => {
    arrived.resolve();
    return json({ created: 1, data: [{ b64_json: PNG }] }, { before: paint.promise });
  });
  return { ...host, arrived: arrived.promise, paint: paint.resolve };
}

function fileWith(url: string, { price, transport }: { price: string; transport: string }): string {
  return JSON.stringify({
    upstreams: { host: { ...plainUpstream(url), transport } },
    models: [{
      id: "acme/images",
      created: 0,
      context_length: 1_000,
      architecture: { output_modalities: ["image"] },
      pricing: { prompt: "0", completion: price },
      targets: [{ upstream: "host", model: "images" }],
    }],
    groups: { default: { key_limits: LIMITS, key_budget: { usd: "100", period: "total" } } },
  });
}

/** A gateway over a host that paints on command, with an image in progress. */
async function startPainting(time: SimulatedTime, transport: string) {
  const open = new AsyncDisposableStack();
  const host = open.use(patientHost());
  let text = fileWith(host.url, { price: "0.000004", transport });
  const load = () =>
    loadConfig({
      flags: { config: "sluice.jsonc" },
      env: () => undefined,
      readTextFile: () => Promise.resolve(text),
    });
  const store = openMemoryStore();
  open.defer(() => store.close());
  const { key, record } = issueKey({ name: "client", group: "default", now: 0 });
  await store.keys.add(record);
  const gateway = startLiveGateway({ loaded: await load(), load, store, now: time.now, log: () => {} });
  open.defer(() => closeGateway(gateway()));
  const drain = createDrain();
  const app = createApp({ routes, surface: "both", gateway, drain });
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request, info) => app(request, info));
  open.defer(() => server.shutdown());
  // Also where something fails: the server waits for its answers.
  open.defer(host.paint);
  const ask = () =>
    fetch(`http://127.0.0.1:${server.addr.port}/v1/images/generations`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: "acme/images", prompt: "slowly", size: "1024x1024", quality: "low" }),
    });
  const answer = ask().then(async (response) => ({ status: response.status, text: await response.text() }));
  await host.arrived;
  return {
    host,
    store,
    server,
    drain,
    gateway,
    ask,
    answer,
    /** Puts another price in the file, and has it read. */
    async reload(price: string) {
      text = fileWith(host.url, { price, transport });
      assertEquals((await gateway().reloader.reload("file")).outcome, "changed");
    },
    /** Asserts that the image still has its slot and its money. */
    async assertHeld(about: string) {
      const holds = await store.ledger.holds();
      assertEquals(holds.length, 1, about);
      assert(holds.every(({ leaseUntil }) => leaseUntil > time.now()), `${about}: its lease is over`);
      assertEquals(await slotsLeft(gateway(), record.id), 0, about);
    },
    /** Asserts that nothing is reserved any more, and returns the only entry. */
    async settled() {
      await gateway().backgroundTasks.done();
      await gateway().ledger.flush();
      assertEquals(await store.ledger.holds(), []);
      assertEquals(await slotsLeft(gateway(), record.id), 1);
      const entries = await store.ledger.entries({ after: 0, limit: 10 });
      const kept = entries.filter(({ ending }) => ending !== "refused");
      assertEquals(kept.length, 1);
      const [entry] = kept;
      assert(entry !== undefined);
      const claim = { scope: "key" as const, id: record.id, budget: BUDGET, since: 0 };
      assertEquals(await availableIn(store.ledger, claim), BUDGET - entry.cost);
      return entry;
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

async function slotsLeft({ limiter }: Gateway, keyId: string): Promise<number | undefined> {
  const claim = { name: `key:${keyId}`, unit: "concurrency" as const, limit: 1, cost: 1, reportOnly: false };
  return (await limiter.statuses([claim]))[0]?.remaining;
}

for (const transport of ["http1", "fetch"]) {
  Deno.test(`${transport}: an image of ten minutes is answered, keeps its holds, and costs the price before a reload`, async () => {
    using time = simulateTime(BEGIN);
    await using world = await startPainting(time, transport);
    for (let minute = 1; minute < 10; minute++) {
      await time.pass(MINUTE_MS);
      await world.assertHeld(`after ${minute} minutes`);
      if (minute === 5) await world.reload("0.4");
    }
    const refused = await world.ask();
    assertEquals([refused.status, (await refused.json()).error.code], [429, "rate_limit_exceeded"]);
    await time.pass(MINUTE_MS);
    world.host.paint();
    const { status, text } = await world.answer;
    assertEquals([status, JSON.parse(text).data[0].b64_json], [200, PNG]);
    const { ending, cost, tokens, totalMs } = await world.settled();
    assertEquals([ending, cost], ["done", BigInt(tokens.completion) * 4_000_000n]);
    assert(totalMs >= 10 * MINUTE_MS, `${totalMs} ms`);
    assertEquals(world.host.requests.length, 1);
  });
}

Deno.test("a running image is cut off by the drain time for images, free of charge", async () => {
  using time = simulateTime(BEGIN);
  await using world = await startPainting(time, "http1");
  await time.pass(MINUTE_MS);
  const { gateway, server, drain } = world;
  const ended = shutDownServer({
    server,
    drain,
    inFlight: gateway().inFlight,
    stopTexts: () => stopTextRequests(gateway()),
    stopAll: () => stopRequests(gateway()),
    second: new Promise(() => {}),
    times: { readyDelayMs: 0, drainMs: 30_000, imagesDrainMs: 600_000 },
    log: () => {},
  });
  await time.pass(600_000 - 250);
  await world.assertHeld("before the limit");
  await time.pass(500);
  const { status, text } = await world.answer;
  assertEquals(status, 503);
  assertStringIncludes(text, "shutting down");
  const { ending, cost, images } = await world.settled();
  assertEquals([ending, cost, images], ["failed", 0n, 0]);
  await time.pass(1_000);
  assertEquals(await ended, "late");
});

Deno.test("an image that never arrives is cut off by the drain time for images, free of charge", async () => {
  using time = simulateTime(BEGIN);
  await using world = await startPainting(time, "http1");
  await time.pass(900_000 - 250);
  await world.assertHeld("before the limit");
  await time.pass(500);
  assertEquals((await world.answer).status, 504);
  const { ending, cost, images } = await world.settled();
  assertEquals([ending, cost, images], ["failed", 0n, 0]);
});
