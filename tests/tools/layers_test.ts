import { assertEquals } from "@std/assert";
import { checkLayers } from "../../tools/layers.ts";

/** Violations of a tree given as path and text. */
function check(tree: Record<string, string>): string[] {
  return checkLayers(Object.entries(tree).map(([path, text]) => ({ path, text })));
}

Deno.test("checkLayers() accepts a tree that follows the rules", () => {
  assertEquals(
    check({
      "lib/json/mod.ts": "export type Json = null;",
      "lib/errors.ts": "",
      "lib/protocols/canonical/types.ts": 'import type { Json } from "../../json/mod.ts";\nimport { z } from "zod";',
      "lib/protocols/codec.ts": 'import type { Prompt } from "./canonical/types.ts";',
      "lib/protocols/chat/read.ts": 'import { a } from "../codec.ts";\nimport { b } from "./schema.ts";',
      "lib/protocols/chat/schema.ts": "// the Request: Request of a client\nexport const b = 1;",
      "lib/server/app.ts": "export function app(request: Request): Response { return new Response(request.url); }",
      "routes/v1/chat/completions.ts": 'import { serve } from "../../../lib/request/serve.ts";',
      "main.ts": 'import { main } from "./lib/cli/main.ts";',
    }),
    [],
  );
});

Deno.test("checkLayers() names forbidden imports", () => {
  const cases: [path: string, text: string, target: string][] = [
    ["lib/protocols/canonical/a.ts", 'import { x } from "../../server/app.ts";', "lib/server/app.ts"],
    ["lib/json/mod.ts", 'import { x } from "../protocols/canonical/types.ts";', "lib/protocols/canonical/types.ts"],
    ["lib/protocols/chat/a.ts", 'import { x } from "../messages/mod.ts";', "lib/protocols/messages/mod.ts"],
    ["lib/protocols/chat/a.ts", 'import type { X } from "../responses/mod.ts";', "lib/protocols/responses/mod.ts"],
    ["lib/protocols/codec.ts", 'import { x } from "./chat/mod.ts";', "lib/protocols/chat/mod.ts"],
    ["lib/protocols/messages/a.ts", 'import {\n  x,\n  y,\n} from "../../store/store.ts";', "lib/store/store.ts"],
    ["lib/server/a.ts", 'export * from "../request/serve.ts";', "lib/request/serve.ts"],
    ["lib/server/a.ts", 'await import("../request/serve.ts");', "lib/request/serve.ts"],
    ["lib/server/a.ts", 'import "../request/serve.ts";', "lib/request/serve.ts"],
    ["routes/a.ts", 'import { x } from "../lib/store/store.ts";', "lib/store/store.ts"],
    ["main.ts", 'import { x } from "./lib/server/app.ts";', "lib/server/app.ts"],
  ];
  for (const [path, text, target] of cases) {
    assertEquals(check({ [path]: text }), [`${path}: may not import ${target}`]);
  }
});

Deno.test("checkLayers() rejects imports past the mod.ts of a self-contained part", () => {
  const path = "lib/billing/a.ts";
  assertEquals(check({ [path]: 'import { x } from "../o200k/mod.ts";' }), []);
  assertEquals(check({ "lib/o200k/a.ts": 'import { x } from "./bpe.ts";' }), []);
  assertEquals(check({ [path]: 'import { x } from "../o200k/bpe.ts";' }), [
    `${path}: may import lib/o200k/bpe.ts only through lib/o200k/mod.ts`,
  ]);
});

Deno.test("checkLayers() allows the console only as a dynamic import", () => {
  const path = "routes/manifest.ts";
  assertEquals(check({ "routes/admin/console.ts": 'import { a } from "../../lib/console/a.tsx";' }), []);
  assertEquals(check({ [path]: 'const { GET } = await import("./admin/console.ts");' }), []);
  assertEquals(check({ "lib/console/a.tsx": 'import { b } from "./b.tsx";' }), []);
  assertEquals(check({ [path]: 'import { GET } from "./admin/console.ts";' }), [
    `${path}: may import routes/admin/console.ts only with import()`,
  ]);
});

Deno.test("checkLayers() rejects imports past the import map, and files outside of all folders", () => {
  assertEquals(check({ "lib/server/a.ts": 'import { x } from "jsr:@std/path";' }), [
    "lib/server/a.ts: imports jsr:@std/path past the import map",
  ]);
  assertEquals(check({ "lib/helpers/a.ts": "" }), ["lib/helpers/a.ts: has no place in the table of layers"]);
});

Deno.test("checkLayers() finds cycles, but not those through types alone", () => {
  assertEquals(
    check({
      "lib/server/a.ts": 'import { b } from "./b.ts";',
      "lib/server/b.ts": 'import { type C, c } from "./c.ts";',
      "lib/server/c.ts": 'import { a } from "./a.ts";',
    }),
    ["lib/server/a.ts: imports itself: lib/server/a.ts -> lib/server/b.ts -> lib/server/c.ts -> lib/server/a.ts"],
  );
  assertEquals(
    check({
      "lib/server/a.ts": 'import { b } from "./b.ts";',
      "lib/server/b.ts": 'import { type A, type B } from "./a.ts";\nimport type { C } from "./a.ts";',
    }),
    [],
  );
});

Deno.test("checkLayers() restricts HTTP types, new URL(request.url) and tee() to their folders", () => {
  const cases: [path: string, text: string, word: string, why: string][] = [
    ["lib/billing/a.ts", "let a: Request;", ": Request", "Request and Response belong to the HTTP side"],
    ["lib/store/a.ts", "return new Response(1);", "new Response", "Request and Response belong to the HTTP side"],
    ["lib/access/a.ts", "type A = Promise<Response>;", "<Response", "Request and Response belong to the HTTP side"],
    ["lib/server/a.ts", "new URL(request.url)", "new URL(request.url", "the Host header would decide the path"],
    ["lib/request/a.ts", "new URL(req.url)", "new URL(req.url", "the Host header would decide the path"],
    ["lib/upstreams/a.ts", "body.tee()", ".tee(", "tee() buffers without limit"],
  ];
  for (const [path, text, word, why] of cases) {
    assertEquals(check({ [path]: `\n/* a\nnew URL(request.url) */\n${text}` }), [
      `${path}:4: "${word}" is not allowed here: ${why}`,
    ]);
  }
});
