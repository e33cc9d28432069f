import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { createReloadRequests, type ReloadRequests } from "../../lib/cli/loaded_config.ts";
import { startLiveGateway, startReloading } from "../../lib/cli/live_gateway.ts";
import { ConfigError } from "../../lib/config.ts";
import { type ConfigFlags, readConfig } from "../../lib/config/load.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { ConfigStoreError, createReloader, type ReloadResult, type ReloadTrigger } from "../../lib/config/reloader.ts";
import { openSharedConfig, type SharedConfigSource } from "../../lib/config/shared_config.ts";
import { closeGateway, type Gateway } from "../../lib/gateway.ts";
import { createApp } from "../../lib/server/app.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import { StoreError } from "../../lib/store/store.ts";
import { routes } from "../../routes/manifest.ts";
import { openMemoryConfigs } from "./memory_configs.ts";
import { until } from "../support/soon.ts";

const ADMIN_KEY = "admin-key-0123456789";
const BASE: JsonObject = {
  store: "postgres://127.0.0.1/sluice",
  nodes: { config: "store" },
  admin: { key: { env: "ADMIN_KEY" } },
};

interface NodeOptions {
  configs: ReturnType<typeof openMemoryConfigs>;
  file: JsonObject;
  env?: Record<string, string>;
  flags?: ConfigFlags;
}

interface Bench {
  source: SharedConfigSource;
  lines: Record<string, unknown>[];
  write(file: JsonObject | string): void;
}

async function openBench({ configs, file, env = {}, flags = {} }: NodeOptions): Promise<Bench> {
  let text = textOf(file);
  const lines: Record<string, unknown>[] = [];
  const secrets = new Map(Object.entries({ ADMIN_KEY, ...env }));
  const source = await openSharedConfig({
    configs,
    find: () => Promise.resolve({ text, path: "sluice.jsonc" }),
    read: (text, change) =>
      readConfig(text, {
        flags,
        env: (name) => secrets.get(name),
        readTextFile: (path) => Deno.readTextFile(path),
        ...(change !== undefined && { change }),
      }),
    log: (line) => void lines.push(line),
  });
  return { source, lines, write: (file) => void (text = typeof file === "string" ? file : textOf(file)) };
}

function textOf(file: JsonObject): string {
  return JSON.stringify({ ...BASE, ...file });
}

function says({ source }: Bench): number {
  return source.loaded.config.keep_alive_seconds;
}

Deno.test("the first node stores its file, the others use it and log differences to their own", async () => {
  const configs = openMemoryConfigs();
  const first = await openBench({ configs, file: { keep_alive_seconds: 21 } });
  assertEquals([says(first), first.source.loaded.shared, first.source.latest()], [21, 1, 1]);
  assertEquals(first.lines, [{ level: "info", event: "shared_config_stored", version: 1 }]);
  const same = await openBench({ configs, file: { keep_alive_seconds: 21 } });
  assertEquals(same.lines, [{ level: "info", event: "shared_config_used", version: 1 }]);
  const other = await openBench({ configs, file: { keep_alive_seconds: 22 } });
  assertEquals([says(other), other.source.loaded.shared, other.source.loaded.path], [21, 1, undefined]);
  assertEquals(other.lines, [
    { level: "info", event: "shared_config_used", version: 1 },
    { level: "warn", event: "shared_config_differs", version: 1, source: "sluice.jsonc" },
  ]);
  assertEquals(configs.texts.length, 1);
});

Deno.test("a node's own members, flags and variables take precedence over the shared text", async () => {
  const configs = openMemoryConfigs();
  await openBench({
    configs,
    file: {
      listen: { port: 1001 },
      admin: { key: { env: "ADMIN_KEY" }, listen: { port: 1002 } },
      limits_store: "redis://there",
      nodes: { config: "store", key_age_seconds: 1 },
      log: { level: "warn" },
    },
  });
  const cases: [JsonObject, ConfigFlags, unknown[]][] = [
    [{}, {}, ["127.0.0.1", 8790, undefined, "memory", 300, "warn"]],
    [
      {
        listen: { port: 7 },
        admin: { key: { env: "ADMIN_KEY" }, listen: { port: 8 } },
        nodes: { config: "store", key_age_seconds: 5 },
        limits_store: "redis://here",
      },
      {},
      ["127.0.0.1", 7, 8, "redis", 5, "warn"],
    ],
    [{ listen: { port: 7 } }, { hostname: "0.0.0.0", port: "9" }, ["0.0.0.0", 9, undefined, "memory", 300, "warn"]],
  ];
  for (const [file, flags, expected] of cases) {
    const { source: { loaded: { config } }, lines } = await openBench({ configs, file, flags });
    assertEquals([
      config.listen.hostname,
      config.listen.port,
      config.admin?.listen?.port,
      config.limits_store.kind,
      config.nodes.key_age_seconds,
      config.log.level,
    ], expected);
    assertEquals(lines.map(({ event }) => event), ["shared_config_used", "shared_config_differs"]);
  }
});

