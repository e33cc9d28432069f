/** Steps of the migration: the tables of the sums that are made from entries in the background, and their functions. */
import { addingBlocks, addingSums, BLOCK, BLOCK_KINDS, BLOCK_NAMES, HOURS_KEPT, SUM_TABLES } from "../sums.ts";
import { FAILED_SQL, type SumKind } from "../days.ts";
import { PLAN_SETTINGS } from "./ledger_holds_shape.ts";

// Definitions of columns that several tables have.
const COUNT_COLUMNS = `requests bigint NOT NULL, failed bigint NOT NULL, prompt bigint NOT NULL,
  input_cache_read bigint NOT NULL, input_cache_write_5m bigint NOT NULL, input_cache_write_1h bigint NOT NULL,
  completion bigint NOT NULL, reasoning bigint NOT NULL, images bigint NOT NULL`;

const AMOUNT_COLUMNS = "cost numeric NOT NULL, overrun numeric NOT NULL, saved numeric NOT NULL";

const OWNER_COLUMNS = `day bigint NOT NULL, key_id text COLLATE "C" NOT NULL, group_name text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL`;

const UPSTREAM_COLUMNS =
  'upstream text COLLATE "C" NOT NULL, price_version bigint NOT NULL, has_target_price boolean NOT NULL';

const ATTEMPT_COLUMNS = "counted bigint NOT NULL, attempts bigint NOT NULL, target_cost numeric NOT NULL";

// `sums_head`: the last entry in the sums, and their first day; entries of earlier days were pruned before. `saved` may
// be negative. `price_version` is 0 for entries without a price sheet.
const TABLES = `
CREATE TABLE sums_head (
  one integer PRIMARY KEY CHECK (one = 1),
  seq bigint NOT NULL,
  first_day bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO sums_head SELECT 1, seq, day + 1 FROM ledger_start;
CREATE TABLE upstream_days (
  ${OWNER_COLUMNS}, ${UPSTREAM_COLUMNS},
  ${COUNT_COLUMNS}, ${AMOUNT_COLUMNS}, ${ATTEMPT_COLUMNS},
  PRIMARY KEY (day, key_id, group_name, model, upstream, price_version, has_target_price)
) WITH (fillfactor = 70);
CREATE TABLE user_days (
  ${OWNER_COLUMNS}, end_user text COLLATE "C" NOT NULL, tags text COLLATE "C" NOT NULL,
  ${COUNT_COLUMNS}, ${AMOUNT_COLUMNS},
  PRIMARY KEY (day, key_id, group_name, model, end_user, tags)
) WITH (fillfactor = 70);
-- The blocks of 2,000 entries that have an entry with a name, such as a model, and the bounds of those entries.
CREATE TABLE entry_blocks (
  kind text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  block bigint NOT NULL,
  first_at bigint NOT NULL,
  last_at bigint NOT NULL,
  most_cost bigint NOT NULL,
  most_ms bigint NOT NULL,
  PRIMARY KEY (kind, name, block)
);
CREATE INDEX entry_blocks_by_block ON entry_blocks (block);
`;

/** The cost of an entry at the prices of the target, in USD as text; NULL if the target has none. */
const TARGET_USD = `CASE WHEN strpos(e.details, '"upstream_usd"') > 0 THEN e.details::json ->> 'upstream_usd' END`;

/** Expressions for the names of an entry `e` in tables of sums, if they differ from its columns. */
const NAME_EXPRESSIONS: Readonly<Record<string, string>> = {
  day: "e.at / 86400000",
  hour: "e.at / 3600000",
  price_version: "coalesce(e.price_version, 0)::bigint",
  has_target_price: `(${TARGET_USD}) IS NOT NULL`,
  end_user: "coalesce(e.end_user, '')",
  tags: "coalesce(e.tags, '')",
};

/**
 * Expressions for the figures of an entry `e`, if they differ from its columns. Prices have at most twelve decimals, so
 * truncation only removes zeros after the decimal point.
 */
