/** Measures searches and reports over a ledger of millions of rows, which plain SQL fills. */
import { DatabaseSync } from "node:sqlite";
import process from "node:process";
import type { StoreAddress } from "../../lib/config/address.ts";
import { Secret } from "../../lib/secret.ts";
import { openStore } from "../../lib/store/open.ts";
import { connect } from "../../lib/store/postgres/client.ts";
import { openSheetRows } from "../../lib/store/sqlite/ledger_rows.ts";
import { openSumming } from "../../lib/store/sqlite/sums.ts";
import { atomically } from "../../lib/store/sqlite/transaction.ts";
import type { LedgerStore, UsageBy } from "../../lib/store/ledger.ts";
import type { EntrySearch } from "../../lib/store/search.ts";
import { DAY_MS } from "../../lib/store/days.ts";

/** Days that the rows are spread over. */
const DAYS = 30;
/** Rows of one transaction. */
const BATCH = 500_000;

/** A search or report: its CPU time, and the time by the clock, in milliseconds. */
export interface MeasuredReport {
  name: string;
  cpuMs: number;
  ms: number;
}

/**
 * Fills a new file. Every tenth row has one of 1,000 end users, every hundredth failed, every thousandth has a tag. The
 * checksums are 0, so that the file can only be opened to read.
 */
async function fill(path: string, { count, now }: { count: number; now: number }): Promise<void> {
  await (await openStore({ kind: "sqlite", path }, { own: true })).close();
  using db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -500000");
  const indexes = db.prepare(
    "SELECT name, sql FROM sqlite_schema WHERE tbl_name = 'entries' AND sql LIKE 'CREATE INDEX%'",
  );
  const dropped = indexes.all();
  for (const { name } of dropped) db.exec(`DROP INDEX ${name}`);
  const price = "'0.000001'";
  db.exec(`INSERT INTO price_sheets VALUES (1, 'seeded/model', '1', ${Array(5).fill(price).join(", ")})`);
  const insert = db.prepare(`
    WITH RECURSIVE n (seq) AS (SELECT CAST(?1 AS INTEGER) UNION ALL SELECT seq + 1 FROM n WHERE seq < ?2)
    INSERT INTO entries (seq, id, at, key_id, group_name, model, upstream, endpoint, status, ending, prompt,
      input_cache_read, input_cache_write_5m, input_cache_write_1h, completion, reasoning, source, price_version, cost, held,
      overrun, first_ms, total_ms, attempts, images, check_sum, details, reason, end_user, tags)
    SELECT seq, printf('seeded%012d', seq), ?3 + CAST(seq * ?4 AS INTEGER), 'key_' || (seq % 100), 'group_' || (seq % 10),
      'seeded/model-' || (seq % 20), 'upstream_' || (seq % 5), 'chat', iif(seq % 100 = 7, 502, 200),
      iif(seq % 100 = 7, 'failed', 'end'), 100 + seq % 1000, 0, 0, 0, 50 + seq % 300, 0, 'upstream', 1,
      (150 + seq % 1300) * 1000000, 0, 0, 300, 500 + seq * 7919 % 5000, 1, 0, 0,
      iif(seq % 10 = 7, '{"user":"user-' || (seq % 10000) || '"' || iif(seq % 1000 = 7, ',"tags":["rare"]', '') || '}', NULL),
      iif(seq % 100 = 7, 'upstream_failed', NULL), iif(seq % 10 = 7, 'user-' || (seq % 10000), NULL),
      iif(seq % 1000 = 7, ',rare,', NULL)
    FROM n`);
  const at = now - DAYS * DAY_MS;
  for (let from = 1; from <= count; from += BATCH) {
    insert.run(from, Math.min(count, from + BATCH - 1), at, DAYS * DAY_MS / count);
  }
  for (const { sql } of dropped) db.exec(String(sql));
  db.exec(`INSERT INTO days SELECT at / ${DAY_MS}, key_id, group_name, model, count(*), sum(ending = 'failed'),
    sum(prompt), 0, 0, 0, sum(completion), 0, 0, sum(cost), 0 FROM entries GROUP BY 1, 2, 3, 4`);
  const summing = openSumming(db, openSheetRows(db));
  while (atomically(db, () => summing.sumUp(count)));
}

