/** `budgets`: shows the spent, held and remaining amounts of the budgets of groups, keys and end users. */
import { csvText } from "../csv.ts";
import { roundUsd } from "../billing/money.ts";
import { usedPercent } from "../billing/reports/budget_report.ts";
import type { BudgetLine } from "../billing/reports/schemas.ts";
import { BUDGET_PARAMETERS, type BudgetTexts, findBudgets } from "../billing/reports/budget_search.ts";
import { readFlags, type ReportCommand } from "./arguments.ts";
import { withStore } from "./command_store.ts";
import { formatOf, jsonText, writeOut } from "./output.ts";
import { tableText } from "./table.ts";

/** Columns of the CSV output, in order. */
const COLUMNS = [
  ...["scope", "name", "id", "group", "period"] as const,
  ...["budget_usd", "spent_usd", "held_usd", "left_usd", "resets_at", "user"] as const,
] satisfies (keyof BudgetLine)[];

/** Prints the budgets that match the flags. @throws {UsageError} if a flag cannot be read */
export function budgets({ config, values, switches }: ReportCommand): Promise<number> {
  const format = formatOf(switches);
  return withStore(config, async ({ ledger, keys }) => {
    const texts: BudgetTexts = {};
    for (const name of BUDGET_PARAMETERS) if (values[name] !== undefined) texts[name] = values[name];
    const lines = await readFlags(() => findBudgets({ ledger, keys, config }, texts, { now: Date.now() }));
    if (format === "json") writeOut(jsonText({ object: "list", data: lines }));
    else if (format === "csv") writeOut(csvText([[...COLUMNS], ...lines.map(csvCells)]));
    else writeOut(lines.length === 0 ? "No budgets found.\n" : table(lines, switches.has("exact")));
    return 0;
  });
}

function csvCells(line: BudgetLine): string[] {
  return COLUMNS.map((name) => line[name] ?? "");
}

function table(lines: readonly BudgetLine[], isExact: boolean): string {
  const usd = isExact ? (text: string) => text : roundUsd;
  const hasUsers = lines.some(({ user }) => user !== null);
  const rows = lines.map((line) => [
    ...[
      line.scope,
      line.name,
      ...hasUsers ? [line.user === "" ? "(none named)" : line.user ?? "-"] : [],
      line.group,
      line.period,
    ],
    ...[line.budget_usd, usd(line.spent_usd), usd(line.held_usd), usd(line.left_usd)],
    ...[`${usedPercent(line)}%`, line.resets_at?.replace(".000Z", "Z") ?? "never"],
  ]);
  const header = [
    ...["SCOPE", "NAME", ...hasUsers ? ["USER"] : [], "GROUP", "PERIOD"],
    ...["BUDGET USD", "SPENT USD", "HELD USD", "LEFT USD", "USED", "RESETS AT"],
  ];
  return tableText([header, ...rows], {
    right: ["BUDGET USD", "SPENT USD", "HELD USD", "LEFT USD", "USED"].map((name) => header.indexOf(name)),
  });
}
