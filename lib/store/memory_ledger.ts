/** A ledger that ends with the process. */
import { Accounts, lostEntry, type Spender } from "./sqlite/accounts.ts";
import { atOnce, inSlices, mapInSlices, sortInSlices } from "../scheduler.ts";
import { addFigures, cutSpan, dayOf, figuresOf, nameBy, Sums } from "./days.ts";
import { assertEntry, assertHold, checkSum, sheetText } from "./entry_check.ts";
import type { DaySum, Entry, KeptEntry, LedgerStart, LedgerStore, UsageBy } from "./ledger.ts";

/** Entries forgotten by one call of `prune`. */
const ENTRIES_AT_ONCE = 500;

/** Sums and entries summed up between two looks at the clock. */
const SUMMED_AT_ONCE = 1000;

/** Opens an empty ledger. */
export function openMemoryLedger(): LedgerStore {
  const entries: KeptEntry[] = [];
  /** The same in the order in which the requests came in. */
  let byTime: KeptEntry[] = [];
  const byId = new Map<string, KeptEntry>();
  const priceVersions = new Map<string, number>();
  const days = new Map<string, DaySum>();
  const accounts = new Accounts((spender) => atOnce(charge(spender, () => {})));
  let start: LedgerStart = { seq: 0, check: 0, day: -1 };

  /** What a spender was charged, in slices: of the ledger as it is when it calls `begun`. */
  function* charge({ scope, id, since }: Spender, begun: () => void): Generator<void, bigint> {
    // No sum changes once it is there.
    const kept = [...days.values()];
    begun();
    let sum = 0n;
    let count = 0;
    for (const { day, keyId, group, cost } of kept) {
      if (day >= since && (scope === "key" ? keyId : group) === id) sum += cost;
      if (++count % SUMMED_AT_ONCE === 0) yield;
    }
    return sum;
  }

  /** Returns whether it is new. */
  function enter(given: Entry): boolean {
    if (byId.has(given.id)) return false;
    const { seq: before, check } = entries.at(-1) ?? start;
    const { sheet, ...rest } = structuredClone(given);
    const entry = {
      ...rest,
      ...(sheet !== undefined && { sheet, priceVersion: versionOf(sheetText(sheet)) }),
      seq: before + 1,
    };
    const kept = { ...entry, check: checkSum(entry, check) };
    entries.push(kept);
    // Few came in before others that ended earlier.
    byTime.splice(byTime.findLastIndex(({ at }) => at <= kept.at) + 1, 0, kept);
    byId.set(kept.id, kept);
    addToDay(kept);
    accounts.enter(kept);
    return true;
  }

  function versionOf(sheet: string): number {
    const version = priceVersions.get(sheet) ?? priceVersions.size + 1;
    priceVersions.set(sheet, version);
    return version;
  }

  function addToDay(entry: KeptEntry): void {
    const whose = { day: dayOf(entry.at), keyId: entry.keyId, group: entry.group, model: entry.model };
    const name = JSON.stringify(Object.values(whose));
    const sum = days.get(name);
    // A new one each time: whoever sums up at the moment goes on with those that were.
    const figures = sum === undefined ? figuresOf(entry) : { ...sum, tokens: { ...sum.tokens } };
    if (sum !== undefined) addFigures(figures, figuresOf(entry));
    days.set(name, { ...figures, ...whose });
  }

  /** In slices, of the ledger as it is at the first of them. */
  function* usage({ since, until, by }: { since: number; until: number; by: UsageBy }): Generator<void, Sums> {
    const { whole, pieces } = cutSpan({ since, until });
    const sums = new Sums();
    const goneDay = start.day;
    const isGone = (day: number) => day <= goneDay && pieces.some((piece) => piece.day === day);
    // Neither a sum nor an entry changes once it is there.
    const [kept, single] = [[...days.values()], pieces.length === 0 ? [] : [...entries]];
    let count = 0;
    for (const sum of kept) {
      if ((sum.day >= whole.from && sum.day < whole.until) || isGone(sum.day)) sums.add(nameBy(by, sum), sum);
      if (++count % SUMMED_AT_ONCE === 0) yield;
    }
    for (const piece of pieces) {
      if (piece.day <= goneDay) continue;
      for (const entry of single) {
        if (++count % SUMMED_AT_ONCE === 0) yield;
        if (entry.at < piece.since || entry.at >= piece.until) continue;
        sums.add(nameBy(by, { ...entry, day: piece.day }), figuresOf(entry));
      }
    }
    return sums;
  }

  // deno-lint-ignore require-await -- what is thrown here must reject
  async function append(batch: readonly Entry[]): Promise<boolean[]> {
    for (const entry of batch) assertEntry(entry);
    return batch.map(enter);
  }

  return {
    // deno-lint-ignore require-await -- what is thrown here must reject
    async hold(hold) {
      assertHold(hold);
      if (byId.has(hold.id)) throw new RangeError(`Cannot hold for "${hold.id}": the request is in the ledger already`);
      return accounts.hold(hold);
    },
    async left(claim) {
      if (claim.scope === "group") await accounts.learn(claim, (spender, begun) => inSlices(charge(spender, begun)));
      return accounts.left(claim);
    },
    renew(ids, leaseUntil) {
      accounts.renew(ids, leaseUntil);
      return Promise.resolve();
    },
    append,
    async expire(now) {
      const overdue = accounts.overdue(now);
      await append(overdue.map((hold) => lostEntry(hold, now)));
      return overdue.map(({ id }) => id);
    },
    holds: () => Promise.resolve(accounts.open()),
    find: (id) => Promise.resolve(structuredClone(byId.get(id))),
    entries({ after, limit }) {
      const from = after > start.seq ? after - start.seq : 0;
      return Promise.resolve(entries.slice(from, from + limit).map((entry) => structuredClone(entry)));
    },
    entriesWithin({ since, after, until, limit }) {
      const from = byTime.findIndex(({ at, seq }) => at > since || (at === since && seq > after));
      const page = from === -1 ? [] : byTime.slice(from, from + limit).filter(({ at }) => at < until);
      return Promise.resolve(page.map((entry) => structuredClone(entry)));
    },
    usage: async (query, signal) => (await inSlices(usage(query), signal)).list(),
    async days(since, enough = Infinity) {
      const later = [...days.values()].filter(({ day }) => day >= since);
      const found = await sortInSlices(later, (a, b) => a.day - b.day);
      const last = found[enough - 1]?.day ?? Infinity;
      return await mapInSlices(found.filter(({ day }) => day <= last), (sum) => structuredClone(sum));
    },
    prune(beforeDay) {
      const end = entries.findIndex(({ at }) => dayOf(at) >= beforeDay);
      const old = end === -1 ? entries.length : end;
      const gone = entries.splice(0, Math.min(old, ENTRIES_AT_ONCE));
      for (const { id, at, seq, check } of gone) {
        byId.delete(id);
        start = { seq, check, day: Math.max(start.day, dayOf(at)) };
      }
      byTime = byTime.filter(({ seq }) => seq > start.seq);
      return Promise.resolve(old > ENTRIES_AT_ONCE);
    },
    start: () => Promise.resolve({ ...start }),
  };
}
