/** Reads a request body piece by piece, and refuses a client that sends too slowly. */
import { GatewayError } from "../errors.ts";
import { PhaseTimers, type Timer } from "../phase_timers.ts";
import type { BodyLimits } from "./body_limits.ts";

/** Minimum speed of a body. */
export type BodyPace = Pick<BodyLimits, "gapMs" | "graceMs" | "minBytesPerSecond" | "totalMs">;

/** Options for reading pieces: their minimum speed and their consumer. `timers` absent: new ones. */
export interface PieceOptions {
  pace: BodyPace;
  /** Called with each piece. The next is not read before a promise it returns has settled, and that time is ours. */
  take: (piece: Uint8Array) => void | Promise<void>;
  timers?: PhaseTimers;
}

/**
 * Reads a body to its end. On failure the rest is given up.
 * @throws {GatewayError} `too_slow`, `invalid` for a body that breaks off, and whatever `take` throws
 */
export async function readPieces(
  stream: ReadableStream<Uint8Array>,
  { pace, take, timers = new PhaseTimers() }: PieceOptions,
): Promise<void> {
  const reader = stream.getReader();
  const watch = watchProgress(pace, { timers, expire: () => reader.cancel().catch(() => {}) });
  try {
    while (true) {
      const { done, value } = await reader.read().catch(broken);
      // A cancelled reader reports `done`, as one at the end of the body does.
      if (watch.expired()) throw tooSlow();
      if (done) return;
      watch.progress(value.byteLength);
      const taking = take(value);
      if (taking === undefined) continue;
      watch.pause();
      await taking;
      watch.resume();
    }
  } catch (error) {
    reader.cancel().catch(() => {});
    throw error;
  } finally {
    watch.stop();
  }
}

function broken(cause: unknown): never {
  throw brokenBody(cause);
}

/** The client has gone and will not see this, or the chunks are malformed and it will. */
export function brokenBody(cause: unknown): GatewayError {
  return new GatewayError("invalid", "Cannot read the body: the connection broke, or its framing is wrong", { cause });
}

/** A body that comes too slowly. */
export function tooSlow(): GatewayError {
  return new GatewayError("too_slow", "Cannot wait for the body any longer: it comes too slowly", {
    headers: { connection: "close" },
  });
}

/** Watches that a body arrives fast enough, with one timer that is set again only when it fires. */
function watchProgress(pace: BodyPace, { timers, expire }: { timers: PhaseTimers; expire: () => void }) {
  let start = performance.now();
  let last = start;
  let pausedAt: number | undefined;
  let bytes = 0;
  let expired = false;
  let timer: Timer = timers.set(deadline() - start, check);

  /** The time at which the body is too slow if nothing more comes. */
  function deadline(): number {
    const rateMs = Math.max(pace.graceMs, bytes / pace.minBytesPerSecond * 1000);
    return Math.min(last + pace.gapMs, start + rateMs, start + pace.totalMs);
  }
  function check(): void {
    const now = performance.now();
    const waitMs = pausedAt === undefined ? deadline() - now : pace.gapMs;
    if (waitMs > 0) {
      timer = timers.set(waitMs, check);
      return;
    }
    expired = true;
    expire();
  }
  return {
    progress(size: number): void {
      bytes += size;
      last = performance.now();
    },
    pause(): void {
      pausedAt = performance.now();
    },
    resume(): void {
      const pausedMs = performance.now() - (pausedAt ?? last);
      start += pausedMs;
      last += pausedMs;
      pausedAt = undefined;
    },
    expired: (): boolean => expired,
    stop: (): void => timers.clear(timer),
  };
}
