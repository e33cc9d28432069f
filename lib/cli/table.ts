/** Tables on the console, and the same rows as CSV. */

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

/**
 * Rows as CSV by RFC 4180: lines end with CRLF, cells with commas, quotes or line breaks are quoted. Clients choose some
 * texts, which a spreadsheet must not take for formulas: they begin with an apostrophe.
 */
export function csvText(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");
}

/** Texts that a spreadsheet computes; numbers with a sign are what they are. */
const FORMULA = /^(?![+-]\d+(?:\.\d+)?$)[=+\-@\t\r]/;

function csvCell(cell: string): string {
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
