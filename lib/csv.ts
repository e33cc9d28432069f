/** Writes tables as CSV that a spreadsheet can open safely. */

/**
 * Returns rows as CSV by RFC 4180: lines end with CRLF; cells with commas, quotes or line breaks are quoted. Clients
 * choose some of the texts, and a spreadsheet must not run them as formulas, so an apostrophe is put before those that
 * look like one. The same applies after a semicolon, a tab or a line break, because spreadsheets of some locales
 * separate cells by semicolons.
 */
export function csvText(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");
}

/** Beginning of a text that a spreadsheet takes for a formula. Numbers with a sign are harmless. */
const FORMULA = /^(?![+-]\d+(?:\.\d+)?$)[=+\-@\t\r]/;

/** A separator of another format that a formula follows. */
const FORMULA_AFTER_SEPARATOR = /[;\t\r\n](?=[\s"']*[=+\-@])/g;

function csvCell(cell: string): string {
  const text = (FORMULA.test(cell) ? `'${cell}` : cell).replaceAll(FORMULA_AFTER_SEPARATOR, "$&'");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
