/**
 * Delivers stored alerts: claims each of them, sends it, and marks it as delivered. An alert that was sent but not
 * marked is sent again with the same id. Failed attempts are repeated after growing pauses, up to a limit.
 */
import { faultOf } from "../causes.ts";
import { GatewayError, nameOf } from "../errors.ts";
import type { LogEntry } from "../log_events.ts";
import { type AlertStore, type ClaimedAlert, MAX_ALERT_WAIT_MS } from "../store/alerts.ts";
import type { AlertBody } from "./event.ts";
import { SEND_MS } from "./webhook.ts";

/** Lease of a claimed alert, in milliseconds: longer than one attempt. */
const LEASE_MS = SEND_MS + 5_000;

/** Maximum number of attempts per alert: about eight hours with their pauses. */
const MAX_ATTEMPTS = 55;

/**
 * First pause in milliseconds, and the factor by which pauses grow up to `MAX_ALERT_WAIT_MS`. Later alerts about the
 * same subject wait, so a receiver that recovers gets all of them within ten minutes.
 */
const FIRST_PAUSE_MS = 1_000;
const PAUSE_GROWTH = 3;

/** Status with which a receiver declines further attempts. */
const GONE = 410;

/** Dependencies of a delivery. */
export interface DeliveryParts {
  store: AlertStore;
  /** Sends an alert and returns the response status; rejects without a response. */
  send: (body: AlertBody) => Promise<number>;
  log: (entry: LogEntry) => void;
  /** Called with the milliseconds until the next attempt is due. */
  retryAfter: (ms: number) => void;
  /** Returns true once no more alerts may be claimed. */
  isOver: () => boolean;
}

/** Sends all due alerts one after the other, oldest first. @throws the store's errors */
export async function deliverDue(parts: DeliveryParts): Promise<void> {
  while (!parts.isOver()) {
    const alert = await parts.store.claim(LEASE_MS);
    if (alert === undefined) return;
    await deliver(alert, parts);
  }
}

async function deliver(alert: ClaimedAlert, { store, send, log, retryAfter, isOver }: DeliveryParts): Promise<void> {
  const body: AlertBody = JSON.parse(alert.body);
  const facts = { alert_id: alert.id, type: body.type, attempts: alert.attempts };
  const problem = await problemOf(() => send(body));
  if (problem === undefined) {
    await store.finish(alert, "delivered");
    log({ level: "info", event: "alert_delivered", ...facts });
    return;
  }
  // An attempt interrupted by the shutdown is repeated after its lease.
  if (isOver()) return;
  if (problem.status === GONE || alert.attempts >= MAX_ATTEMPTS) {
    await store.finish(alert, "given_up");
    log({ level: "error", event: "alert_given_up", ...facts, ...problem });
    return;
  }
  const pauseMs = pauseAfter(alert.attempts);
  await store.retry(alert, pauseMs);
  log({ level: "warn", event: "alert_not_delivered", ...facts, ...problem, retry_ms: pauseMs });
  retryAfter(pauseMs);
}

/** Returns the pause after a number of failed attempts, in milliseconds. */
export function pauseAfter(attempts: number): number {
  return Math.min(MAX_ALERT_WAIT_MS, FIRST_PAUSE_MS * PAUSE_GROWTH ** (attempts - 1));
}

/**
 * Sends an alert. Returns undefined if that succeeded, otherwise the facts to log: a status other than 2xx, or the name
 * and kind of an error. The message of an error is left out, because it may contain the address of the webhook.
 */
async function problemOf(
  send: () => Promise<number>,
): Promise<{ status?: number; cause?: string; fault?: string } | undefined> {
  try {
    const status = await send();
    return status >= 200 && status < 300 ? undefined : { status };
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    const fault = error instanceof GatewayError && error.kind === "timeout" ? "timeout" : faultOf(cause);
    return { cause: nameOf(cause), ...(fault !== undefined && { fault }) };
  }
}
