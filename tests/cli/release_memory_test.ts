import { assertEquals } from "@std/assert";
import { createMemoryRelease } from "../../lib/cli/release_memory.ts";

const MIB = 1024 * 1024;

Deno.test("memory is released once after a peak, and not under load or for small amounts", () => {
  const state = { running: 0, heap: 50 * MIB, collected: 0 };
  const lines: unknown[] = [];
  const look = createMemoryRelease({
    running: () => state.running,
    heapBytes: () => state.heap,
    collect() {
      state.collected++;
      state.heap = 60 * MIB;
      return true;
    },
    monotonic: () => 0,
    log: (line) => void lines.push(line),
  });
  /** Runs the check this many times, and returns how often memory was collected. */
  const after = (looks: number, now: Partial<typeof state>): number => {
    Object.assign(state, now);
    for (let count = 0; count < looks; count++) look();
    return state.collected;
  };
  // Light traffic is not a peak, whatever its garbage.
  assertEquals(after(20, { running: 31, heap: 140 * MIB }), 0);
  assertEquals(after(20, { running: 2, heap: 240 * MIB }), 0);
  assertEquals(after(10, { running: 500, heap: 400 * MIB }), 0);
  assertEquals(after(10, { running: 126 }), 0);
  assertEquals(after(8, { running: 125 }), 0);
  assertEquals(after(1, {}), 1);
  assertEquals(lines, [
    { level: "info", event: "memory_released", heap_before_mb: 400, heap_after_mb: 60, took_ms: 0 },
  ]);
  assertEquals(after(10, {}), 1);
  // A lasting load is not a peak that has passed.
  assertEquals(after(10, { heap: 300 * MIB }), 1);
  assertEquals(after(9, { running: 0 }), 2);
  assertEquals(after(20, { heap: 300 * MIB }), 2);
  // 500 streams of 60 KB grow the heap by 75 MB.
  assertEquals(after(1, { running: 500, heap: 140 * MIB }), 2);
  assertEquals(after(9, { running: 0, heap: 100 * MIB }), 2);
  assertEquals(after(9, { heap: 135 * MIB }), 3);
});
