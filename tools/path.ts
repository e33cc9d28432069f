// deno-lint-ignore-file no-console
/**
 * Prints how many functions of `lib/`, in how many files, one warm request runs: `deno task path [--list SCENARIO]`. The
 * gateway runs in its own process under V8's precise coverage, whose counters are reset before each request and read
 * after it. A function counts if each of three requests runs it and timers of an idle gateway do not.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { bodyOf } from "../bench/suite/bodies.ts";
import { firstRequest } from "../bench/suite/memory.ts";
import { startPeer } from "../bench/suite/peer.ts";
import { inspecting, openInspector } from "../bench/suite/profiler.ts";
import { startTarget } from "../bench/suite/running.ts";
import { modelOf } from "../bench/suite/sluice.ts";
import type { Target } from "../bench/suite/targets.ts";

/** Number of requests before the counted ones, so that lazy initialization and the filling of caches do not count. */
const WARM_UP = 20;
/** Number of counted requests: a function that only some of them run is the work of a timer. */
const REQUESTS = 3;
/** Time after a response by which its background work has ended, in milliseconds. */
const SETTLE_MS = 300;
/** Time by which every timer of an idle gateway has run, in milliseconds. */
const IDLE_MS = 1_500;

/** Names of the functions of `lib/` that ran, by file. */
type FunctionsByFile = Map<string, string[]>;

/** A script in V8's answer to `Profiler.takePreciseCoverage`, as far as it is read. */
interface ScriptCoverage {
  url: string;
  functions: { functionName: string; ranges: { count: number; startOffset: number }[] }[];
}

/** Returns the functions that ran, without those in `idle`. */
function functionsIn(scripts: readonly ScriptCoverage[], idle: FunctionsByFile = new Map()): FunctionsByFile {
  const ran: FunctionsByFile = new Map();
  for (const { url, functions } of scripts) {
    const file = /\/(lib\/.*)$/.exec(url)?.[1];
    if (file === undefined) continue;
    // Module bodies and V8's initializers of class fields are not functions in the source.
    const names = functions
      .filter(({ ranges: [range] }) => range !== undefined && range.startOffset > 0 && range.count > 0)
      .filter(({ functionName }) => functionName !== "<instance_members_initializer>")
      .map(({ functionName, ranges: [range] }) => functionName || `(anonymous at ${range?.startOffset})`);
    const requestNames = names.filter((name) => idle.get(file)?.includes(name) !== true);
    if (requestNames.length > 0) ran.set(file, requestNames);
  }
  return ran;
}

/** Returns the functions that are in both. */
function inBoth(one: FunctionsByFile, other: FunctionsByFile): FunctionsByFile {
  const both: FunctionsByFile = new Map();
  for (const [file, names] of one) {
    const shared = names.filter((name) => other.get(file)?.includes(name) === true);
    if (shared.length > 0) both.set(file, shared);
  }
  return both;
}

const { values: { list } } = parseArgs({ options: { list: { type: "string" } } });
const folder = await Deno.makeTempDir({ prefix: "sluice-path-" });
const peer = startPeer("./upstream.ts");
const upstreamPort = Number(await peer.ask(""));
const { flags, port } = inspecting();
const key = `sk-sluice-${"k".repeat(43)}`;
const authorization = `Bearer ${key}`;
await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(configOf(upstreamPort)));
const target: Target = {
  name: "sluice",
  about: "from source",
  entrance: () => ({ path: "/v1/chat/completions", headers: { authorization }, model: "chat/json" }),
  command: (port) => ({
    program: Deno.execPath(),
    args: [
      "run",
      "--quiet",
      "--no-check",
      ...["--allow-net", "--allow-env", "--allow-read", "--allow-write"],
      ...flags,
      ...["--config", new URL("../deno.json", import.meta.url).pathname],
      new URL("../main.ts", import.meta.url).pathname,
      ...["serve", "--port", String(port)],
    ],
    cwd: folder,
    env: { UPSTREAM_KEY: "sk-0", CLIENT_KEY: key },
  }),
};
const running = await startTarget(target, {
  upstream: { pid: peer.pid, port: upstreamPort },
  ...firstRequest(target),
  errors: `${folder}/errors.log`,
});
const origin = `http://127.0.0.1:${running.port}`;