/** The same rows in an empty database. */
async function fillPostgres(url: Secret, { count, now }: { count: number; now: number }): Promise<void> {
  await (await openStore({ kind: "postgres", url }, {})).close();
  const sql = connect(url, 1);
  const at = now - DAYS * DAY_MS;
  await sql.unsafe("ALTER TABLE entries DISABLE TRIGGER USER");
  await sql.unsafe("DROP INDEX entries_by_time, entries_by_key, entries_by_user");
  const price = "'0.000001'";
  await sql.unsafe(`INSERT INTO price_sheets VALUES (1, 'seeded/model', '1', ${Array(5).fill(price).join(", ")})`);
  await sql.unsafe(
    `INSERT INTO entries (seq, id, at, key_id, group_name, model, upstream, endpoint, status, ending, prompt,
      input_cache_read, input_cache_write_5m, input_cache_write_1h, completion, reasoning, source, price_version, cost, held,
      overrun, first_ms, total_ms, attempts, images, check_sum, details, reason, end_user, tags)
    SELECT seq, 'seeded' || lpad(seq::text, 12, '0'), ${at} + (seq * (${DAYS * DAY_MS}::float8 / ${count}))::bigint,
      'key_' || seq % 100, 'group_' || seq % 10, 'seeded/model-' || seq % 20, 'upstream_' || seq % 5, 'chat',
      CASE WHEN seq % 100 = 7 THEN 502 ELSE 200 END, CASE WHEN seq % 100 = 7 THEN 'failed' ELSE 'end' END,
      100 + seq % 1000, 0, 0, 0, 50 + seq % 300, 0, 'upstream', 1, (150 + seq % 1300) * 1000000, 0, 0, 300,
      500 + seq * 7919 % 5000, 1, 0, 0,
      CASE WHEN seq % 10 = 7 THEN '{"user":"user-' || seq % 10000 || '"'
        || CASE WHEN seq % 1000 = 7 THEN ',"tags":["rare"]' ELSE '' END || '}' END,
      CASE WHEN seq % 100 = 7 THEN 'upstream_failed' END, CASE WHEN seq % 10 = 7 THEN 'user-' || seq % 10000 END,
      CASE WHEN seq % 1000 = 7 THEN ',rare,' END
    FROM generate_series(1::bigint, ${count}::bigint) seq`,
  );
  await sql.unsafe("CREATE INDEX entries_by_time ON entries (at)");
  await sql.unsafe("CREATE INDEX entries_by_key ON entries (key_id, at)");
  await sql.unsafe("CREATE INDEX entries_by_user ON entries (end_user, at) WHERE end_user IS NOT NULL");
  await sql.unsafe("ALTER TABLE entries ENABLE TRIGGER USER");
  await sql.unsafe(`UPDATE ledger_head SET seq = ${count}`);
  await sql.unsafe("VACUUM ANALYZE entries");
  while ((await sql`SELECT ledger_sum_up() AS more`)[0]?.more === true);
  await sql.unsafe("VACUUM ANALYZE");
  await sql.end();
}

/**
 * Fills a file with this number of rows, and measures every filter and order of searches, and every grouping of sums.
 */
export async function measureReports(
  path: string,
  { count, now }: { count: number; now: number },
): Promise<MeasuredReport[]> {
  await fill(path, { count, now });
  return await measureStore({ kind: "sqlite", path }, now);
}

/** The same in an empty Postgres database. */
export async function measurePostgres(
  address: string,
  { count, now }: { count: number; now: number },
): Promise<MeasuredReport[]> {
  const url = new Secret(address);
  await fillPostgres(url, { count, now });
  return await measureStore({ kind: "postgres", url }, now);
}

