import { assert, assertEquals } from "@std/assert";
import { loadConfig } from "../../lib/config/load.ts";
import { PAGES } from "../../tools/reference.ts";
import { EXAMPLES } from "../../tools/reference/configuration_texts.ts";
import { configJsonSchema } from "../../tools/schema.ts";

for (const [path, render] of Object.entries(PAGES)) {
  Deno.test(`${path} is fresh (run: deno task reference)`, async () => {
    assertEquals(await Deno.readTextFile(path), render());
  });
}

Deno.test("each example of the configuration page loads and sets its member", async () => {
  for (const [member, text] of Object.entries(EXAMPLES)) {
    const { config } = await loadConfig({
      flags: { config: "example.jsonc" },
      env: (name) => /^(OPENAI|SLUICE)_[A-Z]+_(KEY|URL)$/.test(name) ? `https://example.com/${name}` : undefined,
      readTextFile: () => Promise.resolve(text),
    });
    assert(Object.hasOwn(config, member), member);
  }
});

Deno.test("each member of the configuration has a default, named values, a range of members, or an example", () => {
  const bare: string[] = [];
  visit("", JSON.parse(configJsonSchema()));
  assertEquals(bare, []);

  function visit(path: string, schema: Record<string, unknown>): void {
    const { properties = {} } = schema as { properties?: Record<string, Record<string, unknown>> };
    for (const [name, member] of Object.entries(properties)) {
      if (!isShown(member)) bare.push(`${path}.${name}`);
      visit(`${path}.${name}`, member);
    }
    const inner = [schema.items, schema.additionalProperties, schema.oneOf, schema.anyOf].flat();
    for (const each of inner) {
      if (typeof each === "object" && each !== null) visit(`${path}[]`, each as Record<string, unknown>);
    }
  }

  function isShown(schema: Record<string, unknown>): boolean {
    const { items = {} } = schema as { items?: Record<string, unknown> };
    return schema.type === "boolean" || schema.type === "object" || schema.anyOf !== undefined ||
      [schema, items].some((each) =>
        ["default", "enum", "const", "oneOf", "anyOf", "properties", "examples"].some((name) =>
          each[name] !== undefined
        )
      );
  }
});
