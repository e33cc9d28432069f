/** Measures searches and reports over a ledger of millions of rows in a SQLite file, which plain SQL fills. */
import { DatabaseSync } from "node:sqlite";
import process from "node:process";
import { openStore } from "../../lib/store/open.ts";
import type { LedgerStore, UsageBy } from "../../lib/store/ledger.ts";
import type { EntrySearch } from "../../lib/store/search.ts";

const DAY_MS = 86_400_000;
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
 * check sums are 0, so that the file can only be opened to read.
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
}

/** Fills a file with so many rows and measures every filter and order of searches, and every grouping of sums. */
export async function measureReports(
  path: string,
  { count, now }: { count: number; now: number },
): Promise<MeasuredReport[]> {
  await fill(path, { count, now });
  const store = await openStore({ kind: "sqlite", path }, { readOnly: true });
  const measured: MeasuredReport[] = [];
  try {
    for (const [name, work] of works(store.ledger, now)) {
      const [begun, before] = [performance.now(), process.cpuUsage()];
      await work();
      const { user, system } = process.cpuUsage(before);
      measured.push({ name, cpuMs: (user + system) / 1_000, ms: performance.now() - begun });
    }
  } finally {
    await store.close();
  }
  return measured;
}

function works(ledger: LedgerStore, now: number): [name: string, work: () => Promise<unknown>][] {
  const all: EntrySearch = { since: 0, until: now + DAY_MS, order: "time", limit: 50 };
  const [day, month] = [1, DAYS].map((days) => ({ since: now - days * DAY_MS, until: now + DAY_MS })) as [Span, Span];
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
    ["usage --by user --today", () => ledger.usage({ ...day, by: "user" })],
    ["usage --user", () => ledger.usage({ ...month, by: "day", only: { user: "user-1007" } })],
  ];
}

/** A period in Unix milliseconds. */
type Span = Pick<EntrySearch, "since" | "until">;
