import { assert, assertEquals, assertMatch } from "@std/assert";
import { Redis } from "ioredis";
import { parseLimitsAddress, parseStoreAddress } from "../../lib/config/address.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { runChecks } from "../../lib/doctor/run_checks.ts";
import type { Finding } from "../../lib/doctor/finding.ts";
import { checkJournal } from "../../lib/doctor/journal.ts";
import { checkPostgres } from "../../lib/doctor/postgres.ts";
import { checkRedis } from "../../lib/doctor/redis.ts";
import { connect, migrate } from "../../lib/store/postgres/client.ts";
import { MIGRATIONS } from "../../lib/store/postgres/migrations.ts";
import { Secret } from "../../lib/secret.ts";
import { inFolder } from "../support/program.ts";
import { freshDatabase, postgresTest, redisTest, startPostgres, startRedis } from "../support/databases.ts";
import { until } from "../support/soon.ts";
import { CLOSED_PORT } from "../support/closed_port.ts";

const STEPS = { now: Date.now, timeoutMs: 10_000 };
const { nodes: NODES } = parseConfig({});

function lines(findings: readonly Finding[]): string[] {
  return findings.map(({ level, what }) => `${level}: ${what}`);
}

function lookAtDatabase(url: string, steps = STEPS): Promise<Finding[]> {
  return checkPostgres({ store: parseStoreAddress(url) }, steps);
}

function lookAtLimits(url: string, steps = STEPS): Promise<Finding[]> {
  return checkRedis({ limits_store: parseLimitsAddress(url), nodes: NODES }, steps);
}

Deno.test("local stores are not checked as shared ones", async () => {
  assertEquals(await lookAtDatabase("sqlite:./none.db"), []);
  assertEquals(await lookAtLimits("memory:"), []);
  assertEquals(checkJournal({ store: { kind: "memory" }, nodes: NODES }), []);
});

Deno.test("an unreachable server is an error, within the time limit", async () => {
  const port = CLOSED_PORT;
  assertMatch(
    lines(await lookAtDatabase(`postgres://sluice@127.0.0.1:${port}/s`)).join("\n"),
    /^error: postgres:\/\/sluice@127\.0\.0\.1:\d+\/s cannot be used: [^\n]+$/,
  );
  assertMatch(
    lines(await lookAtLimits(`redis://127.0.0.1:${port}`)).join("\n"),
    /^error: redis:\/\/127\.0\.0\.1:\d+ cannot be used: [^\n]+$/,
  );
});

Deno.test("the check of a silent server ends at its time limit", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const place = `127.0.0.1:${listener.addr.port}`;
  const steps = { ...STEPS, timeoutMs: 200 };
  const form = /^error: .* cannot be used: no answer within 0.2 s$/;
  assertMatch(lines(await lookAtDatabase(`postgres://sluice@${place}/s`, steps)).join("\n"), form);
  assertMatch(lines(await lookAtLimits(`redis://${place}`, steps)).join("\n"), form);
});

