import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import postgres from "postgres";
import { GatewayError } from "../../../lib/errors.ts";
import { Secret } from "../../../lib/secret.ts";
import { readPostgresAddress } from "../../../lib/store/postgres/address.ts";
import { connect, isOutOfReach, openPool } from "../../../lib/store/postgres/client.ts";
import { NoAnswer } from "../../../lib/store/outage/reachability.ts";
import { MIGRATIONS } from "../../../lib/store/postgres/migrations.ts";
import { openPostgresStore, type PostgresOptions } from "../../../lib/store/postgres/store.ts";
import { type Migrated, type Store, StoreError } from "../../../lib/store/store.ts";
import { freshDatabase, postgresTest } from "../../support/databases.ts";
import { openRelay } from "../../support/relay.ts";
import { eventually, soon, until } from "../../support/soon.ts";
import { hash, key } from "../behaviours_keys.ts";
import { entry, hold } from "../behaviours_ledger.ts";

const SERVING: PostgresOptions = { serving: { keyAgeMs: 60_000, journalEntries: 10, log: () => {} } };

/** With a parameter more. */
function having(address: string, parameters: Record<string, string>): Secret {
  const url = new URL(address);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return new Secret(url.href);
}

async function ask<T>(address: Secret, question: string): Promise<T[]> {
  const sql = connect(address, 1);
  try {
    return [...await sql.unsafe<never[]>(question)];
  } finally {
    await sql.end();
  }
}

postgresTest("openPostgresStore() migrates a database once, even if several nodes start together", async () => {
  await using database = await freshDatabase();
  const url = new Secret(database.url);
  const stores = await Promise.all(
    Array.from({ length: 5 }, (_, index) => openPostgresStore(url, index < 3 ? SERVING : {})),
  );
  assertEquals(await ask(url, "SELECT version FROM sluice_shape"), [{ version: MIGRATIONS.length }]);
  assertEquals(stores.map(({ shared }) => shared?.reach()), [
    ...Array(3).fill({ up: true, isReadable: true, downMs: 0, waiting: 0 }),
    ...Array(2).fill(undefined),
  ]);
  const [one, other] = stores as [Store, Store];
  await one.keys.add(key());
  assertEquals(await other.keys.findByHash(hash("a"), 0), key());
  await Promise.all(stores.map((store) => store.close()));
  assertEquals(await ask(url, "SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database()"), [{
    count: 1,
  }]);
});

postgresTest("openPostgresStore() rejects a database of a newer version", async () => {
  await using database = await freshDatabase();
  const url = new Secret(database.url);
  await (await openPostgresStore(url)).close();
  await ask(url, "UPDATE sluice_shape SET version = 1000");
  for (const options of [{}, { readOnly: true }, SERVING]) {
    const error = await assertRejects(() => openPostgresStore(url, options), StoreError);
    assertStringIncludes(error.message, `was written by a newer version of Sluice (schema version 1000, known up to`);
  }
});

postgresTest("openPostgresStore() migrates completely or not at all, and never for reading", async () => {
  await using database = await freshDatabase();
  const url = new Secret(database.url);
  const reading = () => openPostgresStore(url, { readOnly: true });
  const none = await assertRejects(reading, StoreError);
  assertStringIncludes(none.message, "it has no tables yet");
  assertEquals(await ask(url, "SELECT to_regclass('sluice_shape') AS made"), [{ made: null }]);

  const facts: Migrated[] = [];
  const migrated = (each: Migrated) => void facts.push(each);
  await (await openPostgresStore(url, { migrated })).close();
  // The second step makes tables that are there: it fails, and with it the change of the shape.
  const older = 1;
  await ask(url, `UPDATE sluice_shape SET version = ${older}`);
  const shape = () => ask(url, "SELECT version FROM sluice_shape");
  for (const options of [{}, SERVING]) {
    await assertRejects(() => openPostgresStore(url, { ...options, migrated }), StoreError, "already exists");
    assertEquals(await shape(), [{ version: older }]);
  }
  const refused = await assertRejects(reading, StoreError);
  assertStringIncludes(refused.message, `it has an older schema (version ${older}, this one needs`);
  assertEquals([await shape(), facts], [[{ version: older }], []]);

  await using other = await freshDatabase();
  const old = new Secret(other.url);
  await ask(
    old,
    `CREATE TABLE sluice_shape (version integer); INSERT INTO sluice_shape VALUES (1); ${MIGRATIONS[0]}`,
  );
  // Another node migrates: the start says that it waits.
  const locked = connect(old, 1);
  await locked`SELECT pg_advisory_lock(7584210371)`;
  const { promise: announced, resolve: migrating } = Promise.withResolvers<Pick<Migrated, "from" | "to">>();
  const opening = openPostgresStore(old, { migrating, migrated });
  assertEquals([await announced, facts], [{ from: older, to: MIGRATIONS.length }, []]);
  await locked`SELECT pg_advisory_unlock(7584210371)`;
  await locked.end();
  await (await opening).close();
  assertEquals(facts, [{ from: older, to: MIGRATIONS.length }]);
  await (await openPostgresStore(old, { readOnly: true })).close();
});

