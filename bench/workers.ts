// deno-lint-ignore-file no-console
/**
 * What several isolates in one process cost and give: `deno run -A bench/workers.ts [SECONDS]`. For Linux, with taskset.
 *
 * First the gateway has one core and its clients the other: CPU time per request is what it says, whatever the clients
 * cost. Then both share all cores: requests per second are then also bounded by what clients need. The CPU time of the
 * thread that owns store and limits bounds what any number of workers can do.
 */
import { openStore } from "../lib/store/open.ts";
import { OWNER } from "../lib/workers/contract.ts";
import { openWire } from "../lib/workers/wire.ts";
import { inFolder, type Running, start } from "../tests/cli/program.ts";
import { MEASURES } from "./workers_echo.ts";

const SECONDS = Number(Deno.args[0] ?? 4);
const CONNECTIONS = 32;
/** Ticks of the kernel's clock in a second. */
const TICKS = 100;

const LIMITS = { requests_per_minute: 1_000_000, tokens_per_minute: 1_000_000_000, concurrency: 1_000 };
const KEYS = {
  plain: {},
  limits: { limits: LIMITS },
  budget: { budget: { usd: "100000", period: "month" } },
};
/** What is measured: a name, the key, and how many words the prompt has. */
const ROWS: readonly [row: string, key: keyof typeof KEYS, words: number][] = [
  ["nothing", "plain", 3],
  ["limits", "limits", 3],
  ["a budget", "budget", 3],
  ["long prompts", "plain", 20_000],
];
const env = Object.fromEntries(
  Object.keys(KEYS).map((name) => [`KEY_${name.toUpperCase()}`, `key-of-the-bench-${name}`]),
);

const CONFIG = {
  models: [{
    id: "bench/echo",
    created: 1,
    context_length: 100_000,
    pricing: { prompt: "0.000001", completion: "0.000002" },
    targets: [{ upstream: "embedded", model: "echo" }],
  }],
  keys: Object.entries(KEYS).map(([name, rules]) => ({ name, key: { env: `KEY_${name.toUpperCase()}` }, ...rules })),
};

/** Requests over connections of their own, until the time is over. Returns how many. */
async function load(
  gateway: Running,
  { key, seconds, words = 3 }: { key: string; seconds: number; words?: number },
): Promise<number> {
  const port = Number(new URL(gateway.origin).port);
  const body = JSON.stringify({
    model: "bench/echo",
    max_tokens: 50,
    messages: [{ role: "user", content: "word ".repeat(words) }],
  });
  const request = new TextEncoder().encode(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  const until = performance.now() + seconds * 1000;
  let count = 0;
  await Promise.all(Array.from({ length: CONNECTIONS }, async () => {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port });
    const buffer = new Uint8Array(8192);
    const decoder = new TextDecoder();
    while (performance.now() < until) {
      await connection.write(request);
      let size = 0;
      let whole = 0;
      do {
        const read = await connection.read(buffer.subarray(size));
        if (read === null) throw new Error("The connection ended");
        size += read;
        if (whole === 0) whole = wholeOf(decoder.decode(buffer.subarray(0, size)));
      } while (whole === 0 || size < whole);
      count++;
    }
  }));
  return count;
}

/** Bytes of an answer that begins so; 0 where that is not known yet. */
function wholeOf(text: string): number {
  const end = text.indexOf("\r\n\r\n");
  if (end === -1) return 0;
  if (!text.startsWith("HTTP/1.1 200")) throw new Error(text);
  return end + 4 + Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
}

/** CPU time in microseconds: of a process, and of the thread of it that has used most besides those of workers. */
async function cpuOf(pid: number): Promise<{ all: number; owner: number }> {
  let all = 0;
  let owner = 0;
  for await (const { name } of Deno.readDir(`/proc/${pid}/task`)) {
    const text = await Deno.readTextFile(`/proc/${pid}/task/${name}/stat`).catch(() => "");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const us = (Number(fields[11]) + Number(fields[12])) * 1_000_000 / TICKS;
    all += us;
    // The owner is the thread that the process began with.
    if (Number(name) === pid) owner = us;
  }
  return { all, owner };
}

async function memoryOf(pid: number): Promise<number> {
  const text = await Deno.readTextFile(`/proc/${pid}/status`);
  return Number(/VmRSS:\s*(\d+)/.exec(text)?.[1]) / 1024;
}

async function withGateway<T>(
  { workers, cores }: { workers: number; cores: string },
  work: (gateway: Running) => Promise<T>,
): Promise<T> {
  let result: T | undefined;
  await inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(CONFIG));
    const gateway = await start(["serve", "--workers", String(workers)], {
      folder,
      env,
      under: ["taskset", "-c", cores],
    });
    try {
      result = await work(gateway);
    } finally {
      gateway.kill("SIGTERM");
      await gateway.ended;
    }
  });
  return result as T;
}

