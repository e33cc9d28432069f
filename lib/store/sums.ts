/**
 * Tables of the sums and blocks that stores make from entries in the background, in order of seq, and the SQL that adds
 * to them.
 */
import { FAILED_SQL, type SumKind, TIME_STEPS, TOKEN_CLASSES } from "./days.ts";
import type { UsageBy } from "./ledger.ts";

/** Entries per block. Block 0 has the seqs from 1 to 2,000, block 1 those from 2,001 to 4,000, and so on. */
export const BLOCK = 2_000;

/**
 * Maximum number of entries without sums that a report reads in order of seq. If there are more, it reads them by the
 * index of time.
 */
export const SHORT_TAIL = 20_000;

/** Hours before the latest entry in the sums for which sums per hour are kept. Older ones are deleted. */
export const HOURS_KEPT = 48;

/** A table of sums per day or hour. */
export interface SumTable {
  table: string;
  /** First column of the primary key. */
  step: "day" | "hour";
  /** Further columns of the primary key. */
  names: readonly string[];
  /** Columns that are added up. */
  figures: readonly string[];
}

/** Columns of counts that every table of sums has. */
export const COUNTS: readonly string[] = ["requests", "failed", ...TOKEN_CLASSES, "images"];

const UPSTREAMS = {
  names: ["key_id", "group_name", "model", "upstream", "price_version", "has_target_price"],
  figures: [...COUNTS, "cost", "overrun", "saved", "counted", "attempts", "target_cost"],
};

/** The table of each kind of sums. */
export const SUM_TABLES: Readonly<Record<SumKind, SumTable>> = {
  upstreams: { table: "upstream_days", step: "day", ...UPSTREAMS },
  hours: { table: "upstream_hours", step: "hour", ...UPSTREAMS },
  users: {
    table: "user_days",
    step: "day",
    names: ["key_id", "group_name", "model", "end_user", "tags"],
    figures: [...COUNTS, "cost", "overrun", "saved"],
  },
};

/**
 * The sums per day that are written with the entries. They exist even for days that were pruned before other sums
 * existed.
 */
export const DAYS: SumTable = {
  table: "days",
  step: "day",
  names: ["key_id", "group_name", "model"],
  figures: [...COUNTS, "cost", "overrun"],
};

/** Columns of the groupings in tables of sums; an expression for minutes, which none of them has. */
export const GROUPING_COLUMNS: Readonly<Record<UsageBy, string>> = {
  key: "key_id",
  group: "group_name",
  model: "model",
  upstream: "upstream",
  day: "day",
  hour: "hour",
  minute: `at / ${TIME_STEPS.minute.ms}`,
  user: "end_user",
  tag: "tags",
};

/** Returns the length of a table's step, in milliseconds. */
export function stepMs({ step }: SumTable): number {
  return TIME_STEPS[step].ms;
}

/** Columns of `entries` that the names of blocks are made of. */
export const BLOCK_NAMES: readonly string[] = [
  ...["group_name", "model", "upstream", "endpoint", "status", "ending", "reason"],
];

/**
 * Kinds of names in `entry_blocks`, with the SQL that makes a name from the columns of grouped entries. `all` has one
 * name. `problem` has a name for each combination of facts of requests that were not answered with status 200: see
 * `problemPart`. The kind `tag`, with a name for each tag, is not in this list.
 */
export const BLOCK_KINDS: Readonly<Record<string, string>> = {
  all: "''",
  group: "group_name",
  model: "model",
  upstream: "upstream",
  endpoint: "endpoint",
  problem: `CASE WHEN status <> 200 OR ${FAILED_SQL} OR reason IS NOT NULL THEN
    CAST(status AS TEXT) || '\ne:' || ending || '\nr:' || coalesce(reason, '') || '\ng:' || group_name || '\nm:' || model
    || '\nu:' || upstream || '\np:' || endpoint || '\n' END`,
};

/** Returns the part of a name of the kind `problem` that represents a fact, such as the ending `e`. */
export function problemPart(fact: "e" | "r" | "g" | "m" | "u" | "p", value: string): string {
  return `\n${fact}:${value}\n`;
}

/** Returns the SQL that adds the rows of a `SELECT` of all columns to a table of sums. */
export function addingSums({ table, step, names, figures }: SumTable, select: string): string {
  const key = [step, ...names];
  return `INSERT INTO ${table} AS s (${[...key, ...figures].join(", ")}) ${select}
    ON CONFLICT (${key.join(", ")}) DO UPDATE SET ${
    figures.map((name) => `${name} = s.${name} + excluded.${name}`).join(", ")
  }`;
}

/**
 * Returns the SQL that adds the rows of a `SELECT` to `entry_blocks`, where it extends the bounds of existing rows.
 * @param functions names of the SQL functions for the least and the greatest of two values
 */
export function addingBlocks(select: string, { least, most }: { least: string; most: string }): string {
  return `INSERT INTO entry_blocks AS b (kind, name, block, first_at, last_at, most_cost, most_ms) ${select}
    ON CONFLICT (kind, name, block) DO UPDATE SET first_at = ${least}(b.first_at, excluded.first_at),
      last_at = ${most}(b.last_at, excluded.last_at), most_cost = ${most}(b.most_cost, excluded.most_cost),
      most_ms = ${most}(b.most_ms, excluded.most_ms)`;
}