const FIGURE_EXPRESSIONS: Readonly<Record<string, string>> = {
  requests: "1",
  failed: `(e.${FAILED_SQL})::integer`,
  saved: `coalesce(trunc(1000000000000 * p.factor::numeric * (
    e.input_cache_read * (p.prompt::numeric - p.input_cache_read::numeric)
    + e.input_cache_write_5m * (p.prompt::numeric - p.input_cache_write_5m::numeric)
    + e.input_cache_write_1h * (p.prompt::numeric - p.input_cache_write_1h::numeric))), 0)`,
  counted: "(e.source NOT IN ('upstream', 'none'))::integer",
  target_cost:
    `CASE WHEN (${TARGET_USD}) ~ '^[0-9]+([.][0-9]{1,12})?$' THEN trunc((${TARGET_USD})::numeric * 1000000000000) ELSE 0 END`,
};

/** Returns the expression for a name or figure of an entry `e` with its price sheet `p`. */
export function entryColumn(name: string): string {
  return NAME_EXPRESSIONS[name] ?? FIGURE_EXPRESSIONS[name] ?? `e.${name}`;
}

/** Returns a join of entries, as `e`, with their price sheets, as `p`. */
export function withSheets(entries: string): string {
  return `${entries} e LEFT JOIN price_sheets p ON p.version = e.price_version`;
}

/** Names by which entries are grouped before they are added to the sums and blocks. */
const GROUPED_NAMES = [
  ...new Set(["day", "hour", ...SUM_TABLES.upstreams.names, ...SUM_TABLES.users.names, ...BLOCK_NAMES]),
];

/** Expressions for the first day or hour of each kind of sums. */
const FIRST_STEPS: Readonly<Record<SumKind, string>> = {
  upstreams: "first",
  users: "greatest(first, gone + 1)",
  hours: "kept_hour",
};

/** Returns the SQL that adds grouped entries to a kind of sums. */
function stepSelect(kind: SumKind): string {
  const { step, names, figures } = SUM_TABLES[kind];
  const key = [step, ...names].join(", ");
  const sums = figures.map((name) => `sum(${name})`).join(", ");
  return addingSums(
    SUM_TABLES[kind],
    `SELECT ${key}, ${sums} FROM grouped WHERE ${step} >= ${FIRST_STEPS[kind]} GROUP BY ${key}`,
  );
}

/** Returns the SQL that makes rows of `entry_blocks` from grouped entries. */
function blockSelect(): string {
  const bounds = "min(first_at), max(last_at), max(most_cost), max(most_ms)";
  const kinds = Object.entries(BLOCK_KINDS).map(([kind, name]) =>
    `SELECT '${kind}', (${name})::text AS name, block, ${bounds} FROM grouped WHERE (${name}) IS NOT NULL GROUP BY 2, 3`
  );
  return [
    ...kinds,
    `SELECT 'tag', tag, block, ${bounds}
     FROM grouped, unnest(string_to_array(substr(tags, 2, length(tags) - 2), ',')) AS tag
     WHERE tags <> '' GROUP BY 2, 3`,
  ].join(" UNION ALL ");
}

// The lock on the row of `sums_head` makes processes add up entries one after the other. Entries become visible in
// order of seq, so none of a range is missing.
const FUNCTIONS = `
-- Adds the next block to the sums if all its entries exist and no other process is doing so. Returns whether the block
-- after it is complete.
CREATE FUNCTION ledger_sum_up() RETURNS boolean LANGUAGE plpgsql ${PLAN_SETTINGS} AS $body$
DECLARE
  last_seq bigint := (SELECT seq FROM ledger_head);
  head_seq bigint;
  end_seq bigint;
BEGIN
  SELECT seq INTO head_seq FROM sums_head FOR UPDATE SKIP LOCKED;
  end_seq := head_seq - head_seq % ${BLOCK} + ${BLOCK};
  IF head_seq IS NULL OR end_seq > last_seq THEN
    RETURN false;
  END IF;
  PERFORM ledger_sum_range(head_seq, end_seq);
  RETURN end_seq + ${BLOCK} <= last_seq;
END $body$;

-- Adds entries to the sums before they are pruned, in the same transaction.
CREATE FUNCTION ledger_sum_before_pruning() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  head_seq bigint;
  end_seq bigint;
BEGIN
  SELECT seq INTO head_seq FROM sums_head FOR UPDATE;
  WHILE head_seq < NEW.seq LOOP
    end_seq := least(head_seq - head_seq % ${BLOCK} + ${BLOCK}, NEW.seq);
    PERFORM ledger_sum_range(head_seq, end_seq);
    head_seq := end_seq;
  END LOOP;
  RETURN NEW;
END $body$;
CREATE TRIGGER ledger_start_sums BEFORE UPDATE ON ledger_start
FOR EACH ROW EXECUTE FUNCTION ledger_sum_before_pruning();

-- Returns the entries that are not in the sums yet, which must be few.
CREATE FUNCTION ledger_tail() RETURNS SETOF entries LANGUAGE plpgsql STABLE ${PLAN_SETTINGS} AS $body$
BEGIN
  RETURN QUERY SELECT * FROM entries WHERE seq > (SELECT h.seq FROM sums_head h) ORDER BY seq;
END $body$;
`;

