import { assertEquals } from "@std/assert";
import { mintKey } from "../../../lib/access/keys.ts";
import { ACCESS, type Access } from "../../../lib/access/access_table.ts";
import { METHODS } from "../../../lib/server/router.ts";
import { routes } from "../../../routes/manifest.ts";
import { ADMIN_KEY, KEY_STATES, startKeyed } from "../../support/keyed_gateway.ts";
import { skipInQuick } from "../../support/skip.ts";

/** All ways to send a credential. */
const HEADERS = {
  bearer: (key: string) => ({ authorization: `Bearer ${key}` }),
  x_api_key: (key: string) => ({ "x-api-key": key }),
  x_goog_api_key: (key: string) => ({ "x-goog-api-key": key }),
  both: (key: string) => ({ authorization: `Bearer ${key}`, "x-api-key": key }),
};

/** Credentials that each of these ways can show. */
const ACCEPTED: Readonly<Record<keyof typeof HEADERS, readonly Access["credential"][]>> = {
  bearer: ["bearer", "api_key", "google_key", "admin", "metrics"],
  x_api_key: ["api_key"],
  x_goog_api_key: ["google_key"],
  both: ["bearer", "api_key", "google_key", "admin", "metrics"],
};

/** A path of the route. */
function pathOf(path: string): string {
  return path.replace("[provider]", "sluice").replace("[model_id]", "echo").replace(
    /\[(key|group|request_id)\]/,
    "nobody",
  );
}

/** The expected error for a role; `undefined` if it has access. */
function refusal(row: Access, role: string, by: keyof typeof HEADERS): 401 | 403 | undefined {
  if (row.credential === "none") return undefined;
  if (!ACCEPTED[by].includes(row.credential)) return 401;
  if (row.credential === "admin" || row.credential === "metrics") return role === "admin" ? undefined : 401;
  if (["stranger", "revoked", "expired", "admin"].includes(role)) return 401;
  if (role === "speechless") return row.protocol === undefined ? undefined : 403;
  return role === "good" ? undefined : 403;
}

Deno.test("every route answers every role as the access table says", async () => {
  await using gateway = startKeyed({ admin: { key: { env: "ADMIN_KEY" } }, trusted_proxies: ["127.0.0.1"] });
  let requests = 0;
  const keys: Record<string, string> = { ...gateway.keys, stranger: mintKey(), admin: ADMIN_KEY };
  const seen = new Set<string>();
  const isQuick = skipInQuick("Every role with every header at each route");
  let turn = 0;
  for (const route of routes) {
    for (const method of METHODS.filter((method) => route.handlers[method] !== undefined)) {
      const name = `${method} ${route.path}`;
      const row = ACCESS[name] ?? { credential: "bearer" };
      seen.add(name);
      const ask = async (headers: Record<string, string>) => {
        const body = method === "GET" ? {} : { body: "{}" };
        // Each from an address of its own, as wrong admin keys of one address are throttled.
        const address = { "x-forwarded-for": `10.0.${Math.floor(requests / 250)}.${requests++ % 250}` };
        const options = { method, headers: { ...headers, ...address }, ...body, redirect: "manual" as const };
        const response = await fetch(`${gateway.url}${pathOf(route.path)}`, options);
        await response.body?.cancel();
        return response.status;
      };
      if (row.credential === "session") {
        for (const key of Object.values(keys)) {
          assertEquals(await ask(HEADERS.bearer(key)), 303, `${name}: no key opens the console, only a session`);
        }
        continue;
      }
      if (row.credential === "sign_in") continue;
      assertEquals(await ask({}) === 401, row.credential !== "none", `${name} without a key`);
      for (const role of [...KEY_STATES, "stranger", "admin"]) {
        turn++;
        for (const [place, [by, headers]] of Object.entries(HEADERS).entries()) {
          if (isQuick && (turn + place) % (role === "good" || role === "admin" ? 2 : 12) > 0) continue;
          const status = await ask(headers(keys[role] ?? ""));
          const refused = status === 401 || status === 403 ? status : undefined;
          // With Google's header these are Google's lists of models.
          const alias = by === "x_goog_api_key" ? ACCESS[name.replace(" /v1/models", " /v1beta/models")] : undefined;
          assertEquals(
            refused,
            refusal(alias ?? row, role, by as keyof typeof HEADERS),
            `${name}, ${role} by ${by}: ${status}`,
          );
        }
      }
    }
  }
  assertEquals([...seen].sort(), Object.keys(ACCESS).sort());
  assertEquals(new Set(gateway.logs.map(({ event }) => event)), new Set(["admin_refused"]));
});

Deno.test("only health and the greeting are public", () => {
  const open = Object.entries(ACCESS).filter(([, { credential }]) => credential === "none").map(([name]) => name);
  assertEquals(open.sort(), ["GET /anthropic/api/hello", "GET /healthz", "GET /readyz"]);
});
