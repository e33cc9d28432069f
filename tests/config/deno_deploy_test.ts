import { assertEquals, assertRejects } from "@std/assert";
import { type Config, ConfigError } from "../../lib/config.ts";
import { loadConfig } from "../../lib/config/load.ts";
import type { Json } from "../../lib/json/mod.ts";

const DEPLOY = { DENO_DEPLOY: "true", DATABASE_URL: "postgresql://u:p@db:5432/app-production" };
const LIMITED = { groups: { team: { key_limits: { requests_per_minute: 10 } } } };

async function load(env: Record<string, string>, file?: Json): Promise<Config> {
  const { config } = await loadConfig({
    flags: {},
    env: (name) => new Map(Object.entries(env)).get(name),
    readTextFile: () =>
      file === undefined ? Promise.reject(new Deno.errors.NotFound("gone")) : Promise.resolve(JSON.stringify(file)),
  });
  return config;
}

async function problems(env: Record<string, string>, file?: Json): Promise<string[]> {
  return (await assertRejects(() => load(env, file), ConfigError)).problems
    .map((line) => line.replace(/^sluice\.jsonc:1:\d+: /, ""));
}

function revealed({ store }: Pick<Config, "store">): string {
  return store.kind === "postgres" ? store.url.reveal() : store.kind;
}

Deno.test("on Deno Deploy the attached database is the default store", async () => {
  const parts = {
    ...{ DENO_DEPLOY: "1", PGHOST: "db.example", PGPORT: "6543", PGDATABASE: "app--fix/it", PGUSER: "sluice" },
    ...{ PGPASSWORD: "p@/:%w", PGSSLMODE: "require" },
  };
  const fromParts = "postgres://sluice:p%40%2F%3A%25w@db.example:6543/app--fix/it?sslmode=require";
  const cases: [Record<string, string>, string][] = [
    [DEPLOY, DEPLOY.DATABASE_URL],
    [{ ...DEPLOY, PGSSLMODE: "verify-full" }, `${DEPLOY.DATABASE_URL}?sslmode=verify-full`],
    [
      { ...DEPLOY, DATABASE_URL: `${DEPLOY.DATABASE_URL}?sslmode=require`, PGSSLMODE: "prefer" },
      `${DEPLOY.DATABASE_URL}?sslmode=require`,
    ],
    [{ ...DEPLOY, SLUICE_STORE: "postgres://mine/s" }, "postgres://mine/s"],
    [{ ...DEPLOY, SLUICE_STORE: "" }, DEPLOY.DATABASE_URL],
    [parts, fromParts],
    [{ ...parts, DATABASE_URL: "mysql://u:p@db/s" }, fromParts],
  ];
  for (const [env, address] of cases) assertEquals(revealed(await load(env)), address);
});

Deno.test("elsewhere the variables of Deno Deploy are ignored", async () => {
  for (const value of ["", "0", "false"]) {
    const config = await load({ ...DEPLOY, DENO_DEPLOY: value, REDIS_URL: "redis://cache" }, { admin: undefined });
    assertEquals([config.store.kind, config.limits_store.kind], ["sqlite", "memory"]);
    assertEquals(config.listen, { hostname: "127.0.0.1", port: 8790, reuse_port: false });
    assertEquals(config.nodes.journal, "./data/journal");
    assertEquals(config.shutdown.drain_seconds, 30);
  }
});

Deno.test("on Deno Deploy an instance listens on the platform's address, keeps no file and drains in time", async () => {
  const config = await load(DEPLOY, { nodes: { journal: "./j" }, shutdown: { ready_delay_ms: 5_000 } });
  assertEquals(config.listen, { hostname: "0.0.0.0", port: 8000, reuse_port: false });
  assertEquals(config.nodes.journal, null);
  assertEquals(config.shutdown, { ready_delay_ms: 0, drain_seconds: 3, images_drain_seconds: 3 });
  assertEquals((await load(DEPLOY, { listen: { port: 9000 } })).listen, {
    hostname: "0.0.0.0",
    port: 9000,
    reuse_port: false,
  });
  assertEquals((await load({ ...DEPLOY, SLUICE_PORT: "9001" })).listen, {
    hostname: "0.0.0.0",
    port: 9001,
    reuse_port: false,
  });
});

Deno.test("on Deno Deploy settings that instances would not share are rejected with advice in one line", async () => {
  const refused = "On Deno Deploy keys and ledger would be lost with each instance";
  for (const store of [undefined, "memory:", "sqlite:./data/s.db"]) {
    const lines = await problems({ DENO_DEPLOY: "1" }, store === undefined ? {} : { store });
    assertEquals(lines.map((line) => line.slice(0, 7 + refused.length)), [`store: ${refused}`]);
    assertEquals(lines[0]?.includes("SLUICE_STORE"), true);
  }
  const [line, ...more] = await problems(DEPLOY, LIMITED);
  assertEquals(line?.startsWith("limits_store: On Deno Deploy each instance would count limits separately"), true);
  assertEquals(more, []);
  assertEquals((await load({ ...DEPLOY, REDIS_URL: "redis://cache" }, LIMITED)).limits_store.kind, "redis");
  assertEquals((await load(DEPLOY)).limits_store.kind, "memory");
});

Deno.test("SLUICE_EPHEMERAL=yes allows instances that share nothing", async () => {
  const trial = { DENO_DEPLOY: "1", SLUICE_EPHEMERAL: "yes" };
  assertEquals((await load(trial, { ...LIMITED, store: "memory:" })).store.kind, "memory");
  assertEquals((await problems({ ...trial, SLUICE_EPHEMERAL: "no" })).length, 1);
});

Deno.test("on Deno Deploy there is one listener, even for a trial", async () => {
  const file = { admin: { key: { env: "ADMIN" }, listen: {} } };
  const env = { ...DEPLOY, ADMIN: "0123456789abcdef0123", SLUICE_EPHEMERAL: "yes" };
  const [line, ...more] = await problems(env, file);
  assertEquals([line?.slice(0, 13), more], ["admin.listen:", []]);
});
