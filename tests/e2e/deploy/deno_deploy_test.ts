/** The program as Deno Deploy runs it: short-lived instances on one Postgres and one Redis, without a disk. */
import { assert, assertEquals, assertGreater, assertLess, assertMatch, assertStringIncludes } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { auditLedger } from "../../../lib/billing/reports/audit.ts";
import { Secret } from "../../../lib/secret.ts";
import { openStore } from "../../../lib/store/open.ts";
import type { KeptEntry } from "../../../lib/store/ledger.ts";
import type { Store } from "../../../lib/store/store.ts";
import { freshDatabase, HAS_POSTGRES, HAS_REDIS, isStarved, startRedis } from "../../support/databases.ts";
import { readEntries } from "../nodes/cluster.ts";
import { frames, whole } from "../../upstream/frames.ts";
import { type FakeUpstream, startUpstream } from "../../upstream/mod.ts";
import { type App, deploy, type Instance } from "./deployed.ts";
import { until } from "../../support/soon.ts";
import { plainModel, plainUpstream } from "../../support/plain_model.ts";

/** The tested runtimes: this one, and one older than the platform's where available. */
const RUNTIMES: [name: string, deno: string][] = [["this runtime", Deno.execPath()], ...olderRuntime()];

const ADMIN_KEY = "admin-key-of-the-app";
const OPTIONS = { ignore: !(HAS_POSTGRES && HAS_REDIS) };

/** Longest wait on a busy machine, in milliseconds. The platform kills 5 seconds after its signal, on a quiet one. */
const PATIENCE_MS = 90_000;

/** Cost of a completed answer, in 1e-12 USD: 5 tokens. */
const COST = 50_000_000n;
/** Cost of the image, by its size and the length of its prompt. */
const IMAGE_COST = 17_209_500_000n;
/** Limit of the limited key in requests per minute, and the number of requests sent with it. */
const RATE = 20;
const ASKED = 45;

/** The runtime of `COMPILE_DENO`. Its own path is used: a wrapper script would not forward signals. */
function olderRuntime(): [string, string][] {
  const deno = Deno.env.get("COMPILE_DENO");
  if (deno === undefined) return [];
  const { code, stdout } = new Deno.Command(deno, {
    args: ["eval", "console.log(Deno.version.deno, Deno.execPath())"],
    env: { NO_COLOR: "1" },
  }).outputSync();
  const [version = "", path] = new TextDecoder().decode(stdout).trim().split(" ");
  return code !== 0 || path === undefined || version === Deno.version.deno ? [] : [[`Deno ${version}`, path]];
}

function configFor(host: FakeUpstream): JsonObject {
  return {
    upstreams: { one: plainUpstream(host.url) },
    models: [plainModel({
      pricing: { prompt: "0", completion: "0.00001" },
      targets: [{ upstream: "one", model: "m" }],
    })],
    groups: {
      limited: { key_limits: { requests_per_minute: RATE } },
    },
    admin: { key: { env: "ADMIN_KEY" } },
    nodes: { limits_timeout_ms: 5_000 },
  };
}

/** An upstream that answers; a stream asked to "stay" sends one word and stays open until the caller leaves. */
function startHost(): FakeUpstream {
  return startUpstream(({ stream, body }) => {
    if (!stream) return { steps: [whole("chat", "Hello", "reported")] };
    const { opening, pieces, ending } = frames("chat", ["Hello ", "there"], "reported");
    const [first = "", ...others] = pieces;
    const isEndless = body.includes("stay");
    return { steps: [...opening, first, ...(isEndless ? [new Promise(() => {})] : []), ...others, ...ending] };
  });
}

interface Question {
  key: string;
  stream?: boolean;
  text?: string;
  signal?: AbortSignal;
}

