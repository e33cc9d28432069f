/** Alerts on their way to a webhook. The nodes of a store share them, so one of them sends each. */

/** An alert to be kept. */
export interface NewAlert {
  /** Unique. */
  id: string;
  /** Unix time in milliseconds. */
  at: number;
  /** The event as JSON text. */
  body: string;
  /** Subject of the alert: it connects the beginning and the end of an event. */
  subject: string;
  /** True: the event begins. False: it is over. */
  begins: boolean;
  /** Time after which a subject that has begun may begin again, in milliseconds; absent: never. */
  repeatMs?: number;
  /** Until when the subject is remembered, Unix time in milliseconds. */
  rememberUntil: number;
  /** False: the subject changes, and nothing is sent. */
  isSent: boolean;
}

/** `known`: the subject is in that state already. `taken`: another alert has this id. */
export type AddedAlert = "added" | "known" | "taken";

/** An alert that this process may send until its lease is over. */
export interface ClaimedAlert {
  id: string;
  body: string;
  /** Attempts to send it, this one included. */
  attempts: number;
}

/** Stores alerts. Leases and pauses are by the store's clock. */
export interface AlertStore {
  /** Keeps an alert, unless its subject is in that state already. An end is only kept after its beginning. */
  add(alert: NewAlert): Promise<AddedAlert>;
  /** Takes the oldest alert that is due, for so many milliseconds; `undefined` where none is. */
  claim(leaseMs: number): Promise<ClaimedAlert | undefined>;
  /** Ends an alert, unless another process has claimed it since. */
  finish(alert: ClaimedAlert, state: "delivered" | "given_up"): Promise<void>;
  /** Makes an alert due again after so many milliseconds, unless another process has claimed it since. */
  retry(alert: ClaimedAlert, afterMs: number): Promise<void>;
  /** Forgets alerts that ended before `until`, and subjects that are remembered no longer; Unix time in milliseconds. */
  prune(times: { until: number; now: number }): Promise<void>;
}
