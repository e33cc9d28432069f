/**
 * Gives memory back after a peak. V8 collects only where it needs room, so that a peak would stay with the process; its own
 * idle collections (`--memory-reducer`) would cost every request after a pause half as much again.
 */
import type { LogEntry } from "../gateway.ts";

/** Time between two looks, in milliseconds, and looks in a row that find it calm before anything is done. */
const LOOK_MS = 5_000;
const CALM_LOOKS = 2;

/** Growth of the heap that is worth the pause of a collection, in bytes. */
const GROWN_BYTES = 128 * 1024 * 1024;

/** Calm: no more than a quarter of the requests of the peak run, or no more than this many. */
const FEW = 4;

const MIB = 1024 * 1024;

/** What it looks at, and what it does. */
export interface MemoryReleaseParts {
  /** Requests under way. */
  running: () => number;
  /** Size of the heap, in bytes. */
  heapBytes: () => number;
  /** Collects what is no longer used. Returns false where it cannot. */
  collect: () => boolean;
  monotonic: () => number;
  log: (entry: LogEntry) => void;
}

/** Starts looking every five seconds. Returns the function that ends it. */
export function startMemoryRelease(parts: Pick<MemoryReleaseParts, "running" | "log">): () => void {
  const look = createMemoryRelease({
    ...parts,
    heapBytes: () => Deno.memoryUsage().heapTotal,
    collect,
    monotonic: () => performance.now(),
  });
  const timer = setInterval(look, LOOK_MS);
  return () => clearInterval(timer);
}

/** A look at the memory: where it is calm after a peak, what the peak took is given back. */
export function createMemoryRelease({ running, heapBytes, collect, monotonic, log }: MemoryReleaseParts): () => void {
  let least = heapBytes();
  let most = 0;
  let calm = 0;
  return () => {
    const [now, heap] = [running(), heapBytes()];
    least = Math.min(least, heap);
    most = Math.max(most, now);
    const isCalm = now <= Math.max(FEW, most / 4);
    calm = isCalm && heap - least >= GROWN_BYTES ? calm + 1 : 0;
    if (calm < CALM_LOOKS) return;
    const begun = monotonic();
    if (collect()) {
      const facts = { heap_before_mb: Math.round(heap / MIB), heap_after_mb: Math.round(heapBytes() / MIB) };
      log({ level: "info", event: "memory_released", ...facts, took_ms: Math.round(monotonic() - begun) });
    }
    [least, most, calm] = [heapBytes(), now, 0];
  };
}

/** V8 has this function where it is started with `--expose-gc`. */
function collect(): boolean {
  const gc: unknown = Reflect.get(globalThis, "gc");
  if (typeof gc !== "function") return false;
  gc({ type: "major", execution: "sync", flavor: "last-resort" });
  return true;
}
