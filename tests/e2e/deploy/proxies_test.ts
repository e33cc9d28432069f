import { assert, assertEquals, assertMatch } from "@std/assert";
import { STREAMED, WHOLE } from "../../upstream/replies.ts";
import { events, json, startUpstream } from "../../upstream/mod.ts";
import { readAnswers } from "./probes.ts";
import { AUTHORITY, BODY_GAP_SECONDS, isInstalled, PROXIES, SILENCE_SECONDS, startProxy } from "./programs.ts";
import { eventually } from "../../support/soon.ts";
import { close, connect, createClient, hear, send, startWatched, type Watched } from "./stack.ts";

/** More than any proxy here needs for an immediate reaction, in milliseconds. */
const PATIENCE_MS = 30_000;
/** Concurrent slow clients. */
const SLOW_CLIENTS = 50;

const ASK = { model: "acme/one", messages: [{ role: "user", content: "hello" }] };

/** Sends a request with certificate checks, over HTTP/2 where the proxy supports it. */
async function ask(
  port: number,
  { key, body, client }: { key: string; body: unknown; client: Deno.HttpClient },
): Promise<Response> {
  return await fetch(`https://localhost:${port}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    client,
  });
}

/** One request by hand, and its answer. */
async function exchange(
  port: number,
  text: string,
  silenceMs = PATIENCE_MS,
): Promise<{ status: number | undefined; text: string }> {
  const connection = await connect(port, { tls: true });
  try {
    await send(connection, text);
    const heard = await hear(connection, {
      silenceMs,
      // An upgrade has no end.
      until: (text) => text.startsWith("HTTP/1.1 101 ") || readAnswers(text).answers.length > 0,
    });
    return { status: readAnswers(heard.text).answers[0]?.status, text: heard.text };
  } finally {
    close(connection);
  }
}

/** A request's head. */
function head(start: string, key: string, more: string[] = []): string {
  return [`${start} HTTP/1.1`, "Host: localhost", `Authorization: Bearer ${key}`, ...more, "", ""].join("\r\n");
}

function models(key: string, more?: string[]): string {
  return head("GET /v1/models", key, more);
}

/** Milliseconds until the peer closed, and the text received. */
async function untilClosed(connection: Deno.Conn): Promise<{ ms: number; text: string; closed: boolean }> {
  const begun = performance.now();
  const heard = await hear(connection, { silenceMs: PATIENCE_MS });
  return { ms: performance.now() - begun, ...heard };
}

for (const kind of PROXIES) {
  const ignore = !isInstalled(kind.name);

  Deno.test(`behind ${kind.name} the events of a stream arrive one by one, also over HTTP/2`, { ignore }, async () => {
    const first = new TextEncoder().encode(STREAMED.chat.slice(0, 2).join("")).length;
    const rest = Promise.withResolvers<void>();
    await using upstream = startUpstream(() =>
      events(STREAMED.chat.join(""), { chunkBytes: first, beforeLast: rest.promise })
    );
    await using gateway = await startWatched(upstream.url);
    await using proxy = await startProxy(kind, gateway.port);
    using client = createClient();
    const response = await ask(proxy.port, { key: gateway.key, body: { ...ASK, stream: true }, client });
    assertEquals([response.status, response.headers.get("content-encoding")], [200, null]);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    // The upstream continues only after this has arrived: a buffering proxy would wait forever.
    const timer = setTimeout(() => void reader?.cancel(), PATIENCE_MS);
    while (!text.includes("data: ")) {
      const { done, value } = await reader?.read() ?? { done: true };
      assert(!done, "the first event was held back");
      text += value;
    }
    clearTimeout(timer);
    rest.resolve();
    for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) text += read.value;
    assertMatch(text, /data: \[DONE\]\n\n$/);
  });

  Deno.test({
    name: `behind ${kind.name} keep-alives preserve a silent stream, and a silent whole answer is cut at its limit`,
    ignore,
    async fn() {
      const late = Promise.withResolvers<void>();
      let arrived = 0;
      await using upstream = startUpstream(({ body }) => {
        if (++arrived === asks.length) setTimeout(late.resolve, (SILENCE_SECONDS + 2) * 1000);
        return body.includes('"stream":true')
          ? events(STREAMED.chat.join(""), { before: late.promise })
          : json(WHOLE.chat, { before: late.promise });
      });
      await using gateway = await startWatched(upstream.url);
      await using proxy = await startProxy(kind, gateway.port);
      using client = createClient();
      using old = Deno.createHttpClient({ caCerts: [AUTHORITY], http2: false });
      const asks = [[true, client], [true, old], [false, client]] as const;
      const [streamed, streamedOld, whole] = await Promise.all(asks.map(async ([stream, client]) => {
        const response = await ask(proxy.port, { key: gateway.key, body: { ...ASK, stream }, client });
        return { status: response.status, text: await response.text() };
      }));
      await late.promise;
      assertEquals([streamed?.status, streamedOld?.text.replace(/^(: .*\n+)+/, "")], [
        200,
        streamed?.text.replace(/^(: .*\n+)+/, ""),
      ]);
      assertMatch(streamed?.text ?? "", /^(: .*\n+){3,}data: [^]*data: \[DONE\]\n\n$/);
      // Shows that the limit is in force: at its real length, 960 s, it is longer than the gateway's own.
      assertEquals(whole?.status, 504);
    },
  });

  Deno.test({
    name: `behind ${kind.name} slow heads and slow bodies are cut off while others are served`,
    ignore,
    async fn() {
      await using upstream = startUpstream(() => json(WHOLE.chat));
      // The gateway's limit: Caddy has none for silence within a body.
      await using gateway = await startWatched(upstream.url, {
        resource_limits: { body_gap_ms: BODY_GAP_SECONDS * 1000 },
      });
      await using proxy = await startProxy(kind, gateway.port);
      const slowHead = `GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX-Slow: `;
      const slowBody = head("POST /v1/chat/completions", gateway.key, ["Content-Length: 1000"]) + '{"model":';
      const slow = await Promise.all(
        Array.from({ length: SLOW_CLIENTS }, async (_, at) => {
          const connection = await connect(proxy.port, { tls: true });
          await send(connection, at % 2 === 0 ? slowHead : slowBody);
          return connection;
        }),
      );
      const ends = slow.map(untilClosed);
      // A drop now and then does not help.
      const dropping = setInterval(() => {
        for (const [at, connection] of slow.entries()) if (at % 4 === 0) void send(connection, "a");
      }, 200);
      try {
        for (let at = 0; at < 20; at++) {
          const begun = performance.now();
          assertEquals((await exchange(proxy.port, models(gateway.key))).status, 200);
          assert(performance.now() - begun < PATIENCE_MS, `${performance.now() - begun} ms`);
        }
        for (const { ms, text, closed } of await Promise.all(ends)) {
          assert(closed, `${ms} ms: ${text}`);
          // Caddy answers 504 to an incomplete body.
          assertMatch(text, /^$|^HTTP\/1\.1 (400|408|504) /);
        }
      } finally {
        clearInterval(dropping);
        slow.forEach(close);
      }
      assertEquals(upstream.requests.length, 0);
    },
  });

  Deno.test({
    name: `behind ${kind.name}: body sizes, client addresses, upgrades, internal paths and literal targets`,
    ignore,
    async fn() {
      await using upstream = startUpstream(() => json(WHOLE.chat));
      await using gateway = await startWatched(upstream.url);
      await using proxy = await startProxy(kind, gateway.port);
      const get = async (path: string) => (await exchange(proxy.port, head(`GET ${path}`, gateway.key))).status;

      const large = head("POST /v1/images/edits", gateway.key, [
        "Content-Type: multipart/form-data; boundary=x",
        "Content-Length: 70000000",
      ]);
      // Go's proxies pass a request on when some of its body is there.
      assertEquals((await exchange(proxy.port, `${large}--x\r\n${"a".repeat(100_000)}`)).status, 413);
      const header = await exchange(proxy.port, models(gateway.key, [`X-Long: ${"a".repeat(40_000)}`]), 5_000);
      assert([400, 431, undefined].includes(header.status), header.text);

      // The gateway sees the address of the client, and no client can forge another.
      assertEquals((await exchange(proxy.port, models(gateway.outsideKey))).status, 200);
      for (const claim of ["192.0.2.1", "127.0.0.1", "192.0.2.1, 127.0.0.1", "garbage"]) {
        const claimed = await exchange(proxy.port, models(gateway.outsideKey, [`X-Forwarded-For: ${claim}`]));
        assertEquals(claimed.status, 200, claim);
      }
      const direct = await fetch(`http://127.0.0.1:${gateway.port}/v1/models`, {
        headers: { authorization: `Bearer ${gateway.outsideKey}` },
      });
      await direct.body?.cancel();
      assertEquals(direct.status, 403);

      const upgrade = [
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
      ];
      const upgraded = await exchange(proxy.port, head("GET /v1/responses", gateway.key, upgrade));
      assert(upgraded.text.startsWith("HTTP/1.1 101 "), upgraded.text);

      for (
        const path of [
          "/admin/v1/keys",
          "/%61dmin/v1/keys",
          "/x/../admin/v1/keys",
          "//admin/v1/keys",
          "/metrics",
          "/readyz",
        ]
      ) assert([400, 404].includes(await get(path) ?? 0), path);
      const inside = /\/(%61|a)dmin|\/metrics|\/readyz/;
      assertEquals(
        gateway.seen.filter((line) => inside.test(line) && !line.includes("/../") && !line.includes("//admin")),
        [],
      );

      assertEquals(await get("/healthz"), 200);
      // The encoding of the slash in a model's name is unchanged.
      const before = gateway.seen.length;
      assertEquals(await get("/v1/models/acme%2Fone"), 200);
      assertMatch(gateway.seen[before] ?? "", /\/v1\/models\/acme%2Fone$/);
      assertEquals(upstream.requests.length, 0);
    },
  });

  Deno.test(`behind ${kind.name} a disconnect cancels the upstream's answer`, { ignore }, async () => {
    await using upstream = startUpstream(() => events(STREAMED.chat[0] ?? "", { times: 1_000_000, chunkBytes: 200 }));
    await using gateway: Watched = await startWatched(upstream.url);
    await using proxy = await startProxy(kind, gateway.port);
    using client = createClient();
    const response = await ask(proxy.port, { key: gateway.key, body: { ...ASK, stream: true }, client });
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    const { promise, resolve } = Promise.withResolvers<string>();
    const timer = setTimeout(() => resolve("still there"), PATIENCE_MS);
    assertEquals(await Promise.race([upstream.requests[0]?.gone.then(() => "gone"), promise]), "gone");
    clearTimeout(timer);
  });

  Deno.test({
    name: `behind ${kind.name} a body declared as too large is 413 in the shape of the protocol, also over HTTP/2`,
    ignore,
    async fn() {
      await using upstream = startUpstream(() => json(WHOLE.chat));
      const paths = [
        { path: "/v1/chat/completions", top: undefined, type: "invalid_request_error", code: "request_too_large" },
        { path: "/anthropic/v1/messages", top: "error", type: "request_too_large", code: undefined },
      ];
      const jsonBytes = 10_000_000;
      await using gateway = await startWatched(upstream.url, { resource_limits: { json_body_bytes: jsonBytes } });
      await using proxy = await startProxy(kind, gateway.port);
      for (const http2 of [true, false]) {
        using client = Deno.createHttpClient({ caCerts: [AUTHORITY], http2, http1: !http2 });
        // A body above the gateway's limit, and one above the proxy's, if it has a limit.
        for (const bytes of [jsonBytes + 1, 67_108_864 + 1]) {
          for (const { path, top, type, code } of paths) {
            const what = `${http2 ? "HTTP/2" : "HTTP/1.1"} ${path} ${bytes}`;
            // A proxy that a busy machine starves for a second during the body cuts the connection.
            await eventually(async () => {
              const response = await fetch(`https://localhost:${proxy.port}${path}`, {
                method: "POST",
                headers: {
                  authorization: `Bearer ${gateway.key}`,
                  "content-type": "application/json",
                  "anthropic-version": "2023-06-01",
                },
                body: new Uint8Array(bytes),
                client,
              });
              assertEquals([response.status, response.headers.get("content-type")], [413, "application/json"], what);
              const answer = await response.json();
              assertEquals([answer.type, answer.error.type, answer.error.code], [top, type, code], what);
              const [, limit] = /^Cannot read the body: it has more than (\d+) bytes$/.exec(answer.error.message) ?? [];
              assert(Number(limit) < bytes, answer.error.message);
            });
          }
        }
      }
    },
  });
}
