/**
 * The part of the audit that compares the entries with the sums that a store makes some time after them: sums by
 * upstream, hour, end user and tag.
 */
import { cacheSavings } from "../../store/cache_savings.ts";
import { dayOf, figuresOf, stepOf, type SumKind, sumName, tokenCounts } from "../../store/days.ts";
import type { KeptEntry, LedgerStore, SumsHead } from "../../store/ledger.ts";
import { searchedValues } from "../../store/entry_row.ts";
import { stepMs, SUM_TABLES } from "../../store/sums.ts";
import { parseUsd } from "../money.ts";
import type { Comparison } from "./audit_walk.ts";
import { isPrunedDay } from "./kept_entries.ts";
import type { AuditCounts } from "./schemas.ts";

/** Maximum number of sums that are computed for each kind, about 150 MB: clients may invent users and tags. */
const MAX_SUMS = 300_000;

/** Sums that are compared between two pauses. */
const SUMS_PER_PAUSE = 1_000;

const KINDS = ["upstreams", "hours", "users"] as const satisfies readonly SumKind[];

/** Numbers of compared sums. `alone`: those that can only be compared in part. */
type LaterSumCounts = Pick<AuditCounts, "later_sums" | "later_sums_alone">;

/** By day or hour: figures by the names of their sum, as JSON. */
type Steps = Map<number, Map<string, bigint[]>>;

/** Sums of the entries that the store had added up when the walk began (`former`), and of the later entries. */
export class LaterSums {
  /** The entries that the store had added up when the walk began. */
  readonly head: SumsHead;
  readonly #computed: Record<SumKind, { former: Steps; later: Steps; count: number }> = {
    upstreams: { former: new Map(), later: new Map(), count: 0 },
    hours: { former: new Map(), later: new Map(), count: 0 },
    users: { former: new Map(), later: new Map(), count: 0 },
  };

  constructor(head: SumsHead) {
    this.head = head;
  }

  add(entry: KeptEntry): void {
    // Another check finds impossible numbers.
    if (![...tokenCounts(entry.tokens), entry.images, entry.attempts].every(Number.isSafeInteger)) return;
    const figures = figuresInOrder(entry);
    for (const kind of KINDS) {
      const step = stepOf(entry.at, stepMs(SUM_TABLES[kind]));
      if (step < firstStep(kind, this.head)) continue;
      const computed = this.#computed[kind];
      const steps = entry.seq <= this.head.seq ? computed.former : computed.later;
      let sums = steps.get(step);
      if (sums === undefined) steps.set(step, sums = new Map());
      const name = JSON.stringify(namesOf(entry, kind));
      const sum = sums.get(name);
      if (sum !== undefined) {
        for (const [index, figure] of sum.entries()) sum[index] = figure + (figures[index] ?? 0n);
      } else if (computed.count < MAX_SUMS) {
        computed.count++;
        sums.set(name, figures.slice(0, SUM_TABLES[kind].figures.length));
      }
    }
  }

  /** Returns whether the limit is reached, so some sums of the kind may be missing. */
  isFull(kind: SumKind): boolean {
    return this.#computed[kind].count === MAX_SUMS;
  }

  /** Returns the figures of a day or hour, by the names of their sums. */
  of(kind: SumKind, step: number): { former: ReadonlyMap<string, bigint[]>; later: ReadonlyMap<string, bigint[]> } {
    const { former, later } = this.#computed[kind];
    return { former: former.get(step) ?? new Map(), later: later.get(step) ?? new Map() };
  }

  /** Returns the days or hours of the entries that the store had added up. */
  steps(kind: SumKind): number[] {
    return [...this.#computed[kind].former.keys()];
  }
}

function firstStep(kind: SumKind, { firstDay, firstHour }: SumsHead): number {
  return kind === "hours" ? firstHour : firstDay;
}

/** Returns the figures of an entry in the order of the columns of a sum. */
function figuresInOrder(entry: KeptEntry): bigint[] {
  const { requests, failed, tokens, images, cost, overrun } = figuresOf(entry);
  const counted = entry.source === "upstream" || entry.source === "none" ? 0 : 1;
  return [
    ...[requests, failed, ...tokenCounts(tokens), images].map(BigInt),
    ...[cost, overrun, savedOf(entry)],
    ...[BigInt(counted), BigInt(entry.attempts), targetCost(entry)],
  ];
}

/** Returns the cost at the target; 0 for an amount that cannot be read, which another check reports. */
function targetCost({ details }: KeptEntry): bigint {
  const usd = details?.upstream_usd ?? "0";
  return /^\d+(?:\.\d{1,12})?$/.test(usd) ? parseUsd(usd) : 0n;
}

