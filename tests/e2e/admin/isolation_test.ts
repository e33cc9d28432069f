import { assert, assertEquals, assertMatch } from "@std/assert";
import { issueKey } from "../../../lib/access/keys.ts";
import { ACCESS } from "../../../lib/access/access_table.ts";
import { METHODS } from "../../../lib/server/router.ts";
import { exchange, head } from "../../server/serve.ts";
import { ADMIN_KEY, type KeyedGateway, startKeyed } from "../../support/keyed_gateway.ts";
import { APART, ask, startAdmin } from "../../admin/admin_client.ts";

const TOGETHER = { admin: { key: { env: "ADMIN_KEY" } } };
const PATHS = [...new Set(Object.keys(ACCESS).map((name) => name.slice(name.indexOf(" ") + 1)))];
const ADMIN_PATHS = PATHS.filter((path) => path.startsWith("/admin/")).map(pathOf);
/** Paths that both listeners have, and well-known paths of the admin listener. */
const HEALTH = ["/healthz", "/readyz", "/metrics"];
/** Paths that are not there, by the beginning of paths with the same error. */
const NOWHERE = [
  ["/anthropic", "/anthropic/no/such"],
  ["/v1/responses/", "/v1/responses/no-such"],
  ["/v1beta/", "/v1beta/no-such"],
] as const;
const CLIENT_PATHS = PATHS.filter((path) => !path.startsWith("/admin/") && !HEALTH.includes(path)).map(pathOf);

function pathOf(path: string): string {
  return path.replaceAll(/\[\w+\]/g, "good");
}

/** Everything an answer reveals about a path: status, body, and the headers that do not always differ. */
async function answerTo(url: string, { method, key }: { method: string; key?: string }): Promise<string> {
  const response = await fetch(url, {
    method,
    headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
    ...(["POST", "PUT", "PATCH"].includes(method) && { body: "{}" }),
  });
  const headers = [...response.headers].filter(([name]) => name !== "date");
  return JSON.stringify([response.status, headers, await response.text()]).replaceAll(/req_[a-z0-9]+/g, "req_");
}

