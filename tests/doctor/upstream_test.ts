import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import type { Finding } from "../../lib/doctor/finding.ts";
import type { HttpUpstreamConfig } from "../../lib/config.ts";
import { checkUpstream, type UpstreamCheckResult } from "../../lib/doctor/upstream.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { json, type ScriptedAnswer, startUpstream, type UpstreamRequest } from "../upstream/mod.ts";
import { CLOSED_PORT } from "../support/closed_port.ts";

const KEY = "upstream-key-0123456789";
const LIST = { object: "list", data: [{ id: "one" }, { id: "two" }] };

function hostOf(row: JsonObject): HttpUpstreamConfig {
  const { upstreams: { host } } = parseConfig({ upstreams: { host: row } }, () => KEY);
  if (host === undefined || host.vendor === "embedded") throw new TypeError("Expected a host");
  return host;
}

function look(host: HttpUpstreamConfig, { models = ["one"], timeoutMs = 5_000 } = {}): Promise<UpstreamCheckResult> {
  return checkUpstream("host", { host, models, options: { env: () => undefined, now: Date.now, timeoutMs } });
}

function lines(findings: readonly Finding[]): string[] {
  const isAboutWay = ({ what }: Finding) => what.includes("can be reached") || what.startsWith("Requests use");
  return findings.filter((finding) => !isAboutWay(finding)).map(({ level, what }) => `${level}: ${what}`);
}

const hasKey = ({ headers }: UpstreamRequest) => headers.get("authorization") === `Bearer ${KEY}`;
const refusal: ScriptedAnswer = json({ error: { message: "no" } }, { status: 401 });
const bad: ScriptedAnswer = json({ error: { message: "model is missing" } }, { status: 400 });

interface Case {
  name: string;
  vendor?: string;
  keyless?: true;
  models?: string[];
  play: (request: UpstreamRequest) => ScriptedAnswer;
  /** Begin of each line but the one about the way. */
  says: string[];
}

const CASES: Case[] = [
  {
    name: "a good key and a known model",
    play: (request) => hasKey(request) ? json(LIST) : refusal,
    says: ["ok: It accepts the key", "ok: It has every model that targets name (1)"],
  },
  {
    name: "a refused key",
    play: () => refusal,
    says: ["error: It refuses the key: 401"],
  },
  {
    name: "a forbidden key",
    play: () => json({}, { status: 403 }),
    says: ["error: It refuses the key: 403"],
  },
  {
    name: "an unknown model",
    models: ["one", "three"],
    play: (request) => hasKey(request) ? json(LIST) : refusal,
    says: ["ok: It accepts the key", 'warning: Its list of 2 models does not have "three"'],
  },
  {
    name: "a public model list, and a refused key",
    play: ({ method }) => method === "GET" ? json(LIST) : refusal,
    says: ["error: It refuses the key: 401", "ok: It has every model"],
  },
  {
    name: "a public model list, and a good key",
    play: ({ method }) => method === "GET" ? json(LIST) : bad,
    says: ["ok: It refuses an empty request with 400, and not the key", "ok: It has every model"],
  },
  {
    name: "no model list, and a good key",
    play: ({ method }) => method === "GET" ? json({}, { status: 404 }) : bad,
    says: ["ok: It refuses an empty request with 400, and not the key"],
  },
  {
    name: "a server that gives any request the same answer",
    play: ({ method }) => method === "GET" ? json(LIST) : json({}),
    says: ["warning: It answers an empty request with 200, unlike model hosts", "ok: It has every model"],
  },
  {
    name: "no model list, and a refused key",
    play: ({ method }) => method === "GET" ? json({}, { status: 404 }) : refusal,
    says: ["error: It refuses the key: 401"],
  },
  {
    name: "nothing at the address",
    play: () => json({}, { status: 404 }),
    says: ["error: It answers 404 for its list of models and for its endpoint"],
  },
  {
    name: "a redirect",
    play: () => json({}, { status: 308, headers: { location: "https://elsewhere.example/v1/models?key=1" } }),
    says: ["error: It redirects (308) to https://elsewhere.example/v1/models, which is not followed"],
  },
  {
    name: "an HTML page",
    play: (request) => hasKey(request) ? { body: "<html>Welcome</html>" } : refusal,
    says: ["ok: It accepts the key", "warning: Its list of models has an unknown format"],
  },
  {
    name: "a failing host",
    play: () => json({}, { status: 503 }),
    says: ["warning: It answers 503 at the moment"],
  },
  {
    name: "a host without a key",
    keyless: true,
    play: () => json(LIST),
    says: ["ok: It needs no key for its list of models", "ok: It has every model"],
  },
  {
    name: "a host that requires a missing key",
    keyless: true,
    play: () => refusal,
    says: ["error: It needs a key: 401"],
  },
  {
    name: "Anthropic's list",
    vendor: "anthropic",
    play: ({ headers, path }) =>
      headers.get("x-api-key") === KEY && headers.has("anthropic-version") && path === "/v1/models?limit=1000"
        ? json({ data: [{ type: "model", id: "one" }], has_more: false })
        : refusal,
    says: ["ok: It accepts the key", "ok: It has every model"],
  },
  {
    name: "Google's list",
    vendor: "gemini",
    play: ({ headers }) =>
      headers.get("x-goog-api-key") === KEY ? json({ models: [{ name: "models/one" }] }) : json({}, { status: 403 }),
    says: ["ok: It accepts the key", "ok: It has every model"],
  },
  {
    name: "Google's refusal",
    vendor: "gemini",
    play: () =>
      json({ error: { code: 400, message: "API key not valid. Please pass a valid API key." } }, { status: 400 }),
    says: ["error: It refuses the key: 400"],
  },
];

