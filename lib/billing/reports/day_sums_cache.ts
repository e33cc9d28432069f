/** Sums per day that the store does not have. Those of past days are made once and kept in memory. */
import { DAY_MS, needsEntries, Sums } from "../../store/days.ts";
import type { LedgerStore, UsageQuery, UsageSum } from "../../store/ledger.ts";
import type { Period } from "./period.ts";

/** The lines of one day, and the number of its requests. */
interface KnownDay {
  requests: number;
  lines: readonly unknown[];
}

/** Most lines that are kept for one owner. The oldest are dropped first. */
const MOST_LINES = 100_000;

/** Days by their owner, then by the kind of lines and the day. */
const known = new WeakMap<object, Map<string, KnownDay>>();

/** The parts that make the lines of a day. */
export interface DayLines<Line> {
  /** Everything that they depend on beside the entries: the ledger, or what belongs to one ledger. */
  owner: object;
  /** Name of this kind of lines. */
  kind: string;
  sumDay(day: Period): Promise<readonly Line[]>;
}

/**
 * Lines of all days of a period of whole days, in the order of the days. Entries never change, so the lines of a day hold
 * as long as it has the same number of requests.
 * @throws the reason of the signal, where it is given up
 */
export async function sumByDays<Line>(
  ledger: Pick<LedgerStore, "usage">,
  { since, until, signal }: Period & { signal?: AbortSignal | undefined },
  { owner, kind, sumDay }: DayLines<Line>,
): Promise<Line[]> {
  let days = known.get(owner);
  if (days === undefined) known.set(owner, days = new Map());
  const lines: Line[] = [];
  const counts = await ledger.usage({ since, until, by: "day" }, signal);
  for (const { name, requests } of counts.sort((one, other) => one.name < other.name ? -1 : 1)) {
    const key = `${kind} ${name}`;
    let day = days.get(key);
    if (day?.requests !== requests) {
      signal?.throwIfAborted();
      const begin = Date.parse(name);
      day = { requests, lines: await sumDay({ since: begin, until: begin + DAY_MS }) };
    }
    // Again, so that the days that are read are the newest ones.
    days.delete(key);
    days.set(key, day);
    lines.push(...day.lines as readonly Line[]);
  }
  dropOldest(days);
  return lines;
}

function dropOldest(days: Map<string, KnownDay>): void {
  let kept = [...days.values()].reduce((sum, { lines }) => sum + lines.length, 0);
  for (const [key, { lines }] of days) {
    if (kept <= MOST_LINES) return;
    days.delete(key);
    kept -= lines.length;
  }
}

/** A ledger whose sums over single entries remember past days, where a query is of whole days without a filter. */
export function rememberDays(ledger: Pick<LedgerStore, "usage" | "start">): Pick<LedgerStore, "usage" | "start"> {
  return {
    start: () => ledger.start(),
    async usage(query, signal) {
      if (!needsEntries(query) || query.only !== undefined || !isOfWholeDays(query)) {
        return await ledger.usage(query, signal);
      }
      const { by, thenBy, ...period } = query;
      const lines = await sumByDays<UsageSum>(ledger, { ...period, signal }, {
        owner: ledger,
        kind: `${by} ${thenBy ?? ""}`,
        sumDay: (day) => ledger.usage({ ...query, ...day }, signal),
      });
      const sums = new Sums();
      for (const { name, thenName, ...figures } of lines) {
        sums.add({ name, ...(thenName !== undefined && { thenName }) }, figures);
      }
      return sums.list();
    },
  };
}

function isOfWholeDays({ since, until }: Pick<UsageQuery, "since" | "until">): boolean {
  return since % DAY_MS === 0 && until % DAY_MS === 0;
}
