import { assert, assertEquals, assertMatch } from "@std/assert";
import { issueKey } from "../../../lib/access/keys.ts";
import type { LogEntry } from "../../../lib/log_events.ts";
import { addressed, model, oneModel, startGateway, type TestGateway } from "../../support/gateway.ts";
import { errorBody, prompt, PROTOCOLS, STREAMED, WHOLE } from "../../upstream/replies.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { events, json, startUpstream } from "../../upstream/mod.ts";
import { lint, readExposition, valueOf } from "./exposition.ts";
import { until } from "../../support/soon.ts";

const PRICED = { pricing: { prompt: "0.000001", completion: "0.000002" } };

/** Resolves when this number of requests has a log line. */
async function lines({ requestLines, gateway }: TestGateway, count: number): Promise<LogEntry[]> {
  await until("the lines", () => requestLines.length >= count);
  await gateway.ledger.flush();
  assertEquals(requestLines.length, count);
  return requestLines;
}

function idOf(response: Response): string {
  return response.headers.get("x-request-id")?.replace("req_", "") ?? "";
}

function priced(url: string, more = {}) {
  return {
    ...oneModel("chat", url),
    models: [model("acme/one", [{ upstream: "one", model: "real-one", protocol: "chat" }], { ...PRICED, ...more })],
  };
}

async function metricsOf({ url }: TestGateway): Promise<string> {
  return await (await fetch(`${url}/metrics`)).text();
}

Deno.test("an ended request has one log line that agrees with its entry, whole or streamed", async () => {
  for (const protocol of PROTOCOLS) {
    for (const stream of [false, true]) {
      await using server = startUpstream(() => stream ? events(STREAMED.chat.join("")) : json(WHOLE.chat));
      await using gateway = startGateway(priced(server.url));
      const request = prompt(protocol, { stream });
      const { body } = addressed(protocol, request);
      const response = await gateway.ask(protocol, request);
      const bytes = (await response.bytes()).length;
      const [line] = await lines(gateway, 1);
      assert(line !== undefined);
      const entry = await gateway.gateway.ledger.find(idOf(response));
      assert(entry !== undefined && entry.cost > 0n);
      const { first_ms, total_ms, cost, ...rest } = line;
      assertEquals(rest, {
        level: "info",
        event: "request",
        request_id: entry.id,
        method: "POST",
        route: line.route,
        endpoint: protocol,
        status: 200,
        ending: entry.ending,
        kind: undefined,
        code: undefined,
        param: undefined,
        key_id: gateway.key.id,
        key_name: "test",
        group: "default",
        client_address: undefined,
        model: "acme/one",
        model_answered: "acme/one",
        upstream_protocol: "chat",
        streamed: stream,
        dropped: undefined,
        bytes_in: body.length,
        bytes_out: bytes,
        upstream: "one",
        attempts: 1,
        tokens_prompt: entry.tokens.prompt,
        tokens_completion: entry.tokens.completion,
        images: undefined,
        source: "upstream",
      }, `${protocol} ${stream}`);
      assertEquals(cost, response.headers.get("x-sluice-cost") ?? cost);
      assertMatch(String(cost), /^0\.0000\d+$/);
      assert(Number(first_ms) >= 0 && Number(total_ms) >= Number(first_ms));
    }
  }
});

Deno.test("the line of a stream follows its end, and gauges count it until then", async () => {
  const end = Promise.withResolvers<void>();
  await using server = startUpstream(() =>
    events(STREAMED.chat.join(""), { chunkBytes: STREAMED.chat.join("").length - 20, beforeLast: end.promise })
  );
  await using gateway = startGateway(priced(server.url));
  const response = await gateway.ask("chat", prompt("chat", { stream: true }));
  const reader = response.body?.getReader();
  await reader?.read();
  assertEquals(gateway.requestLines, []);
  assertEquals(valueOf(await metricsOf(gateway), "sluice_open_streams"), "1");
  end.resolve();
  while (!(await reader?.read())?.done);
  const streamed = (await lines(gateway, 2)).find(({ streamed }) => streamed);
  assertEquals(streamed?.request_id, idOf(response));
  const text = await metricsOf(gateway);
  assertEquals(valueOf(text, "sluice_open_streams"), "0");
  // The request for the metrics itself.
  assertEquals(valueOf(text, "sluice_open_requests"), "1");
});

