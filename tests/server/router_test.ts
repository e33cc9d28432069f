import { assertEquals, assertThrows } from "@std/assert";
import {
  allowedMethods,
  createRouter,
  handlerImports,
  lazyHandler,
  type Route,
  type RouteContext,
} from "../../lib/server/router.ts";

/** A route whose handlers are never called. */
function route(path: string, methods: string[] = ["GET"]): Route {
  return { path, handlers: Object.fromEntries(methods.map((method) => [method, () => new Response()])) };
}

Deno.test("createRouter() prefers static segments and backtracks", () => {
  const paths = ["/a/[x]", "/a/b", "/a/b/c", "/a/[x]/[y]", "/[x]/b/d", "/a/[x]/c/[z]"];
  const cases: [path: string, route: string | undefined, params: Record<string, string>][] = [
    ["/a/b", "/a/b", {}],
    ["/a/c", "/a/[x]", { x: "c" }],
    ["/a/b/c", "/a/b/c", {}],
    ["/a/b/d", "/a/[x]/[y]", { x: "b", y: "d" }],
    ["/z/b/d", "/[x]/b/d", { x: "z" }],
    ["/a/b/c/e", "/a/[x]/c/[z]", { x: "b", z: "e" }],
    ["/a", undefined, {}],
    ["/a/", undefined, {}],
    ["/a/b/", undefined, {}],
    ["/a/b/c/d/e", undefined, {}],
    ["/a/__proto__", "/a/[x]", { x: "__proto__" }],
    ["/a/[x]", "/a/[x]", { x: "[x]" }],
  ];
  for (const order of [paths, paths.toReversed()]) {
    const find = createRouter(order.map((path) => route(path)));
    for (const [path, expected, params] of cases) {
      const match = find(path.slice(1).split("/"));
      assertEquals([match?.route.path, match?.params ?? {}], [expected, params], path);
    }
  }
});

Deno.test("createRouter() keeps a decoded slash inside its parameter", () => {
  assertEquals(createRouter([route("/m/[id]")])(["m", "a/b"])?.params, { id: "a/b" });
});

Deno.test("createRouter() rejects two routes for one path", () => {
  assertThrows(() => createRouter([route("/a/[x]"), route("/a/[y]")]), RangeError, 'Cannot add route "/a/[y]"');
});

Deno.test("allowedMethods() is sorted and includes HEAD for GET", () => {
  assertEquals(allowedMethods(route("/a", ["POST", "GET"])), ["GET", "HEAD", "POST"]);
  assertEquals(allowedMethods(route("/a", ["POST", "DELETE"])), ["DELETE", "POST"]);
});

Deno.test("lazyHandler() loads its module with the first request, or with all others before", async () => {
  const loaded: string[] = [];
  const lazy = (name: string) =>
    lazyHandler(() => {
      loaded.push(name);
      return Promise.resolve(() => new Response(name));
    });
  const routes: Route[] = [
    { path: "/a", handlers: { GET: lazy("a"), POST: () => new Response() } },
    { path: "/b", handlers: { GET: lazy("b") } },
  ];
  assertEquals(loaded, []);
  const context = {} as RouteContext;
  assertEquals(await (await routes[1]?.handlers.GET?.(new Request("http://a/b"), context))?.text(), "b");
  assertEquals(loaded, ["b"]);
  for (const load of handlerImports(routes)) await load();
  assertEquals(loaded, ["b", "b", "a"]);
});
