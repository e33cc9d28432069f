/**
 * Releases memory after a peak. V8 collects only when it needs room, so the process would keep the memory of a peak; its own
 * idle collections (`--memory-reducer`) make every request after a pause 1.5 times as expensive.
 */
import type { LogEntry } from "../log_events.ts";

/** Time between two checks, in milliseconds, and calm checks in a row before memory is released. */
const CHECK_MS = 5_000;
const CALM_CHECKS = 9;

/** Growth of the heap that is worth the pause of a collection, in bytes. */
const GROWN_BYTES = 48 * 1024 * 1024;

/**
 * Open requests of a peak. Lighter traffic never causes a collection: V8 drops compiled code with it, so that the next
 * seconds cost up to 1.8 times as much.
 */
const PEAK_REQUESTS = 32;

const MIB = 1024 * 1024;

/** Measurements and actions of the release. */
export interface MemoryReleaseParts {
  /** Requests under way. */
  running: () => number;
  /** Size of the heap, in bytes. */
  heapBytes: () => number;
  /** Runs a full garbage collection. Returns false if the runtime does not allow it. */
  collect: () => boolean;
  monotonic: () => number;
  log: (entry: LogEntry) => void;
}

/** Checks every five seconds. Returns a function that stops it. */
export function startMemoryRelease(parts: Pick<MemoryReleaseParts, "running" | "log">): () => void {
  const check = createMemoryRelease({
    ...parts,
    heapBytes: () => Deno.memoryUsage().heapTotal,
    collect,
    monotonic: () => performance.now(),
  });
  const timer = setInterval(check, CHECK_MS);
  return () => clearInterval(timer);
}

/** Creates a check that runs a collection when it is calm after a peak. */
export function createMemoryRelease({ running, heapBytes, collect, monotonic, log }: MemoryReleaseParts): () => void {
  let minBytes = heapBytes();
  let maxBytes = 0;
  let calm = 0;
  return () => {
    const [now, heap] = [running(), heapBytes()];
    minBytes = Math.min(minBytes, heap);
    maxBytes = Math.max(maxBytes, now);
    const isCalm = maxBytes >= PEAK_REQUESTS && now <= maxBytes / 4;
    calm = isCalm && heap - minBytes >= GROWN_BYTES ? calm + 1 : 0;
    if (calm < CALM_CHECKS) return;
    const startedAt = monotonic();
    if (collect()) {
      const facts = { heap_before_mb: Math.round(heap / MIB), heap_after_mb: Math.round(heapBytes() / MIB) };
      log({ level: "info", event: "memory_released", ...facts, took_ms: Math.round(monotonic() - startedAt) });
    }
    [minBytes, maxBytes, calm] = [heapBytes(), now, 0];
  };
}

/** V8 has this function where it is started with `--expose-gc`. */
function collect(): boolean {
  const gc: unknown = Reflect.get(globalThis, "gc");
  if (typeof gc !== "function") return false;
  gc({ type: "major", execution: "sync", flavor: "last-resort" });
  return true;
}
