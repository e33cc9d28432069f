import { assert, assertEquals, assertLess } from "@std/assert";
import { inFolder, start } from "../../support/program.ts";
import { png } from "../../images/image_files.ts";
import { peakMib } from "./memory.ts";
import { KEY, LIMIT_MIB, runMix } from "./memory_mix.ts";

/**
 * Uploads of the request, and the memory that their decoding may take: all at once it would be more than twice that.
 */
const UPLOADS = 4;
const MAX_MIB = 500;

Deno.test({
  name: "uploads with small files and many pixels are decoded one at a time",
  ignore: Deno.build.os !== "linux",
  fn: () =>
    inFolder(async (folder) => {
      const config = {
        keys: [{ name: "tests", key: { env: "TEST_KEY" } }],
        resource_limits: { image_request_pixels: 300_000_000, image_pixels: 300_000_000 },
      };
      await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(config));
      const gateway = await start(["serve", "--config", "sluice.jsonc"], { folder, env: { TEST_KEY: KEY } });
      try {
        const form = new FormData();
        const fields = { model: "sluice/canvas", prompt: "resize", quality: "low", size: "1024x1024" };
        for (const [name, value] of Object.entries(fields)) form.append(name, value);
        const image = new Blob([png(4096, 4096)]);
        for (let i = 0; i < UPLOADS; i++) form.append("image[]", image, "a.png");
        const headers = { authorization: `Bearer ${KEY}` };
        const response = await fetch(`${gateway.origin}/v1/images/edits`, { method: "POST", headers, body: form });
        const { data } = await response.json();
        assertEquals([response.status, data.length], [200, 1]);
        assertLess(await peakMib(gateway.pid), MAX_MIB);
      } finally {
        gateway.kill("SIGKILL");
        await gateway.ended;
      }
    }),
});

Deno.test({
  name: "a process with 1 GiB survives the most expensive requests, and serves others",
  ignore: Deno.build.os !== "linux",
  fn: () =>
    inFolder(async (folder) => {
      const { unlimited, peakMib, times, statuses } = await runMix({ folder, uploads: [png(4096, 4096)], ms: 4_000 });
      // deno-lint-ignore no-console
      if (unlimited !== undefined) console.log(`Memory was watched, not limited: ${unlimited}`);
      assertLess(peakMib, LIMIT_MIB);
      // Other work on the machine delays all of them; the heavy suite measures the figure.
      assertLess(times[Math.floor(times.length * 0.99)] ?? Infinity, 30_000);
      assertEquals(Object.keys(statuses["unread"] ?? {}), ["200"]);
      for (const status of Object.keys(statuses["edit"] ?? {})) assert(/^(?:200|429|503)$/.test(status), status);
    }),
});
