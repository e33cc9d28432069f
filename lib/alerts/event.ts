/** Types of alerts. An alert is an event with facts for programs and a sentence for people. */

/** All types of alerts, as the configuration names them. */
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
  /** The subject of the alert. Nodes that see the same event use the same subject. */
  subject: string;
  /** True: the condition of the subject has begun. False: it has ended. */
  begins: boolean;
  /** Time after which a lasting condition is reported again, in milliseconds; absent: never. */
  repeatMs?: number;
  /** Unix time in milliseconds until which the subject is remembered; absent: for 30 days. */
  rememberUntil?: number;
  /** One sentence, without a full stop. */
  text: string;
  data: AlertFacts;
}

/** The body that a webhook receives. */
export interface AlertBody {
  /** Unique id, the same in all attempts. */
  id: string;
  type: AlertType | "test";
  /** Time of the event, in ISO 8601. */
  created: string;
  text: string;
  data: AlertFacts;
}

/** Creates an alert for testing the webhook. @param now Unix time in milliseconds */
export function testAlert(now: number): AlertBody {
  return {
    id: `evt_test_${now}`,
    type: "test",
    created: new Date(now).toISOString(),
    text: "This is a test of Sluice's alerts",
    data: {},
  };
}
