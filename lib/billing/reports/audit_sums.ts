/** The part of the audit that compares the sums that are made of entries some time later with the entries. */
import { cacheSavings } from "../../store/cache_savings.ts";
import { dayOf, figuresOf, stepOf, type SumKind, sumName, tokenCounts } from "../../store/days.ts";
import type { KeptEntry, LedgerStore, SumsHead } from "../../store/ledger.ts";
import { searchedValues } from "../../store/entry_row.ts";
import { stepMs, SUM_TABLES } from "../../store/sums.ts";
import { parseUsd } from "../money.ts";
import type { Comparison } from "./audit_walk.ts";
import type { AuditCounts } from "./schemas.ts";

/** Most sums of a kind that are made of entries, about 150 MB: clients may invent users and tags. */
const MAX_SUMS = 300_000;

/** Sums compared between two turns of the event loop. */
const AT_ONCE = 1_000;

const KINDS = ["upstreams", "hours", "users"] as const satisfies readonly SumKind[];

/** Counts of compared sums. */
type LaterSumCounts = Pick<AuditCounts, "later_sums" | "later_sums_alone">;

/** Figures by the names of a sum, by day or hour. */
type Steps = Map<number, Map<string, bigint[]>>;

/** Sums over entries: those that the store had summed up when the walk began, and later ones. */
export class LaterSums {
  readonly head: SumsHead;
  readonly #recomputed: Record<SumKind, { former: Steps; later: Steps; count: number }> = {
    upstreams: { former: new Map(), later: new Map(), count: 0 },
    hours: { former: new Map(), later: new Map(), count: 0 },
    users: { former: new Map(), later: new Map(), count: 0 },
  };

  constructor(head: SumsHead) {
    this.head = head;
  }

  /** Adds an entry. */
  add(entry: KeptEntry): void {
    // Another check finds impossible numbers.
    if (![...tokenCounts(entry.tokens), entry.images, entry.attempts].every(Number.isSafeInteger)) return;
    const figures = allFigures(entry);
    for (const kind of KINDS) {
      const step = stepOf(entry.at, stepMs(SUM_TABLES[kind]));
      if (step < firstStep(kind, this.head)) continue;
      const recomputed = this.#recomputed[kind];
      const steps = entry.seq <= this.head.seq ? recomputed.former : recomputed.later;
      let sums = steps.get(step);
      if (sums === undefined) steps.set(step, sums = new Map());
      const name = JSON.stringify(namesOf(entry, kind));
      const sum = sums.get(name);
      if (sum !== undefined) {
        for (const [index, figure] of sum.entries()) sum[index] = figure + (figures[index] ?? 0n);
      } else if (recomputed.count < MAX_SUMS) {
        recomputed.count++;
        sums.set(name, figures.slice(0, SUM_TABLES[kind].figures.length));
      }
    }
  }

  /** True: some sums of the kind are missing. */
  isFull(kind: SumKind): boolean {
    return this.#recomputed[kind].count === MAX_SUMS;
  }

  of(kind: SumKind, step: number): { former: ReadonlyMap<string, bigint[]>; later: ReadonlyMap<string, bigint[]> } {
    const { former, later } = this.#recomputed[kind];
    return { former: former.get(step) ?? new Map(), later: later.get(step) ?? new Map() };
  }

  /** The days or hours of the entries that the store had summed up. */
  steps(kind: SumKind): number[] {
    return [...this.#recomputed[kind].former.keys()];
  }
}

/** The first day or hour of the sums. */
function firstStep(kind: SumKind, { firstDay, firstHour }: SumsHead): number {
  return kind === "hours" ? firstHour : firstDay;
}

/** The figures of an entry in the order of the columns. */
function allFigures(entry: KeptEntry): bigint[] {
  const { requests, failed, tokens, images, cost, overrun } = figuresOf(entry);
  const counted = entry.source === "upstream" || entry.source === "none" ? 0 : 1;
  return [
    ...[requests, failed, ...tokenCounts(tokens), images].map(BigInt),
    ...[cost, overrun, savedOf(entry)],
    ...[BigInt(counted), BigInt(entry.attempts), targetCost(entry)],
  ];
}

/** Another check finds an amount that cannot be read. */
function targetCost({ details }: KeptEntry): bigint {
  const usd = details?.upstream_usd ?? "0";
  return /^\d+(?:\.\d{1,12})?$/.test(usd) ? parseUsd(usd) : 0n;
}

