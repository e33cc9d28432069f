/** Audits the ledger: recomputes everything that can be recomputed, and compares. */
import type { LedgerStart, LedgerStore } from "../../store/ledger.ts";
import { checkDays, NO_DAYS } from "./audit_days.ts";
import { Findings } from "./audit_findings.ts";
import { checkLaterSums, NO_LATER_SUMS, NO_SUMS } from "./audit_sums.ts";
import { checkUsers, NO_USERS } from "./audit_users.ts";
import { EntryWalk } from "./audit_walk.ts";
import type { AuditReport } from "./schemas.ts";

/**
 * Time after the end of a lease in which an open hold is not yet an error, in milliseconds: the sweep may still void
 * it.
 */
const LEASE_GRACE_MS = 300_000;

/** Most restarts of a walk because pruning overtook it. */
const MAX_RESTARTS = 5;

/** The start of a ledger without pruned entries. */
const WHOLE: LedgerStart = { seq: 0, check: 0, day: -1 };

/** Options of an audit. */
export interface AuditOptions {
  /** Unix time in milliseconds. */
  now?: () => number;
  /** Yields to other work in the process. */
  turn?: () => Promise<void>;
  /** Known damage of the ledger's file. */
  damage?: readonly string[];
  /** Cancels the work. */
  signal?: AbortSignal;
}

/**
 * Audits a ledger that may be in use. All problems are in the report.
 * @throws the signal's reason, before the next page, if it is aborted
 */
export async function auditLedger(
  ledger: LedgerStore,
  { now = Date.now, turn: others = nextTurn, damage = [], signal }: AuditOptions = {},
): Promise<AuditReport> {
  async function turn(): Promise<void> {
    await others();
    signal?.throwIfAborted();
  }

  const { walk, findings } = await walkAll(ledger, turn);
  for (const message of damage) findings.add({ kind: "file", message });
  const days = await findings.attempt("the sums per day", () => checkDays(ledger, { walk, findings, turn }));
  const later = await findings.attempt(
    "the sums of upstreams, end users and tags",
    () => checkLaterSums(ledger, { walk, findings, turn }),
  );
  const users = await findings.attempt("the sums of end users", () => checkUsers(ledger, { walk, findings, turn }));
  // `attempt` turned the abort into a finding.
  signal?.throwIfAborted();
  const holds = await findings.attempt("the holds", () => checkHolds(ledger, { findings, now: now() }));
  return {
    ok: findings.count === 0,
    checked: {
      ...walk.extent(),
      ...(days ?? NO_DAYS),
      ...(users ?? NO_USERS),
      ...(later ?? NO_LATER_SUMS),
      holds: holds ?? 0,
    },
    difference_count: findings.count,
    differences: findings.reported,
  };
}

/** Walks through all entries, and restarts if pruning overtakes the walk. */
async function walkAll(
  ledger: LedgerStore,
  turn: () => Promise<void>,
): Promise<{ walk: EntryWalk; findings: Findings }> {
  for (let restarts = 0;; restarts++) {
    const findings = new Findings();
    const head = await findings.attempt("how far the sums have come", () => ledger.sumsHead());
    const walk = new EntryWalk(await readStart(ledger, findings), { head: head ?? NO_SUMS, findings });
    await walk.toEnd(ledger, turn);
    const { seq } = await readStart(ledger, new Findings());
    if (!walk.mayBeOvertaken(seq) || restarts === MAX_RESTARTS) return { walk, findings };
  }
}

/** Reads the start of the ledger; an invalid one counts as seq 0. */
async function readStart(ledger: LedgerStore, findings: Findings): Promise<LedgerStart> {
  const start = await findings.attempt("the start", () => ledger.start());
  if (start === undefined) return WHOLE;
  const { seq, check, day } = start;
  const isWhole = seq === 0 && check === 0 && day === -1;
  const isPruned = Number.isSafeInteger(seq) && seq > 0 && Number.isSafeInteger(check) && Number.isSafeInteger(day) &&
    day >= 0;
  if (isWhole || isPruned) return start;
  findings.add({ kind: "start", message: `the start of the ledger is invalid: ${JSON.stringify(start)}` });
  return WHOLE;
}

/** Checks the open holds and returns their number. */
async function checkHolds(
  ledger: LedgerStore,
  { findings, now }: { findings: Findings; now: number },
): Promise<number> {
  const holds = await ledger.holds();
  for (const { id, amount, leaseUntil } of holds) {
    if (amount < 0n) findings.add({ kind: "hold", id, message: "the held amount is negative" });
    if (leaseUntil + LEASE_GRACE_MS < now) {
      findings.add({ kind: "hold", id, message: `the lease ended ${new Date(leaseUntil).toISOString()}` });
    }
  }
  return holds.length;
}

/** Waits for a timer: unlike immediates, timers let connections be served in between. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
