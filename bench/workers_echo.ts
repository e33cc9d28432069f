/** A worker that answers calls, and reads keys by itself: for `workers.ts`. */
import { openStore } from "../lib/store/open.ts";
import { OWNER } from "../lib/workers/contract.ts";
import { deskOf, openWire, type Port } from "../lib/workers/wire.ts";

/** What is measured. */
export interface Measures {
  /** Calls the owner so often, so many at once. Returns the microseconds per call. */
  calls(total: number, atOnce: number): Promise<number>;
  /** Reads a key of the file so often. Returns the microseconds per reading. */
  reads(path: string, total: number): Promise<number>;
}

/** How both sides know it. */
export const MEASURES = deskOf<Measures>("measures", { calls: true, reads: true });

const NO_HASH = "0".repeat(64);

// Who imports this to learn the names is no worker.
if ("DedicatedWorkerGlobalScope" in globalThis) {
  const wire = openWire(globalThis as unknown as Port);
  const keys = wire.remote(OWNER.keys);
  wire.offer(MEASURES, {
    async calls(total, atOnce) {
      const begin = performance.now();
      let left = total;
      await Promise.all(Array.from({ length: atOnce }, async () => {
        while (left-- > 0) await keys.findByHash(NO_HASH, 0);
      }));
      return (performance.now() - begin) * 1000 / total;
    },
    async reads(path, total) {
      const store = await openStore({ kind: "sqlite", path });
      const begin = performance.now();
      for (let index = 0; index < total; index++) await store.keys.findByHash(NO_HASH, 0);
      const us = (performance.now() - begin) * 1000 / total;
      await store.close();
      return us;
    },
  });
}
