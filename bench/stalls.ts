// deno-lint-ignore-file no-console
/**
 * How long the event loop of Sluice stands still under the worst that its limits allow: `deno task bench:stalls`, with
 * `--rows=N` for a ledger of another length than a million, and `--store=postgres` for what is asked of a store, with a
 * server of its own. Linux only. Whoever else asks meanwhile waits as long.
 */
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { readStoreAddress } from "../lib/config/address.ts";
import { startPostgres } from "../tests/engines/engines.ts";
import { inTime, startPeer } from "./suite/peer.ts";
import { noisePng } from "./suite/pictures.ts";
import { loadAverage } from "./suite/proc.ts";
import { firstRequest } from "./suite/memory.ts";
import { startTarget } from "./suite/running.ts";
import { seedKeys, seedStore } from "./suite/seed.ts";
import { sluice } from "./suite/sluice.ts";
import { short, table } from "./suite/tables.ts";

/** Longest that the loop may stand still, in milliseconds. */
const BOUND_MS = 50;
/** Longest time for one of the requests, in milliseconds. */
const PATIENCE_MS = 120_000;
/** Time after a request in which what it put off is done, in milliseconds. */
const AFTERWORK_MS = 500;
const DAY_MS = 86_400_000;
const MB = 1_000_000;

const { values: { rows, keys, only, times, out, store } } = parseArgs({
  options: {
    rows: { type: "string", default: "1000000" },
    keys: { type: "string", default: "100000" },
    only: { type: "string", default: "" },
    times: { type: "string", default: "3" },
    store: { type: "string", default: "sqlite" },
    out: { type: "string", default: new URL("./results/stalls.json", import.meta.url).pathname },
  },
});

/** A request that costs much. */
interface Trial {
  name: string;
  path: string;
  admin?: boolean;
  /** Absent: GET without a body, POST with one. */
  method?: string;
  /** Absent: there is none. */
  body?: () => string | FormData;
  /** Whether the body is sent compressed. */
  gzip?: boolean;
}

const ADMIN_KEY = "admin-key-of-the-bench-0123456789";
const folder = await Deno.makeTempDir({ prefix: "sluice-bench-" });
const gaps = `${folder}/gaps`;
await Deno.writeTextFile(gaps, "");
const upstreamPeer = startPeer("./upstream.ts");
const upstreamPort = Number(await upstreamPeer.ask(""));

const engine = store === "postgres" ? await startPostgres() : undefined;
const target = await sluice({
  name: "sluice",
  folder: `${folder}/sluice`,
  upstreamPort,
  log: "none",
  config: { admin: { key: { env: "BENCH_ADMIN_KEY" } }, metrics: { public: true } },
  env: { BENCH_ADMIN_KEY: ADMIN_KEY, BENCH_GAPS: gaps, ...(engine !== undefined && { SLUICE_STORE: engine.url }) },
  preload: [new URL("./suite/loop_gaps.ts", import.meta.url).pathname],
});
const database = `${folder}/sluice/data/sluice.db`;
const address = engine === undefined ? `sqlite:${database}` : engine.url;
console.error(`Seeding ${keys} keys and ${rows} entries`);
if (engine === undefined) seedKeys(database, Number(keys));
const now = Date.now();
// A day in which each key was used.
await seedStore(readStoreAddress(address), {
  count: Number(keys),
  now: now - 31 * DAY_MS,
  days: 0.5,
  keys: Number(keys),
});
await seedStore(readStoreAddress(address), { count: Number(rows), now });
const upstream = { pid: upstreamPeer.pid, port: upstreamPort };
const running = await startTarget(target, { upstream, ...firstRequest(target), errors: `${folder}/errors.log` });

const user = (model: string, content: unknown, rest: object = {}) =>
  JSON.stringify({ model, messages: [{ role: "user", content }], ...rest });
const han = (chars: number) =>
  Array.from({ length: chars }, (_, at) => String.fromCharCode(0x4e00 + at * 7919 % 20_000)).join("");
const count = (content: string) => () => user("messages/json", content, { max_tokens: 16 });
const COUNT = "/anthropic/v1/messages/count_tokens";
const CHAT = "/v1/chat/completions";
const MESSAGES = "/anthropic/v1/messages";