/** Adds sums per day with upstreams, end users, tags and what caches saved, and the bounds of blocks of entries. */
export const SUMS_STEP: string = `${TABLES}${FUNCTIONS}DROP INDEX IF EXISTS entries_failed;`;

/** The function that adds a range of entries, at most a block, to all kinds of sums. */
const SUM_RANGE = `
CREATE OR REPLACE FUNCTION ledger_sum_range(from_seq bigint, to_seq bigint) RETURNS void
LANGUAGE plpgsql ${PLAN_SETTINGS} AS $body$
#variable_conflict use_column
DECLARE
  first bigint := (SELECT first_day FROM sums_head);
  gone bigint := (SELECT day FROM ledger_start);
  kept_hour bigint := (SELECT greatest(first_hour, (
    SELECT max(at) / 3600000 - ${HOURS_KEPT} FROM entries WHERE seq > from_seq AND seq <= to_seq)) FROM sums_head);
BEGIN
  WITH grouped AS MATERIALIZED (
    SELECT ${GROUPED_NAMES.map((name) => `${entryColumn(name)} AS ${name}`).join(", ")},
      ${SUM_TABLES.upstreams.figures.map((name) => `sum(${entryColumn(name)}) AS ${name}`).join(", ")},
      (e.seq - 1) / ${BLOCK} AS block, min(e.at) AS first_at, max(e.at) AS last_at, max(e.cost) AS most_cost,
      max(e.total_ms) AS most_ms
    FROM ${withSheets("entries")}
    WHERE e.seq > from_seq AND e.seq <= to_seq
    GROUP BY ${GROUPED_NAMES.map((_, index) => index + 1).join(", ")}, block
  ), upstreams AS (
    ${stepSelect("upstreams")}
  ), hours AS (
    ${stepSelect("hours")}
  ), users AS (
    ${stepSelect("users")}
  )
  ${addingBlocks(blockSelect(), { least: "least", most: "greatest" })};
  DELETE FROM upstream_hours WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM upstream_hours WHERE hour < kept_hour LIMIT ${2 * BLOCK}));
  UPDATE sums_head SET seq = to_seq, first_hour = kept_hour;
END $body$;
`;

/**
 * Adds sums per hour of the last two days. `first_hour` is the first one with sums: at the migration, a later hour than
 * that of any entry. The change of `sums_head` waits for processes that add up entries, and makes them wait.
 */
export const HOURS_STEP: string = `
CREATE TABLE upstream_hours (
  ${OWNER_COLUMNS.replace("day", "hour")}, ${UPSTREAM_COLUMNS},
  ${COUNT_COLUMNS}, ${AMOUNT_COLUMNS}, ${ATTEMPT_COLUMNS},
  PRIMARY KEY (hour, key_id, group_name, model, upstream, price_version, has_target_price)
) WITH (fillfactor = 70);
ALTER TABLE sums_head ADD COLUMN first_hour bigint NOT NULL DEFAULT 0;
UPDATE sums_head SET first_hour = greatest(
  (SELECT (day + 1) * 24 FROM ledger_start), (SELECT coalesce(max(at) / 3600000 + 1, 0) FROM entries));
${SUM_RANGE}`;
