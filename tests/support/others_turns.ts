/** Time for other work on a busy machine. */

const TURN_MS = 5;

/**
 * Lets this process do its pending work, including socket events. It makes many short pauses, which need as many turns
 * of the event loop: if the process was delayed, a single long pause would be over immediately.
 */
export async function othersTurns(count = 10): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setTimeout(resolve, TURN_MS));
}
