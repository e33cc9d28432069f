/** The audit of the ledger, over HTTP. */
import type { RouteContext } from "../server/router.ts";
import { auditLedger } from "../billing/reports/audit.ts";
import type { AuditReport } from "../billing/reports/schemas.ts";
import { abortable } from "../abort.ts";
import type { LedgerStore } from "../store/ledger.ts";
import { adminResponse } from "./response.ts";

/** An audit under way. */
interface SharedAudit {
  report: Promise<AuditReport>;
  stop: AbortController;
  /** Clients that wait for its report. */
  waiting: number;
}

/** Running audits, by their ledgers. */
const sharedAudits = new WeakMap<LedgerStore, SharedAudit>();

/** Audits the ledger. The status is 200 even if there are differences. */
export async function audit({ signal }: Request, { gateway }: RouteContext): Promise<Response> {
  return adminResponse(await shareAudit(gateway.store.ledger, { now: gateway.now, signal }));
}

/**
 * Audits a ledger, one audit at a time, as each reads all of it: requests during an audit share its report. It is aborted
 * when all of them are. `now` in Unix milliseconds.
 * @throws the reason of the signal, once it is given up
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
      forget(ledger, audit);
      audit.stop.abort(signal.reason);
    }
  }
}

function begin(ledger: LedgerStore, now: () => number): SharedAudit {
  const stop = new AbortController();
  const report = auditLedger(ledger, { now, signal: stop.signal }).finally(() => forget(ledger, audit));
  const audit: SharedAudit = { report, stop, waiting: 0 };
  sharedAudits.set(ledger, audit);
  return audit;
}

/** The next request begins a new audit. */
function forget(ledger: LedgerStore, audit: SharedAudit): void {
  if (sharedAudits.get(ledger) === audit) sharedAudits.delete(ledger);
}