Deno.test("a local store has no shared configuration", () => {
  for (const store of [undefined, "memory:", "sqlite:./sluice.db"]) {
    const file: JsonObject = { nodes: { config: "store" }, ...(store !== undefined && { store }) };
    try {
      parseConfig(file);
      throw new Error("It was taken");
    } catch (error) {
      assert(error instanceof ConfigError);
      assertEquals(error.problems, [
        'nodes.config: "store" needs a shared store: set `store` to a Postgres database',
      ]);
    }
  }
  for (const store of ["postgres://h/d", "postgresql://h/d"]) {
    assertEquals(parseConfig({ nodes: { config: "store" }, store }).nodes.config, "store");
  }
});

Deno.test("an operator's trigger stores the file, and a merely touched file does not", async () => {
  const configs = openMemoryConfigs();
  const [one, two] = [
    await openBench({ configs, file: { keep_alive_seconds: 10 } }),
    await openBench({ configs, file: { keep_alive_seconds: 10 } }),
  ];
  const load = async ({ source }: Bench, trigger: ReloadTrigger) => {
    const { config, shared } = await source.load(trigger);
    return [config.keep_alive_seconds, shared];
  };
  one.write({ keep_alive_seconds: 11 });
  assertEquals(await load(one, "file"), [11, 2]);
  assertEquals(await load(two, "store"), [11, 2]);
  // The other node's file still has 10.
  assertEquals(await load(two, "file"), [11, 2]);
  assertEquals(configs.texts.length, 2);
  for (const trigger of ["signal", "admin"] as const) {
    assertEquals((await load(two, trigger))[0], 10);
    assertEquals((await load(one, trigger))[0], 11);
  }
  assertEquals(await load(one, "admin"), [11, 6]);
  // An invalid file is not published, and a file that returns to its last published text is no change.
  one.write("{");
  await assertRejects(() => one.source.load("file"), ConfigError);
  await load(two, "signal");
  one.write({ keep_alive_seconds: 11 });
  assertEquals(await load(one, "file"), [10, 7]);
  one.write({ keep_alive_seconds: 12 });
  assertEquals(await load(one, "file"), [12, 8]);
});

Deno.test("a node that cannot use the shared text starts with its own file", async () => {
  const configs = openMemoryConfigs();
  const upstreams = { host: { vendor: "openai", api_key: { env: "HOST_KEY" } } };
  const able = await openBench({ configs, file: { upstreams, keep_alive_seconds: 10 }, env: { HOST_KEY: "x-1" } });
  const unable = await openBench({ configs, file: { keep_alive_seconds: 11 } });
  assertEquals([says(unable), unable.source.loaded.shared, unable.source.latest()], [11, undefined, 1]);
  assertEquals(unable.lines, [{ level: "error", event: "shared_config_rejected", version: 1 }]);
  const error = await assertRejects(() => unable.source.load("store"), ConfigError);
  assertMatch(error.message, /^store, version 1:1:\d+: upstreams\.host\.api_key\.env: .*"HOST_KEY" is not set/);
  able.write({ keep_alive_seconds: 12 });
  await able.source.load("file");
  assertEquals((await unable.source.load("store")).config.keep_alive_seconds, 12);
});

Deno.test("an invalid shared text is reported with its version, and a missing one changes nothing", async () => {
  const configs = openMemoryConfigs();
  const { source } = await openBench({ configs, file: { keep_alive_seconds: 10 } });
  await configs.put('{\n  "keep_alive_seconds": }');
  const error = await assertRejects(() => source.load("store"), ConfigError);
  assertMatch(error.message, /^store, version 2:2:\d+: /);
  const emptied = { ...configs, latest: () => Promise.resolve(undefined) };
  const other = await openBench({
    configs: Object.assign(emptied, { isAway: false }),
    file: { keep_alive_seconds: 7 },
  });
  assertEquals((await other.source.load("store")).config.keep_alive_seconds, 7);
});