Deno.test("requests without a meter are logged with the pattern of their route, never their path", async () => {
  await using gateway = startGateway({ log: { client_address: true }, resource_limits: { json_body_bytes: 2048 } });
  const auth = { authorization: `Bearer ${gateway.key.key}` };
  const cases: [method: string, path: string, headers: Record<string, string>, body: string, expected: object][] = [
    ["GET", "/v1/models", auth, "", { route: "/v1/models", endpoint: "models", status: 200, ending: "done" }],
    ["GET", "/v1/models/canary-7", auth, "", { route: "/v1/models/[provider]", status: 404, kind: "not_found" }],
    ["GET", "/canary-7?canary=7", {}, "", { route: undefined, status: 404, kind: "not_found", endpoint: "other" }],
    ["GET", "/v1/models", {}, "", { status: 401, kind: "unauthenticated", key_id: undefined }],
    ["DELETE", "/v1/models", auth, "", { status: 405, kind: "method_not_allowed", method: "DELETE" }],
    ["BREW", "/healthz", {}, "", { status: 405, method: "other" }],
    ["HEAD", "/healthz", {}, "", { status: 200, method: "HEAD", endpoint: "health", bytes_out: 0 }],
    ["POST", "/v1/chat/completions", auth, "x".repeat(3000), { status: 413, kind: "too_large", ending: "refused" }],
    ["POST", "/v1/chat/completions", auth, '{"model":"canary-7","messages":[]}', { status: 400 }],
    ["POST", "/v1/chat/completions", auth, '{"model":"canary-7","messages":[{"role":"user","content":"canary-7"}]}', {
      status: 404,
      model: "other",
      code: "model_not_found",
      param: "model",
    }],
    [
      "POST",
      "/v1/chat/completions",
      auth,
      '{"model":"acme/one","messages":[{"role":"user","content":"Hi"}],"temperature":3}',
      { status: 400, param: "temperature" },
    ],
    ["POST", "/v1/chat/completions", auth, '{"model":"acme/one","messages":[{"role":"canary"}]}', {
      status: 400,
      param: "messages.other",
    }],
  ];
  for (const [at, [method, path, headers, body, expected]] of cases.entries()) {
    const response = await fetch(gateway.url + path, { method, headers, ...(body !== "" && { body }) });
    await response.body?.cancel();
    const line = (await lines(gateway, at + 1))[at];
    for (const [name, value] of Object.entries(expected)) assertEquals(line?.[name], value, `${path} ${name}`);
    assertEquals([line?.event, line?.client_address, line?.request_id], ["request", "127.0.0.1", idOf(response)]);
  }
  assert(!JSON.stringify(gateway.requestLines).includes("canary"));
  assert(!(await metricsOf(gateway)).includes("canary"));
});

Deno.test("failures are logged by kind: before or within the answer, of the upstream or the client", async () => {
  const frames = STREAMED.chat;
  let play = () => json(errorBody("chat", "busy"), { status: 503 });
  await using server = startUpstream(() => play());
  await using gateway = startGateway(priced(server.url));
  await (await gateway.ask("chat", prompt("chat"))).text();
  play = () => events(frames.slice(0, 2).join(""));
  await (await gateway.ask("chat", prompt("chat", { stream: true }))).text();
  const hang = Promise.withResolvers<void>();
  play = () => events(frames.join(""), { chunkBytes: frames.join("").length - 20, beforeLast: hang.promise });
  const left = await gateway.ask("chat", prompt("chat", { stream: true }));
  const reader = left.body?.getReader();
  await reader?.read();
  await reader?.cancel();
  hang.resolve();
  const [before, within, gone] = await lines(gateway, 3);
  assertEquals([before?.status, before?.level, before?.ending], [503, "warn", "failed"]);
  assert(before?.kind !== undefined);
  assertEquals([within?.status, within?.kind, within?.ending, within?.level], [200, "upstream", "failed", "warn"]);
  assertEquals([gone?.ending, gone?.kind], ["client_disconnected", undefined]);
});

