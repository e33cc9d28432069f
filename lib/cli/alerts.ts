/** `alerts test`: sends a test alert from this process, whether or not a gateway is running. */
import { reasonOf } from "../causes.ts";
import { testAlert } from "../alerts/event.ts";
import { SEND_MS, sendAlert } from "../alerts/webhook.ts";
import type { Config } from "../config.ts";
import { GatewayError } from "../errors.ts";
import { redactSecrets } from "../redact.ts";
import { writeErr, writeOut } from "./output.ts";

/** Describes an error by its cause: the transport's own messages name upstreams, and a webhook is none. */
function describeFailure(error: unknown): string {
  if (error instanceof GatewayError && error.kind === "timeout") return `no answer within ${SEND_MS / 1000} seconds`;
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return redactSecrets(reasonOf(cause));
}

/** Sends a test alert and prints the outcome. Returns 1 if it was not accepted. */
export async function testAlerts({ alerts, private_networks }: Config): Promise<number> {
  if (alerts === undefined) {
    writeErr('There is no webhook: add "alerts" to the configuration\n');
    return 1;
  }
  const body = testAlert(Date.now());
  try {
    const { signal } = new AbortController();
    const status = await sendAlert(body, { alerts, private_networks }, { now: Date.now(), signal });
    const isAccepted = status >= 200 && status < 300;
    const outcome = isAccepted ? "accepted" : "refused";
    (isAccepted ? writeOut : writeErr)(`The receiver ${outcome} the test alert ${body.id} with status ${status}\n`);
    return isAccepted ? 0 : 1;
  } catch (error) {
    writeErr(`Cannot reach the receiver: ${describeFailure(error)}\n`);
    return 1;
  }
}
