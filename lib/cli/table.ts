/** Formats tables for the terminal. */

/**
 * Returns rows as text with aligned columns.
 * @param options `right`: indices of columns that are aligned to the right; `widths`: minimum widths of the columns,
 * which wider cells increase
 */
export function tableText(
  rows: readonly (readonly string[])[],
  { right = [], widths = [] }: { right?: readonly number[]; widths?: number[] } = {},
): string {
  for (const row of rows) row.forEach((cell, index) => widths[index] = Math.max(widths[index] ?? 0, cell.length));
  const pad = (cell: string, column: number): string =>
    right.includes(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0);
  return rows.map((row) => `${row.map(pad).join("  ").trimEnd()}\n`).join("");
}
