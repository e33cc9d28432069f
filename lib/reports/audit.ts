/** The audit: everything in the ledger that can be worked out anew is, and compared. */
import type { LedgerStore } from "../store/ledger.ts";
import { checkDays } from "./audit_days.ts";
import { type Difference, Findings } from "./audit_findings.ts";
import { EntryWalk } from "./audit_walk.ts";

/** Time after the end of its lease at which an open hold is wrong, in milliseconds: the sweep has had its chance. */
const LEASE_GRACE_MS = 300_000;

/** Walks that are begun anew because the oldest entries were pruned under them. */
const MOST_RESTARTS = 5;

/** What an audit found. */
export interface AuditReport {
  /** True where there is no difference. */
  ok: boolean;
  checked: {
    entries: number;
    /** Places of the first and the last entry; `null` where there is none. */
    first_seq: number | null;
    last_seq: number | null;
    /** Sums per day that were compared with their entries. */
    day_sums: number;
    /** Of them, those that grew meanwhile: the entries fit between two readings. */
    day_sums_in_motion: number;
    /** Sums per day whose entries are pruned, so that nothing is left to compare them with. */
    day_sums_alone: number;
    holds: number;
  };
  difference_count: number;
  /** The first 100 of them. */
  differences: readonly Difference[];
}

/** What an audit may be given. */
export interface AuditOptions {
  /** Unix time in milliseconds. */
  now?: () => number;
  /** Lets everything else in the process have its turn. */
  turn?: () => Promise<void>;
}

/** Audits a ledger, which may be in use meanwhile. Whatever is wrong with it is in the report. */
export async function auditLedger(
  ledger: LedgerStore,
  { now = Date.now, turn = nextTurn }: AuditOptions = {},
): Promise<AuditReport> {
  const { walk, findings } = await walkAll(ledger, turn);
  const days = await checkDays(ledger, { walk, firstDay: walk.start.day + 1, findings, turn });
  const holds = await checkHolds(ledger, { findings, now: now() });
  return {
    ok: findings.count === 0,
    checked: { ...walk.extent(), ...days, holds },
    difference_count: findings.count,
    differences: findings.told,
  };
}

/** Walks through all entries; again from the new beginning where pruning was faster. */
async function walkAll(
  ledger: LedgerStore,
  turn: () => Promise<void>,
): Promise<{ walk: EntryWalk; findings: Findings }> {
  for (let restarts = 0;; restarts++) {
    const findings = new Findings();
    const walk = new EntryWalk(await ledger.start(), findings);
    await walk.toEnd(ledger, turn);
    const { seq } = await ledger.start();
    if (!walk.mayBeOvertaken(seq) || restarts === MOST_RESTARTS) return { walk, findings };
  }
}

/** Returns how many open holds there are. */
async function checkHolds(
  ledger: LedgerStore,
  { findings, now }: { findings: Findings; now: number },
): Promise<number> {
  const holds = await ledger.holds();
  for (const { id, amount, leaseUntil } of holds) {
    if (amount < 0n) findings.add({ kind: "hold", id, message: "an amount below 0 is held" });
    if (leaseUntil + LEASE_GRACE_MS < now) {
      findings.add({
        kind: "hold",
        id,
        message: `held beyond its lease, which ended ${new Date(leaseUntil).toISOString()}`,
      });
    }
  }
  return holds.length;
}

/** A timer, as only that lets connections be served in between; immediates keep them waiting. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
