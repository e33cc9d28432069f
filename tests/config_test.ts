import { assertEquals } from "@std/assert";
import { groupOf } from "../lib/config.ts";
import { loadConfig } from "../lib/config/load.ts";
import { configJsonSchema, SCHEMA_FILE } from "../tools/schema.ts";

Deno.test("the JSON Schema of the configuration is fresh (run: deno task schema)", async () => {
  assertEquals(await Deno.readTextFile(SCHEMA_FILE), configJsonSchema());
});

/** Longest time of a timer: the runtime ends a longer one at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

Deno.test("every member of the configuration is described, and timers can take its durations", () => {
  const silent: string[] = [];
  const endless: string[] = [];
  visit("", JSON.parse(configJsonSchema()));
  assertEquals({ silent, endless }, { silent: [], endless: [] });

  function visit(path: string, schema: Record<string, unknown>): void {
    for (const [name, member] of Object.entries(schema.properties ?? {})) {
      if (member.description === undefined) silent.push(`${path}.${name}`);
      const unitMs = name.endsWith("_ms") ? 1 : name.endsWith("_seconds") ? 1000 : 0;
      if (!(unitMs === 0 || member.maximum * unitMs < MAX_TIMER_MS)) endless.push(`${path}.${name}`);
      visit(`${path}.${name}`, member);
    }
    for (const inner of [schema.items, schema.additionalProperties, ...Object.values(schema.oneOf ?? [])]) {
      if (typeof inner === "object" && inner !== null) visit(`${path}[]`, inner as Record<string, unknown>);
    }
    for (const option of Object.values(schema.anyOf ?? {})) visit(path, option);
  }
});

Deno.test("the example configuration loads without environment variables", async () => {
  const { config, path } = await loadConfig({
    flags: { config: "sluice.example.jsonc" },
    env: () => undefined,
    readTextFile: (file) => Deno.readTextFile(file),
  });
  assertEquals(path, "sluice.example.jsonc");
  assertEquals(config.models.map((model) => model.id), ["acme/assistant", "acme/painter"]);
  assertEquals(Object.keys(config.groups), ["default", "acme-only"]);
});

Deno.test("groupOf() ignores inherited members", () => {
  assertEquals(groupOf({ groups: {} }, "constructor"), undefined);
  assertEquals(groupOf({ groups: {} }, "__proto__"), undefined);
});
