/** `POST /admin/v1/audit`: audits the ledger. */
import type { RouteContext } from "../server/router.ts";
import { auditLedger } from "../billing/reports/audit.ts";
import type { AuditReport } from "../billing/reports/schemas.ts";
import { abortable } from "../abort.ts";
import type { LedgerStore } from "../store/ledger.ts";
import { adminResponse } from "./response.ts";

interface SharedAudit {
  report: Promise<AuditReport>;
  stop: AbortController;
  /** Number of requests that wait for the report. */
  waiting: number;
}

const sharedAudits = new WeakMap<LedgerStore, SharedAudit>();

/** Audits the ledger. The status is 200 even if there are differences. */
export async function audit({ signal }: Request, { gateway }: RouteContext): Promise<Response> {
  return adminResponse(await shareAudit(gateway.store.ledger, { now: gateway.now, signal }));
}

/**
 * Audits a ledger. An audit reads the whole ledger, so only one runs at a time, and requests that come meanwhile share
 * its report. It is aborted when all of these requests are.
 * @param options `now` returns the Unix time in milliseconds
 * @throws the signal's reason once it is aborted
 */
export async function shareAudit(
  ledger: LedgerStore,
  { now, signal }: { now: () => number; signal: AbortSignal },
): Promise<AuditReport> {
  signal.throwIfAborted();
  const audit = sharedAudits.get(ledger) ?? begin(ledger, now);
  audit.waiting++;
  try {
    return await abortable(audit.report, signal);
  } finally {
    if (--audit.waiting === 0) {
      unshare(ledger, audit);
      audit.stop.abort(signal.reason);
    }
  }
}

function begin(ledger: LedgerStore, now: () => number): SharedAudit {
  const stop = new AbortController();
  const report = auditLedger(ledger, { now, signal: stop.signal }).finally(() => unshare(ledger, audit));
  const audit: SharedAudit = { report, stop, waiting: 0 };
  sharedAudits.set(ledger, audit);
  return audit;
}

/** Stops sharing an audit: the next request begins a new one. */
function unshare(ledger: LedgerStore, audit: SharedAudit): void {
  if (sharedAudits.get(ledger) === audit) sharedAudits.delete(ledger);
}
