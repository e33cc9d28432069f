/** Alerts: an event with facts for programs and a sentence for people. */

/** Types of alerts in the configuration. */
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

/** A new alert. */
export interface AlertDraft {
  type: AlertType;
  /** Subject of the alert. Nodes that see the same event use the same subject. */
  subject: string;
  /** False: the condition of this subject has ended. */
  begins: boolean;
  /** Time after which a lasting condition is reported again, in milliseconds; absent: never. */
  repeatMs?: number;
  /** Time until which the subject is remembered, Unix time in milliseconds; absent: for 30 days. */
  rememberUntil?: number;
  /** One sentence. */
  text: string;
  data: AlertFacts;
}

/** The body of a webhook. */
export interface AlertBody {
  /** Constant across retries. */
  id: string;
  type: AlertType | "test";
  /** ISO 8601. */
  created: string;
  text: string;
  data: AlertFacts;
}

/** An alert for testing the webhook. */
export function testAlert(now: number): AlertBody {
  return {
    id: `evt_test_${now}`,
    type: "test",
    created: new Date(now).toISOString(),
    text: "This is a test of Sluice's alerts",
    data: {},
  };
}
