/** Several isolates in one process answer as one: from source, and in the executable. */
import { assert, assertEquals, assertLess, assertMatch, assertStringIncludes } from "@std/assert";
import type { JsonObject } from "../../lib/json/json.ts";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import { inFolder, type Place, run, type Running, start } from "../cli/program.ts";
import { compile, obstacle } from "../compiling.ts";
import { readEntries } from "../nodes/cluster.ts";
import { countedAnswer } from "../request/counted.ts";
import { startStepped, type Stepped } from "../request/stepped.ts";
import { assertTold, createLoad, KEY, writeConfig } from "../program/load.ts";

/** USD per token of an answer; prompts are free. An answer has exactly so many. */
const PRICE = "0.00001";
const TOKENS = 10;

/** Requests that are admitted, where something limits them. */
const PER_MINUTE = 50;
const PAID = 100;
const SLOTS = 7;
const PER_ADDRESS = 40;

/** Streams that are open when the end comes. */
const STREAMS = 200;

const ADMIN_KEY = "admin-key-of-the-workers";

const SECRETS: Record<string, string> = {
  ADMIN_KEY,
  ...Object.fromEntries(
    ["free", "requests", "budget", "slots"].map((name) => [`KEY_${name.toUpperCase()}`, `key-of-the-workers-${name}`]),
  ),
};

function configFor(host: Stepped, price = PRICE): JsonObject {
  const key = (name: string, rules: JsonObject) => ({ name, key: { env: `KEY_${name.toUpperCase()}` }, ...rules });
  const model = (name: string, pricing: JsonObject, more: JsonObject = {}) => ({
    id: `acme/${name}`,
    created: 1,
    context_length: 10_000,
    pricing,
    targets: [{ upstream: "one", model: name }],
    ...more,
  });
  return {
    upstreams: { one: { vendor: "openai-compatible", base_url: `${host.url}/v1` } },
    models: [
      model("one", { prompt: "0", completion: price }),
      model("pictures", { prompt: "0.001", completion: "0.001" }, { architecture: { output_modalities: ["image"] } }),
    ],
    keys: [
      key("free", {}),
      key("requests", { limits: { requests_per_minute: PER_MINUTE } }),
      key("budget", { budget: { usd: "0.01", period: "total" } }),
      key("slots", { limits: { concurrency: SLOTS } }),
    ],
    admin: { key: { env: "ADMIN_KEY" } },
    trusted_proxies: ["127.0.0.1"],
    limits: { requests_per_client: PER_ADDRESS },
    shutdown: { drain_seconds: 1.5, images_drain_seconds: 1.5 },
  };
}

/** One transparent point. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/** An upstream whose streams go on for as long as it is told. */
function startHost(going: () => Promise<void>): Stepped {
  return startStepped(({ stream, body }) => {
    if (body.model === "pictures") {
      // Until then all who ask for it have come.
      const before = new Promise((resolve) => setTimeout(resolve, 500));
      if (body.prompt === "fail") return { status: 500, before, steps: ['{"error":{"message":"No"}}'] };
      return { before, steps: [JSON.stringify({ created: 1, data: [{ b64_json: PNG }] })] };
    }
    return countedAnswer(stream, { completion: TOKENS, going });
  });
}

interface Asking {
  key: string;
  stream?: boolean;
  /** Address of the client, as a proxy tells it. */
  from?: string;
}

/** Each request over a connection of its own: it is the connections that are spread over the isolates. */
const client = Deno.createHttpClient({ poolMaxIdlePerHost: 0 });

