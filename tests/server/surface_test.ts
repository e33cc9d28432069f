import { assertEquals } from "@std/assert";
import { ACCESS, type AccessTable } from "../../lib/access/access_table.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import type { Route } from "../../lib/server/router.ts";
import { listenersOf, routesOn, type Surface } from "../../lib/server/surface.ts";
import { routes as ROUTES } from "../../routes/manifest.ts";

const ok = () => new Response();
const ROUTE_LIST: Route[] = [
  { path: "/healthz", handlers: { GET: ok } },
  { path: "/v1/things", handlers: { GET: ok, POST: ok } },
  { path: "/open", handlers: { GET: ok } },
  { path: "/admin/v1/things", handlers: { GET: ok, DELETE: ok } },
];
const TABLE: AccessTable = {
  "GET /healthz": { credential: "none", everywhere: true },
  "GET /v1/things": { credential: "bearer", endpoint: "models" },
  "POST /v1/things": { credential: "api_key", endpoint: "chat" },
  "GET /open": { credential: "none" },
  "GET /admin/v1/things": { credential: "admin" },
  "DELETE /admin/v1/things": { credential: "admin" },
};

function namesOn(surface: Surface, routes = ROUTE_LIST, access = TABLE): string[] {
  return routesOn(surface, { routes, access }).flatMap(({ path, handlers }) =>
    Object.keys(handlers).map((method) => `${method} ${path}`)
  );
}

Deno.test("routesOn() separates admin routes from the others, and both have health", () => {
  const admin = ["GET /healthz", "GET /admin/v1/things", "DELETE /admin/v1/things"];
  assertEquals(namesOn("admin"), admin);
  assertEquals(namesOn("public"), ["GET /healthz", "GET /v1/things", "POST /v1/things", "GET /open"]);
  assertEquals(namesOn("both").sort(), Object.keys(TABLE).sort());
});

Deno.test("each route is served somewhere, and only health and metrics twice", () => {
  const [open, admin] = [namesOn("public", ROUTES, ACCESS), namesOn("admin", ROUTES, ACCESS)];
  assertEquals([...new Set([...open, ...admin])].sort(), Object.keys(ACCESS).sort());
  assertEquals(open.filter((name) => admin.includes(name)), ["GET /healthz", "GET /metrics", "GET /readyz"]);
  assertEquals(open.filter((name) => name.includes("/admin")), []);
});

Deno.test("a local surface has the console, and no admin API", () => {
  const local = namesOn("local", ROUTES, ACCESS);
  assertEquals(local.filter((name) => name.includes(" /admin/v1")), []);
  const rest = Object.keys(ACCESS).filter((name) => !name.includes(" /admin/v1"));
  assertEquals(local.toSorted(), rest.toSorted());
});

Deno.test("listenersOf() returns no admin listener, a shared one, or two", () => {
  const env = () => "0123456789abcdef";
  const key = { env: "ADMIN" };
  const main = { hostname: "127.0.0.1", port: 8790, reusePort: false };
  assertEquals(listenersOf(parseConfig({}, env)), [{ ...main, surface: "public" }]);
  assertEquals(listenersOf(parseConfig({ admin: { key } }, env)), [{ ...main, surface: "both" }]);
  assertEquals(listenersOf(parseConfig({ admin: { key, listen: { port: 9 } } }, env)), [
    { ...main, surface: "public" },
    { hostname: "127.0.0.1", port: 9, reusePort: false, surface: "admin" },
  ]);
  const shared = { listen: { reuse_port: true }, store: "postgres://h/d", limits_store: "redis://h" };
  assertEquals(listenersOf(parseConfig({ ...shared, admin: { key, listen: { port: 9 } } }, env)), [
    { ...main, reusePort: true, surface: "public" },
    { hostname: "127.0.0.1", port: 9, reusePort: false, surface: "admin" },
  ]);
});
