import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { readRouteFiles, renderManifest } from "../../tools/routes.ts";

const ROOT = new URL("../../routes", import.meta.url).pathname;

/** A folder of files that is removed after the test. */
async function withFiles(files: Record<string, string>, test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    for (const [path, text] of Object.entries(files)) {
      const at = `${folder}/${path}`;
      await Deno.mkdir(at.slice(0, at.lastIndexOf("/")), { recursive: true });
      await Deno.writeTextFile(at, text);
    }
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("routes/manifest.ts is what `deno task routes` writes", async () => {
  assertEquals(await Deno.readTextFile(`${ROOT}/manifest.ts`), renderManifest(await readRouteFiles(ROOT)));
});

Deno.test("readRouteFiles() finds files and their methods, sorted, without the manifest", async () => {
  const files = {
    "manifest.ts": "export const routes = [];",
    "v1/models/[provider].ts": "export async function GET() {}\nfunction helper() {}\nexport function DELETE() {}\n",
    "openapi.json.ts": "export const GET = 1;\n",
    "v1/keys.ts": 'export { add as POST, list as GET } from "../keys.ts";\nexport { DELETE } from "../other.ts";\n',
    "v1/models.ts": "export function POST() {}\n",
    "notes.md": "not a route",
  };
  await withFiles(files, async (folder) => {
    assertEquals(await readRouteFiles(folder), [
      { file: "openapi.json.ts", methods: ["GET"] },
      { file: "v1/keys.ts", methods: ["GET", "POST", "DELETE"] },
      { file: "v1/models.ts", methods: ["POST"] },
      { file: "v1/models/[provider].ts", methods: ["GET", "DELETE"] },
    ]);
  });
});

Deno.test("readRouteFiles() refuses files that export no handler or something else", async () => {
  for (
    const text of [
      "",
      "export function get() {}",
      'export { get } from "./b.ts";',
      "export function GET() {}\nexport const limit = 1;",
    ]
  ) {
    await withFiles({ "a.ts": text }, async (folder) => {
      await assertRejects(() => readRouteFiles(folder), TypeError, "a.ts");
    });
  }
});

Deno.test("renderManifest() makes paths of file names, and imports most files with their first use", () => {
  const text = renderManifest([
    { file: "admin/v1/keys.ts", methods: ["GET"] },
    { file: "healthz.ts", methods: ["GET"] },
    { file: "v1/models/[provider].ts", methods: ["GET", "DELETE"] },
    { file: "v1/chat/completions.ts", methods: ["POST"] },
  ]);
  assertStringIncludes(text, `import * as v1_chat_completions from "./v1/chat/completions.ts";\n`);
  assertStringIncludes(text, `  lazyRoute("/admin/v1/keys", ["GET"], () => import("./admin/v1/keys.ts")),\n`);
  assertStringIncludes(text, `  { path: "/healthz", handlers: healthz },\n`);
  assertStringIncludes(
    text,
    `"/v1/models/[provider]", ["GET", "DELETE"], () => import("./v1/models/[provider].ts")),\n`,
  );
  assertThrows(
    () => renderManifest([{ file: "a/b.ts", methods: ["GET"] }, { file: "a_b.ts", methods: ["GET"] }]),
    RangeError,
    'two route files "a_b"',
  );
});