async function pin(cores: string): Promise<void> {
  await new Deno.Command("taskset", { args: ["-apc", cores, String(Deno.pid)], stdout: "null" }).output();
}

function table(rows: readonly (string | number)[][]): void {
  for (const row of rows) console.log(row.map((cell) => String(cell).padEnd(16)).join(""));
  console.log();
}

/** What a call from one isolate to another costs, beside reading a key in its own isolate. */
async function priceOfCalls(): Promise<void> {
  await inFolder(async (folder) => {
    const path = `${folder}/keys.db`;
    const store = await openStore({ kind: "sqlite", path }, { own: true });
    const worker = new Worker(new URL("workers_echo.ts", import.meta.url), { type: "module" });
    const wire = openWire(worker);
    wire.offer(OWNER.keys, store.keys);
    const measures = wire.remote(MEASURES);
    await measures.calls(5_000, 16);
    const rows: (string | number)[][] = [["calls at once", "µs/call", "CPU µs/call"]];
    for (const atOnce of [1, 16, 256]) {
      const total = atOnce === 1 ? 10_000 : 50_000;
      const before = await cpuOf(Deno.pid);
      const us = await measures.calls(total, atOnce);
      const { all } = await cpuOf(Deno.pid);
      rows.push([atOnce, us.toFixed(1), ((all - before.all) / total).toFixed(1)]);
    }
    rows.push(["own connection", (await measures.reads(path, 50_000)).toFixed(1), ""]);
    console.log("Reading a key, by a call to the owner or over a connection of the worker's own");
    table(rows);
    worker.terminate();
    await store.close();
  });
}

async function costOfRequests(cores: { gateway: string; clients: string }, title: string): Promise<void> {
  await pin(cores.clients);
  const rows: (string | number)[][] = [["key has", "workers", "requests/s", "CPU µs/request", "of it the owner"]];
  for (const workers of [1, 2]) {
    await withGateway({ workers, cores: cores.gateway }, async (gateway) => {
      for (const [row, name, words] of ROWS) {
        const key = env[`KEY_${name.toUpperCase()}`] ?? "";
        await load(gateway, { key, seconds: 1.5, words });
        const before = await cpuOf(gateway.pid);
        const begin = performance.now();
        const count = await load(gateway, { key, seconds: SECONDS, words });
        const seconds = (performance.now() - begin) / 1000;
        const after = await cpuOf(gateway.pid);
        rows.push([
          row,
          workers,
          (count / seconds).toFixed(0),
          ((after.all - before.all) / count).toFixed(0),
          workers === 1 ? "all" : ((after.owner - before.owner) / count).toFixed(0),
        ]);
      }
    });
  }
  console.log(title);
  table(rows);
}

async function memory(cores: string): Promise<void> {
  const rows: (string | number)[][] = [["workers", "MiB at start", "after load", "and counting", "and a picture"]];
  for (const workers of [1, 2, 4]) {
    await withGateway({ workers, cores }, async (gateway) => {
      const sizes = [await memoryOf(gateway.pid)];
      const key = env.KEY_PLAIN ?? "";
      await load(gateway, { key, seconds: 3 });
      sizes.push(await memoryOf(gateway.pid));
      // Each over a connection of its own, so that every isolate loads what it needs for it.
      using client = Deno.createHttpClient({ poolMaxIdlePerHost: 0 });
      const ask = async (path: string, body: unknown) => {
        const response = await fetch(`${gateway.origin}${path}`, {
          client,
          method: "POST",
          headers: { authorization: `Bearer ${key}`, "anthropic-version": "2023-06-01" },
          body: JSON.stringify(body),
        });
        const text = await response.text();
        if (!response.ok) throw new Error(text);
      };
      const messages = [{ role: "user", content: "How many tokens are these?" }];
      const counting = { model: "bench/echo", messages };
      await Promise.all(
        Array.from({ length: 12 * workers }, () => ask("/anthropic/v1/messages/count_tokens", counting)),
      );
      sizes.push(await memoryOf(gateway.pid));
      const picture = { model: "sluice/canvas", prompt: "a fox", quality: "low", size: "1024x1024" };
      await Promise.all(Array.from({ length: 8 * workers }, () => ask("/v1/images/generations", picture)));
      sizes.push(await memoryOf(gateway.pid));
      rows.push([workers, ...sizes.map((size) => size.toFixed(0))]);
    });
  }
  console.log("Resident memory of the process");
  table(rows);
}

const last = navigator.hardwareConcurrency - 1;
await priceOfCalls();
await costOfRequests({ gateway: "0", clients: `1-${last}` }, "The gateway on one core, its clients on the others");
await costOfRequests({ gateway: `0-${last}`, clients: `0-${last}` }, `Gateway and clients on ${last + 1} cores`);
await memory(`0-${last}`);
