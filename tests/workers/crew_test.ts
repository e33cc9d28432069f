import { assert, assertEquals, assertLess, assertRejects } from "@std/assert";
import { hashKey } from "../../lib/access/keys.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { closeGateway, createGateway, type LogEntry } from "../../lib/gateway.ts";
import { createMemoryLimiter } from "../../lib/limits/memory.ts";
import { openMemoryStore } from "../../lib/store/memory.ts";
import type { Store } from "../../lib/store/store.ts";
import { createCrew, type Crew } from "../../lib/workers/crew.ts";
import { createOwnerDoors } from "../../lib/workers/doors.ts";
import { readEntries } from "../nodes/cluster.ts";
import { frames, whole } from "../request/spoken.ts";
import { startStepped } from "../request/stepped.ts";

const KEY = "key-of-the-crew-tests";
const SLOTS = 12;

/** Requests of whom every address may have as many under way. */
const PER_ADDRESS = 12;

/** Each request over a connection of its own. */
const client = Deno.createHttpClient({ poolMaxIdlePerHost: 0 });

interface World extends AsyncDisposable {
  crew: Crew;
  store: Store;
  logs: LogEntry[];
  /** Asks with a stream that never ends, or with one that does. */
  ask(stream?: boolean): Promise<Response>;
  /** Has the isolate that gets it do something. */
  order(what: "end" | "close"): Promise<void>;
}

