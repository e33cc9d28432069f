/** Time for others, as it is on a machine that is busy with other things. */

const TURN_MS = 5;

/**
 * Lets this process do what there is for it to do, over sockets too: one pause of the same length is over at once where the
 * process itself was held up, many short ones come to their end only with as many turns of its loop.
 */
export async function othersTurns(count = 10): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setTimeout(resolve, TURN_MS));
}