Deno.test("a ledger that cannot be written is logged with the path of the file at fault, if there is one", async () => {
  const [sqlite, postgres, journal] = ["sqlite:./full/sluice.db", "postgres://host/sluice", "./full/journal"];
  const full = new Error("No space left on device");
  const cases: [store: string, cause: Error, event: string, fault: string | undefined, path: string | undefined][] = [
    [sqlite, full, "ledger_failed", "disk full", "./full/sluice.db"],
    [postgres, full, "ledger_failed", "disk full", journal],
    [postgres, new Error("Cannot queue entries: the journal is full"), "ledger_failed", "journal full", journal],
    [postgres, new RangeError("Cannot store the entry"), "entry_not_written", undefined, undefined],
  ];
  for (const [address, cause, event, fault, path] of cases) {
    const store = openMemoryStore();
    let isFull = true;
    const append: typeof store.ledger.append = (entries) =>
      isFull ? Promise.reject(cause) : store.ledger.append(entries);
    await using server = startUpstream(() => json(WHOLE.chat));
    await using gateway = startGateway(
      { ...priced(server.url), store: address, nodes: { journal } },
      { store: { ...store, ledger: { ...store.ledger, append } } },
    );
    const asked = gateway.ask("chat", prompt("chat"));
    await until("the line", () => gateway.logs.length > 0);
    isFull = false;
    await (await asked).text();
    assertEquals(gateway.logs.map(({ event, fault, path }) => [event, fault, path])[0], [event, fault, path]);
  }
});

Deno.test("log.requests suppresses lines, and metrics still count", async () => {
  const cases = [["all", 2], ["errors", 1], ["none", 0]] as const;
  for (const [requests, expected] of cases) {
    await using gateway = startGateway({ log: { requests } });
    await (await fetch(`${gateway.url}/healthz`)).text();
    await (await fetch(`${gateway.url}/no-such`)).text();
    assertEquals((await lines(gateway, expected)).length, expected);
    const text = await metricsOf(gateway);
    const labels = { endpoint: "other", model: "", upstream: "", status_class: "4xx", ending: "refused" };
    assertEquals(valueOf(text, "sluice_requests_total", labels), "1");
  }
});

