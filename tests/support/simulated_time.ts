/** Clocks and timers that a test moves; sockets and files work in real time. */

interface Timer {
  due: number;
  everyMs: number | undefined;
  ring: () => void;
}

/** Time that a test controls. Disposing of it restores real time. */
export interface SimulatedTime extends Disposable {
  /** Unix time in milliseconds. */
  now(): number;
  /** Advances time by this many milliseconds: due timers fire in order, each followed by the work that it causes. */
  pass(ms: number): Promise<void>;
  /** Advances time at once, as for a process that was stopped: due timers fire afterwards. */
  stop(ms: number): void;
  /** Waits in real time until started work can make no progress without simulated time. */
  settle(realMs: number): Promise<void>;
}

/** Ids of simulated timers; the runtime's own begin at 1. */
const FIRST_ID = 1_000_000_000;
/** Real time for a reaction over a local socket, in milliseconds. */
const SETTLE_MS = 2;
/** Length of one pause: many short ones give a delayed process as many turns of its loop. */
const PAUSE_MS = 5;
/** Turns of the event loop after the pauses. */
const MORE_TURNS = 3;
/** Minimum number of pauses of a call of `pass` during which intervals ring. */
const LEAST_PAUSES = 50;

/** Takes `performance.now`, `setTimeout`, `setInterval` and their kin over. `begin` in Unix milliseconds. */
export function simulateTime(begin: number): SimulatedTime {
  const real = { setTimeout, clearTimeout, setInterval, clearInterval, performanceNow: performance.now };
  const offset = performance.now();
  const timers = new Map<number, Timer>();
  let passed = 0;
  let id = FIRST_ID;
  async function settle(realMs = SETTLE_MS): Promise<void> {
    for (let leftMs = realMs; leftMs > 0; leftMs -= PAUSE_MS) {
      await new Promise<void>((resolve) => real.setTimeout(resolve, Math.min(PAUSE_MS, leftMs)));
    }
    // On a busy machine the pause may be one turn of the event loop, and some reactions need several.
    for (let turns = 0; turns < MORE_TURNS; turns++) await new Promise<void>((resolve) => real.setTimeout(resolve, 0));
  }

  function start(call: unknown, ms = 0, repeats: boolean, rest: unknown[]): number {
    if (typeof call !== "function") throw new TypeError("Cannot ring anything but a function");
    const waitMs = Math.max(repeats ? 1 : 0, Math.trunc(Number(ms) || 0));
    // No time, but a turn for other work.
    if (waitMs === 0) return Number(real.setTimeout(() => call(...rest), 0));
    timers.set(++id, {
      due: passed + waitMs,
      everyMs: repeats ? waitMs : undefined,
      ring: () => void call(...rest),
    });
    return id;
  }
  function clear(id: unknown): void {
    // Earlier timers belong to the runtime.
    if (!timers.delete(Number(id)) && Number(id) < FIRST_ID) real.clearTimeout(Number(id));
  }

  performance.now = () => offset + passed;
  Object.assign(globalThis, {
    setTimeout: (call: unknown, ms?: number, ...rest: unknown[]) => start(call, ms, false, rest),
    setInterval: (call: unknown, ms?: number, ...rest: unknown[]) => start(call, ms, true, rest),
    clearTimeout: clear,
    clearInterval: clear,
  });

  return {
    now: () => begin + passed,
    settle,
    stop: (ms) => void (passed += ms),
    async pass(ms) {
      const end = passed + ms;
      let settledAt = passed;
      await settle();
      for (;;) {
        const next = [...timers].filter(([, { due }]) => due <= end).toSorted(([, a], [, b]) => a.due - b.due)[0];
        if (next === undefined) break;
        const [id, timer] = next;
        passed = Math.max(passed, timer.due);
        if (timer.everyMs === undefined) timers.delete(id);
        else timer.due = passed + timer.everyMs;
        timer.ring();
        // Waiting after each tick of a short interval would take as long as the simulated time.
        if (timer.everyMs !== undefined && passed - settledAt < ms / LEAST_PAUSES) continue;
        settledAt = passed;
        await settle();
      }
      passed = end;
      await settle();
    },
    [Symbol.dispose]() {
      performance.now = real.performanceNow;
      Object.assign(globalThis, {
        setTimeout: real.setTimeout,
        setInterval: real.setInterval,
        clearTimeout: real.clearTimeout,
        clearInterval: real.clearInterval,
      });
    },
  };
}