Deno.test("an upstream is checked and the findings are reported", async (t) => {
  for (const { name, vendor = "openai-compatible", keyless, models, play, says } of CASES) {
    await t.step(name, async () => {
      await using server = startUpstream(play);
      const path = vendor === "anthropic" ? "" : "/v1";
      const host = hostOf({
        vendor,
        base_url: server.url + path,
        ...(keyless === undefined && { api_key: { env: "KEY" } }),
      });
      const { findings, aheadMs } = await look(host, models === undefined ? {} : { models });
      const entries = lines(findings);
      assertEquals(entries.length, says.length, entries.join("\n"));
      says.forEach((begin, index) => assertStringIncludes(entries[index] ?? "", begin));
      assert(Math.abs(aheadMs ?? 0) < 3_000);
      // Nothing that could be billed was asked for.
      for (const { body } of server.requests) assert(body === "" || body === "{}", body);
      for (const { level, advice } of findings) assertEquals(advice === undefined, level === "ok");
    });
  }
});

Deno.test("an address without its path is reported with the path of the vendor", async () => {
  await using server = startUpstream(() => json({}, { status: 404 }));
  const cases: [vendor: string, advice: string][] = [
    ["gemini", "Check base_url: a path such as /v1beta may be missing"],
    ["openai", "Check base_url: a path such as /v1 may be missing"],
    ["anthropic", "Check base_url: its path may be wrong"],
  ];
  for (const [vendor, advice] of cases) {
    const { findings } = await look(hostOf({ vendor, base_url: server.url, api_key: { env: "KEY" } }));
    assertEquals(findings.at(-1)?.advice, advice);
  }
});

Deno.test("a silent upstream is reported after the time limit, a slow one with its time", async () => {
  const never = Promise.withResolvers<void>();
  await using silent = startUpstream(() => json(LIST, { before: never.promise }));
  const host = hostOf({ vendor: "vllm", base_url: `${silent.url}/v1` });
  assertEquals(lines((await look(host, { timeoutMs: 150 })).findings), ["error: No answer within 0.15 s"]);

  await using late = startUpstream(() => json(LIST));
  // A clock that advances four seconds with each reading.
  let time = Date.now();
  const slow = { env: () => undefined, now: () => time += 4_000, timeoutMs: 5_000 };
  const { findings } = await checkUpstream("late", {
    host: hostOf({ vendor: "vllm", base_url: `${late.url}/v1` }),
    models: [],
    options: slow,
  });
  assertMatch(lines(findings)[0] ?? "", /^warning: It took 4.0 s/);
});

