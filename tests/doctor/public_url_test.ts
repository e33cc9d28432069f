import { assert, assertEquals, assertMatch } from "@std/assert";
import { checkPublicUrl, type PublicUrlOptions } from "../../lib/doctor/public_url.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** A proxy in front of a gateway. */
interface Proxy extends AsyncDisposable {
  url: string;
}

interface ProxyOptions {
  hostname?: string;
  /** Transforms the answer's body. */
  pass?: (body: ReadableStream<Uint8Array>) => ReadableStream<Uint8Array>;
  /** Transforms X-Forwarded-For. */
  forwarded?: (sent: string | null, peer: string) => string | null;
}

function startProxy(origin: string, { hostname = "127.0.0.1", pass, forwarded }: ProxyOptions): Proxy {
  const server = Deno.serve({ hostname, port: 0, onListen() {} }, async (request, info) => {
    const headers = new Headers(request.headers);
    for (const name of ["host", "x-forwarded-for"]) headers.delete(name);
    const value = forwarded?.(request.headers.get("x-forwarded-for"), info.remoteAddr.hostname);
    if (typeof value === "string") headers.set("x-forwarded-for", value);
    const path = request.url.slice(request.url.indexOf("/", 8));
    const body = request.body === null ? null : await request.text();
    const { method, signal } = request;
    const response = await fetch(origin + path, { method, headers, body, signal });
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
    const passed = isStream && pass !== undefined && response.body !== null ? pass(response.body) : response.body;
    return new Response(passed, response);
  });
  const name = hostname.includes(":") ? `[${hostname}]` : hostname;
  return { url: `http://${name}:${server.addr.port}`, [Symbol.asyncDispose]: () => server.shutdown() };
}

/** Buffers until this many bytes have arrived, or the end. */
function hoarding(bytes: number): NonNullable<ProxyOptions["pass"]> {
  return (body) => {
    let held: Uint8Array[] = [];
    const flush = (controller: TransformStreamDefaultController<Uint8Array>) => {
      for (const piece of held) controller.enqueue(piece);
      held = [];
    };
    return body.pipeThrough(
      new TransformStream({
        transform(piece, controller) {
          held.push(piece);
          if (held.reduce((sum, { length }) => sum + length, 0) >= bytes) flush(controller);
        },
        flush,
      }),
    );
  };
}

/** Ends the answer after so much silence, in milliseconds. */
function impatient(ms: number): NonNullable<ProxyOptions["pass"]> {
  return (body) => {
    const reader = body.getReader();
    return new ReadableStream({
      async pull(controller) {
        let timer: ReturnType<typeof setTimeout> | undefined;
        const late = new Promise<undefined>((resolve) => timer = setTimeout(() => resolve(undefined), ms));
        const piece = await Promise.race([reader.read(), late]);
        clearTimeout(timer);
        if (piece?.value !== undefined) return controller.enqueue(piece.value);
        if (piece === undefined) await reader.cancel();
        controller.close();
      },
      cancel: () => reader.cancel(),
    });
  };
}

function gatewayOf(file: JsonObject = {}): TestGateway {
  return startGateway(file, { now: Date.now });
}

async function look(url: string, { key }: TestGateway["key"], more: Partial<PublicUrlOptions> = {}): Promise<string[]> {
  const found = await checkPublicUrl({ url, key, model: "sluice/echo", trusted: [], timeoutMs: 60_000, ...more });
  for (const { level, advice } of found) assertEquals(advice === undefined, level === "ok");
  return found.map(({ level, what }) => `${level}: ${what}`);
}

Deno.test("streaming and buffering proxies are distinguished", async () => {
  await using gateway = gatewayOf();
  await using open = startProxy(gateway.url, {});
  await using heaps = startProxy(gateway.url, { pass: hoarding(700) });
  await using all = startProxy(gateway.url, { pass: hoarding(1_000_000) });
  const urls = [gateway.url, open.url, heaps.url, all.url];
  const [own, passed, heaped, buffered] = await Promise.all(urls.map((url) => look(url, gateway.key)));
  assertEquals(own, ["ok: Events arrive one by one", "ok: The gateway sees the client's address (127.0.0.1)"]);
  assertEquals(passed?.[0], "ok: Events arrive one by one");
  assertEquals(heaped?.[0], "error: Events are buffered and arrive in bursts");
  assertEquals(buffered?.[0], "error: Events are buffered and arrive all at once");
});

Deno.test("keep-alives survive a long silence, or the time of the disconnect is reported", async () => {
  await using gateway = gatewayOf({ keep_alive_seconds: 1 });
  await using patient = startProxy(gateway.url, { pass: impatient(5_000) });
  await using hasty = startProxy(gateway.url, { pass: impatient(700) });
  const [kept, cut] = await Promise.all(
    [patient.url, hasty.url].map((url) => look(url, gateway.key, { longMs: 6_100 })),
  );
  // Keep-alives go out up to 0.2 s before the keep-alive time.
  assertMatch(
    kept?.at(-1) ?? "",
    /^ok: A stream survives 6\.1 s without text; the longest silence on the way was (0\.[89]|[1-9]\.\d) s$/,
  );
  assertMatch(cut?.at(-1) ?? "", /^error: A stream was cut off after \d\.\d s without text$/);
});

Deno.test("the client address seen by the gateway is reported", async () => {
  // The proxy is called over IPv6 and calls over IPv4, so that its address is not the client's.
  const hostname = "::1";
  await using trusting = gatewayOf({ trusted_proxies: ["127.0.0.1"] });
  await using plain = gatewayOf();
  await using appends = startProxy(trusting.url, {
    hostname,
    forwarded: (sent, peer) => [sent, peer].filter((hop) => hop !== null).join(", "),
  });
  await using repeats = startProxy(trusting.url, { hostname, forwarded: (sent, peer) => sent ?? peer });
  await using silent = startProxy(plain.url, { hostname });
  const [right, forged, proxy] = await Promise.all([
    look(appends.url, trusting.key),
    look(repeats.url, trusting.key),
    look(silent.url, plain.key),
  ]);
  assertEquals(right?.[1], "ok: The gateway sees the client's address (::1)");
  assertMatch(forged?.[1] ?? "", /^error: Clients can forge their address/);
  assertEquals(proxy?.[1], "warning: The gateway sees this client as 127.0.0.1, although it is ::1");
  const near = await look(trusting.url, trusting.key, { trusted: ["127.0.0.1"] });
  assertMatch(near[1] ?? "", /^warning: The client's address could not be tested/);
});

Deno.test("checks that cannot run are reported", async () => {
  await using gateway = gatewayOf();
  assertEquals(await checkPublicUrl({ url: gateway.url, model: "sluice/echo", trusted: [], timeoutMs: 5_000 }), [{
    about: gateway.url,
    level: "warning",
    what: "Streams were not tested: there is no key",
    advice: "Pass an API key of the gateway with --key",
  }]);
  const refused = await look(gateway.url, { id: "", key: "sk-wrong" });
  assertMatch(refused[0] ?? "", /^warning: Streams could not be tested: sluice\/echo answers 401$/);
  await using other = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => new Response("hello"));
  const elsewhere = await look(`http://127.0.0.1:${other.addr.port}`, gateway.key);
  assertEquals(elsewhere, ["error: Something other than a gateway answers there"]);
  await using missing = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () => new Response(null, { status: 404 }),
  );
  assert((await look(`http://127.0.0.1:${missing.addr.port}`, gateway.key))[0]?.includes("/healthz answers 404"));
});