function savedOf({ sheet, tokens }: KeptEntry): bigint {
  const [, read, write5m, write1h] = tokenCounts(tokens);
  if (sheet === undefined || !read && !write5m && !write1h) return 0n;
  const [ofRead = 0n, of5m = 0n, of1h = 0n] = cacheSavings(sheet);
  return BigInt(read ?? 0) * ofRead + BigInt(write5m ?? 0) * of5m + BigInt(write1h ?? 0) * of1h;
}

function namesOf(entry: KeptEntry, kind: SumKind): string[] {
  const { keyId, group, model, upstream, priceVersion, details } = entry;
  if (kind !== "users") {
    return [keyId, group, model, upstream, String(priceVersion ?? 0), details?.upstream_usd === undefined ? "0" : "1"];
  }
  const [, user, tags] = searchedValues(entry);
  return [keyId, group, model, user ?? "", tags ?? ""];
}

/**
 * Compares the sums with the entries, day by day and hour by hour. Sums may grow meanwhile: each must include the entries
 * that were summed up when the walk began, and no others than those and the later ones.
 */
export async function checkLaterSums(
  ledger: Pick<LedgerStore, "sumsOfStep" | "sumsHead" | "entries" | "start">,
  { walk, findings, turn }: Comparison,
): Promise<LaterSumCounts> {
  const counts = { ...NO_LATER_SUMS };
  for (const kind of KINDS) {
    const unread = new Set(walk.later.steps(kind));
    for (let after = -1;;) {
      const stored = await ledger.sumsOfStep(kind, after);
      if (stored === undefined) break;
      const { step, sums } = stored;
      after = step;
      // Read after the sums: if it has not moved, they have none of the later entries.
      const hasMoved = (await ledger.sumsHead()).seq !== walk.later.head.seq;
      await walk.toEnd(ledger, turn);
      unread.delete(step);
      await compare({ kind, step, hasMoved }, sums);
    }
    for (const step of unread) await compare({ kind, step, hasMoved: true }, new Map());
  }
  return counts;

  async function compare(
    { kind, step, hasMoved }: { kind: SumKind; step: number; hasMoved: boolean },
    sums: ReadonlyMap<string, bigint[]>,
  ): Promise<void> {
    const { former, later } = walk.later.of(kind, step);
    const table = SUM_TABLES[kind];
    // Read last: entries may have been pruned meanwhile, and sums of former hours deleted.
    const isPruned = dayOf(step * stepMs(table)) <= (await ledger.start()).day;
    // Those of end users are deleted then, some time later, and those of hours have no more use.
    if (isPruned && kind !== "upstreams" || step < firstStep(kind, await ledger.sumsHead())) return;
    const isAlone = isPruned || walk.later.isFull(kind);
    let count = 0;
    for (const name of new Set([...former.keys(), ...sums.keys()])) {
      if (++count % AT_ONCE === 0) await turn();
      if (isAlone) counts.later_sums_alone++;
      else counts.later_sums++;
      const [lower, upper] = [former.get(name) ?? [], hasMoved ? later.get(name) : undefined];
      const stored = sums.get(name) ?? [];
      const differing = SUM_TABLES[kind].figures.filter((figure, index) => {
        const [has, from, add] = [stored[index] ?? 0n, lower[index] ?? 0n, upper?.[index]];
        // This figure may be negative, so that sums of it also shrink.
        if (figure === "saved" && (add !== undefined || isAlone)) return false;
        return has < from && !walk.later.isFull(kind) || !isAlone && has > from + (add ?? 0n);
      });
      if (differing.length > 0) {
        findings.add({
          kind: "day_sum",
          message: `${sumName(table.step, step)}, ${
            (JSON.parse(name) as string[]).map((each) => JSON.stringify(each)).join(", ")
          }: ` +
            `the entries add up to other sums of ${differing.join(", ")}`,
        });
      }
    }
  }
}

/** Nothing was compared. */
export const NO_LATER_SUMS: LaterSumCounts = { later_sums: 0, later_sums_alone: 0 };

/** Before the first day and hour of all. */
export const NO_SUMS: SumsHead = {
  seq: 0,
  firstDay: Number.MAX_SAFE_INTEGER,
  firstHour: Number.MAX_SAFE_INTEGER,
};
