import { assert, assertEquals, assertLess } from "@std/assert";
import { Buffer } from "node:buffer";
import { deflateSync, gzipSync } from "node:zlib";
import { inFolder, start } from "../../support/program.ts";

const KEY = "a-key-for-the-tests-of-compressed-bodies";
/** Bytes that the bombs inflate to: far more than a body may have, in 389 KB. */
const BOMB_BYTES = 400_000_000;
const AT_ONCE = 16;
/** Memory that all of them together may take, in MiB: less than four bodies of the maximum size. */
const MAX_GROWTH_MIB = 128;
/**
 * Maximum CPU time of the event loop's thread before `/healthz` answers, in milliseconds: other processes may delay it.
 */
const MAX_HEALTH_MS = 1_000;

/** A number of `/proc/<pid>/status`, in MiB. */
async function statusMib(pid: number, name: string): Promise<number> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) / 1024;
}

/** CPU time of the thread of the event loop, in milliseconds: the system counts in hundredths of a second. */
async function loopCpuMs(pid: number): Promise<number> {
  const text = await Deno.readTextFile(`/proc/${pid}/task/${pid}/stat`);
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** A gzip body whose trailer claims a length of `size` bytes. */
function claiming(size: number, gzip: Uint8Array): Uint8Array<ArrayBuffer> {
  const lying = Uint8Array.from(gzip);
  new DataView(lying.buffer).setUint32(lying.length - 4, size, true);
  return lying;
}

Deno.test({
  name: "16 compressed bodies of 400 MB are refused with little memory, and /healthz answers meanwhile",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const zeros = Buffer.alloc(BOMB_BYTES);
    const [gzip, deflate] = [gzipSync(zeros), deflateSync(zeros)];
    assertLess(gzip.length, 400_000);
    const chat = { path: "/v1/chat/completions", type: "invalid_request_error" };
    const messages = { path: "/anthropic/v1/messages", type: "request_too_large" };
    const cases = [
      { name: "gzip", bomb: gzip, coding: "gzip", status: 413, ...chat },
      { name: "gzip for messages", bomb: gzip, coding: "gzip", status: 413, ...messages },
      { name: "deflate", bomb: deflate, coding: "deflate", status: 413, ...messages },
      { name: "gzip with a false length", bomb: claiming(30_000_000, gzip), coding: "gzip", status: 400, ...chat },
    ];
    await inFolder(async (folder) => {
      await Deno.writeTextFile(
        `${folder}/sluice.jsonc`,
        JSON.stringify({ keys: [{ name: "t", key: { env: "KEY" } }] }),
      );
      const { origin, pid, kill, ended } = await start(["serve"], { folder, env: { KEY } });
      async function send({ path, bomb, coding }: typeof cases[number]) {
        const response = await fetch(origin + path, {
          method: "POST",
          headers: {
            authorization: `Bearer ${KEY}`,
            "content-type": "application/json",
            "content-encoding": coding,
            "anthropic-version": "2023-06-01",
          },
          body: bomb as Uint8Array<ArrayBuffer>,
        });
        const { error } = await response.json();
        return [response.status, error.type];
      }
      try {
        for (const round of cases) {
          // The peak is counted from here on.
          await Deno.writeTextFile(`/proc/${pid}/clear_refs`, "5");
          const before = await statusMib(pid, "VmRSS");
          let isOver = false;
          const bombs = Promise.all(Array.from({ length: AT_ONCE }, () => send(round))).finally(() => isOver = true);
          let slowest = 0;
          while (!isOver) {
            const before = await loopCpuMs(pid);
            const health = await fetch(`${origin}/healthz`);
            await health.body?.cancel();
            assertEquals(health.status, 200);
            slowest = Math.max(slowest, await loopCpuMs(pid) - before);
          }
          for (const answer of await bombs) assertEquals(answer, [round.status, round.type], round.name);
          const growth = await statusMib(pid, "VmHWM") - before;
          assert(growth < MAX_GROWTH_MIB, `${round.name}: memory grew by ${growth} MiB`);
          assert(slowest < MAX_HEALTH_MS, `${round.name}: /healthz took ${slowest} ms of CPU`);
        }
      } finally {
        kill("SIGTERM");
        await ended;
      }
    });
  },
});
