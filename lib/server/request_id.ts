/** Ids of requests: ours alone, never made of anything a client sent. */

/**
 * A source of unique ids of lower-case letters and digits. 64 random bits per process keep processes apart; within one
 * a counter does, which costs no system call per request.
 */
export function createRequestIds(): () => string {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  const boot = high.toString(16).padStart(8, "0") + low.toString(16).padStart(8, "0");
  // The first number of six digits: none has fewer.
  let count = 36 ** 5;
  return () => boot + (count++).toString(36);
}
