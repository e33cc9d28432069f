/** The sums that stores make from entries in the order of their numbers, some time after they were entered. */
import { type SumKind, TIME_STEPS } from "./days.ts";

/** Entries of a block: those with numbers from a multiple of it, exclusive, to the next one, inclusive. */
export const BLOCK = 2_000;

/** Entries without sums up to which reports read them in order of their numbers; else by their times. */
export const SHORT_TAIL = 20_000;

/** Hours that the sums per hour go back from the latest summed entry. Those before are deleted. */
export const HOURS_KEPT = 48;

/** A table of sums per day or hour. */
export interface SumTable {
  table: string;
  /** First column of the primary key. */
  step: "day" | "hour";
  /** Its other columns. */
  names: readonly string[];
  figures: readonly string[];
}

/** Columns of counts, in every table of sums. */
const COUNTS = [
  ...["requests", "failed", "prompt", "input_cache_read", "input_cache_write_5m", "input_cache_write_1h"],
  ...["completion", "reasoning", "images"],
];

const UPSTREAMS = {
  names: ["key_id", "group_name", "model", "upstream", "price_version", "has_target_price"],
  figures: [...COUNTS, "cost", "overrun", "saved", "counted", "attempts", "target_cost"],
};

/** The tables of each kind. */
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

/** Length of a step of a table, in milliseconds. */
export function stepMs({ step }: SumTable): number {
  return TIME_STEPS[step].ms;
}

/** Columns of entries by which blocks have names. */
const BLOCK_COLUMNS = ["group_name", "model", "upstream", "endpoint", "status", "ending", "reason"] as const;

/** The same without those that are expressions. */
export const BLOCK_NAMES: readonly string[] = BLOCK_COLUMNS;

/**
 * Kinds of names in `entry_blocks`, and the columns of grouped entries. `all` has one row per block, `tag` one per tag, and
 * `problem` one per combination of facts of requests that were not answered with status 200: see `problemPart`.
 */
export const BLOCK_KINDS: Readonly<Record<string, string>> = {
  all: "''",
  group: "group_name",
  model: "model",
  upstream: "upstream",
  endpoint: "endpoint",
  problem: `CASE WHEN status <> 200 OR ending IN ('failed', 'refused', 'lost') OR reason IS NOT NULL THEN
    CAST(status AS TEXT) || '\ne:' || ending || '\nr:' || coalesce(reason, '') || '\ng:' || group_name || '\nm:' || model
    || '\nu:' || upstream || '\np:' || endpoint || '\n' END`,
};

/** A part of a name of the kind `problem`. */
export function problemPart(fact: "e" | "r" | "g" | "m" | "u" | "p", value: string): string {
  return `\n${fact}:${value}\n`;
}

/** The SQL that inserts or adds rows of `SELECT columns…` into a table of sums. */
export function addingSums({ table, step, names, figures }: SumTable, select: string): string {
  const key = [step, ...names];
  return `INSERT INTO ${table} AS s (${[...key, ...figures].join(", ")}) ${select}
    ON CONFLICT (${key.join(", ")}) DO UPDATE SET ${
    figures.map((name) => `${name} = s.${name} + excluded.${name}`).join(", ")
  }`;
}

/** The SQL that inserts or widens rows of `entry_blocks`. `least` and `most` are functions of two values. */
export function addingBlocks(select: string, { least, most }: { least: string; most: string }): string {
  return `INSERT INTO entry_blocks AS b (kind, name, block, first_at, last_at, most_cost, most_ms) ${select}
    ON CONFLICT (kind, name, block) DO UPDATE SET first_at = ${least}(b.first_at, excluded.first_at),
      last_at = ${most}(b.last_at, excluded.last_at), most_cost = ${most}(b.most_cost, excluded.most_cost),
      most_ms = ${most}(b.most_ms, excluded.most_ms)`;
}

/** The tags of a column; one empty name if there are none. */
export function tagNames(tags: string): string[] {
  return tags === "" ? [""] : tags.slice(1, -1).split(",");
}