function upload(pictures: number): FormData {
  const form = new FormData();
  form.set("model", "sluice/canvas");
  form.set("prompt", "a fox");
  form.set("quality", "low");
  form.set("size", "1024x1024");
  const png = noisePng({ width: 3840, height: 2160 });
  for (let number = 0; number < pictures; number++) {
    form.append("image[]", new Blob([png], { type: "image/png" }), "p.png");
  }
  return form;
}

const picture = (rest: object) => () =>
  JSON.stringify({ model: "sluice/canvas", prompt: "a fox", quality: "high", size: "3840x2160", ...rest });

const TRIALS: readonly Trial[] = [
  { name: "1 KB request", path: CHAT, body: () => user("chat/json", "hello") },
  { name: "counting 1 MB of one letter", path: COUNT, body: count("a".repeat(MB)) },
  { name: "counting 1 MB of spaces", path: COUNT, body: count(" ".repeat(MB)) },
  { name: "counting 1 MB of Han", path: COUNT, body: count(han(MB / 3)) },
  { name: "counting 1 MB of one Han character", path: COUNT, body: count("字".repeat(MB / 3)) },
  { name: "counting 30 MB of prose", path: COUNT, body: count("All of it was said before. ".repeat(30 * MB / 27)) },
  { name: "echo of 1 MB of Han", path: CHAT, body: () => user("sluice/echo", han(MB / 3)) },
  { name: "30 MB in one message, relayed", path: CHAT, body: () => user("chat/json", "x".repeat(30 * MB)) },
  { name: "30 MB in one message, translated", path: CHAT, body: () => user("messages/json", "x".repeat(30 * MB)) },
  { name: "30 MB of Han in one message, relayed", path: CHAT, body: () => user("chat/json", "字".repeat(10 * MB)) },
  { name: "30 MB of escapes, translated", path: CHAT, body: () => user("messages/json", "\n".repeat(15 * MB)) },
  { name: "30 MB of escapes, relayed", path: CHAT, body: () => user("chat/json", "\n".repeat(15 * MB)) },
  { name: "30 MB of quotes, translated", path: CHAT, body: () => user("messages/json", '"'.repeat(15 * MB)) },
  {
    name: "30 MB of halves of characters, translated",
    path: CHAT,
    body: () => user("messages/json", "\ud800".repeat(5 * MB)),
  },
  { name: "30 MB of escapes, the last one bad", path: CHAT, body: () => badEscape() },
  { name: "30 MB of spaces", path: CHAT, body: () => user("chat/json", "x").replace(/}$/, `${" ".repeat(30 * MB)}}`) },
  { name: "190,000 numbers to be kept", path: CHAT, body: () => withTool(`[${"1.0,".repeat(190_000)}1]`) },
  { name: "190,000 long numbers", path: CHAT, body: () => withTool(`[${`${"1".repeat(150)},`.repeat(190_000)}1]`) },
  { name: "190,000 names", path: CHAT, body: () => withTool(`[${Array.from({ length: 19 }, names).join(",")}]`) },
  {
    name: "a call with an argument of 15 MB, translated",
    path: CHAT,
    body: () => called(JSON.stringify({ text: "\n".repeat(5 * MB) })),
  },
  {
    name: "a call with 30 MB of quotes, translated",
    path: CHAT,
    body: () => called(JSON.stringify({ text: '"'.repeat(7 * MB) })),
  },
  {
    name: "a call with 190,000 names, translated",
    path: CHAT,
    body: () => called(`{"list":[${Array.from({ length: 19 }, names).join(",")}]}`),
  },
  {
    name: "a call whose input is 30 MB of quotes, relayed",
    path: MESSAGES,
    body: () => calledWith("messages/json", JSON.stringify({ text: '"'.repeat(15 * MB) })),
  },
  {
    name: "a call whose input is 30 MB of quotes, translated",
    path: MESSAGES,
    body: () => calledWith("chat/json", JSON.stringify({ text: '"'.repeat(15 * MB) })),
  },
  {
    name: "a call whose input is 190,000 names, translated",
    path: MESSAGES,
    body: () => calledWith("chat/json", `{"list":[${Array.from({ length: 19 }, names).join(",")}]}`),
  },
  {
    name: "30 MB of Han in one message, translated",
    path: CHAT,
    body: () => user("messages/json", "字".repeat(10 * MB)),
  },
  { name: "30 MB of escapes, compressed", path: CHAT, gzip: true, body: () => user("chat/json", "\n".repeat(15 * MB)) },
  { name: "30 MB in 4,000 messages, relayed", path: CHAT, body: () => conversation("chat/json", 1) },
  { name: "30 MB in 4,000 messages, translated", path: CHAT, body: () => conversation("messages/json", 1) },
  { name: "30 MB in 40,000 parts, relayed", path: CHAT, body: () => conversation("chat/json", 10) },
  { name: "30 MB in 40,000 parts, translated", path: CHAT, body: () => conversation("messages/json", 10) },
  {
    name: "30 MB of brackets",
    path: CHAT,
    body: () => `{"model":"chat/json","messages":${"[".repeat(15 * MB)}${"]".repeat(15 * MB)}}`,
  },
  { name: "30 MB of members", path: CHAT, body: () => members(2 * MB) },
  {
    name: "a picture of 30 MB in a message, translated",
    path: CHAT,
    body: () =>
      user("messages/json", [{
        type: "image_url",
        image_url: { url: `data:image/png;base64,${"A".repeat(30 * MB)}` },
      }]),
  },
  { name: "form of 50 MB, two pictures", path: "/v1/images/edits", body: () => upload(2) },
  { name: "4K picture, PNG", path: "/v1/images/generations", body: picture({}) },
  { name: "4K picture, WebP", path: "/v1/images/generations", body: picture({ output_format: "webp" }) },
  {
    name: "4K picture, streamed with 3 partial ones",
    path: "/v1/images/generations",
    body: picture({ stream: true, partial_images: 3 }),
  },
  ...["key", "model", "day"].map((by) => ({
    name: `usage of ${rows} rows by ${by}`,
    path: `/admin/v1/usage?since=30d&by=${by}`,
    admin: true,
  })),
  {
    name: `usage of ${rows} rows, pieces of days`,
    path: `/admin/v1/usage?since=${new Date(Date.now() - 700 * 3_600_000).toISOString()}&by=key`,
    admin: true,
  },
  {
    name: `usage of a day with ${keys} keys by key`,
    path: "/admin/v1/usage?since=40d&by=key",
    admin: true,
  },
  { name: `audit of ${rows} rows`, path: "/admin/v1/audit", admin: true, method: "POST" },
  { name: `list of ${keys} keys`, path: "/admin/v1/keys", admin: true },
  { name: "metrics", path: "/metrics" },
  { name: "catalog", path: "/v1/models" },
];