async function ask({ origin }: Running, { key, stream = false, from }: Asking): Promise<Response> {
  return await fetch(`${origin}/v1/chat/completions`, {
    client,
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${key}`,
      ...(from !== undefined && { "x-forwarded-for": from }),
    },
    body: JSON.stringify({
      model: "acme/one",
      max_tokens: TOKENS,
      stream,
      messages: [{ role: "user", content: "How are you?" }],
    }),
  });
}

function keyOf(name: string): string {
  return SECRETS[`KEY_${name.toUpperCase()}`] ?? "";
}

/** An answer that has been read. */
interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

async function read(asking: Promise<Response>): Promise<Answer> {
  const response = await asking;
  const { status, headers } = response;
  return { status, headers, text: await response.text() };
}

/** Many clients ask at once. */
async function hammer(
  gateway: Running,
  { requests, clients = 30, ...asking }: Asking & { requests: number; clients?: number },
): Promise<Answer[]> {
  const answers: Answer[] = [];
  let begun = 0;
  await Promise.all(Array.from({ length: clients }, async () => {
    while (begun++ < requests) answers.push(await read(ask(gateway, asking)));
  }));
  return answers;
}

function count(answers: readonly { status: number }[], status: number): number {
  return answers.filter((one) => one.status === status).length;
}

/** The isolates that have answered: each begins its ids with other letters. */
function isolatesOf(answers: readonly Answer[]): Set<string> {
  return new Set(answers.map(({ headers }) => headers.get("x-request-id")?.slice(0, 20) ?? ""));
}

async function admin({ origin }: Running, path: string, method = "GET"): Promise<JsonObject> {
  const response = await fetch(`${origin}/admin/v1/${path}`, {
    client,
    method,
    headers: { authorization: `Bearer ${ADMIN_KEY}` },
  });
  assertEquals(response.status, 200, path);
  return await response.json();
}

async function metricsOf({ origin }: Running): Promise<string> {
  const response = await fetch(`${origin}/metrics`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } });
  return await response.text();
}

/** The sum over the series of a family that have this text in their labels. */
function sumOf(metrics: string, { name, label = "" }: { name: string; label?: string }): number {
  const lines = metrics.split("\n").filter((line) => line.startsWith(name) && line.includes(label));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}

async function until(holds: () => boolean): Promise<void> {
  const begin = performance.now();
  while (!holds()) {
    assertLess(performance.now() - begin, 30_000, String(holds));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Everything that isolates of one process must have in common. */
async function assertOne(t: Deno.TestContext, { place, workers }: { place: Place; workers: number }): Promise<void> {
  let release = () => {};
  let going = Promise.resolve();
  await using host = startHost(() => going);
  const file = `${place.folder}/sluice.jsonc`;
  await Deno.writeTextFile(file, JSON.stringify(configFor(host)));
  const gateway = await start(["serve", "--workers", String(workers)], place);
  let asked = 0;
  async function hammered(asking: Parameters<typeof hammer>[1]): Promise<Answer[]> {
    const answers = await hammer(gateway, asking);
    asked += answers.length;
    return answers;
  }

  await t.step("all isolates answer", async () => {
    const answers = await hammered({ key: keyOf("free"), requests: 120 });
    assertEquals([count(answers, 200), isolatesOf(answers).size], [120, workers]);
  });

  await t.step("requests per minute", async () => {
    const answers = await hammered({ key: keyOf("requests"), requests: 200 });
    assertEquals([count(answers, 200), count(answers, 429)], [PER_MINUTE, 150]);
    assertEquals(isolatesOf(answers.filter(({ status }) => status === 200)).size, workers);
  });

  await t.step("a budget", async () => {
    const answers = await hammered({ key: keyOf("budget"), requests: 2 * PAID });
    assertEquals([count(answers, 200), count(answers, 429)], [PAID, PAID]);
  });

  await t.step("requests at one time", async () => {
    for (let round = 0; round < 2; round++) {
      ({ promise: going, resolve: release } = Promise.withResolvers<void>());
      const streams = await Promise.all(
        Array.from({ length: 30 }, () => ask(gateway, { key: keyOf("slots"), stream: true })),
      );
      asked += streams.length;
      assertEquals(count(streams, 200), SLOTS);
      release();
      await Promise.all(streams.map((stream) => stream.text()));
    }
  });

  await t.step("requests from one address", async () => {
    ({ promise: going, resolve: release } = Promise.withResolvers<void>());
    const from = "203.0.113.9";
    const streams = await Promise.all(
      Array.from({ length: 60 }, () => ask(gateway, { key: keyOf("free"), stream: true, from })),
    );
    asked += streams.length;
    assertEquals([count(streams, 200), count(streams, 429)], [PER_ADDRESS, 20]);
    release();
    await Promise.all(streams.map((stream) => stream.text()));
    going = Promise.resolve();
    const after = await hammered({ key: keyOf("free"), requests: 10, clients: PER_ADDRESS, from });
    assertEquals(count(after, 200), 10);
  });

  await t.step("wrong keys from one address", async () => {
    const from = "203.0.113.7";
    const answers: Answer[] = [];
    for (let index = 0; index < 40; index++) answers.push(await read(ask(gateway, { key: `wrong-${index}`, from })));
    asked += answers.length;
    assertEquals(answers.map(({ status }) => status), [...Array(20).fill(401), ...Array(20).fill(429)]);
    const others = await hammered({ key: keyOf("free"), requests: 40, from });
    assertEquals(count(others, 200), 40);
    const elsewhere = await hammered({ key: keyOf("free"), requests: 40, from: "203.0.113.8" });
    assertEquals(count(elsewhere, 200), 40);
  });

  await t.step("a request that comes again, everywhere at once", async () => {
    const everywhere = (prompt: string) =>
      Promise.all(Array.from({ length: 24 }, () =>
        read(fetch(`${gateway.origin}/v1/images/generations`, {
          client,
          method: "POST",
          headers: { authorization: `Bearer ${keyOf("free")}`, "idempotency-key": prompt },
          body: JSON.stringify({ model: "acme/pictures", prompt, size: "1024x1024", quality: "low" }),
        }))));
    const before = host.asked.length;
    const answers = await everywhere("a dot");
    assertEquals(new Set(answers.map(({ text }) => text)).size, 1, answers[0]?.text);
    assertEquals([count(answers, 200), isolatesOf(answers).size], [24, workers]);
    assertEquals(host.asked.length - before, 1);
    // All who wait are told of what failed: it is not tried again for each.
    const failed = await everywhere("fail");
    assertEquals([count(failed, 502), isolatesOf(failed).size], [24, workers]);
    assertEquals(host.asked.length - before, 2);
  });

  await t.step("one scrape shows all of them", async () => {
    const metrics = await metricsOf(gateway);
    const name = "sluice_requests_total";
    assertEquals(sumOf(metrics, { name, label: 'endpoint="chat"' }), asked);
    assertEquals(sumOf(metrics, { name: "sluice_request_seconds_count", label: 'endpoint="chat"' }), asked);
    assertEquals(sumOf(metrics, { name, label: 'endpoint="images.generations"' }), 48);
    assertEquals(sumOf(metrics, { name: "sluice_workers" }), workers);
    assertEquals(sumOf(metrics, { name: "sluice_ledger_healthy" }), 1);
    assertEquals(sumOf(metrics, { name: "sluice_config_version" }), 1);
    const { status, targets } = await admin(gateway, "health");
    assertEquals(status, "ok");
    assertEquals((targets as JsonObject[]).map(({ model }) => model).sort(), ["one", "pictures"]);
  });

  await t.step("a reload binds all of them", async () => {
    await Deno.writeTextFile(file, JSON.stringify(configFor(host, "0.00002")));
    await admin(gateway, "reload", "POST");
    const answers = await hammered({ key: keyOf("free"), requests: 60 });
    assertEquals(new Set(answers.map(({ headers }) => headers.get("x-sluice-cost"))), new Set(["0.0002"]));
    const versions = await Promise.all(Array.from({ length: 20 }, () => admin(gateway, "config")));
    assertEquals(new Set(versions.map(({ version }) => version)), new Set([2]));
    await Deno.writeTextFile(file, '{ "worker": 1 }');
    const refused = await fetch(`${gateway.origin}/admin/v1/reload`, {
      method: "POST",
      headers: { authorization: `Bearer ${ADMIN_KEY}` },
    });
    assertEquals([refused.status, (await refused.text()).includes("worker: Unknown member")], [400, true]);
    const told = await Promise.all(Array.from({ length: 20 }, () => admin(gateway, "config")));
    for (const { version, last_error } of told) assertEquals([version, last_error === undefined], [2, false]);
  });

  await t.step("a key that the command line revokes", async () => {
    await Deno.writeTextFile(file, JSON.stringify(configFor(host, "0.00002")));
    const added = await run(["keys", "add", "soon-gone"], place);
    const key = /sk-sluice-\S+/.exec(added.out)?.[0] ?? "";
    assertEquals(count(await hammer(gateway, { key, requests: 40 }), 200), 40, added.err);
    await run(["keys", "revoke", "soon-gone"], place);
    const answers = await hammer(gateway, { key, requests: 40 });
    assertEquals([count(answers, 401), isolatesOf(answers).size], [40, workers]);
  });

  await t.step(`SIGTERM with ${STREAMS} streams`, async () => {
    ({ promise: going, resolve: release } = Promise.withResolvers<void>());
    const before = host.asked.length;
    const streams = Array.from(
      { length: STREAMS },
      (_, index) => read(ask(gateway, { key: keyOf("free"), stream: true, from: `198.51.100.${index}` })),
    );
    await until(() => host.asked.length === before + STREAMS);
    gateway.kill("SIGTERM");
    setTimeout(release, 300);
    const answers = await Promise.all(streams);
    assertEquals(isolatesOf(answers).size, workers);
    for (const { text } of answers) assertStringIncludes(text, "data: [DONE]");
    const { code, err } = await gateway.ended;
    assertEquals(code, 0, err);
    for (const line of err.trimEnd().split("\n")) assertEquals(typeof JSON.parse(line).event, "string");
    assertMatch(err, new RegExp(`"event":"stopping","texts":${STREAMS},"images":0`));
    const store = openSqliteStore(`${place.folder}/data/sluice.db`);
    const entries = await readEntries(store.ledger);
    await store.close();
    const byId = new Map(entries.map((entry) => [`req_${entry.id}`, entry]));
    for (const { headers } of answers) assertEquals(byId.get(headers.get("x-request-id") ?? "")?.ending, "end");
    const audit = await run(["audit"], place);
    assertEquals(audit.code, 0, audit.out);
  });
}

for (const workers of [2, 3]) {
  Deno.test(`${workers} isolates of one process are one gateway`, (t) =>
    inFolder((folder) => assertOne(t, { place: { folder, env: SECRETS }, workers })));
}

Deno.test({
  name: "two isolates of the executable are one gateway",
  ignore: obstacle !== undefined,
  fn: (t) =>
    inFolder(async (folder) => {
      const executable = await compile(folder);
      await assertOne(t, { place: { folder, env: SECRETS, executable }, workers: 2 });
    }),
});

Deno.test("a process of several isolates that is killed has lost nothing, again and again", () =>
  inFolder(async (folder) => {
    await using load = createLoad(Math.random);
    await writeConfig(folder, load, { budget: { usd: "1000", period: "total" } });
    const env = { [KEY.env]: KEY.secret, UPSTREAM_KEY: "0123456789abcdef" };
    for (let round = 0; round < 4; round++) {
      const gateway = await start(["serve", "--workers", "3"], { folder, env });
      const running = load.run(gateway.origin, 16);
      const enough = load.tried.length + 120;
      await until(() => load.tried.length >= enough);
      gateway.kill("SIGKILL");
      await gateway.ended;
      await running.stop();
    }
    // What was held when it was killed is lost after its lease; until then nobody else may have it.
    const store = openSqliteStore(`${folder}/sluice.db`);
    const entries = await readEntries(store.ledger);
    await store.close();
    const { complete } = assertTold(entries, load.tried);
    assert(complete > 100, String(complete));
    assertEquals((await run(["audit"], { folder, env })).code, 0);
  }));

Deno.test("an admin side of its own tells of all isolates, and a store in memory is one for all", () =>
  inFolder(async (folder) => {
    await using host = startHost(() => Promise.resolve());
    const config = (price?: string) => ({
      ...configFor(host, price),
      store: "memory:",
      admin: { key: { env: "ADMIN_KEY" }, listen: { port: 0 } },
    });
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(config()));
    const gateway = await start(["serve"], { folder, env: { ...SECRETS, SLUICE_WORKERS: "2" } });
    const operator = { ...gateway, origin: /Admin side: (\S+)\/admin\/v1/.exec(gateway.banner)?.[1] ?? "" };
    const headers = { authorization: `Bearer ${ADMIN_KEY}` };
    const made = await fetch(`${operator.origin}/admin/v1/keys`, {
      method: "POST",
      headers,
      body: JSON.stringify({ name: "new", group: "default", rules: { budget: { usd: "0.01", period: "total" } } }),
    });
    const { key } = await made.json();
    const answers = await hammer(gateway, { key, requests: 150 });
    assertEquals([count(answers, 200), count(answers, 429), isolatesOf(answers).size], [PAID, 50, 2]);
    const metrics = await metricsOf(operator);
    assertEquals(sumOf(metrics, { name: "sluice_requests_total", label: 'endpoint="chat"' }), 150);
    assertEquals([sumOf(metrics, { name: "sluice_workers" }), sumOf(metrics, { name: "sluice_cost_usd" })], [2, 0.01]);
    const { lines } = await admin(operator, "usage");
    assertEquals((lines as JsonObject[])[0]?.cost_usd, "0.01");
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(config("0.00002")));
    await admin(operator, "reload", "POST");
    const dearer = await hammer(gateway, { key: keyOf("free"), requests: 40 });
    assertEquals(new Set(dearer.map(({ headers }) => headers.get("x-sluice-cost"))), new Set(["0.0002"]));
    for (const path of ["/metrics", "/admin/v1/health"]) {
      assertEquals((await read(fetch(`${gateway.origin}${path}`, { headers }))).status, 404);
    }
    assertEquals((await read(fetch(`${operator.origin}/readyz`))).status, 200);
    gateway.kill("SIGTERM");
    assertEquals((await gateway.ended).code, 0);
  }));

Deno.test("a second signal ends all isolates at once, with exit code 1", () =>
  inFolder(async (folder) => {
    await using host = startHost(() => new Promise(() => {}));
    const config = { ...configFor(host), shutdown: { drain_seconds: 30 } };
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(config));
    const place = { folder, env: SECRETS };
    const gateway = await start(["serve", "--workers", "2"], place);
    const streams = await Promise.all(
      Array.from({ length: 20 }, () => ask(gateway, { key: keyOf("free"), stream: true })),
    );
    assertEquals(count(streams, 200), 20);
    gateway.kill("SIGTERM");
    await new Promise((resolve) => setTimeout(resolve, 350));
    const begin = performance.now();
    gateway.kill("SIGTERM");
    const { code } = await gateway.ended;
    assertLess(performance.now() - begin, 1_000);
    assertEquals(code, 1);
    await Promise.all(streams.map((stream) => stream.text().catch(() => {})));
    assertEquals((await run(["audit"], place)).code, 0);
  }));

Deno.test("a port in use ends the start with one line, also where several isolates would share it", () =>
  inFolder(async (folder) => {
    await using host = startHost(() => Promise.resolve());
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(configFor(host)));
    const gateway = await start(["serve", "--workers", "2"], { folder, env: SECRETS });
    const { port } = new URL(gateway.origin);
    const other = { folder, env: { ...SECRETS, SLUICE_STORE: "memory:", SLUICE_WORKERS: "2" } };
    const { code, err } = await run(["serve", "--port", port], other);
    assertEquals([code, err.split("\n").length], [1, 2], err);
    assertMatch(err, /^Cannot listen on 127\.0\.0\.1:\d+: the port is in use; choose another one with --port$/m);
    gateway.kill("SIGTERM");
    assertEquals((await gateway.ended).code, 0);
  }));
