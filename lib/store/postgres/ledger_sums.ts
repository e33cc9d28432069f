/**
 * Reads the charged and held amounts of keys, groups and end users, and the sums per day that are written with entries.
 */
import { mapSliced } from "../../scheduler.ts";
import { type CountRow, toCounts } from "../entry_row.ts";
import type { DaySum, Spender, Spending, SumFigures } from "../ledger.ts";
import type { Sql } from "./client.ts";

/** The figures of a row of sums: texts if they may exceed 64 bits, otherwise `bigint`. */
export type FigureRow = Record<keyof CountRow | "cost" | "overrun", string | bigint>;

/** Implements `LedgerStore.spending`. One statement, since an entry may turn a hold into a charge at any time. */
export async function readSpending(sql: Sql, spenders: readonly Spender[]): Promise<Spending[]> {
  const places = spenders.map(({ scope, id, since }, place) => ({ place, scope, id, since }));
  const rows = await sql<{ charged: string; held: string }[]>`
    SELECT ledger_charged(scope, id, since) AS charged, ledger_on_hold(scope, id, since) AS held
    FROM json_to_recordset(${JSON.stringify(places)}::text::json)
      AS spender (place integer, scope text, id text, since bigint)
    ORDER BY place`;
  return rows.map(({ charged, held }) => ({ charged: BigInt(charged), held: BigInt(held) }));
}

/** Implements `LedgerStore.days`. @param enough the number of sums to read; `Infinity`: all */
export async function readDays(sql: Sql, since: number, enough: number): Promise<DaySum[]> {
  const offset = Number.isSafeInteger(enough) ? enough - 1 : Number.MAX_SAFE_INTEGER;
  const rows = await sql<(FigureRow & { day: bigint; key_id: string; group_name: string; model: string })[]>`
    SELECT * FROM days
    WHERE day >= ${since} AND day <= coalesce(
      (SELECT day FROM days WHERE day >= ${since} ORDER BY day LIMIT 1 OFFSET ${offset}), ${Number.MAX_SAFE_INTEGER})
    ORDER BY day, key_id, group_name, model`;
  return await mapSliced(rows, (row) => ({
    day: Number(row.day),
    keyId: row.key_id,
    group: row.group_name,
    model: row.model,
    ...toFigures(row),
  }));
}

/** Converts a row to figures. */
export function toFigures(row: FigureRow): SumFigures {
  return { ...toCounts(row), cost: BigInt(row.cost), overrun: BigInt(row.overrun) };
}
