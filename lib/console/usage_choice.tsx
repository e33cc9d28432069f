/** The choice of month and groupings on the usage page: its form and its links. */
import type { VNode } from "preact";
import { periodOf } from "../admin/usage.ts";
import type { Period } from "../billing/reports/period.ts";
import { USAGE_BY, type UsageGrouping } from "../billing/reports/usage.ts";
import { CONSOLE } from "./html.tsx";

/** The grouping by upstream, which cannot be combined. */
export const UPSTREAM = "upstream";

/** Titles of the groupings. */
export const TITLES: Readonly<Record<UsageGrouping, string>> = {
  key: "Key",
  group: "Group",
  model: "Model",
  day: "Day",
  user: "End user",
  tag: "Tag",
};

/** The choices in the query. */
export interface UsageChoice {
  /** Name of the month, such as `2026-11`. */
  month: string;
  period: Period;
  by: UsageGrouping | typeof UPSTREAM;
  /** The second grouping; absent: none. */
  thenBy?: UsageGrouping;
  /** True to return a CSV file instead of the page. */
  isCsv: boolean;
}

/** Reads the choice. The default is this month, by model. @throws {GatewayError} `invalid` for a wrong month */
export function readChoice(query: URLSearchParams, now: number): UsageChoice {
  const groupingOf = (parameter: string) => USAGE_BY.find((by) => by === query.get(parameter));
  const by = query.get("by") === UPSTREAM ? UPSTREAM : groupingOf("by") ?? "model";
  const thenBy = groupingOf("then");
  const month = query.get("month") || new Date(now).toISOString().slice(0, 7);
  const isCsv = query.get("format") === "csv";
  return {
    month,
    period: periodOf({ period: month }, now, "month"),
    by,
    isCsv,
    ...(thenBy !== undefined && thenBy !== by && by !== UPSTREAM && { thenBy }),
  };
}

/** Shows the form with the month and the groupings, and links to the months before and after. */
export function ChoiceForm({ choice: { month, by, thenBy, period } }: { choice: UsageChoice }): VNode {
  const monthAt = (time: number) => new Date(time).toISOString().slice(0, 7);
  const linkTo = (month: string) =>
    `${CONSOLE}/usage?${new URLSearchParams({ month, by, ...(thenBy !== undefined && { then: thenBy }) })}`;
  const options = (chosen: string | undefined) =>
    USAGE_BY.map((name) => <option value={name} selected={name === chosen}>{TITLES[name].toLowerCase()}</option>);
  return (
    <form class="fields" method="get" action={`${CONSOLE}/usage`}>
      <label>
        Month (UTC)
        <input type="month" name="month" value={month} required />
      </label>
      <label>
        By
        <select name="by">
          {options(by)}
          <option value={UPSTREAM} selected={by === UPSTREAM}>upstream, with its cost</option>
        </select>
      </label>
      <label>
        Then by
        <select name="then">
          <option value="">nothing more</option>
          {options(thenBy)}
        </select>
      </label>
      <button type="submit">Show</button>
      <p class="links">
        <a href={linkTo(monthAt(period.since - 1))}>Month before</a>{" "}
        <a href={linkTo(monthAt(period.until))}>Month after</a>
      </p>
    </form>
  );
}

/** Shows the link to the same sums as a CSV file. */
export function CsvLink({ choice: { month, by, thenBy } }: { choice: UsageChoice }): VNode {
  const query = new URLSearchParams({ month, by, ...(thenBy !== undefined && { then: thenBy }), format: "csv" });
  return (
    <p>
      <a href={`${CONSOLE}/usage?${query}`} download>Download as CSV</a>, with exact amounts
    </p>
  );
}
