/** `audit --changes`: shows the log of operators' changes. */
import { changedMembers, MAX_VALUE_CHARACTERS } from "../admin/changed_members.ts";
import { readChanges } from "../admin/changes.ts";
import type { ChangeLine } from "../admin/schemas.ts";
import { GatewayError } from "../errors.ts";
import { shortText } from "../text.ts";
import { type ReportCommand, UsageError } from "./arguments.ts";
import { withStore } from "./command_store.ts";
import { jsonText, writeErr, writeOut } from "./output.ts";
import { tableText } from "./table.ts";

/** Prints a page of the log, the latest change first. @throws {UsageError} for a wrong limit or cursor */
export function auditChanges({ config, values, switches }: ReportCommand): Promise<number> {
  return withStore(config, async (store) => {
    const { limit, cursor } = values;
    const page = await readChanges(store, { limit, cursor }).catch((error) => {
      throw error instanceof GatewayError ? new UsageError(error.message, { cause: error }) : error;
    });
    if (switches.has("json")) writeOut(jsonText(page));
    else if (page.data.length === 0) writeOut("No changes are logged yet\n");
    else {
      writeOut(tableText([["TIME", "AUTHOR", "ADDRESS", "ACTION", "SUBJECT", "CHANGE"], ...page.data.map(toCells)]));
      if (page.next !== null) writeErr(`Earlier changes: --cursor ${page.next}\n`);
    }
    return 0;
  });
}

function toCells(line: ChangeLine): string[] {
  const { at, author, address, action, subject } = line;
  const members = changedMembers(line).map((member) => {
    const former = "before" in member ? `${valueText(member.before)} -> ` : "";
    return `${member.path}: ${former}${valueText(member.after)}`;
  });
  return [at, author, address ?? "-", action, subject ?? "-", members.join("; ") || "-"];
}

function valueText(value: unknown): string {
  return shortText(value === undefined ? "none" : JSON.stringify(value), MAX_VALUE_CHARACTERS);
}
