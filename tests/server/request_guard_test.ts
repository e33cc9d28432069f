import { assert, assertEquals, assertThrows } from "@std/assert";
import { issueKey, mintKey } from "../../lib/access/keys.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { LogEntry } from "../../lib/log_events.ts";
import { beginRequest, createRatedLog } from "../../lib/server/client_tracker.ts";
import { ADMIN_KEY, startKeyed } from "../support/keyed_gateway.ts";
import { exchange, head, post, startServer } from "./serve.ts";
import { until } from "../support/soon.ts";

const BEHIND_PROXY = { trusted_proxies: ["127.0.0.1"] };

Deno.test("the head is limited: 100 headers, 16,384 bytes, and ASCII where it is read", async () => {
  await using server = startServer();
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`x-h${at}`, "v"]));
  const cases: [headers: Record<string, string>, status: number][] = [
    [many(99), 200],
    [many(100), 400],
    [{ "x-long": "a".repeat(16_000) }, 200],
    [{ "x-long": "a".repeat(16_400) }, 400],
    [Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`x-h${at}`, "v".repeat(400)])), 400],
    [{ "x-title": "Gr\xf6\xdfe" }, 200],
    [{ authorization: "Bearer \xe9" }, 400],
    [{ "x-api-key": "\xff" }, 400],
    [{ "content-type": "application/\xfcjson" }, 400],
    [{ "x-forwarded-for": "\xa01.2.3.4" }, 400],
    [{ "x-nothing": "\x01" }, 400],
  ];
  for (const [headers, status] of cases) {
    const answer = await exchange(server.port, [head("GET /public", headers)]);
    const what = JSON.stringify(headers).slice(0, 80);
    assertEquals(answer.status, status, what);
    if (status === 400 && answer.body !== "") {
      assertEquals(JSON.parse(answer.body).error.type, "invalid_request_error", what);
    }
  }
  assertEquals((await exchange(server.port, [post("/v1/echo", "{}")])).status, 200);
});

Deno.test("after 20 wrong keys, wrong keys of an address are throttled, and a valid new key passes", async () => {
  await using gateway = startKeyed({ admin: { key: { env: "ADMIN_KEY" } }, ...BEHIND_PROXY });
  const ask = async (from: string, headers: Record<string, string>, path = "/v1/models") => {
    const response = await fetch(gateway.url + path, { headers: { "x-forwarded-for": from, ...headers } });
    const { status } = response;
    return { status, retryAfter: Number(response.headers.get("retry-after")), body: await response.json() };
  };
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
  const flood = async (from: string, count: number) => {
    for (let at = 0; at < count; at++) {
      // Some have the form and the checksum of a key, others do not.
      const { status, retryAfter, body } = await ask(from, bearer(at % 2 === 0 ? mintKey() : `wrong-${at}`));
      assertEquals(status, at < 20 ? 401 : 429);
      if (status === 429) {
        assertEquals([retryAfter > 0 && retryAfter <= 60, body.error.code], [true, "rate_limit_exceeded"]);
      }
    }
  };
  const NATIVE = "/anthropic/v1/models";
  await flood("192.0.2.1", 60);
  // New keys from this address, in both protocols, and an operator's key.
  assertEquals((await ask("192.0.2.1", bearer(gateway.keys.good))).status, 200);
  assertEquals((await ask("192.0.2.1", { "x-api-key": gateway.keys.good }, NATIVE)).status, 200);
  assertEquals((await ask("192.0.2.1", bearer(ADMIN_KEY), "/admin/v1/keys")).status, 200);
  // A valid key without permission gets the reason, and does not count as a wrong one.
  assertEquals((await ask("192.0.2.1", bearer(gateway.keys.disabled))).status, 403);
  // One without a key does not try any.
  assertEquals((await ask("192.0.2.1", {})).status, 401);
  const native = await ask("192.0.2.1", { "x-api-key": mintKey() }, NATIVE);
  assertEquals([native.status, native.body.type, native.body.error.type], [429, "error", "rate_limit_error"]);
  const admin = await ask("192.0.2.1", bearer("wrong"), "/admin/v1/keys");
  assertEquals([admin.status, admin.retryAfter > 0], [429, true]);
  assertEquals((await ask("192.0.2.2", bearer(mintKey()))).status, 401);

  // Of IPv6, a network of 64 bits is one client.
  await flood("2001:db8::1", 20);
  assertEquals((await ask("2001:db8::2", bearer(mintKey()))).status, 429);
  assertEquals((await ask("2001:db8::2", bearer(gateway.keys.good))).status, 200);
  assertEquals((await ask("2001:db8:0:1::1", bearer(mintKey()))).status, 401);
  const refused = gateway.logs.filter(({ event }) => event === "address_refused").map(({ address }) => address);
  assertEquals(refused, ["192.0.2.1", "2001:db8::1"]);
});

