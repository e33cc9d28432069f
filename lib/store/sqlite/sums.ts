/** Makes the sums and blocks of a SQLite database from entries, one block of entries at a time. */
import type { DatabaseSync } from "node:sqlite";
import { cacheSavings } from "../cache_savings.ts";
import { DAY_MS, FAILED_SQL, type SumKind, TIME_STEPS, TOKEN_CLASSES } from "../days.ts";
import { addingBlocks, addingSums, BLOCK, BLOCK_KINDS, BLOCK_NAMES, HOURS_KEPT, SUM_TABLES } from "../sums.ts";
import type { LedgerStore, SumsHead } from "../ledger.ts";
import type { SheetRows } from "./ledger_rows.ts";

/** Sums that one call deletes, and that are read between two pauses. */
const SUMS_PER_CALL = 500;
/** Sums per hour that are deleted for each entry that is added: more than it can have made. */
const HOUR_SUMS_PER_ENTRY = 2;

/**
 * Entries of the first step, and of the shortest one, and the time in milliseconds that a step should take: it blocks
 * the process. Entries with many tags or different end users take longer than others.
 */
const FIRST_STEP = 250;
const SHORTEST_STEP = 125;
const STEP_MS = 20;

/** Makes and prunes sums. All calls must be within a transaction that writes. */
export interface Summing {
  head(): SumsHead;
  /**
   * Adds a part of the next block of entries to the sums, if the whole block exists. Returns true if there is more to
   * add.
   */
  sumUp(lastSeq: number): boolean;
  /** Adds all entries up to a seq, which must exist, to the sums. */
  sumUpTo(seq: number): void;
  /** Deletes a few of the sums and blocks whose entries were pruned. Returns true if more remain. */
  prune(start: { seq: number; day: number }): boolean;
}

/** Returns a function that reads how far the sums have come. */
export function prepareSumsHead(db: DatabaseSync): () => SumsHead {
  const head = db.prepare("SELECT seq, first_day, first_hour FROM sums_head");
  return () => {
    const row = head.get();
    return { seq: Number(row?.seq), firstDay: Number(row?.first_day), firstHour: Number(row?.first_hour) };
  };
}

/**
 * Prepares making sums of a migrated database. Creates temporary tables.
 * @param monotonic milliseconds
 */
export function openSumming(
  db: DatabaseSync,
  sheets: Pick<SheetRows, "all">,
  monotonic: () => number = () => performance.now(),
): Summing {
  const head = prepareSumsHead(db);
  const add = prepareAdd(db, sheets);
  const move = db.prepare("UPDATE sums_head SET seq = ?, first_hour = ?");
  const startDay = db.prepare("SELECT day FROM ledger_start");
  const pruneUsers = db.prepare(
    `DELETE FROM user_days WHERE (day, key_id, group_name, model, end_user, tags) IN (
       SELECT day, key_id, group_name, model, end_user, tags FROM user_days WHERE day <= ? LIMIT ${SUMS_PER_CALL})`,
  );
  const pruneBlocks = db.prepare(
    `DELETE FROM entry_blocks WHERE block = (SELECT min(block) FROM entry_blocks) AND block < ?`,
  );

  let stepEntries = FIRST_STEP;

  function sumRange(from: number, to: number): void {
    const { firstDay, firstHour } = head();
    const firstUserDay = Math.max(firstDay, Number(startDay.get()?.day) + 1);
    move.run(to, add({ from, to, firstDay, firstUserDay, firstHour }));
  }

  return {
    head,
    sumUp(lastSeq) {
      const { seq } = head();
      const end = endOfBlock(seq);
      if (end > lastSeq) return false;
      const to = Math.min(seq + stepEntries, end);
      const startedAt = monotonic();
      sumRange(seq, to);
      const tookMs = monotonic() - startedAt;
      if (tookMs > STEP_MS) stepEntries = Math.max(SHORTEST_STEP, stepEntries / 2);
      else if (tookMs < STEP_MS / 2) stepEntries = Math.min(BLOCK, stepEntries * 2);
      return to < end || endOfBlock(end) <= lastSeq;
    },
    sumUpTo(targetSeq) {
      for (let { seq } = head(); seq < targetSeq;) {
        const end = Math.min(endOfBlock(seq), targetSeq);
        sumRange(seq, end);
        seq = end;
      }
    },
    prune({ seq, day }) {
      const users = pruneUsers.run(day).changes === SUMS_PER_CALL;
      return Number(pruneBlocks.run((seq - seq % BLOCK) / BLOCK).changes) > 0 || users;
    },
  };
}