postgresTest("doctor distinguishes an untrusted certificate of a database from a refused login", async () => {
  await using server = await startPostgres();
  const sql = connect(new Secret(server.url), 1);
  const [row] = await sql<{ folder: string }[]>`SELECT current_setting('data_directory') AS folder`;
  assert(row !== undefined);
  const { uid, gid } = await Deno.stat(row.folder);
  for (const name of ["server.pem", "server.key"]) {
    const file = `${row.folder}/${name}`;
    const text = await Deno.readTextFile(new URL(`../fixtures/tls/${name}`, import.meta.url));
    await Deno.writeTextFile(file, text, { mode: 0o600 });
    await Deno.chown(file, uid, gid);
  }
  await sql.unsafe("ALTER SYSTEM SET ssl_cert_file = 'server.pem'");
  await sql.unsafe("ALTER SYSTEM SET ssl_key_file = 'server.key'");
  await sql.unsafe("ALTER SYSTEM SET ssl = on");
  await sql`SELECT pg_reload_conf()`;
  await until("TLS", async () => (await sql<{ ssl: string }[]>`SHOW ssl`)[0]?.ssl === "on");
  await sql.end();
  const [finding] = await lookAtDatabase(`${server.url}?sslmode=verify-full`);
  assertMatch(finding?.what ?? "", /unable to verify/);
  assertMatch(finding?.advice ?? "", /^Check the server's certificate/);
});

postgresTest("a database: version, clock, tables and users", async () => {
  await using database = await freshDatabase();
  const good = lines(await lookAtDatabase(database.url));
  const expected = [
    /^ok: postgres:.* answers within [\d.]+ ms$/,
    /^ok: It is Postgres \d\d/,
    // A server of the tests' own is started without fsync.
    /^(ok: Commits are durable \(fsync on, synchronous_commit on\)|error: fsync is off: .*)$/,
    /^ok: Its clock agrees/,
    /^ok: It has no tables yet/,
    /^ok: No gateway is connected to it$/,
    /^ok: Its notifications arrive$/,
  ];
  assertEquals(good.length, expected.length, good.join("\n"));
  for (const [index, form] of expected.entries()) assertMatch(good[index] ?? "", form);

  const sql = connect(new Secret(database.url), 1);
  // Roles belong to the server, which other tests use, too.
  const role = `narrow_${crypto.randomUUID().slice(0, 8)}`;
  const narrow = new URL(database.url);
  narrow.username = role;
  try {
    await sql.unsafe(`CREATE ROLE ${role} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC`);
    const empty = lines(await lookAtDatabase(narrow.href));
    assert(empty.includes("error: It has no tables yet, and the role may not create them"), empty.join("\n"));
    await migrate(sql);
    const foreign = (await lookAtDatabase(narrow.href)).find(({ what }) => what.includes("permission denied"));
    assertMatch(foreign?.advice ?? "", /^Use the role that owns the tables/);
    const used = lines(await lookAtDatabase(database.url));
    assert(used.includes(`ok: Its tables are up to date (schema ${MIGRATIONS.length})`), used.join("\n"));
    assert(used.some((line) => /^ok: Gateways on .* have 1 connection to it$/.test(line)), used.join("\n"));
    assert(!used.some((line) => line.includes("may not read")), used.join("\n"));
    await sql.unsafe(`GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}`);
    await sql.unsafe(`REVOKE SELECT ON keys FROM ${role}; REVOKE UPDATE ON changes FROM ${role}`);
    const lacking = lines(await lookAtDatabase(narrow.href));
    assert(lacking.includes("error: The role may not read and write all tables: changes, keys"), lacking.join("\n"));
    await sql.unsafe(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    await sql`UPDATE sluice_shape SET version = ${MIGRATIONS.length + 1}`;
    const newer = lines(await lookAtDatabase(database.url));
    assert(newer.some((line) => line.startsWith("error: Its tables are from a newer version")), newer.join("\n"));
    await sql`UPDATE sluice_shape SET version = 0`;
    const older = lines(await lookAtDatabase(database.url));
    assert(older.includes(`ok: Its tables have schema 0; the next start migrates them to ${MIGRATIONS.length}`));
    await sql`ALTER DATABASE ${sql(new URL(database.url).pathname.slice(1))} CONNECTION LIMIT 4`;
    const limited = lines(await lookAtDatabase(database.url));
    assert(limited.includes("warning: The role or the database may have only 4 connections"), limited.join("\n"));
  } finally {
    await sql.end();
  }
});

postgresTest("a database: a wrong clock, lossy commits, and read-only mode", async () => {
  await using database = await freshDatabase();
  const cases: [string, Partial<typeof STEPS>, RegExp][] = [
    ["", { now: () => Date.now() + 60_000 }, /^warning: This machine's clock is \d\d\.\d s ahead of the database's$/],
    ["", { now: () => Date.now() - 60_000 }, /^warning: This machine's clock is \d\d\.\d s behind the database's$/],
    ["?synchronous_commit=off", {}, /^error: synchronous_commit is off/],
    ["?default_transaction_read_only=on", {}, /^error: It accepts no writes/],
  ];
  for (const [parameters, steps, form] of cases) {
    const found = lines(await lookAtDatabase(database.url + parameters, { ...STEPS, ...steps }));
    const others = found.filter((line) => !line.startsWith("ok:") && !line.includes("fsync is off"));
    assertEquals(others.length, 1, found.join("\n"));
    assertMatch(others[0] ?? "", form);
  }
});

redisTest("a limits server: version and eviction", async () => {
  await using server = await startRedis();
  const good = lines(await lookAtLimits(server.url));
  assertEquals(good.length, 3);
  assertMatch(
    good.join("\n"),
    /^ok: redis:.* answers within .*\nok: It is (Redis|Valkey) \d.*\nok: It evicts nothing/,
  );
  const redis = new Redis(server.url);
  try {
    await redis.config("SET", "maxmemory", "1");
    assertMatch(
      lines(await lookAtLimits(server.url)).join("\n"),
      /\nerror: Its memory is full: all 1 bytes of maxmemory/,
    );
    await redis.config("SET", "maxmemory", "0");
    await redis.config("SET", "maxmemory-policy", "allkeys-lru");
    assertMatch(lines(await lookAtLimits(server.url)).at(-1) ?? "", /^warning: maxmemory-policy is allkeys-lru/);
    await redis.config("SET", "maxmemory", "100mb");
    assertMatch(lines(await lookAtLimits(server.url)).at(-1) ?? "", /^error: maxmemory-policy is allkeys-lru/);
    await redis.call("ACL", "SETUSER", "default", "-eval");
    assertMatch((await lookAtLimits(server.url))[0]?.advice ?? "", /^Allow this command/);
    await redis.call("ACL", "SETUSER", "default", "+eval");
    await redis.config("SET", "requirepass", "hunter2-hunter2");
  } finally {
    await redis.quit();
  }
  const [line, ...more] = lines(await lookAtLimits(server.url));
  assertMatch(line ?? "", /^error: redis:.* cannot be used: .*NOAUTH/);
  assertEquals(more, []);
});

Deno.test("no finding shows the password of a store", async () => {
  const port = CLOSED_PORT;
  const env: Record<string, string> = {
    SLUICE_STORE: `postgres://sluice:hunter2%2F3@127.0.0.1:${port}/s`,
    SLUICE_LIMITS_STORE: `redis://:hunter2%2F3@127.0.0.1:${port}`,
  };
  const config = {
    ...parseConfig({ nodes: { journal: null } }),
    store: parseStoreAddress(env.SLUICE_STORE ?? ""),
    limits_store: parseLimitsAddress(env.SLUICE_LIMITS_STORE ?? ""),
  };
  const found = await runChecks({ config, env: () => undefined, serving: () => Promise.resolve(undefined), ...STEPS });
  const about = new Set(found.filter(({ level }) => level === "error").map(({ about }) => about));
  assertEquals([...about].sort(), ["limits_store", "store"]);
  assertEquals(JSON.stringify(found).includes("hunter2"), false);
});

Deno.test("the journal's path is checked", () =>
  inFolder(async (folder) => {
    const look = (journal: string | null) =>
      lines(checkJournal({ store: parseStoreAddress("postgres://db/s"), nodes: { ...NODES, journal } }));
    const path = `${folder}/new/folder/journal`;
    assertEquals(look(path), [`ok: "${path}" is writable`]);
    await Deno.writeTextFile(`${folder}/file`, "");
    assertMatch(look(`${folder}/file/journal`)[0] ?? "", /^error: ".*" is not writable: /);
    assertEquals(look(folder), [`error: "${folder}" is not writable: it is a folder`]);
    assertMatch(look(null)[0] ?? "", /^warning: There is no journal/);
    if (Deno.build.os === "linux") {
      assertMatch(look("/proc/journal")[0] ?? "", /^error: "\/proc\/journal" is not writable/);
    }
    assertEquals(
      (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name),
      ["file"],
    );
  }));