async function ask(instance: Instance, question: Question): Promise<Response> {
  const { key, stream = false, text = "go", signal } = question;
  const response = await fetch(`${instance.origin}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "acme/one", max_tokens: 10, stream, messages: [{ role: "user", content: text }] }),
    ...(signal !== undefined && { signal }),
  });
  if (response.status !== 503) return response;
  const refusal = await response.text();
  if (isStarved(response.status, refusal)) return await ask(instance, question);
  return new Response(refusal, response);
}

/** The request's id, as the ledger has it. */
function idOf(response: Response): string {
  return (response.headers.get("x-request-id") ?? "").replace(/^req_/, "");
}

/** Reads until the first word of the answer. */
async function firstWord(response: Response): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const reader = (response.body ?? new ReadableStream<Uint8Array<ArrayBuffer>>()).getReader();
  let text = "";
  while (!text.includes("Hello")) {
    const { done, value } = await reader.read();
    assertEquals(done, false, text);
    text += new TextDecoder().decode(value);
  }
  return reader;
}

async function addKey(instance: Instance, name: string, group = "default"): Promise<string> {
  const response = await fetch(`${instance.origin}/admin/v1/keys`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${ADMIN_KEY}` },
    body: JSON.stringify({ name, group }),
  });
  const text = await response.text();
  assertEquals(response.status, 201, text);
  return /sk-sluice-[\w-]+/.exec(text)?.[0] ?? "";
}

async function filesOf(folder: string): Promise<string[]> {
  const files: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    files.push(...isDirectory ? await filesOf(`${folder}/${name}`) : [`${folder}/${name}`]);
  }
  return files.sort();
}

for (const [name, deno] of RUNTIMES) {
  Deno.test({
    name: `instances of an app share keys, limits and the ledger, and may end at any time: ${name}`,
    ...OPTIONS,
    fn: (t) => share(t, deno),
  });
}

