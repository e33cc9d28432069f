/** `alerts test`: sends an alert now, beside the running gateway. */
import { testAlert } from "../alerts/event.ts";
import { sendAlert } from "../alerts/webhook.ts";
import type { Config } from "../config.ts";
import { reasonOf } from "../doctor/finding.ts";
import { redactSecrets } from "../redact.ts";
import { writeErr, writeOut } from "./output.ts";

/** Sends a test alert and prints the answer. Returns 1 where it was not accepted. */
export async function testAlerts({ alerts, private_networks }: Config): Promise<number> {
  if (alerts === undefined) {
    writeErr('There is no webhook: add "alerts" to the configuration\n');
    return 1;
  }
  const body = testAlert(Date.now());
  const target = { alerts, ...(private_networks !== undefined && { private_networks }) };
  try {
    const signal = new AbortController().signal;
    const status = await sendAlert(body, target, { now: Date.now(), signal });
    const isAccepted = status >= 200 && status < 300;
    const outcome = isAccepted ? "accepted" : "refused";
    (isAccepted ? writeOut : writeErr)(`The receiver ${outcome} the test alert ${body.id} with status ${status}\n`);
    return isAccepted ? 0 : 1;
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    writeErr(`The receiver did not answer: ${redactSecrets(reasonOf(cause))}\n`);
    return 1;
  }
}