async function measureStore(address: StoreAddress, now: number): Promise<MeasuredReport[]> {
  const store = await openStore(address, { readOnly: true });
  const measured: MeasuredReport[] = [];
  try {
    for (const [name, work] of works(store.ledger, now)) {
      const [startedAt, before] = [performance.now(), process.cpuUsage()];
      await work();
      const { user, system } = process.cpuUsage(before);
      measured.push({ name, cpuMs: (user + system) / 1_000, ms: performance.now() - startedAt });
    }
  } finally {
    await store.close();
  }
  return measured;
}

function works(ledger: LedgerStore, now: number): [name: string, work: () => Promise<unknown>][] {
  const all: EntrySearch = { since: 0, until: now + DAY_MS, order: "time", limit: 50 };
  const tomorrow = now - now % DAY_MS + DAY_MS;
  const [day, month] = [1, DAYS].map((days) => ({ since: tomorrow - days * DAY_MS, until: tomorrow })) as [Span, Span];
  const searches: [name: string, search: Partial<EntrySearch>][] = [
    ["newest", {}],
    ["--key", { keyId: "key_17" }],
    ["--group", { group: "group_7" }],
    ["--model", { model: "seeded/model-7" }],
    ["--upstream", { upstream: "upstream_2" }],
    ["--upstream that none has", { upstream: "none" }],
    ["--upstream that none has, of a day", { upstream: "none", ...day }],
    ["--status 502", { status: { from: 502, to: 502 } }],
    ["--status 429, which none has", { status: { from: 429, to: 429 } }],
    ["--failed", { failed: true }],
    ["--reason", { reason: "upstream_failed" }],
    ["--user", { user: "user-1007" }],
    ["--tag", { tag: "rare" }],
    ["--min-cost that none has", { minCost: 10n ** 12n }],
    ["--min-ms", { minMs: 5_400 }],
    ["--sort cost", { order: "cost" }],
    ["--sort cost, of a day", { order: "cost", ...day }],
    ["--key --tag that none has", { keyId: "key_17", tag: "none" }],
    ["--key --status 502", { keyId: "key_7", status: { from: 502, to: 502 } }],
    ["--model --status 502", { model: "seeded/model-7", status: { from: 502, to: 502 } }],
    ["--model --status 502, which none has", { model: "seeded/model-8", status: { from: 502, to: 502 } }],
    ["--reason, of a day", { reason: "upstream_failed", ...day }],
    ["--sort cost --key", { order: "cost", keyId: "key_17" }],
    ["--sort duration", { order: "duration" }],
    ["--sort duration --failed", { order: "duration", failed: true }],
  ];
  const sums: readonly UsageBy[] = ["key", "group", "model", "day", "user", "tag", "upstream"];
  return [
    // Opens the connection.
    ["(first search)", () => ledger.search(all)],
    ...searches.map(([name, search]): [string, () => Promise<unknown>] => [
      `requests ${name}`,
      () => ledger.search({ ...all, ...search }),
    ]),
    ...sums.map((by): [string, () => Promise<unknown>] => [`usage --by ${by}`, () => ledger.usage({ ...month, by })]),
    [
      "usage --by group,model --key",
      () => ledger.usage({ ...month, by: "group", thenBy: "model", only: { keyId: "key_17" } }),
    ],
    ["usage --by user,model", () => ledger.usage({ ...month, by: "user", thenBy: "model" })],
    ["usage --by tag,day", () => ledger.usage({ ...month, by: "tag", thenBy: "day" })],
    ["usage --by upstream, with its costs", () => ledger.upstreamDays(month)],
    ["usage --by user --today", () => ledger.usage({ ...day, by: "user" })],
    ["usage --by user --since 12h", () => ledger.usage({ since: now - DAY_MS / 2, until: tomorrow, by: "user" })],
    ["usage --tag", () => ledger.usage({ ...month, by: "day", only: { tag: "rare" } })],
    ["usage --user", () => ledger.usage({ ...month, by: "day", only: { user: "user-1007" } })],
  ];
}

/** A period in Unix milliseconds. */
type Span = Pick<EntrySearch, "since" | "until">;