Deno.test("without the store neither start nor reload is possible", async () => {
  const configs = openMemoryConfigs();
  configs.isAway = true;
  const error = await assertRejects(() => openBench({ configs, file: {} }), StoreError);
  assert(error instanceof ConfigStoreError);
  configs.isAway = false;
  const { source, write } = await openBench({ configs, file: {} });
  configs.isAway = true;
  write({ keep_alive_seconds: 20 });
  for (const trigger of ["store", "file", "signal", "admin"] as const) {
    await assertRejects(() => source.load(trigger), ConfigStoreError);
  }
  configs.isAway = false;
  // The change is not lost.
  assertEquals((await source.load("file")).shared, 2);
});

Deno.test("concurrent reloads run as the highest trigger", async () => {
  const { loaded } = (await openBench({ configs: openMemoryConfigs(), file: {} })).source;
  const gate = Promise.withResolvers<void>();
  const triggers: ReloadTrigger[] = [];
  const reloader = createReloader({
    first: loaded,
    async load(trigger) {
      triggers.push(trigger);
      await gate.promise;
      return loaded;
    },
    latest: () => 1,
    apply() {},
    now: () => 0,
    log() {},
  });
  const all = (["store", "store", "signal", "file", "admin", "store"] as const).map((trigger) =>
    reloader.reload(trigger)
  );
  gate.resolve();
  await Promise.all(all);
  assertEquals(triggers, ["store", "admin"]);
});

/** Reloads that fail as scripted, and a record of what was requested. */
function scripted(answers: Partial<Record<ReloadTrigger, ("away" | "refused" | "done")[]>>): {
  triggers: ReloadTrigger[];
  reloading: ReloadRequests;
} {
  const triggers: ReloadTrigger[] = [];
  const outcomes: Record<"away" | "refused" | "done", ReloadResult> = {
    away: { outcome: "refused", problems: ["away"], isAway: true },
    refused: { outcome: "refused", problems: ["no"] },
    done: { outcome: "changed", ignored: [] },
  };
  const reload = (trigger: ReloadTrigger): Promise<ReloadResult> => {
    triggers.push(trigger);
    return Promise.resolve(outcomes[answers[trigger]?.shift() ?? "done"]);
  };
  return { triggers, reloading: createReloadRequests({ reload }, 1) };
}

Deno.test("a reload during an outage is retried, a rejected one is not", async () => {
  const { triggers, reloading } = scripted({ store: ["refused", "away", "away"], file: ["away", "away", "done"] });
  reloading.request("store");
  await until("triggers", () => triggers.length === 1);
  reloading.request("file");
  reloading.request("store");
  await until("the file's change is in the store", () => triggers.filter((trigger) => trigger === "file").length === 3);
  const countOf = (wanted: ReloadTrigger) => triggers.filter((trigger) => trigger === wanted).length;
  await until("what the store has is read", () => countOf("store") >= 4);
  assertEquals(countOf("file"), 3);
  const before = triggers.length;
  await new Promise((resolve) => setTimeout(resolve, 20));
  assertEquals(triggers.length, before);
  reloading.end();
});

Deno.test("a reload that failed is not tried again after end()", async () => {
  const { triggers, reloading } = scripted({ file: Array.from({ length: 1_000 }, () => "away" as const) });
  reloading.request("file");
  await until("tried", () => triggers.length > 2);
  reloading.end();
  const before = triggers.length;
  await new Promise((resolve) => setTimeout(resolve, 20));
  assertEquals(triggers.length, before);
});

interface Node extends AsyncDisposable {
  gateway: () => Gateway;
  lines: Record<string, unknown>[];
  write(file: JsonObject): void;
  admin(method: string, path: string): Promise<{ status: number; body: Record<string, unknown> }>;
  ready(): Promise<string>;
  metric(name: string): Promise<string | undefined>;
  /** Ends what waits for changes. */
  deafen(): void;
}

