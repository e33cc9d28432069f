/** `audit`: recalculates the ledger and reports differences, or shows the log of changes. */
import { auditLedger } from "../billing/reports/audit.ts";
import type { AuditReport } from "../billing/reports/schemas.ts";
import { findDamage } from "../store/sqlite/integrity.ts";
import { type ReportCommand, UsageError } from "./arguments.ts";
import { counted, jsonText, writeErr, writeOut } from "./output.ts";
import { requireFile, withStore } from "./command_store.ts";
import { changedMembers, MAX_VALUE_CHARACTERS } from "../admin/changed_members.ts";
import { readChanges } from "../admin/changes.ts";
import type { ChangeLine } from "../admin/schemas.ts";
import { GatewayError } from "../errors.ts";
import { shortText } from "../text.ts";
import { tableText } from "./table.ts";

/** Audits the ledger and its file, and prints the differences. Returns 1 if there are any. @throws {UsageError} */
export function audit({ config, values, switches }: ReportCommand): Promise<number> {
  if (switches.has("changes")) return auditChanges({ config, values, switches });
  for (const flag of ["limit", "cursor"] as const) {
    if (values[flag] !== undefined) throw new UsageError(`Cannot use --${flag} without --changes`);
  }
  return withStore(config, async ({ ledger }) => {
    // This process serves no requests that an audit would have to yield to.
    const pause = () => Promise.resolve();
    const damage = config.store.kind === "postgres" ? [] : findDamage(requireFile(config.store));
    const report = await auditLedger(ledger, { pause, damage });
    writeOut(switches.has("json") ? jsonText(report) : auditText(report));
    return report.ok ? 0 : 1;
  });
}

function auditText({ ok, checked, differences, difference_count: count }: AuditReport): string {
  const { entries, first_seq, last_seq, day_sums_in_motion: moving, day_sums_alone: pruned } = checked;
  const sums = (name: string, whole: number, inPart: number) =>
    whole + inPart === 0 ? [] : [`${name} ${whole}${inPart === 0 ? "" : `, ${inPart} more compared in part`}`];
  const facts = [
    `Entries:      ${entries}${entries === 0 ? "" : `, from ${first_seq} to ${last_seq}`}`,
    `Sums per day: ${checked.day_sums}${moving === 0 ? "" : `, ${moving} still changing`}`,
    ...(pruned === 0 ? [] : [`              ${pruned} more whose entries are pruned`]),
    ...sums("End users:   ", checked.user_sums, checked.user_sums_alone),
    ...sums("Report sums: ", checked.later_sums, checked.later_sums_alone),
    `Open holds:   ${checked.holds}`,
    "",
  ];
  const lines = differences.map(({ kind, seq, id, message }) => {
    const where = [...(seq === undefined ? [] : [`entry ${seq}`]), ...(id === undefined ? [] : [`req_${id}`])];
    return `${[kind, ...where].join(" ")}: ${message}`;
  });
  const more = count - differences.length;
  const verdict = ok ? "No differences found" : counted(count, "difference");
  return [...facts, ...lines, ...(more > 0 ? [`and ${more} more`] : []), verdict, ""].join("\n");
}

/** Prints a page of the log, the latest change first. @throws {UsageError} for a wrong limit or cursor */
function auditChanges({ config, values, switches }: ReportCommand): Promise<number> {
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
