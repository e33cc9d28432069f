/** The table of faults in the documentation, as the suite has seen them. */
import type { Figure } from "./figures.ts";

/** Number of times that each end was seen. */
export type Seens = Readonly<Record<string, number>>;

/** One fault, over all protocols. */
export interface FaultRow {
  readonly [name: string]: Figure;
  readonly group: string;
  readonly name: string;
  readonly about: string;
  /** By transport. */
  readonly streamed: Readonly<Record<string, Seens>>;
  readonly whole: Readonly<Record<string, Seens>>;
  readonly median_ms: number;
  readonly longest_ms: number;
  readonly memory_mib: { readonly streamed: number; readonly whole: number };
}

const HEADINGS = ["What the upstream does", "Streams", "Whole answers", "Answered after"];

/** Markdown tables, one for each group. */
export function faultTables(rows: readonly FaultRow[]): string {
  const groups = new Map<string, FaultRow[]>();
  for (const row of rows) groups.set(row.group, [...groups.get(row.group) ?? [], row]);
  return [...groups].map(([group, rows]) => `### ${group}\n\n${table(rows)}`).join("\n");
}

function table(rows: readonly FaultRow[]): string {
  const lines = rows.map(({ about, streamed, whole, median_ms, longest_ms }) => [
    about,
    seen(streamed),
    seen(whole),
    `${median_ms} ms, at most ${longest_ms}`,
  ]);
  const cells = [HEADINGS, HEADINGS.map(() => "---"), ...lines];
  return cells.map((line) => `| ${line.join(" | ")} |\n`).join("");
}

/** Outcome over the usual transport, and over `fetch` where it differs. */
function seen({ http1 = {}, fetch = {} }: Readonly<Record<string, Seens>>): string {
  const [usual, other] = [words(http1), words(fetch)];
  return usual === other ? usual : `${usual}; over \`fetch\` ${other}`;
}

/** The most frequent first. Clients of messages get 529 where others get 503. */
function words(seens: Seens): string {
  return Object.entries(seens).sort(([, a], [, b]) => b - a).map(([name]) => name).join(" or ").replace(
    "503 or 529",
    "503 (messages: 529)",
  );
}
