/** A gateway with the flags of the tasks releases the memory of a peak of streams. Linux only. */
import { assert, assertEquals } from "@std/assert";
import { V8_FLAGS } from "../../bench/suite/v8_flags.ts";
import { addKey, inFolder, start } from "../support/program.ts";
import { publish } from "./figures.ts";

const STREAMS = 500;
const WORDS = 3_000;

/** Longest time until it is released, in milliseconds, and the part of the peak's growth that may remain. */
const BACK_MS = 60_000;
const KEPT = 0.6;

async function rssMb(pid: number): Promise<number> {
  return Math.round(Number(/^VmRSS:\s*(\d+)/m.exec(await Deno.readTextFile(`/proc/${pid}/status`))?.[1]) / 1024);
}

Deno.test(
  "memory of a peak of streams is released within a minute",
  { ignore: Deno.build.os !== "linux" },
  () =>
    inFolder(async (folder) => {
      const key = await addKey(folder);
      const under = [Deno.execPath(), "run", `--v8-flags=${V8_FLAGS}`, "--quiet", "--no-check", "--no-prompt", "-A"];
      const executable = new URL("../../main.ts", import.meta.url).pathname;
      const running = await start(["serve"], { folder, under: under as [string, ...string[]], executable });
      // A connection that is kept keeps its buffers.
      const client = Deno.createHttpClient({ poolMaxIdlePerHost: 0, http2: false });
      const ask = async (content: string): Promise<number> => {
        const response = await fetch(`${running.origin}/v1/chat/completions`, {
          client,
          method: "POST",
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
          body: JSON.stringify({ model: "sluice/echo", stream: true, messages: [{ role: "user", content }] }),
        });
        await response.bytes();
        return response.status;
      };
      try {
        for (let times = 0; times < 20; times++) await ask("Hello");
        const before = await rssMb(running.pid);
        let peak = before;
        const watch = setInterval(async () => peak = Math.max(peak, await rssMb(running.pid)), 100);
        const text = Array.from({ length: WORDS }, (_, index) => `word${index % 100}`).join(" ");
        const statuses = await Promise.all(Array.from({ length: STREAMS }, () => ask(text)));
        clearInterval(watch);
        assertEquals(new Set(statuses), new Set([200]));
        const limit = before + KEPT * (peak - before);
        const begun = performance.now();
        let after = await rssMb(running.pid);
        while (after > limit && performance.now() - begun < BACK_MS) {
          await new Promise((resolve) => setTimeout(resolve, 1_000));
          after = await rssMb(running.pid);
        }
        const figures = { streams: STREAMS, before_mb: before, peak_mb: peak, after_mb: after };
        await publish("peak", figures);
        assert(after <= limit, JSON.stringify(figures));
      } finally {
        client.close();
        running.kill("SIGTERM");
        await running.ended;
      }
    }),
);
