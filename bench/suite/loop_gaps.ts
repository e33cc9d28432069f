/**
 * Is loaded into the gateway's process before the gateway, and records each pause of the event loop as a line: Unix
 * milliseconds, duration in milliseconds, and CPU time of the thread in milliseconds.
 */
const PATH = Deno.env.get("BENCH_GAPS") ?? "";
/** Time between two checks, and shortest pause that is recorded, in milliseconds. */
const TICK_MS = 2;
const MIN_MS = 10;

const statPath = `/proc/self/task/${Deno.pid}/schedstat`;

function cpuMs(): number {
  const text = Deno.readTextFileSync(statPath);
  return Number(text.slice(0, text.indexOf(" "))) / 1e6;
}

let last = performance.now();
let lastCpu = cpuMs();
Deno.unrefTimer(setInterval(() => {
  const now = performance.now();
  const cpu = cpuMs();
  const gap = now - last - TICK_MS;
  if (gap >= MIN_MS) Deno.writeTextFileSync(PATH, `${Date.now()} ${gap} ${cpu - lastCpu}\n`, { append: true });
  last = performance.now();
  lastCpu = cpuMs();
}, TICK_MS));
