/** Whether all went well with the database for a while. */

/** A call that takes longer has met a server that stood still, or a network that did. In milliseconds. */
const SLOW_MS = 2_000;

/** Watches calls. */
export interface Calm {
  /** Makes a call, and passes on what comes of it. */
  watch<Result>(call: () => Promise<Result>): Promise<Result>;
  /** Whether no call failed or was slow lately, and none hangs. */
  isCalm(): boolean;
}

/**
 * A node that could not reach the database must not judge others by what it sees next: they could not reach it either, and
 * need a while to renew their leases and to hand in what they could not.
 *
 * @param graceMs that while, in milliseconds
 * @param monotonic milliseconds that only grow
 */
export function createCalm({ graceMs, monotonic }: { graceMs: number; monotonic: () => number }): Calm {
  const running = new Set<{ since: number }>();
  let lastTrouble = -Infinity;

  return {
    async watch(call) {
      const mine = { since: monotonic() };
      running.add(mine);
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof RangeError)) lastTrouble = monotonic();
        throw error;
      } finally {
        running.delete(mine);
        if (monotonic() - mine.since >= SLOW_MS) lastTrouble = monotonic();
      }
    },
    isCalm() {
      const now = monotonic();
      // The one that was made first is the first.
      const [oldest] = running;
      return now - lastTrouble >= graceMs && (oldest === undefined || now - oldest.since < SLOW_MS);
    },
  };
}
