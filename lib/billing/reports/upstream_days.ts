/** Sums by upstream and day. The store has none, so those of past days are made once and kept in memory. */
import { DAY_MS, dayName, dayOf } from "../../store/days.ts";
import type { LedgerStore, UsageSum } from "../../store/ledger.ts";
import type { Period } from "./period.ts";

/** The sums of one day, and the number of their requests. */
interface KnownDay {
  requests: number;
  sums: UsageSum[];
}

/** Sums that were made, by ledger and day. */
const known = new WeakMap<object, Map<string, KnownDay>>();

/**
 * Sums by upstream, then day, of whole days. Entries never change, so the sums of a day hold as long as it has the same
 * number of requests.
 * @throws the reason of the signal, where it is given up
 */
export async function sumUpstreamDays(
  ledger: Pick<LedgerStore, "usage">,
  { since, until }: Period,
  signal?: AbortSignal,
): Promise<UsageSum[]> {
  let days = known.get(ledger);
  if (days === undefined) known.set(ledger, days = new Map());
  const counts = new Map(
    (await ledger.usage({ since, until, by: "day" }, signal)).map((sum) => [sum.name, sum.requests]),
  );
  const names = Array.from({ length: dayOf(until) - dayOf(since) }, (_, index) => dayName(dayOf(since) + index));
  const stale = names.filter((name) => days.get(name)?.requests !== counts.get(name));
  const [first, last] = [stale[0], stale.at(-1)];
  if (first !== undefined && last !== undefined) {
    const span = { since: Date.parse(first), until: Date.parse(last) + DAY_MS };
    const fresh = new Map<string, KnownDay>();
    for (const sum of await ledger.usage({ ...span, by: "upstream", thenBy: "day" }, signal)) {
      const day = sum.thenName ?? "";
      const of = fresh.get(day) ?? { requests: 0, sums: [] };
      fresh.set(day, { requests: of.requests + sum.requests, sums: [...of.sums, sum] });
    }
    for (const [name, day] of fresh) days.set(name, day);
  }
  return names.flatMap((name) => days.get(name)?.sums ?? []);
}
