/** The store of alerts that wait for delivery to a webhook. All nodes of a store share them; one node sends each. */

/** Longest lease or pause of an alert, in milliseconds. */
export const MAX_ALERT_WAIT_MS = 600_000;

/** Value of `repeatMs` for subjects that are not repeated. The sum with any Unix time is still a safe integer. */
export const NEVER_MS = 2 ** 52;

/** A new alert. */
export interface NewAlert {
  /** Unique. */
  id: string;
  /** Unix time in milliseconds. */
  at: number;
  /** The event as JSON text. */
  body: string;
  /** The subject of the alert: the start and the end of a condition have the same subject. */
  subject: string;
  /** True: the condition starts. False: it ends. */
  begins: boolean;
  /**
   * Time after which a started subject may be reported again, in milliseconds; absent: never. A recorded start that
   * lies further than that in the future comes from a wrong clock.
   */
  repeatMs?: number;
  /** Time until which the subject is remembered, Unix time in milliseconds. */
  rememberUntil: number;
  /** False: only the state of the subject changes, and nothing is sent. */
  isSent: boolean;
}

/** Result of adding an alert. `known`: its subject is already in this state. `taken`: another alert has its id. */
export type AddedAlert = "added" | "known" | "taken";

/** An alert that this process may send until its lease is over. */
export interface ClaimedAlert {
  id: string;
  /** The event as JSON text. */
  body: string;
  /** Number of attempts to send it, this one included. */
  attempts: number;
}

/** Stores alerts. Leases and pauses use the store's clock. */
export interface AlertStore {
  /** Adds an alert unless its subject is already in this state. An end is only added after its start. */
  add(alert: NewAlert): Promise<AddedAlert>;
  /**
   * Leases the oldest due alert for `leaseMs` milliseconds; `undefined` if none is due. An alert waits
   * while an earlier one of its subject is pending, so that they are sent in their order.
   */
  claim(leaseMs: number): Promise<ClaimedAlert | undefined>;
  /** Ends an alert, unless another process has claimed it since. */
  finish(alert: ClaimedAlert, state: "delivered" | "given_up"): Promise<void>;
  /** Makes an alert due again after `afterMs` milliseconds, unless another process has claimed it since. */
  retry(alert: ClaimedAlert, afterMs: number): Promise<void>;
  /**
   * Deletes ended alerts from before `until`, and subjects that need not be remembered at `now`; both are Unix times in
   * milliseconds.
   */
  prune(times: { until: number; now: number }): Promise<void>;
}
