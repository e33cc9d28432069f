/** Alerts: an event in a form for programs, and in one sentence for people. */

/** Types of alerts that a configuration may choose from. */
export const ALERT_TYPES = [
  "budget.threshold",
  "upstream.down",
  "upstream.up",
  "upstream.key_refused",
  "upstream.key_accepted",
  "store.down",
  "store.up",
  "ledger.trouble",
  "ledger.recovered",
] as const;

/** Type of an alert. */
export type AlertType = (typeof ALERT_TYPES)[number];

/** Facts of an alert: names and numbers, never a secret, a prompt or an answer. */
export type AlertFacts = Readonly<Record<string, string | number | null>>;

/** An event that an operator wants to know about. */
export interface AlertDraft {
  type: AlertType;
  /** Subject of the alert. Nodes that see the same event name the same subject. */
  subject: string;
  /** False: the event that began under this subject is over. */
  begins: boolean;
  /** Time after which it is reported again while it lasts, in milliseconds; absent: never. */
  repeatMs?: number;
  /** Until when the subject is remembered, Unix time in milliseconds; absent: for 30 days. */
  rememberUntil?: number;
  /** One sentence. */
  text: string;
  data: AlertFacts;
}

/** The body of a webhook. */
export interface AlertBody {
  /** The same each time that the alert is sent. */
  id: string;
  type: AlertType | "test";
  /** ISO 8601. */
  created: string;
  text: string;
  data: AlertFacts;
}

/** An alert to try the webhook with. */
export function testAlert(now: number): AlertBody {
  return {
    id: `evt_test_${now}`,
    type: "test",
    created: new Date(now).toISOString(),
    text: "This is a test of Sluice's alerts",
    data: {},
  };
}
