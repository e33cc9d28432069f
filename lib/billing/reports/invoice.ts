/** Reads an upstream's invoice and prices, and compares the invoice with the ledger without rounding. */
import { counted } from "../../text.ts";
import { messageOf } from "../../errors.ts";
import { isObject, type Json, parseJson } from "../../json/mod.ts";
import { type Amount, type Factor, formatUsd, parseUsd } from "../money.ts";
import { PRICE_CLASSES } from "../price.ts";
import { DAY_MS, dayName, dayOf } from "../../store/days.ts";
import type { Period } from "./period.ts";
import type { UpstreamPrices, UpstreamPriceSheet, UpstreamSum } from "./upstreams.ts";

/** Figures that an invoice may have per model: tokens by class, images, and the amount in USD. */
const INVOICE_FIGURES = [...PRICE_CLASSES, "images", "upstream_usd"] as const;

/** A figure of an invoice. */
export type Invoiced = typeof INVOICE_FIGURES[number];

/** A parsed invoice. Values are numbers of tokens or images, or amounts in 1e-12 USD. */
export interface Invoice {
  /** The figures that it has, in the order of `INVOICE_FIGURES`. */
  columns: readonly Invoiced[];
  /** True if its lines are for single days; if not, `day` is empty. */
  byDay: boolean;
  rows: readonly { day: string; model: string; values: ReadonlyMap<Invoiced, bigint> }[];
}

/** A figure of the ledger and of the invoice; amounts are decimal strings of USD. */
export interface ComparedLine {
  /** `null` if the invoice has no days. */
  day: string | null;
  model: string;
  what: Invoiced;
  ours: string;
  invoice: string;
  /** Invoice minus ledger. */
  difference: string;
  /** True if the difference is within the tolerance. */
  within: boolean;
}

/**
 * Reads an invoice as CSV with a header: `model`, optionally `day`, and at least one of `INVOICE_FIGURES`. Other
 * columns are ignored; rows of the same day and model are added up.
 * @throws {RangeError} for an invalid invoice; the message names the line
 */
export function readInvoice(text: string): Invoice {
  const [first, ...lines] = readCsv(text);
  const header = first?.cells ?? [];
  const columnOf = (name: string) => header.indexOf(name);
  const columns = INVOICE_FIGURES.filter((name) => columnOf(name) >= 0);
  if (columnOf("model") < 0 || columns.length === 0) {
    throw new RangeError(
      `Cannot read the invoice: its first line must name the column model and one of ${INVOICE_FIGURES.join(", ")}`,
    );
  }
  const repeated = ["day", "model", ...columns].find((name) => columnOf(name) !== header.lastIndexOf(name));
  if (repeated !== undefined) throw new RangeError(`Cannot read the invoice: it has the column ${repeated} twice`);
  const byDay = columnOf("day") >= 0;
  const rows = lines.map(({ line, cells }) => {
    if (cells.length !== header.length) {
      throw new RangeError(`Cannot read line ${line} of the invoice: it has ${cells.length} of ${header.length} cells`);
    }
    const day = byDay ? cells[columnOf("day")] ?? "" : "";
    if (byDay && !isDay(day)) {
      throw new RangeError(`Cannot read line ${line} of the invoice: "${day}" is not a day such as 2026-11-21`);
    }
    const values = new Map(columns.map((name) => [name, readValue(name, { text: cells[columnOf(name)] ?? "", line })]));
    return { day, model: cells[columnOf("model")] ?? "", values };
  });
  return { columns, byDay, rows };
}

/** A row, with the number of the line on which it begins, counted from 1. */
interface Row {
  line: number;
  cells: string[];
}