Deno.test("wrong keys in the query count as well, however the URL is written", async () => {
  await using gateway = startKeyed(BEHIND_PROXY);
  const urls = [
    "/v1beta/models?key=",
    "/v1beta/models?k%65y=",
    "/v1bet%61/models?x=1&key=",
    "/v1beta/acme/one:generateContent?key=",
    "/v1/models/acme/one:countTokens?key=",
  ];
  const statuses = [];
  for (let at = 0; at <= 20; at++) {
    const url = urls[at % urls.length] ?? "";
    const response = await fetch(`${gateway.url}${url}${mintKey()}`, {
      method: url.includes(":") ? "POST" : "GET",
      headers: { "x-forwarded-for": "192.0.2.1" },
    });
    statuses.push(response.status);
    await response.body?.cancel();
  }
  assertEquals(statuses, [...Array.from({ length: 20 }, () => 401), 429]);
});

Deno.test("a flood of wrong admin keys logs 60 lines a minute, and the right key still works", async () => {
  await using gateway = startKeyed({ admin: { key: { env: "ADMIN_KEY" } }, ...BEHIND_PROXY });
  const statuses: number[] = [];
  const ask = async (from: string, key: string) => {
    const headers = { authorization: `Bearer ${key}`, "x-forwarded-for": from };
    const response = await fetch(`${gateway.adminUrl}/admin/v1/keys`, { headers });
    await response.body?.cancel();
    return response.status;
  };
  for (let at = 0; at < 300; at++) statuses.push(await ask(`192.0.2.${at % 10}`, `wrong-${at}`));
  assertEquals([200, 100].map((count, at) => statuses.filter((status) => status === [401, 429][at]).length === count), [
    true,
    true,
  ]);
  assertEquals(gateway.logs.length, 60);
  assertEquals(await ask("192.0.2.99", ADMIN_KEY), 200);
  assert(!JSON.stringify(gateway.logs).includes("wrong-"));
});

Deno.test("wrong admin keys from this machine are throttled, and neither the right one nor clients' keys are", async () => {
  await using gateway = startKeyed({ admin: { key: { env: "ADMIN_KEY" } } });
  const ask = async (path: string, key: string) => {
    const response = await fetch(gateway.url + path, { headers: { authorization: `Bearer ${key}` } });
    await response.body?.cancel();
    return response.status;
  };
  const statuses: number[] = [];
  for (let at = 0; at < 25; at++) statuses.push(await ask("/admin/v1/keys", `wrong-${at}`));
  assertEquals(statuses, [...Array(20).fill(401), ...Array(5).fill(429)]);
  assertEquals(await ask("/admin/v1/keys", ADMIN_KEY), 200);
  assertEquals(await ask("/v1/models", "wrong"), 401);
  assertEquals(gateway.logs.filter(({ event }) => event === "address_refused").length, 1);
});

