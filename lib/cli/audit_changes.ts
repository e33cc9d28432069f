/** `audit --changes`: shows the log of operators' changes. */
import { readChanges } from "../admin/changes.ts";
import type { ChangeLine } from "../admin/schemas.ts";
import { GatewayError } from "../errors.ts";
import type { ReportCommand } from "./arguments.ts";
import { withStore } from "./command_store.ts";
import { jsonText, writeErr, writeOut } from "./output.ts";
import { tableText } from "./table.ts";

/** Prints a page of the log, the latest change first. */
export function auditChanges({ config, values, switches }: ReportCommand): Promise<number> {
  return withStore(config, async (store) => {
    const { limit, cursor } = values;
    try {
      const page = await readChanges(store, { limit, cursor });
      if (switches.has("json")) writeOut(jsonText(page));
      else if (page.data.length === 0) writeOut("No changes are logged yet\n");
      else {
        writeOut(tableText([["TIME", "AUTHOR", "ADDRESS", "ACTION", "SUBJECT", "CHANGE"], ...page.data.map(toCells)]));
        if (page.next !== null) writeOut(`Earlier changes: --cursor ${page.next}\n`);
      }
      return 0;
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      writeErr(`${error.message}\n`);
      return 1;
    }
  });
}

function toCells({ at, author, address, action, subject, before, after }: ChangeLine): string[] {
  const members = Object.keys({ ...before, ...after }).map((name) => {
    const now = JSON.stringify(after?.[name] ?? null);
    return before !== null && name in before ? `${name}: ${JSON.stringify(before[name])} -> ${now}` : `${name}: ${now}`;
  });
  return [at, author, address ?? "-", action, subject ?? "-", members.join("; ") || "-"];
}