/** Returns how much the prompt cache saved, which is negative if writing to it cost more. */
function savedOf({ sheet, tokens }: KeptEntry): bigint {
  const [, read, write5m, write1h] = tokenCounts(tokens);
  if (sheet === undefined || !read && !write5m && !write1h) return 0n;
  const [ofRead = 0n, of5m = 0n, of1h = 0n] = cacheSavings(sheet);
  return BigInt(read ?? 0) * ofRead + BigInt(write5m ?? 0) * of5m + BigInt(write1h ?? 0) * of1h;
}

/** Returns the names of the sum that an entry belongs to, in the order of the columns. */
function namesOf(entry: KeptEntry, kind: SumKind): string[] {
  const { keyId, group, model, upstream, priceVersion, details } = entry;
  if (kind !== "users") {
    return [keyId, group, model, upstream, String(priceVersion ?? 0), details?.upstream_usd === undefined ? "0" : "1"];
  }
  const [, user, tags] = searchedValues(entry);
  return [keyId, group, model, user ?? "", tags ?? ""];
}

/**
 * Compares the sums with the entries, day by day and hour by hour. Sums may grow meanwhile: each must be at least the
 * sum of the entries that were added up when the walk began, and at most that plus the sum of the later entries.
 */
export async function checkLaterSums(
  ledger: Pick<LedgerStore, "sumsOfStep" | "sumsHead" | "entries" | "start">,
  { walk, findings, pause }: Comparison,
): Promise<LaterSumCounts> {
  const counts = { ...NO_LATER_SUMS };
  for (const kind of KINDS) {
    const unseenSteps = new Set(walk.later.steps(kind));
    for (let after = -1;;) {
      const stored = await ledger.sumsOfStep(kind, after);
      if (stored === undefined) break;
      const { step, sums } = stored;
      after = step;
      // Read after the sums: if the head has not moved, the sums contain none of the later entries.
      const hasMoved = (await ledger.sumsHead()).seq !== walk.later.head.seq;
      await walk.toEnd(ledger, pause);
      unseenSteps.delete(step);
      await compare({ kind, step, hasMoved }, sums);
    }
    for (const step of unseenSteps) await compare({ kind, step, hasMoved: true }, new Map());
  }
  return counts;

  async function compare(
    { kind, step, hasMoved }: { kind: SumKind; step: number; hasMoved: boolean },
    sums: ReadonlyMap<string, bigint[]>,
  ): Promise<void> {
    const { former, later } = walk.later.of(kind, step);
    const table = SUM_TABLES[kind];
    // Read last, because entries may have been pruned meanwhile, and sums of former hours deleted.
    const isPruned = isPrunedDay(await ledger.start(), dayOf(step * stepMs(table)));
    // After pruning, the sums of end users are deleted some time later, and nothing reads the sums of hours any more.
    if (isPruned && kind !== "upstreams" || step < firstStep(kind, await ledger.sumsHead())) return;
    const isPartial = isPruned || walk.later.isFull(kind);
    let count = 0;
    for (const name of new Set([...former.keys(), ...sums.keys()])) {
      if (++count % SUMS_PER_PAUSE === 0) await pause();
      if (isPartial) counts.later_sums_alone++;
      else counts.later_sums++;
      const [least, added] = [former.get(name) ?? [], hasMoved ? later.get(name) : undefined];
      const stored = sums.get(name) ?? [];
      const wrong = SUM_TABLES[kind].figures.filter((figure, index) => {
        const [actual, min, more] = [stored[index] ?? 0n, least[index] ?? 0n, added?.[index]];
        // Savings may be negative, so their sums may also shrink.
        if (figure === "saved" && (more !== undefined || isPartial)) return false;
        return actual < min && !walk.later.isFull(kind) || !isPartial && actual > min + (more ?? 0n);
      });
      if (wrong.length > 0) {
        findings.add({
          kind: "day_sum",
          message: `${sumName(table.step, step)}, ${
            (JSON.parse(name) as string[]).map((part) => JSON.stringify(part)).join(", ")
          }: ` +
            `the entries add up to different values of ${wrong.join(", ")}`,
        });
      }
    }
  }
}

/** The numbers if nothing was compared. */
export const NO_LATER_SUMS: LaterSumCounts = { later_sums: 0, later_sums_alone: 0 };

/** The head of a store without sums: no day or hour has any. */
export const NO_SUMS: SumsHead = {
  seq: 0,
  firstDay: Number.MAX_SAFE_INTEGER,
  firstHour: Number.MAX_SAFE_INTEGER,
};