Deno.test("failed unauthenticated requests log 600 lines a minute, separately from those of keys", async () => {
  await using gateway = startKeyed({ log: { requests: "all" } });
  const lines = () => gateway.requestLines.length;
  const before = lines();
  const ask = async (key: string, path = "/v1/models") => {
    const response = await fetch(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${key}` } });
    await response.body?.cancel();
    return response.status;
  };
  // The log line is written when the server has finished the answer; the client may have it before.
  const settled = async (count: number) => {
    await until(`${count} lines`, () => lines() - before >= count);
    return lines() - before;
  };
  for (let at = 0; at < 620; at++) assertEquals(await ask("nobody"), 401);
  assertEquals(await settled(600), 600);
  for (let at = 0; at < 10; at++) assertEquals(await ask(gateway.keys.good), 200);
  assertEquals(await ask(gateway.keys.good, "/v1/models/nobody/nothing"), 404);
  assertEquals(await settled(611), 611);
});

Deno.test("log lines are limited per minute, and the next minute reports the suppressed number", () => {
  let now = 0;
  const rated = createRatedLog({ monotonic: () => now, limit: 60 });
  const lines: LogEntry[] = [];
  const write = (times: number, event: "admin_refused" | "address_refused" = "admin_refused") => {
    for (let at = 0; at < times; at++) rated({ level: "warn", event }, (entry) => lines.push(entry));
  };
  write(100);
  assertEquals(lines.length, 60);
  now = 59_999;
  write(1);
  assertEquals(lines.length, 60);
  write(2, "address_refused");
  now = 60_000;
  write(1, "address_refused");
  assertEquals(lines.slice(60), [
    { level: "warn", event: "log_lines_suppressed", count: 41, of: "admin_refused" },
    { level: "warn", event: "log_lines_suppressed", count: 2, of: "address_refused" },
    { level: "warn", event: "address_refused" },
  ]);
  now = 120_000;
  write(1);
  assertEquals(lines.length, 64);
});

Deno.test("concurrent requests are counted by client and released once, and idle clients are forgotten", () => {
  const running = new Map<string, number>();
  const begin = (client: string) => beginRequest(running, client, 2);
  const leave = [begin("one"), begin("one")];
  assertThrows(() => begin("one"), GatewayError, "2 with this API key from this address");
  begin("two")();
  leave[0]?.();
  leave[0]?.();
  const again = begin("one");
  assertThrows(() => begin("one"), GatewayError);
  again();
  leave[1]?.();
  assertEquals(running.size, 0);
});

Deno.test("requests are counted by key and address until their last byte or the disconnect", async () => {
  await using gateway = startKeyed({ ...BEHIND_PROXY, resource_limits: { requests_per_client: 2 } });
  const gone = new AbortController();
  // If an assertion fails, the gateway would wait forever for unread streams.
  using _end = { [Symbol.dispose]: () => gone.abort() };
  const ask = (
    from: string,
    { text = "hello", signal, key = gateway.keys.good }: { text?: string; signal?: AbortSignal; key?: string } = {},
  ) =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "x-forwarded-for": from,
      },
      body: JSON.stringify({ model: "sluice/echo", stream: true, messages: [{ role: "user", content: text }] }),
      ...(signal !== undefined && { signal }),
    });
  const other = issueKey({ name: "other", group: "default", now: 0 });
  await gateway.store.keys.add(other.record);
  const status = async (from: string, key?: string) => {
    const response = await ask(from, key === undefined ? {} : { key });
    await response.text();
    return response.status;
  };
  // Ended answers release their slots, so any number of them can follow each other.
  for (let at = 0; at < 5; at++) assertEquals(await status("192.0.2.1"), 200);

  // Long enough that it cannot end while it is not read.
  const long = { text: "word ".repeat(60_000), signal: gone.signal };
  const open = [await ask("192.0.2.1", long), await ask("192.0.2.1", long)];
  assertEquals(open.map(({ status }) => status), [200, 200]);
  assertEquals(await status("192.0.2.1"), 429);
  assertEquals(await status("::ffff:192.0.2.1"), 429);
  assertEquals(await status("192.0.2.2"), 200);
  // Another key at the same address is another client.
  assertEquals(await status("192.0.2.1", other.key), 200);
  gone.abort();
  for (const { body } of open) await body?.cancel().catch(() => {});
  await until("places are given back", async () => await status("192.0.2.1") !== 429);
});
