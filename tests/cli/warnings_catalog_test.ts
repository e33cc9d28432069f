import { assertEquals, assertStringIncludes } from "@std/assert";
import { loadSnapshot } from "../../lib/catalog/snapshot.ts";
import { catalogWarnings } from "../../lib/cli/warnings/catalog.ts";
import { readConfig } from "../../lib/config/load.ts";
import { DAY_MS } from "../../lib/store/days.ts";

const env = (name: string) => name === "KEY" ? "secret-0123456789abcdef" : undefined;

async function warningsAt(now: number, models: string[], usesCatalog = true): Promise<string[]> {
  const text = JSON.stringify({ upstreams: { one: { vendor: "openai", api_key: { env: "KEY" } } }, models });
  const { config } = await readConfig({ text }, { flags: {}, env, readTextFile: (path) => Deno.readTextFile(path) });
  return (await catalogWarnings(config, { now, usesCatalog })).map(({ path, message }) => `${path}: ${message}`);
}

Deno.test("catalog facts up to 90 days old are accepted; older ones are a warning with their number and first day", async () => {
  const { models } = await loadSnapshot();
  const date = models.find(({ row }) => row.id === "openai/o3")?.date ?? "";
  const old = Date.parse(date) + 90 * DAY_MS;
  assertEquals(await warningsAt(old, ["openai/o3"]), []);
  const [warning = "", ...others] = await warningsAt(old + 1, ["openai/o3"]);
  assertEquals(others, []);
  assertStringIncludes(warning, `models: The catalog's facts about 1 of them are older than 90 days (from ${date} on)`);
  // Prices that were typed are not the catalog's.
  assertEquals(await warningsAt(old + 1, ["openai/o3"], false), []);
});
