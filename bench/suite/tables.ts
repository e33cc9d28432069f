/** Formats results as Markdown tables, for the terminal and for pages. */
import { type AimResult, figure, type Results } from "./aims.ts";
import { SCENARIOS } from "./scenarios.ts";

/** A table; all columns but the first are numbers. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) => Math.max(2, ...[head, ...rows].map((row) => (row[column] ?? "").length)));
  const line = (cells: readonly string[]) =>
    `| ${
      cells.map((cell, column) => column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))
        .join(" | ")
    } |`;
  const rule = widths.map((width, column) => column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`);
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}

/** A number with three significant digits. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return "–";
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** All tables of a run. */
export function allTables(
  results: Results,
  { targets, judged }: { targets: readonly string[]; judged: AimResult[] },
): string {
  const measured = SCENARIOS.map(({ name }) => name).filter((name) => results.scenarios[name] !== undefined);
  const busy = measured.filter((name) => name !== "calm 1k");
  const cell = (scenario: string, target: string) => short(figure(results, { scenario, target }));
  const parts = [
    "CPU time of the target in µs: per request, of streams per event",
    table(["", ...targets], busy.map((name) => [name, ...targets.map((target) => cell(name, target))])),
    "The same, as a ratio to X",
    table(
      ["", ...targets],
      busy.map((name) => [
        name,
        ...targets.map((target) =>
          short(figure(results, { scenario: name, target }) / figure(results, { scenario: name, target: "X" }))
        ),
      ]),
    ),
    "Times in µs beyond those of the upstream alone, requests per second of one core (1 KB), KB per open stream, ms to the first answer",
    table(["", ...targets], otherRows(results, targets)),
    "Aims",
    table(
      ["aim", "measured", "at most", ""],
      judged.map(({ aim, value, bound, isMet }) => [
        aim,
        value === null ? "–" : short(value),
        String(bound),
        isMet === null ? "not measured" : isMet ? "met" : "MISSED",
      ]),
    ),
  ];
  return parts.map((part) => `${part}\n`).join("\n");
}

function otherRows(results: Results, targets: readonly string[]): string[][] {
  const added = (scenario: string, column: "p50Us" | "p99Us" | "firstP50Us" | "delayP50Us") =>
    targets.map((target) =>
      short(figure(results, { scenario, target, column }) - figure(results, { scenario, target: "direct", column }))
    );
  const rows = [
    ["p50 at 100/s", ...added("calm 1k", "p50Us")],
    ["p99 at 100/s", ...added("calm 1k", "p99Us")],
    ["event, 200 paced", ...added("paced 200", "delayP50Us")],
    ["event, 200 paced, cross", ...added("paced 200 cross", "delayP50Us")],
    ["first event", ...added("first event", "firstP50Us")],
    ["first event, cross", ...added("first event cross", "firstP50Us")],
    ["requests/s/core", ...targets.map((target) => short(1e6 / figure(results, { scenario: "json 1k", target })))],
    ...Object.entries(results.streams).map(([count, by]) => [
      `KB/stream of ${count}`,
      ...targets.map((target) => short((by[target] ?? NaN) / 1000)),
    ]),
    ["start, ms", ...targets.map((target) => short(results.starts[target] ?? NaN))],
  ];
  return rows.filter(([, ...cells]) => cells.some((cell) => cell !== "–"));
}

/** Writes the results of a run as JSON, and creates the folder of the file. */
export async function writeResults(path: string, results: unknown): Promise<void> {
  await Deno.mkdir(new URL(".", `file://${path}`), { recursive: true });
  await Deno.writeTextFile(path, `${JSON.stringify(results, null, 2)}\n`);
}
