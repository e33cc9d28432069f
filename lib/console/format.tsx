/**
 * Formats values for the console, such as amounts, times and tables. Rounded values have the exact one as their title.
 */
import type { VNode } from "preact";
import type { BudgetState } from "../billing/reports/schemas.ts";
import { formatUsd, parseUsd, periodText, roundUsd } from "../billing/money.ts";
import { shortText } from "../text.ts";

/**
 * Shows an amount: with cents if it is a dollar or more, otherwise with 4 decimals.
 * @param props `usd`: decimal string
 */
export function Usd({ usd }: { usd: string }): VNode {
  return <span title={`${usd} USD`}>{readableUsd(usd)}</span>;
}

/** Shows a budget and its period, such as `$500.00 per month`. */
export function BudgetAmount({ budget: { budget_usd, period } }: { budget: BudgetState }): VNode {
  return (
    <>
      <Usd usd={budget_usd} /> {periodText(period)}
    </>
  );
}

/** Amounts in 1e-12 USD. */
const HALF_CENT = 5n * 10n ** 9n;
const DOLLAR = 10n ** 12n;

/**
 * Formats an amount: `$1,234.57`, `$0.0316`, `<$0.0001`, `-$0.0015`, `>-$0.0001`.
 * @param usd exact amount as a decimal string
 */
export function readableUsd(usd: string): string {
  if (usd.startsWith("-")) return `-${readableUsd(usd.slice(1))}`.replace("-<", ">-");
  const amount = parseUsd(usd);
  if (amount < DOLLAR) return `$${roundUsd(usd)}`.replace("$<", "<$");
  const cents = ((amount + HALF_CENT) / 10n ** 10n).toString();
  return `$${NUMBER.format(BigInt(cents.slice(0, -2)))}.${cents.slice(-2)}`;
}

/**
 * Formats a price with all its decimals, and at least two if it has any: `$10`, `$0.80`, `$0.125`.
 * @param price USD as a decimal string
 * @param zeros the price is multiplied by 10 to this power
 */
export function readableRate(price: string, zeros = 0): string {
  const exact = formatUsd(parseUsd(price) * 10n ** BigInt(zeros));
  return `$${exact.replace(/^(\d+\.\d)$/, "$10")}`;
}

/** Formats a count as a short text, such as `600` or `20M`. */
export function shortCount(value: number): string {
  return value < 10_000 ? NUMBER.format(value) : COMPACT_NUMBER.format(value);
}

const NUMBER = new Intl.NumberFormat("en");
/** Formats a number with at most three digits, such as 12.3K. */
export const COMPACT_NUMBER = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** Shows a count, from 10,000 on with three digits, such as 12.3K. */
export function Count({ value }: { value: number }): VNode {
  return <span title={NUMBER.format(value)}>{shortCount(value)}</span>;
}

/**
 * Shows a duration: in milliseconds below a second, then in seconds with three digits, from 100 seconds on in minutes.
 * @param props `ms`: duration in milliseconds; `null`: unknown
 */
export function Duration({ ms }: { ms: number | null }): VNode {
  if (ms === null) return <span class="dim">–</span>;
  return <span title={`${NUMBER.format(ms)} ms`}>{durationText(ms)}</span>;
}

function durationText(ms: number): string {
  if (ms < 1000) return `${ms} ms`;
  return ms < 100_000 ? `${SECONDS.format(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`;
}

const SECONDS = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** Shows an HTTP status in the color of its class. @param props `status`: `null` if unknown */
export function HttpStatus({ status }: { status: number | null }): VNode {
  if (status === null) return <span class="dim">–</span>;
  return <span class={statusClass(status)}>{status}</span>;
}

function statusClass(status: number): "good" | "warn" | "bad" {
  if (status < 300) return "good";
  return status < 500 ? "warn" : "bad";
}

/** Shows a used share as a bar and a number. @param props `percent` may exceed 100; `of`: name for screen readers */
export function Share({ percent, of }: { percent: number; of: string }): VNode {
  return (
    <>
      <meter min={0} max={100} low={80} high={95} optimum={0} value={Math.min(100, percent)} aria-label={of} />{" "}
      {`${percent}%`}
    </>
  );
}

/**
 * Shows a time in UTC, which the console's script replaces by the time in the viewer's zone.
 * @param props `iso`: ISO 8601, `null` if there is none; `seconds`: whether seconds are shown
 */
export function Moment({ iso, seconds = false }: { iso: string | null; seconds?: boolean }): VNode {
  if (iso === null) return <span class="dim">–</span>;
  const text = `${iso.slice(0, seconds ? 19 : 16).replace("T", " ")} UTC`;
  return <time dateTime={iso} data-seconds={seconds ? "" : undefined}>{text}</time>;
}

/**
 * Shows a state, such as `active` or `open`, in a color that tells whether it is good or bad.
 * @param props `text`: text to show; absent: the name of the state
 */
export function State({ state, text = state.replaceAll("_", " ") }: { state: string; text?: string }): VNode {
  return <span class={`state ${STATE_CLASSES[state] ?? "warn"}`}>{text}</span>;
}

const STATE_CLASSES: Readonly<Record<string, string>> = {
  active: "good",
  closed: "good",
  ok: "good",
  open: "bad",
  quarantined: "bad",
  revoked: "dim",
  expired: "dim",
  unavailable: "bad",
  error: "bad",
};

/** Shows a table, which scrolls by itself on a narrow screen. Columns whose names begin with `#` contain numbers. */
export function Table({ columns, rows, total, empty }: {
  columns: readonly string[];
  rows: readonly (readonly Cell[])[];
  total?: readonly Cell[];
  /** Text that is shown if there are no rows. */
  empty: string;
}): VNode {
  if (rows.length === 0) return <p class="empty">{empty}</p>;
  const classes = columns.map((name) => name.startsWith("#") ? "number" : undefined);
  return (
    <div class="scroll" role="region" tabIndex={0} aria-label={columns[0]?.replace("#", "")}>
      <table>
        <thead>
          <tr>{columns.map((name, index) => <th scope="col" class={classes[index]}>{name.replace("#", "")}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row) => <Row cells={row} classes={classes} />)}
          {total !== undefined && <Row cells={total} classes={classes} name="total" />}
        </tbody>
      </table>
    </div>
  );
}

type Cell = VNode | string | number;

function Row(
  { cells, classes, name }: { cells: readonly Cell[]; classes: readonly (string | undefined)[]; name?: string },
): VNode {
  return <tr class={name}>{cells.map((cell, at) => <td class={isLong(cell) ? "long" : classes[at]}>{cell}</td>)}</tr>;
}

/** Longest text of a cell that is kept on one line, in characters. */
const MAX_LINE_CHARACTERS = 48;

function isLong(cell: Cell): boolean {
  return typeof cell === "string" && cell.length > MAX_LINE_CHARACTERS;
}

/** Shows a text as code. A text of more than `max` characters is cut; its title has all of it. */
export function ShortCode({ text, max }: { text: string; max: number }): VNode {
  return <code title={text}>{shortText(text, max)}</code>;
}

/** Shows values with their names. */
export function Cards(
  { cards }: { cards: readonly (readonly [name: string, value: VNode | string | number])[] },
): VNode {
  return (
    <dl class="cards">
      {cards.map(([name, value]) => (
        <div>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