/** 4,000 messages, near the most there can be, each of so many parts. */
function conversation(model: string, parts: number): string {
  const messages = 4_000;
  const text = "x".repeat(30 * MB / messages / parts - 60);
  const content = parts === 1 ? text : Array.from({ length: parts }, () => ({ type: "text", text }));
  return JSON.stringify({
    model,
    messages: Array.from({ length: messages }, (_, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content })),
  });
}

function badEscape(): string {
  return user("chat/json", "\n".repeat(15 * MB)).replace(/"}\]}$/, '\\q"}]}');
}

/** A request with a tool of whose schema this is a part. */
function withTool(json: string): string {
  const tool = { type: "function", function: { name: "f", parameters: { type: "object", default: "HERE" } } };
  return user("messages/json", "x", { tools: [tool] }).replace('"HERE"', json);
}

/** An object of 10,000 names, near the most there can be, that no other object has. */
function names(_: unknown, number: number): string {
  return `{${Array.from({ length: 9_990 }, (_, at) => `"k${number}_${at}":1`).join(",")}}`;
}

/** A conversation with a call of a tool. */
function called(json: string): string {
  const call = { id: "call_1", type: "function", function: { name: "f", arguments: json } };
  return JSON.stringify({
    model: "messages/json",
    messages: [
      { role: "user", content: "x" },
      { role: "assistant", tool_calls: [call] },
      { role: "tool", tool_call_id: "call_1", content: "y" },
    ],
  });
}

/** The same from a client whose calls have objects. */
function calledWith(model: string, json: string): string {
  const call = { type: "tool_use", id: "call_1", name: "f", input: "HERE" };
  return JSON.stringify({
    model,
    max_tokens: 16,
    messages: [
      { role: "user", content: "x" },
      { role: "assistant", content: [call] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "y" }] },
    ],
  }).replace('"HERE"', () => json);
}

function members(count: number): string {
  const all = Array.from({ length: count }, (_, at) => `"m${at}":0`).join(",");
  return `{"model":"chat/json","messages":[{"role":"user","content":"x"}],"metadata":{${all}}}`;
}

