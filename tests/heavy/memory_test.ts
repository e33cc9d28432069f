/** A process of 1 GiB under the requests that cost the most memory, for a minute, and what others wait beside them. */
import { assert, assertGreater, assertLess } from "@std/assert";
import { encodePng } from "../../lib/images/codec_png.ts";
import { inFolder } from "../support/program.ts";
import { png } from "../images/image_files.ts";
import { LIMIT_MIB, runMix } from "../e2e/program/memory_mix.ts";
import { publish } from "./figures.ts";

const MS = Number(Deno.env.get("HEAVY_MEMORY_MS") ?? 60_000);
/** Longest time of 99 of 100 small requests, in milliseconds. */
const MAX_P99_MS = 250;

/** An image that no compression makes smaller. */
function noise(width: number, height: number): Uint8Array<ArrayBuffer> {
  const data = new Uint8Array(width * height * 4);
  for (let at = 0; at < data.length; at += 65_536) crypto.getRandomValues(data.subarray(at, at + 65_536));
  for (let at = 3; at < data.length; at += 4) data[at] = 255;
  return encodePng({ width, height, data });
}

Deno.test({
  name: "a process with 1 GiB survives a minute of the most expensive requests, and others stay fast",
  ignore: Deno.build.os !== "linux",
  async fn() {
    await inFolder(async (folder) => {
      const uploads = [png(4096, 4096), noise(2048, 2048)];
      const { unlimited, peakMib, times, statuses } = await runMix({ folder, uploads, ms: MS });
      const p99 = times[Math.floor(times.length * 0.99)] ?? Infinity;
      await publish("memory", {
        unlimited: unlimited ?? null,
        peakMib: Math.round(peakMib),
        p99_ms: Math.round(p99),
        statuses,
      });
      assertLess(peakMib, LIMIT_MIB);
      assertGreater(times.length, 100);
      assert((statuses["edit"]?.[200] ?? 0) > 0, JSON.stringify(statuses));
      assertLess(p99, MAX_P99_MS);
    });
  },
});