/**
 * Returns a function that adds a range of entries, at most a block, to the sums, and returns the first hour of the sums
 * per hour. The entries are grouped once, by all names, into a temporary table, which takes most of the time; the sums
 * are made from its rows.
 */
function prepareAdd(
  db: DatabaseSync,
  sheets: Pick<SheetRows, "all">,
): (of: { from: number; to: number; firstDay: number; firstUserDay: number; firstHour: number }) => number {
  const refreshSavings = openSavings(db, sheets);
  const names = [...new Set([...GROUPED_NAMES, ...BLOCK_NAMES])];
  const bounds = ["min(at) AS first_at", "max(at) AS last_at", "max(cost) AS most_cost", "max(total_ms) AS most_ms"];
  const { figures } = SUM_TABLES.upstreams;
  db.exec(
    `CREATE TEMP TABLE IF NOT EXISTS block_sums (${
      [...names, ...figures, "block", "first_at", "last_at", "most_cost", "most_ms"].join(", ")
    })`,
  );
  const group = db.prepare(`INSERT INTO block_sums
    SELECT ${names.map((name) => ENTRY_NAMES[name] ?? name).join(", ")},
      ${figures.map((name) => `sum(${ENTRY_FIGURES[name]})`).join(", ")}, (seq - 1) / ${BLOCK}, ${bounds.join(", ")}
    FROM entries LEFT JOIN sheet_savings ON version = price_version
    WHERE seq > ? AND seq <= ? GROUP BY ${names.map((_, index) => index + 1).join(", ")}`);
  const addSums = (kind: SumKind) => {
    const { step, names, figures } = SUM_TABLES[kind];
    const key = [step, ...names].join(", ");
    const sums = figures.map((name) => `sum(${name})`).join(", ");
    return db.prepare(
      addingSums(SUM_TABLES[kind], `SELECT ${key}, ${sums} FROM block_sums WHERE ${step} >= ? GROUP BY ${key}`),
    );
  };
  const [upstreams, hours, users] = [addSums("upstreams"), addSums("hours"), addSums("users")];
  const lastHour = db.prepare("SELECT max(hour) AS hour FROM block_sums");
  const key = [SUM_TABLES.hours.step, ...SUM_TABLES.hours.names].join(", ");
  const removeHours = db.prepare(
    `DELETE FROM upstream_hours WHERE (${key}) IN (
       SELECT ${key} FROM upstream_hours WHERE hour < ? LIMIT ?)`,
  );
  const blocks = db.prepare(addingBlocks(blockSelect(), { least: "min", most: "max" }));
  const clear = db.prepare("DELETE FROM block_sums");
  return ({ from, to, firstDay, firstUserDay, firstHour }) => {
    refreshSavings();
    group.run(from, to);
    const keptHour = Math.max(firstHour, Number(lastHour.get()?.hour) - HOURS_KEPT);
    upstreams.run(firstDay);
    hours.run(keptHour);
    users.run(firstUserDay);
    blocks.run();
    clear.run();
    removeHours.run(keptHour, HOUR_SUMS_PER_ENTRY * (to - from));
    return keptHour;
  };
}

/** Names of all kinds of sums, by which entries are grouped. */
const GROUPED_NAMES = ["day", "hour", ...SUM_TABLES.upstreams.names, ...SUM_TABLES.users.names];

/** Prepares `LedgerStore.sumsOfStep`, with pauses. There is no snapshot, as the sums of past days hardly change. */
export function prepareSumsOfStep(
  db: DatabaseSync,
): (kind: SumKind, after: number) => Generator<void, Awaited<ReturnType<LedgerStore["sumsOfStep"]>>> {
  return function* (kind, after) {
    const { table, step, names, figures } = SUM_TABLES[kind];
    const next = db.prepare(`SELECT min(${step}) AS step FROM ${table} WHERE ${step} > ?`).get(after)?.step;
    if (next === null || next === undefined) return undefined;
    const rows = db.prepare(
      `SELECT ${[...names, ...figures].join(", ")} FROM ${table} WHERE ${step} = ? AND (${names.join(", ")}) > (${
        names.map(() => "?").join(", ")
      }) ORDER BY ${names.join(", ")} LIMIT ${SUMS_PER_CALL}`,
    );
    rows.setReadBigInts(true);
    const sums = new Map<string, bigint[]>();
    for (let group: (string | bigint)[] = names.map(() => "");;) {
      const page = rows.all(Number(next), ...group);
      for (const row of page) {
        group = names.map((name) => row[name] as string | bigint);
        sums.set(JSON.stringify(group.map(String)), figures.map((name) => row[name] as bigint));
      }
      if (page.length < SUMS_PER_CALL) return { step: Number(next), sums };
      yield;
    }
  };
}