Deno.test("log.probes suppresses only successful health and metrics requests", async () => {
  for (const [probes, expected] of [[true, 4], [false, 2]] as const) {
    await using gateway = startGateway({ log: { probes } });
    for (const path of ["/healthz", "/metrics", "/v1/models", "/no-such"]) {
      await (await fetch(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${gateway.key.key}` } })).text();
    }
    const endpoints = (await lines(gateway, expected)).map(({ endpoint }) => endpoint);
    assertEquals(endpoints, probes ? ["health", "metrics", "models", "other"] : ["models", "other"]);
    await (await fetch(`${gateway.url}/healthz`, { method: "POST" })).text();
    assertEquals((await lines(gateway, expected + 1)).at(-1)?.status, 405, "what is refused is told");
  }
});

Deno.test("metrics are well-formed and agree exactly with the ledger", async () => {
  await using server = startUpstream(() => json(WHOLE.chat));
  await using gateway = startGateway({
    ...priced(server.url, { limits: { requests_per_minute: 20 } }),
    groups: { default: { key_limits: { requests_per_minute: 1, report_only: true } } },
  });
  let cost = 0n;
  let statuses = 0;
  for (let i = 0; i < 25; i++) {
    const response = await gateway.ask("chat", prompt("chat", i === 3 ? { top_k: 3, logit_bias: {} } : {}));
    await response.body?.cancel();
    statuses += response.status === 200 ? 1 : 0;
    cost += (await gateway.gateway.ledger.find(idOf(response)))?.cost ?? 0n;
  }
  await lines(gateway, 25);
  const text = await metricsOf(gateway);
  assertEquals(lint(readExposition(text)), []);
  assertEquals(statuses, 20);
  const shown = valueOf(text, "sluice_cost_usd_total", { group: "default", model: "acme/one" }) ?? "";
  assertEquals(shown, `0.${String(cost).padStart(12, "0").replace(/0+$/, "")}`);
  assertEquals(valueOf(text, "sluice_tokens_total", { model: "acme/one", class: "completion" }), "40");
  assertEquals(valueOf(text, "sluice_limit_refusals_total", { owner: "model", unit: "requests" }), "5");
  assertEquals(valueOf(text, "sluice_report_only_exceeded_total"), "19");
  assertEquals(valueOf(text, "sluice_errors_total", { kind: "limited" }), "5");
  const done = { endpoint: "chat", model: "acme/one", upstream: "one", status_class: "2xx", ending: "end" };
  assertEquals(valueOf(text, "sluice_requests_total", done), "20");
  assertEquals(valueOf(text, "sluice_first_event_seconds_count", { endpoint: "chat" }), "20");
  assertEquals(valueOf(text, "sluice_request_body_bytes"), "0");
  assertEquals([valueOf(text, "sluice_ledger_healthy"), valueOf(text, "sluice_config_version")], ["1", "1"]);
});

Deno.test("clients cannot create series: unknown models and members share one", async () => {
  await using gateway = startGateway({});
  for (let i = 0; i < 50; i++) {
    const body = { model: `no/such-${i}`, messages: [{ role: "user", content: "x" }], [`member_${i}`]: 1 };
    await (await gateway.ask("chat", body)).text();
    const echo = { ...body, model: "sluice/echo" };
    await (await gateway.ask("chat", echo)).text();
  }
  const text = await metricsOf(gateway);
  assert(!/such-\d|member_\d/.test(text));
  assert(!/such-\d|member_\d/.test(JSON.stringify(gateway.requestLines)));
  assert(text.split("\n").length < 250);
});

Deno.test("/metrics is open to this machine without a proxy, to the admin key, or public", async () => {
  const env = { admin: { key: { env: "UPSTREAM_KEY" } } };
  const cases: [file: object, headers: Record<string, string>, status: number][] = [
    [{}, {}, 200],
    [{}, { "x-forwarded-for": "192.0.2.1" }, 404],
    [{}, { via: "1.1 proxy" }, 404],
    [{ metrics: { public: true } }, { "x-forwarded-for": "192.0.2.1" }, 200],
    [env, {}, 401],
    [env, { authorization: "Bearer upstream-key-0123456789" }, 200],
    [env, { authorization: "Bearer upstream-key-012345678x" }, 401],
    [{ ...env, metrics: { public: true } }, {}, 200],
  ];
  for (const [file, headers, status] of cases) {
    await using gateway = startGateway({ ...file });
    const response = await fetch(`${gateway.url}/metrics`, { headers });
    await response.body?.cancel();
    // The test's gateway has one listener for clients: with an admin key configured, the key is required there, too.
    assertEquals(response.status, status, JSON.stringify([file, headers]));
    if (status === 200) {
      assertEquals(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    }
  }
});

Deno.test("the line of a refused request names the key, if it is one", async () => {
  await using server = startUpstream(() => json(WHOLE.chat));
  await using gateway = startGateway({
    ...priced(server.url),
    groups: { default: {}, models: { endpoints: ["models"] } },
  });
  const expired = issueKey({ name: "expired", group: "default", now: 0 });
  const gone = issueKey({ name: "gone", group: "gone", now: 0 });
  for (const { record } of [{ record: { ...expired.record, expiresAt: 0 } }, gone]) {
    await gateway.store.keys.add(record);
  }
  const keys = {
    expired: { id: expired.record.id, key: expired.key },
    gone: { id: gone.record.id, key: gone.key },
    elsewhere: await gateway.addKey({ rules: { ips: ["10.0.0.1"] } }),
    narrow: await gateway.addKey({ group: "models" }),
    unknown: { id: undefined, key: `${gateway.key.key}x` },
  };
  for (const { id = "", key } of Object.values(keys)) {
    const response = await gateway.ask("chat", prompt("chat"), { key: { id, key } });
    await response.text();
  }
  const found = await lines(gateway, 5);
  assertEquals(found.map(({ key_id }) => key_id), Object.values(keys).map(({ id }) => id));
  assertEquals(found.map(({ status }) => status), [401, 403, 403, 403, 401]);
  assertEquals([found[1]?.key_name, found[1]?.group], ["gone", "gone"]);
});