/** Returns a configuration with one key without limits, and chat upstreams that answer at once, whole or streamed. */
function configOf(upstreamPort: number): unknown {
  const upstream = (play: string) => ({
    vendor: "openai",
    base_url: `http://127.0.0.1:${upstreamPort}/${play}/v1`,
    api_key: { env: "UPSTREAM_KEY" },
    protocols: ["chat"],
  });
  return {
    store: "memory:",
    log: { requests: "none" },
    upstreams: { json: upstream("json"), burst: upstream("burst") },
    models: [modelOf("chat/json", "json"), modelOf("chat/burst", "burst")],
    keys: [{ name: "path", key: { env: "CLIENT_KEY" } }],
  };
}

/** Sends a request, and returns the text of its answer. */
async function post(path: string, body: BodyInit, headers: Record<string, string> = {}): Promise<string> {
  const response = await fetch(origin + path, { method: "POST", headers: { authorization, ...headers }, body });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text.slice(0, 500)}`);
  return text;
}

const JSON_TYPE = { "content-type": "application/json" };
const chat = bodyOf({ protocol: "chat", size: "1k", model: "chat/json", stream: false });
const chatStream = bodyOf({ protocol: "chat", size: "1k", model: "chat/burst", stream: true });
const messages = bodyOf({ protocol: "messages", size: "1k", model: "chat/burst", stream: true });

async function makePicture(): Promise<Blob> {
  const body = JSON.stringify({ model: "sluice/canvas", prompt: "a lake", size: "1024x1024", quality: "high" });
  const { data: [{ b64_json }] } = JSON.parse(await post("/v1/images/generations", body, JSON_TYPE));
  return new Blob([Uint8Array.fromBase64(b64_json)], { type: "image/png" });
}

function editForm(picture: Blob): FormData {
  const form = new FormData();
  form.set("model", "sluice/canvas");
  form.set("prompt", "make it warmer");
  form.set("size", "1024x1024");
  form.set("quality", "high");
  form.set("image", picture, "picture.png");
  return form;
}

let picture: Blob | undefined;

const SCENARIOS: Readonly<Record<string, { aim: string; send: () => Promise<unknown> }>> = {
  "relayed request": { aim: "220/60", send: () => post("/v1/chat/completions", chat, JSON_TYPE) },
  "relayed stream": { aim: "", send: () => post("/v1/chat/completions", chatStream, JSON_TYPE) },
  "translated stream": {
    aim: "380/90",
    send: () => post("/anthropic/v1/messages", messages, { ...JSON_TYPE, "anthropic-version": "2023-06-01" }),
  },
  "image edit": {
    aim: "",
    send: async () => {
      picture ??= await makePicture();
      await post("/v1/images/edits", editForm(picture));
    },
  },
};

try {
  const inspector = await openInspector(port);
  await inspector.ask("Profiler.enable");
  await inspector.ask("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await pause(IDLE_MS);
  const idle = functionsIn((await inspector.ask("Profiler.takePreciseCoverage")).result);
  for (const [name, { aim, send }] of Object.entries(SCENARIOS)) {
    for (let count = 0; count < WARM_UP; count++) await send();
    let ran: FunctionsByFile | undefined;
    for (let count = 0; count < REQUESTS; count++) {
      await pause(SETTLE_MS);
      await inspector.ask("Profiler.takePreciseCoverage");
      await send();
      await pause(SETTLE_MS);
      const current = functionsIn((await inspector.ask("Profiler.takePreciseCoverage")).result, idle);
      ran = ran === undefined ? current : inBoth(ran, current);
    }
    ran ??= new Map();
    const count = [...ran.values()].reduce((sum, names) => sum + names.length, 0);
    console.log(`${name}: ${count} functions in ${ran.size} files${aim === "" ? "" : ` (aim: ${aim})`}`);
    if (list !== name) continue;
    for (const [file, names] of [...ran].sort()) console.log(`  ${file} ${names.length}: ${names.join(", ")}`);
  }
  inspector.close();
} finally {
  await running.stop();
  await peer.end();
  await Deno.remove(folder, { recursive: true });
}