/** A whole gateway that applies the shared configuration. */
async function startNode(options: NodeOptions): Promise<Node> {
  const { configs } = options;
  const folder = await Deno.makeTempDir();
  const path = `${folder}/sluice.jsonc`;
  const write = (file: JsonObject) => Deno.writeTextFileSync(path, textOf(file));
  write(options.file);
  const lines: Record<string, unknown>[] = [];
  const log = (line: Record<string, unknown>) => void lines.push(line);
  const secrets = new Map(Object.entries({ ADMIN_KEY, ...options.env }));
  const source = await openSharedConfig({
    configs,
    find: async () => ({ text: await Deno.readTextFile(path), path }),
    read: (text, change) =>
      readConfig(text, {
        flags: {},
        env: (name) => secrets.get(name),
        readTextFile: (path) => Deno.readTextFile(path),
        ...(change !== undefined && { change }),
      }),
    log,
  });
  const shared = {
    configs,
    nodes: undefined as never,
    reach: () => ({ up: true, isReadable: true, downMs: 0, waiting: 0 }),
  };
  const store = { ...openMemoryStore(), shared };
  const gateway = startLiveGateway({ ...source, store, now: Date.now, log });
  const deafen = startReloading(gateway(), { path });
  const app = createApp({ routes, surface: "both", gateway });
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request, info) => app(request, info));
  const origin = `http://127.0.0.1:${server.addr.port}`;
  const ask = (path: string, method = "GET") =>
    fetch(origin + path, { method, headers: { authorization: `Bearer ${ADMIN_KEY}` } });
  return {
    gateway,
    lines,
    write,
    async admin(method, path) {
      const response = await ask(`/admin/v1/${path}`, method);
      return { status: response.status, body: await response.json() };
    },
    ready: async () => (await (await ask("/readyz")).json()).status,
    async metric(name) {
      const text = await (await ask("/metrics")).text();
      return text.split("\n").find((line) => line.startsWith(`${name} `))?.slice(name.length + 1);
    },
    deafen,
    async [Symbol.asyncDispose]() {
      deafen();
      await server.shutdown();
      await closeGateway(gateway());
      await store.close();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

Deno.test("a node that cannot use a new text keeps the current one, reports why, and follows the next", async () => {
  const configs = openMemoryConfigs();
  const file = { keep_alive_seconds: 10 };
  const keys = [{ name: "ci", key: { env: "CI_KEY" } }];
  await using able = await startNode({ configs, file, env: { CI_KEY: "ci-key-0123456789abcdef" } });
  await using unable = await startNode({ configs, file });
  const first = unable.gateway();
  able.write({ keep_alive_seconds: 11, keys });
  assertEquals((await able.admin("POST", "reload")).status, 200);
  await until("it knows that it is behind", async () => await unable.ready() === "degraded");
  assert(unable.gateway() === first);
  const { body } = await unable.admin("GET", "config");
  const { last_error } = body as { last_error: { problems: string[] } };
  assertEquals(body.shared, { version: 1, latest: 2, is_current: false });
  assertEquals(last_error.problems.length, 1);
  assertMatch(last_error.problems[0] ?? "", /^store, version 2:1:\d+: keys\[0\]\.key\.env: .*"CI_KEY" is not set/);
  assertEquals(unable.lines.filter(({ event }) => event === "reload_refused").map(({ trigger }) => trigger), ["store"]);
  const { body: health } = await unable.admin("GET", "health");
  assertEquals([health.status, health.is_current], ["degraded", false]);
  assertEquals([await unable.metric("sluice_config_healthy"), await able.metric("sluice_config_healthy")], ["0", "1"]);

  able.write({ keep_alive_seconds: 12 });
  assertEquals((await able.admin("POST", "reload")).status, 200);
  await until("it follows again", () => unable.gateway().config.keep_alive_seconds === 12);
  assertEquals([await unable.ready(), await unable.metric("sluice_config_healthy")], ["ok", "1"]);
  assertEquals((await unable.admin("GET", "config")).body.last_error, undefined);
});

Deno.test("during an outage a reload fails with 503, and a changed file applies to all nodes afterwards", async () => {
  const configs = openMemoryConfigs();
  await using one = await startNode({ configs, file: { keep_alive_seconds: 10 } });
  await using two = await startNode({ configs, file: { keep_alive_seconds: 10 } });
  configs.isAway = true;
  one.write({ keep_alive_seconds: 13 });
  await until("the file was noticed", () => one.lines.some(({ trigger }) => trigger === "file"));
  assertEquals((await one.admin("POST", "reload")).status, 503);
  assertEquals(one.gateway().config.keep_alive_seconds, 10);
  configs.isAway = false;
  await until("the change is in force elsewhere", () => two.gateway().config.keep_alive_seconds === 13);
  assertEquals(one.gateway().config.keep_alive_seconds, 13);
  const away = one.lines.filter(({ problem }) => String(problem).includes("unreachable"));
  assertEquals(away.length, 1);
});
