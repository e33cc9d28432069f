import { assertEquals } from "@std/assert";
import { groupOf } from "../lib/config.ts";
import { loadConfig } from "../lib/config/load.ts";
import { configJsonSchema, SCHEMA_FILE } from "../tools/schema.ts";

Deno.test("the JSON Schema of the configuration is fresh (run: deno task schema)", async () => {
  assertEquals(await Deno.readTextFile(SCHEMA_FILE), configJsonSchema());
});

Deno.test("every member of the configuration is described", () => {
  const silent: string[] = [];
  visit("", JSON.parse(configJsonSchema()));
  assertEquals(silent, []);

  function visit(path: string, schema: Record<string, unknown>): void {
    for (const [name, member] of Object.entries(schema.properties ?? {})) {
      if (member.description === undefined) silent.push(`${path}.${name}`);
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