async function share(t: Deno.TestContext, deno: string): Promise<void> {
  await using open = new AsyncDisposableStack();
  const host = open.use(startHost());
  const database = open.use(await freshDatabase());
  const redis = open.use(await startRedis());
  const app = open.use(await deploy(deno));

  await t.step("an app without a database does not start, and says in one line what to set", async () => {
    const { code, out, err } = await app.run({});
    assertEquals([code, out], [1, ""]);
    assertMatch(err, /^store: On Deno Deploy [^\n]*SLUICE_STORE[^\n]*\n$/);
    const limited = await app.run({
      DATABASE_URL: "postgres://sluice:hunter2@127.0.0.1:1/s",
      SLUICE_CONFIG_TEXT: JSON.stringify({ groups: { default: { limits: { concurrency: 1 } } } }),
    });
    assertEquals([limited.code, limited.out], [1, ""]);
    assertMatch(limited.err, /^limits_store: On Deno Deploy [^\n]*REDIS_URL[^\n]*\n$/);
  });

  await t.step("an app whose database is unreachable reports it without a password", async () => {
    const { code, out, err } = await app.run({ DATABASE_URL: "postgres://sluice:hunter2@127.0.0.1:1/s" });
    assertEquals([code, out], [1, ""]);
    assertEquals([err.includes("hunter2"), err.trimEnd().includes("\n")], [false, false], err);
  });

  const files = await filesOf(app.folder);
  const env = {
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
    SLUICE_CONFIG_TEXT: JSON.stringify(configFor(host)),
    ADMIN_KEY,
  };
  const instances = await startTogether(app, env);
  for (const instance of instances) open.use(instance);
  const [first, second, third] = instances;
  const store = await openStore({ kind: "postgres", url: new Secret(database.url) });
  open.defer(() => store.close());

  async function entryOf(id: string): Promise<KeptEntry> {
    let entry: KeptEntry | undefined;
    await until("an entry", async () => (entry = await store.ledger.find(id)) !== undefined);
    return entry as KeptEntry;
  }

  async function assertBilled(response: Response, billed: bigint): Promise<void> {
    const { status, cost, ending } = await entryOf(idOf(response));
    assertEquals([status, cost, ending !== "client_disconnected"], [200, billed, true]);
  }

  await t.step("no instance creates a key, which the platform's log would keep", async () => {
    assertEquals(await store.keys.list(), []);
  });

  const key = await addKey(first, "app");

  await t.step("whole answers and streams on each instance, and images", async () => {
    for (const instance of instances) {
      const answer = await ask(instance, { key });
      assertEquals([answer.status, (await answer.json()).choices[0].message.content], [200, "Hello"]);
      const stream = await ask(instance, { key, stream: true });
      assertEquals((await stream.text()).trimEnd().split("\n").at(-1), "data: [DONE]");
      for (const [response, cost] of [[answer, COST], [stream, COST]] as const) await assertBilled(response, cost);
    }
    for (const [format, start] of [["webp", "UklG"], ["jpeg", "/9j/"]] as const) {
      const image = await fetch(`${second.origin}/v1/images/generations`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
        body: JSON.stringify({
          ...{ model: "sluice/canvas", prompt: "A ship", size: "1024x640", quality: "low" },
          output_format: format,
        }),
      });
      const { data } = await image.json();
      assertEquals([image.status, data[0].b64_json.slice(0, 4)], [200, start]);
      await assertBilled(image, IMAGE_COST);
    }
  });

  await t.step("a limit applies to all instances together", async () => {
    const limited = await addKey(second, "limited", "limited");
    const statuses = await Promise.all(Array.from({ length: ASKED }, async (_, index) => {
      const response = await ask(instances[index % 3] ?? first, { key: limited });
      await response.text();
      return response.status;
    }));
    const count = (status: number) => statuses.filter((one) => one === status).length;
    assertEquals([count(200), count(429)], [RATE, ASKED - RATE]);
  });

  await t.step("disconnected clients are billed once, and connected ones are not taken for disconnected", async () => {
    const gone = await Promise.all(instances.flatMap((instance) =>
      Array.from({ length: 4 }, async () => {
        const leaving = new AbortController();
        const response = await ask(instance, { key, stream: true, text: "stay", signal: leaving.signal });
        const reader = await firstWord(response);
        leaving.abort();
        await reader.read().catch(() => {});
        return idOf(response);
      })
    ));
    const stayed = await Promise.all(instances.flatMap((instance) =>
      Array.from({ length: 4 }, async (_, index) => {
        const response = await ask(instance, { key, stream: index % 2 === 0 });
        await response.text();
        return idOf(response);
      })
    ));
    for (const id of gone) {
      const entry = await entryOf(id);
      assertEquals(entry.ending, "client_disconnected");
      assert(entry.cost > 0n && entry.cost < COST, String(entry.cost));
    }
    for (const id of stayed) assertEquals([(await entryOf(id)).ending, (await entryOf(id)).cost], ["end", COST]);
    const ids = (await readEntries(store.ledger)).map(({ id }) => id);
    assertEquals(new Set(ids).size, ids.length);
    assertEquals([...gone, ...stayed].filter((id) => ids.includes(id)).length, 24);
  });

  await t.step("a stopped instance ends in time, with complete answers and entries", async () => {
    const response = await ask(second, { key, stream: true, text: "stay" });
    const reader = await firstWord(response);
    const begun = performance.now();
    second.kill("SIGINT");
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      text += new TextDecoder().decode(value);
    }
    assertMatch(text, /shutting down/);
    const { code } = await second.ended;
    assertEquals(code, 0);
    assertLess(performance.now() - begun, PATIENCE_MS);
    const { ending, cost } = await entryOf(idOf(response));
    assertEquals([ending, cost], ["failed", 0n]);
  });

  await t.step("the audit passes, and no file was written", async () => {
    await assertSound(store);
    assertEquals(await filesOf(app.folder), files);
    for (const instance of instances) instance.kill("SIGINT");
    const results = await Promise.all([first.ended, second.ended, third.ended]);
    for (const { out, err } of results) {
      assertStringIncludes(out, "Add a key: SLUICE_STORE=ADDRESS npx");
      assertEquals([ADMIN_KEY, "sk-sluice-"].filter((key) => `${out}${err}`.includes(key)), []);
    }
  });
}

/** Three instances that start at the same time on an empty database, as after a deployment. */
async function startTogether(app: App, env: Record<string, string>): Promise<[Instance, Instance, Instance]> {
  const [first, second, third] = await Promise.all([app.start(env), app.start(env), app.start(env)]);
  assert(first !== undefined && second !== undefined && third !== undefined);
  return [first, second, third];
}

async function assertSound({ ledger }: Pick<Store, "ledger">): Promise<void> {
  const { ok, differences, checked } = await auditLedger(ledger);
  assertEquals([ok, differences], [true, []]);
  assertGreater(checked.entries, 0);
}
