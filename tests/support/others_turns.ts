/** Time for other work on a busy machine. */

const TURN_MS = 5;

/**
 * Lets this process do its pending work, over sockets too: one pause of the same length is over at once where the
 * process itself was delayed, many short ones need as many turns of its loop.
 */
export async function othersTurns(count = 10): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setTimeout(resolve, TURN_MS));
}
