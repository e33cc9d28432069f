/**
 * Releases memory after a peak of requests. V8 collects garbage only when it needs space, so the process would keep the
 * memory of the peak. V8's own collections when idle (`--memory-reducer`) make requests after a pause 1.5 times as
 * expensive.
 */
import type { LogEntry } from "../log_events.ts";

/** Interval between two checks, in milliseconds. */
const CHECK_INTERVAL_MS = 5_000;
/** Number of calm checks in a row before memory is released. */
const CALM_CHECKS = 9;

/** Growth of the heap, in bytes, from which a collection is worth its pause. */
const MIN_GROWTH_BYTES = 48 * 1024 * 1024;

/**
 * Concurrent requests that count as a peak. Without a peak there is no collection, because it also drops compiled code,
 * so that requests of the next seconds cost up to 1.8 times as much.
 */
const PEAK_REQUESTS = 32;

const MIB = 1024 * 1024;

/** Measurements and actions of the release. */
export interface MemoryReleaseParts {
  running: () => number;
  /** Size of the heap, in bytes. */
  heapBytes: () => number;
  /** Runs a full garbage collection. Returns false if the runtime does not allow it. */
  collect: () => boolean;
  /** Time in milliseconds that never goes back. */
  monotonic: () => number;
  log: (entry: LogEntry) => void;
}

/** Starts a check every five seconds. Returns a function that stops it. */
export function startMemoryRelease(parts: Pick<MemoryReleaseParts, "running" | "log">): () => void {
  const check = createMemoryRelease({
    ...parts,
    heapBytes: () => Deno.memoryUsage().heapTotal,
    collect,
    monotonic: () => performance.now(),
  });
  const timer = setInterval(check, CHECK_INTERVAL_MS);
  return () => clearInterval(timer);
}

/**
 * Creates the check. It runs a collection when requests have been few for a while after a peak, and the heap is large.
 */
export function createMemoryRelease({ running, heapBytes, collect, monotonic, log }: MemoryReleaseParts): () => void {
  let minHeap = heapBytes();
  let maxRequests = 0;
  let calmChecks = 0;
  return () => {
    const [requests, heap] = [running(), heapBytes()];
    minHeap = Math.min(minHeap, heap);
    maxRequests = Math.max(maxRequests, requests);
    const isCalm = maxRequests >= PEAK_REQUESTS && requests <= maxRequests / 4;
    calmChecks = isCalm && heap - minHeap >= MIN_GROWTH_BYTES ? calmChecks + 1 : 0;
    if (calmChecks < CALM_CHECKS) return;
    const startedAt = monotonic();
    if (collect()) {
      const facts = { heap_before_mb: Math.round(heap / MIB), heap_after_mb: Math.round(heapBytes() / MIB) };
      log({ level: "info", event: "memory_released", ...facts, took_ms: Math.round(monotonic() - startedAt) });
    }
    [minHeap, maxRequests, calmChecks] = [heapBytes(), requests, 0];
  };
}

/** Runs a full collection, if V8 was started with `--expose-gc`, which defines `gc`. */
function collect(): boolean {
  const gc: unknown = Reflect.get(globalThis, "gc");
  if (typeof gc !== "function") return false;
  gc({ type: "major", execution: "sync", flavor: "last-resort" });
  return true;
}
