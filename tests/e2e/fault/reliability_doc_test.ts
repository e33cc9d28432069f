import { assert, assertEquals } from "@std/assert";
import { publishedTables } from "../../heavy/write_tables.ts";
import { FAULTS } from "./matrix/faults.ts";

/** Lines without changes by a formatter. */
function linesOf(text: string): string[] {
  return text.split("\n").map((line) => line.replaceAll(/ +/g, " ").replaceAll(/-+/g, "-").trim()).filter((line) =>
    line !== ""
  );
}

Deno.test("the guide's tables match the published run, and list every fault", async () => {
  const guide = linesOf(await Deno.readTextFile(new URL("../../../docs/reference/test-results.md", import.meta.url)));
  const tables = linesOf(publishedTables());
  assertEquals(tables.filter((line) => !guide.includes(line)), []);
  const missing = FAULTS.filter(({ about }) => !tables.some((line) => line.startsWith(`| ${linesOf(about)[0]} |`)));
  assert(missing.length === 0, missing.map(({ name }) => name).join());
});
