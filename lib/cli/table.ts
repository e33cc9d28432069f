/** Tables on the console. */

/** Rows as aligned text, the first one being the header. Columns named in `right` are aligned to the right. */
export function tableText(
  rows: readonly (readonly string[])[],
  { right = [] }: { right?: readonly number[] } = {},
): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  const pad = (cell: string, column: number): string =>
    right.includes(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0);
  return rows.map((row) => `${row.map(pad).join("  ").trimEnd()}\n`).join("");
}