/** Reads all rows except empty ones, without a byte order mark. @throws {RangeError} for a misplaced quote */
function readCsv(text: string): Row[] {
  const rows: Row[] = [];
  const cell = /(?:"([^"]*(?:""[^"]*)*)"|([^",\r\n]*))(,|\r?\n|\r|$)/y;
  const withoutMark = text.replace(/^\uFEFF/, "");
  let line = 1;
  let row: Row = { line, cells: [] };
  while (cell.lastIndex < withoutMark.length || row.cells.length > 0) {
    const match = cell.exec(withoutMark);
    if (match === null) throw new RangeError(`Cannot read line ${line} of the invoice: it has a misplaced quote`);
    const [all, quoted, plain = "", end] = match;
    line += all.match(/\r?\n|\r/g)?.length ?? 0;
    row.cells.push(quoted === undefined ? plain.trim() : quoted.replaceAll('""', '"'));
    if (end === ",") continue;
    if (row.cells.length > 1 || row.cells[0] !== "") rows.push(row);
    row = { line, cells: [] };
  }
  return rows;
}

function isDay(text: string): boolean {
  const at = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : NaN;
  return Number.isFinite(at) && dayName(dayOf(at)) === text;
}

/** Reads a number or an amount; an empty text is 0. */
function readValue(name: Invoiced, { text, line }: { text: string; line: number }): bigint {
  if (text === "") return 0n;
  if (name !== "upstream_usd" && /^\d{1,18}$/.test(text)) return BigInt(text);
  try {
    if (name === "upstream_usd") return parseUsd(text);
  } catch {
    // The error below names the line.
  }
  const expected = name === "upstream_usd" ? "USD with at most 12 decimals, such as 12.5" : "a whole number";
  throw new RangeError(`Cannot read line ${line} of the invoice: ${name} is "${text}", expected ${expected}`);
}

/** Reads a relative tolerance in percent, such as `0.1%`. @throws {RangeError} for any other text */
export function readTolerance(text: string): Factor {
  const [, integer, fraction = ""] = /^(\d{1,3})(?:\.(\d{1,6}))?%$/.exec(text) ?? [];
  if (integer === undefined) {
    throw new RangeError(`Cannot read the tolerance "${text}": expected a percentage, such as 0.1%`);
  }
  return { digits: BigInt(integer + fraction), decimals: fraction.length };
}

/**
 * Parses upstream prices: a JSON object that has, for each upstream model name, an object of USD per token by class. A
 * missing cache class costs as much as `prompt`, as in the catalog.
 * @throws {RangeError} for any other text
 */
export function readUpstreamPrices(text: string): UpstreamPrices {
  const known: readonly string[] = [...PRICE_CLASSES, "input_image", "request"];
  const prices = new Map<string, Readonly<UpstreamPriceSheet>>();
  for (const [model, row] of membersOf(readObject(text), "an object of models")) {
    const price: Record<string, string> = {};
    for (const [name, usd] of membersOf(row, `an object of prices for "${model}"`)) {
      if (!known.includes(name) && !name.startsWith("hosted_tools.")) {
        throw new RangeError(`Cannot read the prices: "${name}" of "${model}" is not a price class`);
      }
      if (typeof usd !== "string") {
        throw new RangeError(`Cannot read the prices: "${name}" of "${model}" is not a string`);
      }
      price[name] = readPrice(usd, `"${name}" of "${model}"`);
    }
    const { prompt, completion } = price;
    if (prompt === undefined || completion === undefined) {
      throw new RangeError(`Cannot read the prices: "${model}" needs prompt and completion`);
    }
    const cache = { input_cache_read: prompt, input_cache_write_5m: prompt, input_cache_write_1h: prompt };
    prices.set(model, Object.freeze({ ...cache, ...price, model, factor: "1", prompt, completion }));
  }
  return prices;
}

function readObject(text: string): Json {
  try {
    return parseJson(text);
  } catch (error) {
    throw new RangeError(`Cannot read the prices: ${messageOf(error)}`, { cause: error });
  }
}

function membersOf(value: Json, expected: string): [string, Json][] {
  if (!isObject(value)) throw new RangeError(`Cannot read the prices: expected ${expected}`);
  return Object.entries(value).map(([name, member]) => [name, member ?? null]);
}

/** Returns the text if it is an amount in USD. @throws {RangeError} for any other text */
function readPrice(usd: string, what: string): string {
  try {
    parseUsd(usd);
    return usd;
  } catch (cause) {
    throw new RangeError(`Cannot read the prices: ${what} is "${usd}", expected USD with at most 12 decimals`, {
      cause,
    });
  }
}

/**
 * Checks that a period can be compared with an invoice that has days: it must consist of whole days, and contain all
 * days of the invoice.
 * @throws {RangeError} otherwise
 */
export function requireDays({ byDay, rows }: Invoice, { since, until }: Period): void {
  if (!byDay) return;
  if (since % DAY_MS !== 0 || until % DAY_MS !== 0) {
    throw new RangeError(
      "Cannot compare by day: the period must begin and end at midnight, as with --since 2026-11-01",
    );
  }
  const outside = rows.find(({ day }) => Date.parse(day) < since || Date.parse(day) >= until);
  if (outside === undefined) return;
  throw new RangeError(`Cannot compare: the invoice has the day ${outside.day}, which is not in the period`);
}

/** Compares sums with an invoice, for each model that either of them has, and by day if the invoice has days. */
export function compareInvoice(
  sums: readonly UpstreamSum[],
  { invoice, tolerance }: { invoice: Invoice; tolerance: Factor },
): ComparedLine[] {
  const rows = new Map<string, { day: string; model: string; ours: Values; invoiced: Values }>();
  const rowOf = (day: string, model: string) => {
    const name = `${model}\n${day}`;
    let row = rows.get(name);
    if (row === undefined) rows.set(name, row = { day, model, ours: new Map(), invoiced: new Map() });
    return row;
  };
  const add = (values: Values, what: Invoiced, more: bigint) => values.set(what, (values.get(what) ?? 0n) + more);
  for (const sum of sums) {
    const { ours } = rowOf(invoice.byDay ? dayName(sum.day) : "", sum.model);
    for (const what of invoice.columns) add(ours, what, valueOf(sum, what));
  }
  for (const { day, model, values } of invoice.rows) {
    const { invoiced } = rowOf(day, model);
    for (const [what, value] of values) add(invoiced, what, value);
  }
  const ordered = [...rows].sort(([one], [other]) => one < other ? -1 : 1);
  return ordered.flatMap(([, { day, model, ours, invoiced }]) =>
    invoice.columns.map((what): ComparedLine => {
      const [ledgerValue, invoiceValue] = [ours.get(what) ?? 0n, invoiced.get(what) ?? 0n];
      const format = (value: bigint) => what === "upstream_usd" ? formatUsd(value) : String(value);
      return {
        day: invoice.byDay ? day : null,
        model,
        what,
        ours: format(ledgerValue),
        invoice: format(invoiceValue),
        difference: format(invoiceValue - ledgerValue),
        within: isWithin(invoiceValue - ledgerValue, { invoiceValue, tolerance }),
      };
    })
  );
}

/** Describes the result of a comparison in one sentence, without a full stop. */
export function comparisonText(lines: readonly ComparedLine[]): string {
  const differing = lines.filter(({ within }) => !within).length;
  if (differing === 0) return "No differences found";
  const verb = differing === 1 ? "differs" : "differ";
  return `${differing} of ${counted(lines.length, "number")} ${verb} by more than the tolerance`;
}

type Values = Map<Invoiced, bigint>;

function valueOf({ tokens, images, upstreamCost }: UpstreamSum, what: Invoiced): bigint {
  if (what === "upstream_usd") return upstreamCost;
  return BigInt(what === "images" ? images : tokens[what]);
}

function isWithin(
  difference: Amount,
  { invoiceValue, tolerance }: { invoiceValue: Amount; tolerance: Factor },
): boolean {
  const size = difference < 0n ? -difference : difference;
  return size * 100n * 10n ** BigInt(tolerance.decimals) <= tolerance.digits * invoiceValue;
}