/** Starts two workers in front of an upstream. */
async function startWorld({ lookMs }: { lookMs?: number } = {}): Promise<World> {
  const open = new AsyncDisposableStack();
  const host = startStepped(({ stream }) => {
    if (!stream) return { steps: [whole("chat", "Hello", "told")] };
    const { opening, pieces } = frames("chat", ["Hello "], "told");
    return { steps: [...opening, ...pieces, new Promise(() => {})] };
  });
  open.use(host);
  const config = parseConfig({
    listen: { port: 0 },
    store: "memory:",
    upstreams: { one: { vendor: "openai-compatible", base_url: `${host.url}/v1` } },
    models: [{
      id: "acme/one",
      created: 1,
      context_length: 1000,
      pricing: { prompt: "0.001", completion: "0.001" },
      targets: [{ upstream: "one", model: "m" }],
    }],
    keys: [{
      name: "one",
      key: { env: "KEY" },
      limits: { concurrency: SLOTS },
      budget: { usd: "100000", period: "total" },
    }],
    limits: { requests_per_client: PER_ADDRESS },
  }, () => KEY);
  assertEquals(config.keys[0]?.hash, hashKey(KEY));
  const store = openMemoryStore();
  const logs: LogEntry[] = [];
  const log = (entry: LogEntry) => void logs.push(entry);
  const crew: Crew = createCrew({
    workers: 2,
    gateway: () => gateway,
    doors: createOwnerDoors({ monotonic: () => performance.now() }),
    write: (line) => log(JSON.parse(line)),
    log,
    module: new URL("mortal_worker.ts", import.meta.url),
    ...(lookMs !== undefined && { lookMs }),
  });
  const limiter = createMemoryLimiter({ monotonic: () => performance.now() });
  const gateway = createGateway({ config, store, limiter, now: Date.now, log, isolates: 2, whole: crew });
  const { port } = await crew.start();
  open.defer(async () => {
    await crew.end({ readyDelayMs: 0, drainMs: 0, imagesDrainMs: 0 }, new Promise(() => {}));
    await closeGateway(gateway);
  });
  const origin = `http://127.0.0.1:${port}`;
  return {
    crew,
    store,
    logs,
    ask: (stream = false) =>
      fetch(`${origin}/v1/chat/completions`, {
        client,
        method: "POST",
        headers: { authorization: `Bearer ${KEY}` },
        body: JSON.stringify({
          model: "acme/one",
          max_tokens: 10,
          stream,
          messages: [{ role: "user", content: "Hi" }],
        }),
      }),
    async order(what) {
      const response = await fetch(`${origin}/anthropic/api/hello`, { client, headers: { "x-order": what } });
      await response.text();
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

function isolateOf({ headers }: Response): string {
  return headers.get("x-request-id")?.slice(0, 20) ?? "";
}

/** Asks until as many isolates have answered. */
async function isolates({ ask }: World, count: number): Promise<Set<string>> {
  const found = new Set<string>();
  const begin = performance.now();
  while (found.size < count) {
    const response = await ask();
    await response.text();
    if (response.status === 200) found.add(isolateOf(response));
    assertLess(performance.now() - begin, 20_000);
  }
  return found;
}

async function event({ logs }: World, name: string): Promise<LogEntry> {
  const begin = performance.now();
  for (;;) {
    const found = logs.find((entry) => entry.event === name);
    if (found !== undefined) return found;
    assertLess(performance.now() - begin, 20_000, name);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function requestsIn(metrics: string): number {
  const lines = metrics.split("\n").filter((line) => line.startsWith("sluice_requests_total"));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}

Deno.test("what the requests of a worker that ends have taken is given back, and another one takes its place", async () => {
  await using world = await startWorld();
  const before = await isolates(world, 2);
  const streams = await Promise.all(Array.from({ length: SLOTS }, () => world.ask(true)));
  assertEquals(streams.map(({ status }) => status), Array(SLOTS).fill(200));
  const ids = new Map(streams.map((stream) => [stream.headers.get("x-request-id")?.slice(4) ?? "", isolateOf(stream)]));
  assertEquals((await world.store.ledger.holds()).length, SLOTS);
  const refused = await world.ask();
  assertEquals(refused.status, 429);
  await refused.text();
  const asked = requestsIn(await world.crew.metrics());

  await world.order("end");
  await event(world, "requests_lost");
  const left = (await world.store.ledger.holds()).map(({ id }) => id);
  const [survivor] = new Set(left.map((id) => ids.get(id)));
  assertEquals(left.toSorted(), [...ids.keys()].filter((id) => ids.get(id) === survivor).toSorted());
  const lost = (await readEntries(world.store.ledger)).filter(({ ending }) => ending === "lost");
  assertEquals(lost.map(({ id }) => id).toSorted(), [...ids.keys()].filter((id) => !left.includes(id)).toSorted());
  assertEquals(lost.map(({ cost }) => cost), lost.map(() => 0n));
  assert(lost.length > 0 && left.length > 0);

  await event(world, "worker_started");
  const after = await isolates(world, 2);
  assertEquals([...after].filter((id) => before.has(id)), [survivor].filter((id) => id !== undefined));
  // The slots of those that were lost are free, and no others.
  const more = await Promise.all(Array.from({ length: SLOTS }, () => world.ask(true)));
  assertEquals(more.filter(({ status }) => status === 200).length, lost.length);
  assert(requestsIn(await world.crew.metrics()) >= asked);
  const { worker, cause } = await event(world, "worker_lost");
  assert(worker === 1 || worker === 2);
  assertEquals(cause, "Error");
  await Promise.all([...streams, ...more].map((stream) => stream.body?.cancel().catch(() => {})));
});

Deno.test("a worker that says nothing any more is told of, so that the process can end", async () => {
  await using world = await startWorld({ lookMs: 50 });
  await isolates(world, 2);
  await world.order("close");
  await world.crew.stuck;
  assertEquals((await event(world, "worker_lost")).level, "error");
  // The other one serves on until then.
  const response = await world.ask();
  await response.text();
  assertEquals([response.status, (await world.crew.health()).length], [200, 2]);
});

Deno.test("a crew whose workers cannot be started says so", async () => {
  await using world = await startWorld();
  const gateway = createGateway({
    config: parseConfig({ listen: { port: 0 }, store: "memory:" }, () => undefined),
    store: world.store,
    now: Date.now,
    log: () => {},
  });
  const crew = createCrew({
    workers: 2,
    gateway: () => gateway,
    doors: createOwnerDoors({ monotonic: () => performance.now() }),
    write: () => {},
    log: () => {},
    module: new URL("no_such_module.ts", import.meta.url),
  });
  await assertRejects(() => crew.start(), Error, "Cannot start worker 1");
  await closeGateway(gateway);
});