/** Returns the last seq of the block that contains the entry after `seq`. */
export function endOfBlock(seq: number): number {
  return seq - seq % BLOCK + BLOCK;
}

/**
 * Creates the temporary table `sheet_savings` of a connection: the amount that a cached token of each class saves, by
 * version of the price sheet. Returns a function that adds the price sheets that the table lacks.
 */
export function openSavings(db: DatabaseSync, sheets: Pick<SheetRows, "all">): () => void {
  db.exec(`PRAGMA temp_store = MEMORY;
    CREATE TEMP TABLE IF NOT EXISTS sheet_savings (
      version INTEGER PRIMARY KEY, read INTEGER, write_5m INTEGER, write_1h INTEGER)`);
  // Compared every time, because the rollback of a transaction removes rows that were added in it.
  const missing = db.prepare(
    "SELECT coalesce(max(version), 0) AS newest, (SELECT coalesce(max(version), 0) FROM sheet_savings) AS known FROM price_sheets",
  );
  const insert = db.prepare("INSERT OR IGNORE INTO sheet_savings VALUES (?, ?, ?, ?)");
  return () => {
    const row = missing.get();
    const known = Number(row?.known);
    if (Number(row?.newest) === known) return;
    for (const { version, sheet } of sheets.all()) {
      if (version > known) insert.run(version, ...cacheSavings(sheet));
    }
  };
}

/** Expression for the cost of an entry at the prices of the target, in USD as text; NULL if the target has none. */
const TARGET_USD = `CASE WHEN instr(details, '"upstream_usd"') THEN details ->> '$.upstream_usd' END`;

/** Expressions for the names of an entry in tables of sums, if they differ from its columns. */
export const ENTRY_NAMES: Readonly<Record<string, string>> = {
  day: `at / ${DAY_MS}`,
  hour: `at / ${TIME_STEPS.hour.ms}`,
  price_version: "coalesce(price_version, 0)",
  has_target_price: `(${TARGET_USD}) IS NOT NULL`,
  end_user: "coalesce(end_user, '')",
  tags: "coalesce(tags, '')",
};

/**
 * Expressions for the figures of an entry, with `LEFT JOIN sheet_savings ON version = price_version`. For an amount in
 * USD, the decimals are padded to twelve.
 */
export const ENTRY_FIGURES: Readonly<Record<string, string>> = {
  requests: "1",
  failed: FAILED_SQL,
  ...Object.fromEntries(TOKEN_CLASSES.map((name) => [name, name])),
  images: "images",
  cost: "cost",
  overrun: "overrun",
  saved: "coalesce(input_cache_read * read + input_cache_write_5m * write_5m + input_cache_write_1h * write_1h, 0)",
  counted: "source NOT IN ('upstream', 'none')",
  attempts: "attempts",
  target_cost: `coalesce(CAST((${TARGET_USD}) AS INTEGER) * 1000000000000 + CAST(substr(replace(
    substr((${TARGET_USD}) || '.', instr((${TARGET_USD}) || '.', '.') + 1), '.', '') || '000000000000', 1, 12) AS INTEGER), 0)`,
};

/** Returns the SQL that makes rows of `entry_blocks` from the grouped entries. */
function blockSelect(): string {
  const bounds = "min(first_at), max(last_at), max(most_cost), max(most_ms)";
  const kinds = Object.entries(BLOCK_KINDS).map(([kind, name]) =>
    `SELECT '${kind}', ${name} AS name, block, ${bounds} FROM block_sums GROUP BY 2, 3 HAVING name IS NOT NULL`
  );
  // Makes a JSON array of the tags, which contain no commas.
  const tags = `'[' || replace(json_quote(substr(tags, 2, length(tags) - 2)), ',', '","') || ']'`;
  return [
    ...kinds,
    `SELECT 'tag', tag.value, block, ${bounds} FROM block_sums, json_each(${tags}) AS tag WHERE tags <> '' GROUP BY 2, 3`,
    // Without `WHERE true`, SQLite would read the ON of ON CONFLICT as that of a join.
  ].map((select) => `SELECT * FROM (${select}) WHERE true`).join(" UNION ALL ");
}
