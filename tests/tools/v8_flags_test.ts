import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { V8_FLAGS } from "../../bench/suite/v8_flags.ts";
import denoJson from "../../deno.json" with { type: "json" };
import { repositoryFile } from "./supply.ts";

/** Only the executable is kept from making code of text: see docs/explanation/security.md. */
const COMPILED_ALONE = "--disallow-code-generation-from-strings,";

Deno.test("the gateway has the same V8 flags from source and compiled", () => {
  const flags = Object.entries(denoJson.tasks).flatMap(([task, { command }]) =>
    Array.from(command.matchAll(/--v8-flags=(\S+)/g), ([, flags]) => [task, flags])
  );
  assertEquals(flags, [["sluice", V8_FLAGS], ["compile", COMPILED_ALONE + V8_FLAGS]]);
});

Deno.test("the V8 flags are documented with their purpose", async () => {
  const [, section = ""] =
    /\n## Flags for V8\n(.*?)\n## /s.exec(await repositoryFile("docs/explanation/performance.md")) ?? [];
  assertStringIncludes(section, `\`--v8-flags=${V8_FLAGS}\``);
  const reported = Array.from(section.matchAll(/^- `(--\S+)`\. /gm), ([, flag]) => flag);
  assertEquals(reported, V8_FLAGS.split(","));
  const bench = await repositoryFile("bench/README.md");
  for (const flag of reported) assert(bench.includes(`\`${flag}\``), flag);
});
