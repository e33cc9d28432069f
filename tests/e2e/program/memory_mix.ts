/** Sends the requests that cost the most memory to a whole gateway, together with clients that send small requests. */
import { assertEquals } from "@std/assert";
import { start } from "../../support/program.ts";
import { createMemoryGroup, peakMib } from "./memory.ts";

/** The limit of memory: a machine of 1 GiB. */
export const LIMIT_MIB = 1024;

/** Limits that docs/explanation/performance.md recommends for such a machine. */
const LIMITS = { body_budget_bytes: 134_217_728 };

/** The key of the gateway. */
export const KEY = "key-of-the-memory-tests";

/** Concurrent large bodies, and the size of each. */
const LARGE_BODIES = 16;
const LARGE_BYTES = 31 * 1024 * 1024;
/** Streams that are not read, and the characters of each. */
const UNREAD_STREAMS = 20;
const UNREAD_CHARACTERS = 400_000;
/** Concurrent image requests. */
const IMAGE_CLIENTS = 6;

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Contents and duration of the mix. */
export interface Mix {
  folder: string;
  /** Images that are uploaded, each in all ways. */
  uploads: readonly Uint8Array<ArrayBuffer>[];
  ms: number;
}

/** Results of a run. */
export interface Mixed {
  /** Why no limit of memory was set; absent: it was. */
  unlimited?: string;
  peakMib: number;
  /** Times of the small requests in milliseconds, sorted. */
  times: number[];
  /** Number of times that each status was answered, by kind of request. */
  statuses: Record<string, Record<number, number>>;
}

/** Minimum number of small requests. */
const MIN_TIMES = 5;

/** Runs the mix. @throws if the gateway ends, or a small request fails */
export async function runMix({ folder, uploads, ms }: Mix): Promise<Mixed> {
  const config = { keys: [{ name: "tests", key: { env: "TEST_KEY" } }], resource_limits: LIMITS };
  await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(config));
  const group = await createMemoryGroup(LIMIT_MIB * 1024 * 1024);
  const unlimited = typeof group === "string" ? group : undefined;
  const place = { folder, env: { TEST_KEY: KEY }, ...(typeof group !== "string" && { under: group.under }) };
  const gateway = await start(["serve", "--config", "sluice.jsonc"], place);
  const statuses: Mixed["statuses"] = {};
  const times: number[] = [];
  const end = new AbortController();

  async function ask(kind: string, path: string, init: RequestInit): Promise<Response> {
    const headers = { authorization: `Bearer ${KEY}`, ...init.headers };
    const response = await fetch(`${gateway.origin}${path}`, { method: "POST", ...init, headers });
    const counts = statuses[kind] ??= {};
    counts[response.status] = (counts[response.status] ?? 0) + 1;
    return response;
  }

  /** Works until the end; errors caused by the end are ignored. */
  async function untilEnd(work: () => Promise<unknown>): Promise<void> {
    while (!end.signal.aborted) await work().catch((error) => end.signal.aborted || Promise.reject(error));
  }

  const { signal } = end;
  let turn = 0;
  async function edit(): Promise<void> {
    const form = new FormData();
    const way = turn++;
    const upload = new Blob([uploads[way % uploads.length] ?? new Uint8Array()]);
    const fields = {
      model: "sluice/canvas",
      prompt: "rotate sharpen",
      quality: "low",
      size: "3840x2160",
      output_format: ["png", "jpeg", "webp"][way % 3] ?? "png",
    };
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    for (let i = 0; i < 1 + way % 2; i++) form.append("image[]", upload, "a.png");
    const response = await ask("edit", "/v1/images/edits", { body: form, signal });
    // Some are read, others are abandoned.
    if (way % 3 === 0) await response.bytes();
    else await response.body?.cancel();
    if (response.status === 503) await pause(500);
  }

  const hello = JSON.stringify({ model: "sluice/echo", messages: [{ role: "user", content: "Hello" }] });
  const json = { "content-type": "application/json" };
  async function small(): Promise<void> {
    const begun = performance.now();
    const response = await ask("small", "/v1/chat/completions", { body: hello, headers: json });
    await response.bytes();
    assertEquals(response.status, 200);
    times.push(performance.now() - begun);
    await pause(20);
  }

  const large = new TextEncoder().encode(
    `{"model":"sluice/echo","messages":[{"role":"user","content":"${"a".repeat(LARGE_BYTES)}"}]}`,
  );
  async function sendLarge(): Promise<void> {
    const response = await ask("large", "/v1/chat/completions", { body: large, headers: json, signal });
    await response.bytes();
    if (response.status === 429) await pause(500);
  }

  const long = JSON.stringify({
    model: "sluice/echo",
    stream: true,
    messages: [{ role: "user", content: "word ".repeat(UNREAD_CHARACTERS / 5) }],
  });

  try {
    const unread = await Promise.all(
      Array.from(
        { length: UNREAD_STREAMS },
        () => ask("unread", "/v1/chat/completions", { body: long, headers: json, signal }),
      ),
    );
    const work = [
      ...Array.from({ length: IMAGE_CLIENTS }, () => untilEnd(edit)),
      ...Array.from({ length: LARGE_BODIES }, () => untilEnd(sendLarge)),
      untilEnd(small),
    ];
    const begun = performance.now();
    // A busy machine answers few in this time.
    const timer = setInterval(() => {
      if (performance.now() - begun >= ms && times.length > MIN_TIMES) end.abort();
    }, 50);
    try {
      await Promise.all(work);
    } finally {
      clearInterval(timer);
      end.abort();
      await Promise.allSettled([...work, ...unread.map(({ body }) => body?.cancel())]);
    }
    // It is still there.
    await small();
    const peak = await peakMib(gateway.pid);
    return {
      ...(unlimited !== undefined && { unlimited }),
      peakMib: peak,
      times: times.sort((a, b) => a - b),
      statuses,
    };
  } finally {
    try {
      gateway.kill("SIGKILL");
    } catch {
      // The gateway has ended, and the pending error reports it.
    }
    await gateway.ended;
    if (typeof group !== "string") await group[Symbol.asyncDispose]();
  }
}