/** One request. Returns how it was answered. */
async function ask(
  { path, admin, body, method, gzip }: Trial,
  prepared: string | FormData | Uint8Array<ArrayBuffer> | undefined,
): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${running.port}${path}`, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: {
      authorization: `Bearer ${admin === true ? ADMIN_KEY : target.key}`,
      ...(body !== undefined && !(prepared instanceof FormData) && { "content-type": "application/json" }),
      ...(gzip === true && { "content-encoding": "gzip" }),
      ...([COUNT, MESSAGES].includes(path) && { "anthropic-version": "2023-06-01" }),
    },
    ...(prepared !== undefined && { body: prepared }),
  });
  const text = await response.text();
  return response.ok ? "200" : `${response.status} ${/"message":\s*"([^"]{0,60})/.exec(text)?.[1] ?? ""}`;
}

/** The longest gap within a time, in milliseconds: by the clock, and the CPU time of it. */
async function longestGap(from: number, to: number): Promise<{ gapMs: number; cpuMs: number }> {
  const lines = (await Deno.readTextFile(gaps)).trim().split("\n").map((line) => line.split(" ").map(Number));
  const found = lines.filter(([at = 0]) => at >= from && at <= to).map(([, gapMs = 0, cpuMs = 0]) => ({
    gapMs,
    cpuMs,
  }));
  // What another process took of the core is no stall of ours.
  return found.toSorted((a, b) => Math.min(b.gapMs, b.cpuMs) - Math.min(a.gapMs, a.cpuMs))[0] ?? { gapMs: 0, cpuMs: 0 };
}

async function lagTold(): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${running.port}/metrics`)).text();
  return Number(/^sluice_event_loop_lag_seconds (\S+)/m.exec(text)?.[1]) * 1000;
}

const results = [];
for (
  const trial of TRIALS.filter(({ name, admin }) => name.includes(only) && (engine === undefined || admin === true))
) {
  const body = trial.body?.();
  const prepared = trial.gzip === true && typeof body === "string" ? new Uint8Array(gzipSync(body)) : body;
  let answer = "";
  // The first time loads and compiles what is needed; the others show what stays.
  const stalls: { gapMs: number; cpuMs: number }[] = [];
  let took = 0;
  for (let time = 0; time < Number(times); time++) {
    const from = Date.now();
    answer = await inTime(ask(trial, prepared), "no answer in time", PATIENCE_MS).catch((error) => String(error));
    took = Date.now() - from;
    await new Promise((resolve) => setTimeout(resolve, AFTERWORK_MS));
    stalls.push(await longestGap(from, Date.now()));
  }
  const stall = ({ gapMs, cpuMs }: { gapMs: number; cpuMs: number }) => Math.min(gapMs, cpuMs);
  const [first = { gapMs: 0, cpuMs: 0 }, ...others] = stalls;
  const later = others.length === 0 ? first : others.toSorted((a, b) => stall(b) - stall(a))[0] ?? first;
  results.push({
    name: trial.name,
    answer,
    tookMs: took,
    firstMs: stall(first),
    laterMs: stall(later),
    gapMs: later.gapMs,
    lagMs: await lagTold(),
  });
  console.error(`${trial.name}: ${short(stall(later))} ms`);
}
console.log(`Load average ${short(await loadAverage())}\n`);
console.log(table(
  [
    "",
    "answer in ms",
    "longest stall, first time, ms",
    "later, ms",
    "by the clock, ms",
    "/metrics said, ms",
    "status",
    "",
  ],
  results.map(({ name, answer, tookMs, firstMs, laterMs, gapMs, lagMs }) => [
    name,
    String(tookMs),
    short(firstMs),
    short(laterMs),
    short(gapMs),
    short(lagMs),
    answer.slice(0, 3),
    Math.max(firstMs, laterMs) > BOUND_MS ? "OVER" : "",
  ]),
));
const over = results.filter(({ firstMs, laterMs }) => Math.max(firstMs, laterMs) > BOUND_MS);
console.log(`\n${over.length} of ${results.length} hold the loop for more than ${BOUND_MS} ms`);
await Deno.mkdir(new URL(".", `file://${out}`), { recursive: true });
await Deno.writeTextFile(
  out,
  `${JSON.stringify({ at: new Date().toISOString(), bound_ms: BOUND_MS, results }, null, 2)}\n`,
);
await running.stop();
await engine?.[Symbol.asyncDispose]();
await upstreamPeer.end();
await Deno.remove(folder, { recursive: true });
Deno.exit(0);
