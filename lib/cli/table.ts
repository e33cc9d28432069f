/** Tables on the console. */

/**
 * Rows as aligned text. Columns named in `right` are aligned to the right. `widths` are the least widths of the columns;
 * wider cells raise them.
 */
export function tableText(
  rows: readonly (readonly string[])[],
  { right = [], widths = [] }: { right?: readonly number[]; widths?: number[] } = {},
): string {
  for (const row of rows) row.forEach((cell, at) => widths[at] = Math.max(widths[at] ?? 0, cell.length));
  const pad = (cell: string, column: number): string =>
    right.includes(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0);
  return rows.map((row) => `${row.map(pad).join("  ").trimEnd()}\n`).join("");
}
