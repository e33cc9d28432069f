/** The choice of what a report of a month shows: its form, and its links. */
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
  /** Such as `2026-11`. */
  month: string;
  period: Period;
  by: UsageGrouping | typeof UPSTREAM;
  /** The second grouping; absent: none. */
  thenBy?: UsageGrouping;
  isCsv: boolean;
}

/** Reads the choice: this month by model unless the query says otherwise. @throws {GatewayError} `invalid` */
export function readChoice(query: URLSearchParams, now: number): UsageChoice {
  const readGrouping = (name: string) => USAGE_BY.find((by) => by === query.get(name));
  const by = query.get("by") === UPSTREAM ? UPSTREAM : readGrouping("by") ?? "model";
  const thenBy = readGrouping("then");
  const month = query.get("month") || new Date(now).toISOString().slice(0, 7);
  const isCsv = query.get("format") === "csv";
  return {
    ...{ month, period: periodOf({ period: month }, now, "month"), by, isCsv },
    ...(thenBy !== undefined && thenBy !== by && by !== UPSTREAM && { thenBy }),
  };
}

/** The month with its neighbours, and the groupings. */
export function ChoiceForm({ choice: { month, by, thenBy, period } }: { choice: UsageChoice }): VNode {
  const monthAt = (at: number) => new Date(at).toISOString().slice(0, 7);
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

/** A link to the same sums as a file. */
export function CsvLink({ choice: { month, by, thenBy } }: { choice: UsageChoice }): VNode {
  const query = new URLSearchParams({ month, by, ...(thenBy !== undefined && { then: thenBy }), format: "csv" });
  return (
    <p>
      <a href={`${CONSOLE}/usage?${query}`} download>Download as CSV</a>, with exact amounts
    </p>
  );
}