/** Asserts that every path, method and credential is answered like a path that does not exist. */
async function assertAbsent(paths: readonly string[], { url, keys }: Pick<KeyedGateway, "url" | "keys">) {
  assert(paths.length > 5);
  for (const method of [...METHODS, "HEAD", "OPTIONS"]) {
    for (const key of [undefined, ADMIN_KEY, keys.good]) {
      const requested = { method, ...(key !== undefined && { key }) };
      const absentAnswers = new Map<string, string>();
      for (const path of paths) {
        const nowhere = NOWHERE.find(([prefix]) => path.startsWith(prefix))?.[1] ?? "/no/such";
        const absent = absentAnswers.get(nowhere) ?? await answerTo(`${url}${nowhere}`, requested);
        absentAnswers.set(nowhere, absent);
        assertMatch(absent, /^\[404,/);
        assertEquals(await answerTo(`${url}${path}`, requested), absent, `${method} ${path}`);
      }
    }
  }
}

Deno.test("without an admin key no answer reveals an admin side", async () => {
  await using gateway = startKeyed();
  assertEquals(gateway.adminUrl, gateway.url);
  await assertAbsent([...ADMIN_PATHS, "/admin", "/admin/v1"], gateway);
  assertEquals(gateway.logs, []);
});

Deno.test("with two listeners, admin paths are only on the admin one, client paths only on the other, health on both", async () => {
  await using gateway = startAdmin();
  const { adminUrl, url, keys } = gateway;
  assert(adminUrl !== url);
  await assertAbsent([...ADMIN_PATHS, "/admin", "/admin/v1"], gateway);
  await assertAbsent([...CLIENT_PATHS, "/v1", "/anthropic"], { url: adminUrl, keys });
  for (const at of [url, adminUrl]) {
    for (const path of ["/healthz", "/readyz"]) {
      assertMatch(await answerTo(`${at}${path}`, { method: "GET" }), /^\[200,/);
    }
  }
  await assertAbsent(Array.from({ length: 6 }, () => "/metrics"), gateway);
  assertMatch(await answerTo(`${adminUrl}/metrics`, { method: "GET" }), /^\[401,/);
  assertMatch(await answerTo(`${adminUrl}/metrics`, { method: "GET", key: ADMIN_KEY }), /^\[200,/);
  assertEquals((await ask(gateway, "GET /keys")).status, 200);
});

Deno.test("no Host and no spelling of a path reaches the other side", async () => {
  await using gateway = startAdmin();
  const targets = `
    /admin/v1/keys /admin/v1/keys/ //admin/v1/keys /v1/../admin/v1/keys /v1/%2e%2e/admin/v1/keys
    /admin%2Fv1%2Fkeys /%61dmin/v1/keys /ADMIN/v1/keys /anthropic/admin/v1/keys /v1/models?x=/admin/v1/keys`.trim()
    .split(/\s+/);
  const adminHost = new URL(gateway.adminUrl).host;
  for (const target of targets) {
    for (const host of ["localhost", adminHost, "admin", "x/admin/v1/keys?", "x/admin/v1/keys#"]) {
      const { status, body } = await exchange(gateway.port, [
        head(`GET ${target}`, { host, authorization: `Bearer ${ADMIN_KEY}` }),
      ]);
      assert([400, 401, 404].includes(status), `${host} ${target}: ${status}`);
      assert(!body.includes("key_"), body);
    }
  }
});

Deno.test("only the admin key opens the admin side, and each refusal is logged without the credential", async () => {
  for (const file of [TOGETHER, APART]) {
    await using gateway = startKeyed({ ...file, trusted_proxies: ["127.0.0.1"] });
    const cases: Record<string, string>[] = [
      {},
      { authorization: "" },
      { authorization: ADMIN_KEY },
      { authorization: `Basic ${btoa(`admin:${ADMIN_KEY}`)}` },
      { authorization: `Bearer ${ADMIN_KEY}x` },
      { authorization: `Bearer ${ADMIN_KEY.slice(0, -1)}` },
      { authorization: `Bearer ${ADMIN_KEY.toUpperCase()}` },
      { authorization: `Bearer ${ADMIN_KEY}, Bearer ${ADMIN_KEY}` },
      { authorization: `Bearer ${"x".repeat(10_000)}` },
      { authorization: "Bearer " },
      ...Object.values(gateway.keys).map((key) => ({ authorization: `Bearer ${key}` })),
      { "x-api-key": ADMIN_KEY },
      { authorization: `Bearer ${gateway.keys.good}`, "x-api-key": ADMIN_KEY },
      { authorization: `Bearer ${ADMIN_KEY}`, "x-api-key": gateway.keys.good },
      { cookie: `key=${ADMIN_KEY}` },
    ];
    for (const [index, headers] of cases.entries()) {
      const response = await fetch(`${gateway.adminUrl}/admin/v1/keys?key=${ADMIN_KEY}`, {
        headers: { ...headers, "x-forwarded-for": `192.0.2.${index}` },
      });
      const { error } = await response.json();
      assertEquals([response.status, error.code, error.param], [401, "invalid_api_key", null], JSON.stringify(headers));
      assertEquals(response.headers.get("www-authenticate"), "Bearer");
      assertEquals(response.headers.get("cache-control"), "no-store");
    }
    assertEquals(
      gateway.logs.map(({ event, level, address }) => `${event} ${level} ${address}`),
      cases.map((_, index) => `admin_refused warn 192.0.2.${index}`),
    );
    const text = JSON.stringify(gateway.logs);
    for (const key of [ADMIN_KEY, ...Object.values(gateway.keys)]) assert(!text.includes(key.slice(-8)));
    assertEquals((await ask(gateway, "GET /keys")).status, 200);
  }
});

Deno.test("the admin key is no API key, even if the store contains it", async () => {
  const { key, record } = issueKey({ name: "twin", group: "default", now: 0 });
  await using gateway = startKeyed(TOGETHER, { adminKey: key });
  await gateway.store.keys.add(record);
  for (const path of ["/v1/models", "/anthropic/v1/models", "/openapi.json"]) {
    for (const [name, value] of [["authorization", `Bearer ${key}`], ["x-api-key", key]] as const) {
      const response = await fetch(`${gateway.url}${path}`, { headers: { [name]: value } });
      await response.body?.cancel();
      assertEquals(response.status, 401, path);
    }
  }
});

Deno.test("no web page can read the admin side, whatever origins are allowed elsewhere", async () => {
  const origin = "https://app.example.com";
  const cors = { cors: { origins: [origin] } };
  for (const file of [TOGETHER, APART]) {
    await using gateway = startKeyed({ ...file, ...cors });
    const flight = {
      origin,
      "access-control-request-method": "GET",
      "access-control-request-headers": "authorization",
    };
    const cases: [method: string, headers: Record<string, string>, status: number][] = [
      ["OPTIONS", flight, 405],
      ["GET", { origin, authorization: `Bearer ${ADMIN_KEY}` }, 200],
      ["GET", { origin }, 401],
      ["PUT", { origin }, 405],
    ];
    for (const [method, headers, status] of cases) {
      const response = await fetch(`${gateway.adminUrl}/admin/v1/keys`, { method, headers });
      await response.body?.cancel();
      const reported = [...response.headers.keys()].filter((name) => name.startsWith("access-control-"));
      assertEquals([response.status, reported], [status, []], method);
      assertEquals(response.headers.get("cache-control"), "no-store");
    }
    const open = await fetch(`${gateway.url}/healthz`, { headers: { origin } });
    assertEquals([(await open.json()).status, open.headers.get("access-control-allow-origin")], ["ok", origin]);
  }
});
