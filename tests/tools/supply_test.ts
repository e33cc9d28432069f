import { assert, assertEquals, assertMatch } from "@std/assert";
import browser from "../browser/deno.json" with { type: "json" };
import clients from "../clients/deno.json" with { type: "json" };
import denoJson from "../../deno.json" with { type: "json" };
import { installedParts, repositoryFile } from "./supply.ts";

/** Direct dependencies of the program, each with its reasons in docs/decisions; their own dependencies are counted. */
const CHOSEN = [
  ...["@jsquash/jpeg", "@jsquash/webp", "d3-scale", "d3-shape", "deno-std", "imagescript", "ioredis", "js-tiktoken"],
  ...["postgres", "preact", "preact-render-to-string", "zod"],
];
const BROUGHT = [
  ...["@ioredis/commands", "base64-js", "cluster-key-slot", "d3-array", "d3-color", "d3-format", "d3-interpolate"],
  ...["d3-path", "d3-time", "d3-time-format", "debug", "denque", "internmap", "ms", "redis-errors"],
  ...["standard-as-callback", "wasm-feature-detect"],
];
/** Maximum number of packages of others that the program runs with; Deno's standard library is none of others. */
const MAX_OF_OTHERS = 11;
/** Packages that are younger are not taken up, in days. */
const MIN_AGE_DAYS = 7;

Deno.test("every import is an exact version of an npm package", () => {
  const imports = { ...denoJson.imports, ...clients.imports, ...browser.imports };
  for (const [name, specifier] of Object.entries(imports)) {
    if (name.endsWith("/") || /^\.\.?\//.test(specifier)) continue;
    assertMatch(specifier, /^npm:(?:@[\w.-]+\/)?[\w.-]+@\d+\.\d+\.\d+(?:-[\w.]+)?(?:\/[\w./-]+)?$/, name);
  }
});

Deno.test("no task may load native code", () => {
  for (const [name, { command }] of Object.entries(denoJson.tasks)) {
    const mayAll = /^(?:test|heavy|bench)/.test(name);
    assertEquals(/--allow-ffi|--allow-all|\s-A\s/.test(command), mayAll, name);
  }
});

Deno.test("the lock file has exactly the packages of deno.json, each with a hash", async () => {
  const lock = JSON.parse(await repositoryFile("deno.lock"));
  const requested = Object.values(denoJson.imports).map((specifier) =>
    /^npm:@?[^/]+(?:\/[^@]+)?@[^/]+/.exec(specifier)?.[0]
  );
  assertEquals(Object.keys(lock.specifiers).sort(), [...new Set(requested)].sort());
  assertEquals(Object.keys(lock).sort(), ["npm", "specifiers", "version", "workspace"]);
  for (const [id, { integrity }] of Object.entries<{ integrity: string }>(lock.npm)) {
    assertMatch(integrity, /^sha512-[A-Za-z0-9+/]{86}==$/, id);
  }
});

Deno.test("the lock file is complete: a frozen installation succeeds, and fails without an entry", async () => {
  const folder = await Deno.makeTempDir();
  async function install(changes: Record<string, string>): Promise<number> {
    const imports = { ...denoJson.imports, ...changes };
    await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify({ ...denoJson, imports }));
    await Deno.writeTextFile(`${folder}/deno.lock`, await repositoryFile("deno.lock"));
    const command = new Deno.Command(Deno.execPath(), {
      args: ["install", "--frozen"],
      cwd: folder,
      env: { NO_COLOR: "1" },
      stdin: "null",
      signal: AbortSignal.timeout(60_000),
    });
    return (await command.output()).code;
  }
  try {
    assertEquals(await install({}), 0);
    assert(await install({ ms: "npm:ms@2.1.2" }) !== 0);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("packages are adopted only after a minimum age", () => {
  const days = /^P(\d+)D$/.exec(denoJson.minimumDependencyAge)?.[1];
  assert(Number(days) >= MIN_AGE_DAYS, denoJson.minimumDependencyAge);
});

Deno.test("the packages are the chosen ones and their dependencies, without install scripts", async () => {
  assert(CHOSEN.filter((name) => name !== "deno-std").length <= MAX_OF_OTHERS, CHOSEN.join());
  const parts = await installedParts();
  assertEquals(parts.map(({ name }) => name).sort(), [...BROUGHT, ...CHOSEN].sort());
  assertEquals(parts.filter(({ installScripts }) => installScripts.length > 0), []);
  const decisions = await Promise.all(
    ["0001-dependencies", "0004-postgres", "0007-console"].map((name) => repositoryFile(`docs/decisions/${name}.md`)),
  );
  for (const name of CHOSEN) assert(decisions.some((text) => text.includes(`\`${name}\``)), name);
});
