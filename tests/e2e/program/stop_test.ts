import { assert, assertEquals, assertLess, assertMatch, assertStringIncludes } from "@std/assert";
import { openSqliteStore } from "../../../lib/store/sqlite/store.ts";
import {
  inFolder,
  reuseGateways,
  reuseProcess,
  run,
  type Running,
  type RunningWithKey,
  startReused,
  startWithKey,
} from "../../support/program.ts";
import { json, startUpstream } from "../../upstream/mod.ts";
import { until } from "../../support/soon.ts";
import { plainModel, plainUpstream } from "../../support/plain_model.ts";

reuseProcess();
reuseGateways();

/** Open streams at the shutdown: some finish in time, the others never would. */
const STREAMS = 100;
const IMAGES = 10;
/** Drain times: the first is enough for all that finish, on a busy machine too. */
const DRAIN_SECONDS = { texts: 12, images: 13 };

/** A host whose answers end on command. */
function patientHost() {
  const finish = Promise.withResolvers<void>();
  const images = Promise.withResolvers<void>();
  let streams = 0;
  let jobs = 0;
  const frame = (content: string | undefined, finish_reason: string | null = null) =>
    `data: ${
      JSON.stringify({
        id: "1",
        object: "chat.completion.chunk",
        choices: [{ index: 0, delta: content === undefined ? {} : { content }, finish_reason }],
      })
    }\n\n`;
  const server = startUpstream(({ json: { model } }) => {
    if (model === "images") {
      jobs++;
      return json({ created: 1, data: [{ b64_json: PNG }] }, { before: images.promise });
    }
    streams++;
    const end = model === "short" ? finish.promise : new Promise(() => {});
    return { steps: [frame("Hello "), end, frame(undefined, "stop"), "data: [DONE]\n\n"] };
  });
  return {
    url: server.url,
    streams: () => streams,
    jobs: () => jobs,
    finish: () => finish.resolve(),
    paint: () => images.resolve(),
    async end() {
      finish.resolve();
      images.resolve();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** One transparent point. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

function fileWith(url: string, shutdown: Record<string, number>): string {
  const model = (name: string, images = false) =>
    plainModel({
      id: `acme/${name}`,
      pricing: { prompt: "0.001", completion: "0.001" },
      ...(images && { architecture: { output_modalities: ["image"] } }),
      targets: [{ upstream: "host", model: name }],
    });
  return JSON.stringify({
    upstreams: { host: plainUpstream(url) },
    models: [model("short"), model("long"), model("images", true)],
    groups: { default: { budget: { usd: "1000", period: "total" } } },
    shutdown,
  });
}

function asking({ origin, key }: RunningWithKey) {
  return (path: string, body: unknown, more: Record<string, string> = {}) =>
    fetch(`${origin}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "anthropic-version": "2023-06-01", ...more },
      body: JSON.stringify(body),
    });
}

const MESSAGES = [{ role: "user", content: "Hello" }];

Deno.test("SIGTERM with 100 streams and 10 image jobs: new requests refused, all ended properly, all entered", () =>
  inFolder(async (folder) => {
    const host = patientHost();
    await Deno.writeTextFile(
      `${folder}/sluice.jsonc`,
      fileWith(host.url, { drain_seconds: DRAIN_SECONDS.texts, images_drain_seconds: DRAIN_SECONDS.images }),
    );
    const gateway = await startWithKey([], { folder });
    const ask = asking(gateway);
    const streams = Array.from({ length: STREAMS }, async (_, index) => {
      const model = index % 2 === 0 ? "acme/short" : "acme/long";
      const [path, body] = index % 5 === 0
        ? ["/anthropic/v1/messages", { model, stream: true, max_tokens: 9, messages: MESSAGES }]
        : ["/v1/chat/completions", { model, stream: true, messages: MESSAGES }];
      const response = await ask(String(path), body);
      return `${response.status} ${model} ${path} ${await response.text()}`;
    });
    const images = Array.from({ length: IMAGES }, async (_, index) => {
      const response = await ask("/v1/images/generations", {
        model: "acme/images",
        prompt: "a dot",
        size: "1024x1024",
        quality: "low",
      }, index % 2 === 0 ? { "idempotency-key": `job-${index}` } : {});
      return `${response.status} ${await response.text()}`;
    });
    await until("all requests are under way", () => host.streams() === STREAMS && host.jobs() === IMAGES);

    const { port } = new URL(gateway.origin);
    const begin = performance.now();
    gateway.kill("SIGTERM");
    const refusedMs = await until(
      "refused",
      () =>
        Deno.connect({ hostname: "127.0.0.1", port: Number(port) }).then((connection) => {
          connection.close();
          return false;
        }, () => true),
    );
    host.finish();
    const texts = await Promise.all(streams);
    const painted = await Promise.all(images);
    const { code, err } = await gateway.ended;
    const endedMs = performance.now() - begin;
    await host.end();
    assertEquals(code, 0, err);
    assertLess(refusedMs, 20_000);
    assertLess(endedMs, DRAIN_SECONDS.images * 1_000 + 40_000);

    for (const text of texts) {
      assertMatch(text, /^200 /);
      const isNative = text.includes("/anthropic/");
      if (text.includes("acme/short")) assertStringIncludes(text, isNative ? "event: message_stop" : "data: [DONE]");
      else {
        assertStringIncludes(text, "shutting down");
        assertMatch(text, isNative ? /event: error\ndata: .*overloaded_error/ : /data: \{"error":/);
      }
    }
    for (const text of painted) assertMatch(text, /^503 .*shutting down/);

    const usage = await run(["usage", "--json", "--by", "model"], { folder });
    const rows = JSON.parse(usage.out).lines as { name: string; requests: number; failed: number; cost_usd: string }[];
    const sums = Object.fromEntries(rows.map((row) => [row.name, [row.requests, row.failed, row.cost_usd !== "0"]]));
    assertEquals(sums, {
      "acme/short": [STREAMS / 2, 0, true],
      "acme/long": [STREAMS / 2, STREAMS / 2, false],
      "acme/images": [IMAGES, IMAGES, false],
    });
    const audit = await run(["audit", "--json"], { folder });
    assertEquals(audit.code, 0, audit.out);
    const store = openSqliteStore(`${folder}/sluice.db`);
    assertEquals(await store.ledger.holds(), []);
    await store.close();
  }));

/** A connection of its own, to send a request in pieces. */
async function connected({ origin }: Running) {
  const { port } = new URL(origin);
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: Number(port) });
  const reader = connection.readable.pipeThrough(new TextDecoderStream()).getReader();
  const writer = connection.writable.getWriter();
  return {
    send: (text: string) => writer.write(new TextEncoder().encode(text)),
    async readUntil(pattern: RegExp) {
      let text = "";
      while (!pattern.test(text)) {
        const { done, value } = await reader.read();
        if (done) break;
        text += value;
      }
      return text;
    },
    async end() {
      await writer.close().catch(() => {});
      await reader.cancel().catch(() => {});
    },
  };
}

Deno.test("a body still arriving at SIGTERM is served, new requests are refused, and SIGHUP is ignored", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify({ shutdown: { drain_seconds: 60 } }));
    const gateway = await startWithKey([], { folder }, startReused);
    const { key } = gateway;
    const body = JSON.stringify({ model: "sluice/echo", messages: MESSAGES });
    const head = (path: string) =>
      `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${body.length}\r\n\r\n`;
    const slow = await connected(gateway);
    await slow.send(head("/v1/chat/completions") + body.slice(0, 20));
    const kept = await connected(gateway);
    const ready = "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n";
    await kept.send(ready);
    assertMatch(await kept.readUntil(/\{.*\}/), /^HTTP\/1\.1 200 /);
    gateway.kill("SIGTERM");
    // Over new connections: the answer to the first one asks to close it.
    // A node that shuts down is not ready, which is no failed request.
    await until("not ready", async () => {
      const { status, message } = await (await fetch(`${gateway.origin}/readyz`)).json();
      return status === "unavailable" && message === "unavailable: the gateway is shutting down";
    });
    // A reload that is asked for too late changes nothing.
    gateway.kill("SIGHUP");
    await kept.send(head("/v1/chat/completions") + body);
    const refused = await kept.readUntil(/\}\}/);
    assertMatch(refused, /^HTTP\/1\.1 503 /);
    assertMatch(refused, /\r\nconnection: close\r\n/i);
    assertMatch(refused, /\r\nretry-after: \d/i);
    assertStringIncludes(refused, "shutting down");
    const native = await fetch(`${gateway.origin}/anthropic/v1/messages`, { method: "POST", body: "{}" });
    assertEquals([native.status, (await native.json()).error.type], [529, "overloaded_error"]);

    await slow.send(body.slice(20));
    const answer = await slow.readUntil(/"usage"[^]*\}/);
    assertMatch(answer, /^HTTP\/1\.1 200 /);
    await Promise.all([slow.end(), kept.end()]);
    assertEquals((await gateway.ended).code, 0);
  }));

Deno.test("a second signal exits at once with code 1 and leaves the store intact", () =>
  inFolder(async (folder) => {
    const host = patientHost();
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, fileWith(host.url, {}));
    const gateway = await startWithKey([], { folder });
    const ask = asking(gateway);
    const answer = await ask("/v1/chat/completions", { model: "acme/long", stream: true, messages: MESSAGES });
    gateway.kill("SIGTERM");
    await until("refused", () =>
      fetch(`${gateway.origin}/healthz`).then((response) =>
        response.body?.cancel(), () => "refused")
        .then((outcome) => outcome === "refused"));
    // Two signals within 300 ms are one.
    await new Promise((resolve) =>
      setTimeout(resolve, 350)
    );
    const begin = performance.now();
    gateway.kill("SIGTERM");
    const { code } = await gateway.ended;
    assertLess(performance.now() - begin, 30_000);
    assertEquals(code, 1);
    await answer.text().catch(() => {});
    await host.end();
    assert((await run(["audit"], { folder })).code === 0);
  }));
