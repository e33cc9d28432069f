/** Audits the ledger: recomputes from the entries whatever can be recomputed, and reports the differences. */
import type { LedgerStart, LedgerStore } from "../../store/ledger.ts";
import { checkDays, NO_DAYS } from "./audit_days.ts";
import { Findings } from "./audit_findings.ts";
import { checkLaterSums, NO_LATER_SUMS, NO_SUMS } from "./audit_sums.ts";
import { checkUsers, NO_USERS } from "./audit_users.ts";
import { EntryWalk } from "./audit_walk.ts";
import type { AuditReport } from "./schemas.ts";

/**
 * Time after the end of a lease during which an open hold is no error yet, in milliseconds: the next sweep may void it.
 */
const LEASE_GRACE_MS = 300_000;

/** Maximum number of restarts of a walk because pruning removed entries before it read them. */
const MAX_RESTARTS = 5;

/** The start of a ledger without pruned entries. */
const UNPRUNED_START: LedgerStart = { seq: 0, check: 0, day: -1 };

/** Options of an audit. */
export interface AuditOptions {
  /** Unix time in milliseconds. */
  now?: () => number;
  /** Lets other work of the process run; called between two steps. Absent: waits for a timer. */
  pause?: () => Promise<void>;
  /** Known damage of the ledger's file, which the report lists. */
  damage?: readonly string[];
  signal?: AbortSignal;
}

/**
 * Audits a ledger, which may be in use meanwhile. The report contains all problems, errors of the store included.
 * @throws the signal's reason, before the next page, if it is aborted
 */
export async function auditLedger(
  ledger: LedgerStore,
  { now = Date.now, pause: pauseAudit = waitForTimer, damage = [], signal }: AuditOptions = {},
): Promise<AuditReport> {
  async function pause(): Promise<void> {
    await pauseAudit();
    signal?.throwIfAborted();
  }

  const { walk, findings } = await walkAll(ledger, pause);
  for (const message of damage) findings.add({ kind: "file", message });
  const days = await findings.attempt("the sums per day", () => checkDays(ledger, { walk, findings, pause }));
  const later = await findings.attempt(
    "the sums of upstreams, end users and tags",
    () => checkLaterSums(ledger, { walk, findings, pause }),
  );
  const users = await findings.attempt("the sums of end users", () => checkUsers(ledger, { walk, findings, pause }));
  // If the audit was aborted, `attempt` has made a finding of that.
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

/** Walks through all entries. Starts again if pruning may have removed entries before the walk read them. */
async function walkAll(
  ledger: LedgerStore,
  pause: () => Promise<void>,
): Promise<{ walk: EntryWalk; findings: Findings }> {
  for (let restarts = 0;; restarts++) {
    const findings = new Findings();
    const head = await findings.attempt("the position of the later sums", () => ledger.sumsHead());
    const walk = new EntryWalk(await readStart(ledger, findings), { head: head ?? NO_SUMS, findings });
    await walk.toEnd(ledger, pause);
    const { seq } = await readStart(ledger, new Findings());
    if (!walk.mayBeOvertaken(seq) || restarts === MAX_RESTARTS) return { walk, findings };
  }
}

/** Reads the start of the ledger. An invalid start is a finding, and counts as that of an unpruned ledger. */
async function readStart(ledger: LedgerStore, findings: Findings): Promise<LedgerStart> {
  const start = await findings.attempt("the start", () => ledger.start());
  if (start === undefined) return UNPRUNED_START;
  const { seq, check, day } = start;
  const isUnpruned = seq === 0 && check === 0 && day === -1;
  const isPruned = Number.isSafeInteger(seq) && seq > 0 && Number.isSafeInteger(check) && Number.isSafeInteger(day) &&
    day >= -1;
  if (isUnpruned || isPruned) return start;
  findings.add({ kind: "start", message: `the start of the ledger is invalid: ${JSON.stringify(start)}` });
  return UNPRUNED_START;
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

/** Waits for a timer: unlike immediates, timers let the event loop serve connections in between. */
function waitForTimer(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
