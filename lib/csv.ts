/** Tables as CSV. */

/**
 * Rows as CSV by RFC 4180: lines end with CRLF, cells with commas, quotes or line breaks are quoted. Clients choose some
 * texts, which a spreadsheet must not take for formulas: they begin with an apostrophe. So do their parts behind a
 * semicolon, a tab or a line break, since spreadsheets of some countries separate cells by semicolons.
 */
export function csvText(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");
}

/** Texts that a spreadsheet computes; numbers with a sign are what they are. */
const FORMULA = /^(?![+-]\d+(?:\.\d+)?$)[=+\-@\t\r]/;

/** Separators of other formats, with a formula behind them. */
const LATER_FORMULA = /[;\t\r\n](?=[\s"']*[=+\-@])/g;

function csvCell(cell: string): string {
  const text = (FORMULA.test(cell) ? `'${cell}` : cell).replaceAll(LATER_FORMULA, "$&'");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
