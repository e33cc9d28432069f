/** Checks whether the gateway at the address of the configuration can serve requests. */
import { createNotes, type Finding } from "./finding.ts";

/** The answer of a gateway's `/readyz`. */
export interface ServingState {
  status: string;
  /** The status with its reasons; absent if it is `ok`. */
  message?: string;
}

/** Returns the finding about a gateway that answers; none without one. */
export function checkGateway(state: ServingState | undefined): Finding[] {
  const notes = createNotes("gateway");
  if (state === undefined) return notes.found;
  const { status, message = status } = state;
  if (status === "ok") notes.ok("The gateway that answers is ready");
  else {
    const note = status === "degraded" ? notes.warn : notes.error;
    note(
      `The gateway that answers is ${message}`,
      "Look up the last warnings and errors of its log in Troubleshooting",
    );
  }
  return notes.found;
}
