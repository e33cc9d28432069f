/** The audit of the ledger, over HTTP. */
import type { RouteContext } from "../http/router.ts";
import { auditLedger, type AuditReport } from "../reports/audit.ts";
import type { LedgerStore } from "../store/ledger.ts";
import { adminAnswer } from "./answer.ts";

/** Audits under way, by their ledgers. */
const running = new WeakMap<LedgerStore, Promise<AuditReport>>();

/** Audits the ledger. What is wrong with it is in the answer, whose status is 200 all the same. */
export async function audit(_request: Request, { gateway }: RouteContext): Promise<Response> {
  return adminAnswer(await auditOnce(gateway.store.ledger, gateway.now));
}

/**
 * Audits a ledger, one audit at a time, as each reads all of it: who asks during an audit gets the report of that one.
 * `now` in Unix milliseconds.
 */
export function auditOnce(ledger: LedgerStore, now: () => number): Promise<AuditReport> {
  const under = running.get(ledger);
  if (under !== undefined) return under;
  const report = auditLedger(ledger, { now }).finally(() => running.delete(ledger));
  running.set(ledger, report);
  return report;
}
