/** Writes the tables of docs/reference/test-results.md from the published figures: `deno run -A tests/heavy/write_tables.ts`. */
import { type FaultRow, faultTables } from "./fault_table.ts";

const GUIDE = new URL("../../docs/reference/test-results.md", import.meta.url);
const BEGIN = "<!-- faults: written by tests/heavy/write_tables.ts -->";
const END = "<!-- end of faults -->";

/** The tables of the published run. */
export function publishedTables(): string {
  const url = new URL("results/faults.json", import.meta.url);
  const { rows }: { rows: FaultRow[] } = JSON.parse(Deno.readTextFileSync(url));
  return faultTables(rows);
}

if (import.meta.main) {
  const text = await Deno.readTextFile(GUIDE);
  const [before, rest = ""] = text.split(BEGIN);
  const [, after] = rest.split(END);
  if (before === undefined || after === undefined) throw new Error(`Cannot write ${GUIDE}: its marks are missing`);
  await Deno.writeTextFile(GUIDE, `${before}${BEGIN}\n\n${publishedTables()}\n${END}${after}`);
}