postgresTest("a migration whose process was killed ends at once, and the next start makes it", async () => {
  await using database = await freshDatabase();
  const url = new Secret(database.url);
  const [server] = await ask<{ version: number }>(url, "SELECT current_setting('server_version_num')::int AS version");
  // Older servers only notice it at the end of a step.
  if (server === undefined || server.version < 140_000) return;
  const version = MIGRATIONS.findLastIndex((step) => step.includes("ALTER TABLE ledger_start"));
  await ask(url, MIGRATIONS.slice(0, version).join("\n"));
  await ask(url, `CREATE TABLE sluice_shape (version integer); INSERT INTO sluice_shape VALUES (${version})`);
  // The lock makes the next step wait.
  const blocking = connect(url, 1);
  const { promise: locked, resolve: lock } = Promise.withResolvers<void>();
  const { promise: over, resolve: release } = Promise.withResolvers<void>();
  const holding = blocking.begin(async (tx) => {
    await tx`SET LOCAL idle_in_transaction_session_timeout = 0`;
    await tx`LOCK TABLE ledger_start`;
    lock();
    await over;
  });
  await locked;
  const running = async () => {
    const [row] = await ask<{ count: number }>(
      url,
      `SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'relation'`,
    );
    return row?.count;
  };
  const program = new URL("killed_start.ts", import.meta.url).pathname;
  const args = ["run", "--allow-all", "--no-check", program, database.url];
  const killed = new Deno.Command(Deno.execPath(), { args, stdout: "null", stderr: "null" }).spawn();
  await until("the start of the step", async () => await running() === 1);
  killed.kill("SIGKILL");
  await killed.status;
  await until("the end of the step", async () => await running() === 0);
  release();
  await holding;
  await blocking.end();
  const facts: Migrated[] = [];
  await (await openPostgresStore(url, { migrated: (each) => void facts.push(each) })).close();
  assertEquals(facts, [{ from: version, to: MIGRATIONS.length }]);
});

postgresTest("openPostgresStore() explains why it cannot open a database, without a password", async () => {
  await using database = await freshDatabase();
  const { host } = new URL(database.url);
  const cases: [string, string][] = [
    ["postgres://me:hunter2@127.0.0.1:1/x", "the database is unreachable"],
    ["postgres://me:hunter2@nowhere.invalid/x", "the database is unreachable"],
    [`postgres://nobody:hunter2@${host}/postgres`, 'role "nobody" does not exist'],
    [`postgres://sluice:hunter2@${host}/no_such`, 'database "no_such" does not exist'],
    [`postgres://sluice:hunter2@${host}/postgres?search_path=no_such`, "no schema has been selected to create in"],
    ["postgres://me:hunter2@127.0.0.1:1/x?sslmode=perhaps", 'sslmode "perhaps" is not known'],
    ["postgres://me:hunter2@127.0.0.1:1/x?sslrootcert=/no/such.crt", '"/no/such.crt"'],
    ["postgres://me:hunter2@127.0.0.1:99999/x", "address"],
    ["postgres://me:hunter2@[/x", "address"],
    ["postgres://me:hunter%2@127.0.0.1:1/x", ""],
  ];
  for (const [address, why] of cases) {
    for (const options of [{}, SERVING]) {
      const error = await assertRejects(
        () => openPostgresStore(new Secret(address), options),
        StoreError,
        undefined,
        address,
      );
      assertStringIncludes(error.message, why);
      assertStringIncludes(error.message, "Cannot open the store");
      assert(!Deno.inspect(error).includes("hunter"), Deno.inspect(error));
    }
  }
});

