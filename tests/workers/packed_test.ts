import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { parseJsonc } from "../../lib/config/jsonc.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { isObject, type JsonObject } from "../../lib/json/json.ts";
import { Secret } from "../../lib/secret.ts";
import { packConfig, unpackConfig } from "../../lib/workers/packed.ts";

/** Shows secrets, which two equal configurations may differ in otherwise. */
function shown(config: unknown): string {
  return JSON.stringify(config, function (this: Record<string, unknown>, name, value: unknown) {
    const given = this[name];
    return given instanceof Secret ? given.reveal() : value;
  });
}

async function example(): Promise<JsonObject> {
  const file = parseJsonc(await Deno.readTextFile("sluice.example.jsonc"));
  assert(isObject(file));
  return file;
}

Deno.test("a configuration comes to another isolate as it is, with its secrets", async () => {
  const env = (name: string) => `secret-of-${name.toLowerCase()}`;
  const upstreams = { more: { vendor: "openai", api_key: { env: "MORE_KEY" } }, free: { vendor: "embedded" } };
  const file = await example();
  assert(isObject(file.upstreams ?? null));
  const stores = { store: "postgres://db/sluice", limits_store: "redis://cache" };
  for (
    const text of [{}, file, { ...file, ...stores, upstreams: { ...Object(file.upstreams), ...upstreams } }]
  ) {
    const config = parseConfig(text, env);
    const packed = packConfig(config);
    const other = unpackConfig(structuredClone(packed));
    assertEquals(other, config);
    assertEquals(shown(other), shown(config));
    assertEquals(JSON.stringify(other), JSON.stringify(config));
  }
  const config = parseConfig({ upstreams }, env);
  const packed = packConfig(config);
  assertStringIncludes(JSON.stringify(packed.secrets), "secret-of-more_key");
  assert(!JSON.stringify(packed.plain).includes("secret-of-more_key"));
  // What was packed is not touched.
  assertStringIncludes(shown(config), "secret-of-more_key");
});