Deno.test("the transport of requests is reported", async () => {
  await using server = startUpstream(() => json(LIST));
  const base = { vendor: "openai-compatible", base_url: `${server.url}/v1`, timeouts: { connect_ms: 1000 } };
  // There is no proxy: only the findings before it matter.
  const proxied = { HTTP_PROXY: "http://proxy.test:1" };
  const cases: [row: JsonObject, env: Record<string, string>, says: string][] = [
    [{}, {}, "ok: Requests use http1"],
    [{ transport: "fetch" }, {}, "ok: Requests use fetch"],
    [{ transport: "fetch" }, proxied, "ok: Requests use fetch"],
    [{}, proxied, "ok: Requests use fetch, as they go through a proxy"],
    [{}, { ...proxied, NO_PROXY: "127.0.0.0/8" }, "ok: Requests use http1"],
    [{ transport: "http1" }, proxied, "warning: Requests use http1 and bypass the proxy of the environment"],
  ];
  for (const [row, env, says] of cases) {
    const host = hostOf({ ...base, ...row });
    const { findings } = await checkUpstream("host", {
      host,
      models: [],
      options: { env: (name) => env[name], now: Date.now, timeoutMs: 5_000 },
    });
    const reported = findings.filter(({ what }) => what.startsWith("Requests")).map(({ level, what }) =>
      `${level}: ${what}`
    );
    assertEquals(reported.map((line) => line.slice(0, says.length)), [says]);
  }
});

Deno.test("an unreachable upstream is reported with the failing step", async () => {
  const closed = await look(hostOf({ vendor: "vllm", base_url: `http://127.0.0.1:${CLOSED_PORT}/v1` }));
  assertMatch(lines(closed.findings)[0] ?? "", /^error: Cannot connect to 127.0.0.1:\d+/);
  const { findings: behindProxy } = await checkUpstream("host", {
    host: hostOf({ vendor: "vllm", base_url: `http://127.0.0.1:${CLOSED_PORT}/v1` }),
    models: [],
    options: {
      env: (name) => name === "HTTP_PROXY" ? "http://proxy.test:1" : undefined,
      now: Date.now,
      timeoutMs: 5_000,
    },
  });
  assertEquals(behindProxy.at(-1)?.advice, "Check base_url, the proxy and the state of the host");
  // A name with an empty label fails without a DNS query.
  const nameless = await look(hostOf({ vendor: "vllm", base_url: "http://no..name/v1" }));
  assertMatch(lines(nameless.findings)[0] ?? "", /^error: The name no..name cannot be resolved/);
});

Deno.test("an upstream with an untrusted certificate authority is reported", async () => {
  const files = new URL("../fixtures/tls/", import.meta.url);
  const tls = {
    cert: await Deno.readTextFile(new URL("server.pem", files)),
    key: await Deno.readTextFile(new URL("server.key", files)),
  };
  await using server = startUpstream(() => json(LIST), tls);
  const { findings } = await look(hostOf({ vendor: "vllm", base_url: `${server.url}/v1` }));
  assertMatch(lines(findings)[0] ?? "", /^error: TLS with 127.0.0.1:\d+ fails/);
  assertStringIncludes(findings.at(-1)?.advice ?? "", "DENO_CERT");
  assertEquals(server.requests.length, 0);
});

Deno.test("a host without TLS at an https address is not a matter of trust", async () => {
  await using server = startUpstream(() => json(LIST));
  const base_url = server.url.replace("http:", "https:");
  const { findings } = await look(hostOf({ vendor: "vllm", base_url }));
  const failed = findings.find(({ level }) => level === "error");
  assertMatch(failed?.what ?? "", /^TLS with 127\.0\.0\.1:\d+ fails/);
  assertEquals(
    failed?.advice,
    "The host does not speak TLS on this port: correct the port of base_url, or begin it with http://",
  );
});