postgresTest("openPostgresStore() applies the parameters of its address", async () => {
  await using database = await freshDatabase();
  const url = new Secret(database.url);
  await ask(url, "CREATE SCHEMA apart");
  const store = await openPostgresStore(
    having(database.url, {
      schema: "apart",
      application_name: "billing",
      channel_binding: "prefer",
      sslmode: "disable",
    }),
    SERVING,
  );
  await store.keys.add(key());
  assertEquals(await ask(url, "SELECT id FROM apart.keys"), [{ id: "key_1" }]);
  assertEquals(
    await ask(
      url,
      "SELECT DISTINCT application_name AS name FROM pg_stat_activity WHERE application_name = 'billing'",
    ),
    [{ name: "billing" }],
  );
  // Two in one database do not see each other.
  const beside = await openPostgresStore(url, SERVING);
  assertEquals(await beside.keys.list(), []);
  await beside.close();
  await store.close();
});

postgresTest("a serving store replaces connections that are lost without an error", async () => {
  await using database = await freshDatabase();
  using relay = openRelay(database.url, { keeps: "LISTEN" });
  const store = await openPostgresStore(new Secret(relay.url), SERVING);
  let count = 0;
  const findUnknown = () => store.keys.findByHash(String(++count).padStart(64, "0"), 0);
  // Opens both connections for keys.
  await Promise.all([findUnknown(), findUnknown()]);
  const held = hold({ claims: [], leaseUntil: Date.now() + 600_000 });
  await store.ledger.hold(held);
  relay.lose();
  await Promise.all([
    eventually(findUnknown),
    eventually(findUnknown),
    eventually(() => store.ledger.hold({ ...held, id: "later" })),
    eventually(() => store.ledger.append([entry({ id: held.id })])),
  ]);
  await store.close();
});

postgresTest("a serving store leaves a server that has become read-only", async () => {
  await using database = await freshDatabase();
  const url = new Secret(database.url);
  await (await openPostgresStore(url)).close();
  const readOnly = `DATABASE ${new URL(database.url).pathname.slice(1)} SET default_transaction_read_only`;
  await ask(url, `ALTER ${readOnly} = on`);
  const store = await openPostgresStore(url, SERVING);
  const held = hold({ claims: [], leaseUntil: Date.now() + 600_000 });
  const calls = [() => store.ledger.hold(held), () => store.ledger.append([])];
  await Promise.all(calls.map((call) => assertRejects(call, GatewayError, "Cannot reach the store")));
  // Connections from before stay read-only.
  await ask(having(database.url, { default_transaction_read_only: "off" }), `ALTER ${readOnly} = off`);
  const holding = eventually(() => store.ledger.hold(held));
  assertEquals(await soon("a new connection", holding, 30_000), { held: true });
  await store.close();
});

postgresTest("holds and entries of a serving store do not wait for reports", async () => {
  await using database = await freshDatabase();
  const url = new Secret(database.url);
  const store = await openPostgresStore(url, SERVING);
  const locked = connect(url, 1);
  await locked.unsafe(
    "SET idle_in_transaction_session_timeout = 0; BEGIN; LOCK TABLE user_days IN ACCESS EXCLUSIVE MODE",
  );
  const query = { since: 0, until: Date.now(), by: "user" } as const;
  const reports = Promise.all(Array.from({ length: 12 }, () => store.ledger.usage(query)));
  await until("a report to wait", async () => (await locked`SELECT pid FROM pg_locks WHERE NOT granted`).length > 0);
  const held = hold({ claims: [], leaseUntil: Date.now() + 600_000 });
  assertEquals(await store.ledger.hold(held), { held: true });
  assertEquals(await store.ledger.append([entry({ id: held.id })]), [true]);
  await locked`COMMIT`;
  assertEquals((await reports).length, 12);
  await locked.end();
  await store.close();
});

postgresTest(
  "a replaced pool gives running queries the set time, and new queries do not wait for them",
  async () => {
    await using database = await freshDatabase();
    const open = () => connect(new Secret(database.url), 1);
    await using locks = new AsyncDisposableStack();
    const openClosing = (leftMs?: number) => locks.adopt(openPool(open, leftMs), (pool) => pool.close());
    const [holder, patient, impatient, strict] = [openClosing(), openClosing(600_000), openClosing(1), openClosing()];
    await holder.sql`SELECT pg_advisory_lock(1)`;
    const waiting = [patient, impatient, strict].map(async ({ sql }) => await sql`SELECT pg_advisory_lock_shared(1)`);
    const ended = waiting.slice(1).map((each) => assertRejects(() => each, Error, "CONNECTION_"));
    const isWaiting = async () =>
      (await holder.sql`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`).length === 3;
    await until("all wait for the lock", isWaiting);
    for (const pool of [patient, impatient, strict]) {
      pool.renew();
      assertEquals([...await pool.sql`SELECT 1 AS one`], [{ one: 1 }]);
    }
    await Promise.all(ended);
    await holder.sql`SELECT pg_advisory_unlock(1)`;
    assertEquals((await waiting[0])?.length, 1);
  },
);

postgresTest("a pool keeps its connections while a certificate file is missing", async () => {
  await using database = await freshDatabase();
  const file = await Deno.makeTempFile();
  const address = `${database.url}${database.url.includes("?") ? "&" : "?"}sslmode=disable&sslrootcert=${file}`;
  const pool = openPool(() => connect(new Secret(address), 1));
  const pidOf = async () => (await pool.sql<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`)[0]?.pid;
  const first = await pidOf();
  await Deno.remove(file);
  pool.renew();
  assertEquals(await pidOf(), first);
  await Deno.writeTextFile(file, "");
  pool.renew();
  assert(await pidOf() !== first);
  await pool.close();
  await Deno.remove(file);
});

Deno.test("isOutOfReach() distinguishes an unusable database from an invalid query", () => {
  function answered(code: string): Error {
    return Object.assign(Object.create(postgres.PostgresError.prototype), { message: "no", code });
  }
  const reached = ["23505", "22021", "42P01", "40001", "40P01", "55P03", "57014", "25P02", "3F000", "53400"];
  const lost = ["57P01", "57P02", "57P03", "08006", "08P01", "53300", "53100", "28P01", "3D000", "25006", "55000"];
  for (const code of reached) assertEquals(isOutOfReach(answered(code)), false, code);
  for (const code of lost) assertEquals(isOutOfReach(answered(code)), true, code);
  const broken = [
    "ECONNREFUSED",
    "ECONNRESET",
    "ENOTFOUND",
    "CONNECT_TIMEOUT",
    "CONNECTION_CLOSED",
    "CONNECTION_ENDED",
  ];
  for (const code of broken) assertEquals(isOutOfReach(Object.assign(new Error(), { code })), true, code);
  assertEquals(isOutOfReach(new NoAnswer()), true);
  for (
    const error of [new Error("ECONNREFUSED"), new RangeError(), "ECONNREFUSED", undefined, { code: "ECONNREFUSED" }]
  ) {
    assertEquals(isOutOfReach(error), false);
  }
});

Deno.test("readPostgresAddress() accepts the addresses of Postgres's own tools", () => {
  const cases: [string, Partial<ReturnType<typeof readPostgresAddress>["options"]>, Record<string, string>][] = [
    ["postgres://db.example/x", { ssl: "prefer" }, {}],
    ["postgres://u:p%40@127.0.0.1:5433/x", { ssl: false }, {}],
    ["postgresql://u@localhost/x?sslmode=require", { ssl: { rejectUnauthorized: false } }, {}],
    ["postgres://u@db.example/x?sslmode=verify-full", { ssl: {} }, {}],
    ["postgres://u@10.0.0.1:5432/x?sslmode=verify-full", { ssl: { host: "10.0.0.1" } }, {}],
    ["postgres://db.example/x?sslrootcert=system", { ssl: {} }, {}],
    ["postgres://a:1,b:2/x?target_session_attrs=read-write", { ssl: "prefer", target_session_attrs: "read-write" }, {}],
    ["postgres:///x?host=/var/run/postgresql&user=u&password=p", {
      ssl: false,
      host: "/var/run/postgresql",
      username: "u",
      password: "p",
    }, {}],
    ["postgres://db.example/x?connect_timeout=7&application_name=a%20b&channel_binding=require", {
      ssl: "prefer",
      connect_timeout: 7,
    }, { application_name: "a b" }],
    ["postgres://db.example/x?schema=s&pgbouncer=true&statement_timeout=5000", { ssl: "prefer", prepare: false }, {
      search_path: "s",
      statement_timeout: "5000",
    }],
  ];
  for (const [text, options, connection] of cases) {
    const address = readPostgresAddress(new Secret(text));
    assertEquals(
      address,
      { server: text.split("?")[0] ?? "", options: { ssl: "prefer", ...options }, connection },
      text,
    );
  }
  assertThrows(() => readPostgresAddress(new Secret("postgres://x/y?sslmode=no")), StoreError, '"no"');
});
