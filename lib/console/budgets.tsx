/** The page with the budgets of groups, keys and end users. */
import type { VNode } from "preact";
import { findBudgetLines } from "../admin/budgets.ts";
import { requestsOfBudget, usedPercent } from "../billing/reports/budget_report.ts";
import type { BudgetLine } from "../billing/reports/schemas.ts";
import { BUDGET_PARAMETERS, type BudgetTexts } from "../billing/reports/budget_search.ts";
import type { RouteContext } from "../server/router.ts";
import { Moment, Share, Table, Usd } from "./format.tsx";
import { CONSOLE, readTexts, requestsPath, showPage } from "./html.tsx";

/** Scopes that the form offers, with their texts. */
const SCOPES = [["", "all"], ["group", "groups"], ["key", "keys"], ["user", "end users"]] as const;

/** `GET /admin/console/budgets`. */
export function budgetsPage(request: Request, context: RouteContext): Promise<Response> {
  const { gateway } = context;
  return showPage(context, async () => {
    const texts = readTexts(request, BUDGET_PARAMETERS);
    const now = gateway.now();
    const lines = await findBudgetLines(texts, { gateway, signal: request.signal });
    return {
      title: "Budgets",
      body: (
        <>
          <p class="dim">
            Budgets and limits of groups are set in the configuration file. Of end users, those who spent most are
            listed.
          </p>
          <FilterForm texts={texts} />
          <Table
            columns={["Budget of", "Group", "Period", "#Budget", "#Spent", "#Held", "#Left", "Used", "Resets"]}
            rows={lines.map((line) => [
              <BudgetOwnerLink line={line} now={now} />,
              line.group,
              line.period,
              <Usd usd={line.budget_usd} />,
              <Usd usd={line.spent_usd} />,
              <Usd usd={line.held_usd} />,
              <Usd usd={line.left_usd} />,
              <Share percent={usedPercent(line)} of={`Used part of the budget of ${nameOf(line)}`} />,
              <Moment iso={line.resets_at} />,
            ])}
            empty="No budgets match."
          />
        </>
      ),
    };
  });
}

function FilterForm({ texts }: { texts: BudgetTexts }): VNode {
  const field = (name: keyof BudgetTexts, label: string) => (
    <label>
      {label}
      <input name={name} value={texts[name] ?? ""} autocomplete="off" />
    </label>
  );
  return (
    <form class="fields" method="get" action={`${CONSOLE}/budgets`}>
      <label>
        Budgets of
        <select name="scope">
          {SCOPES.map(([value, text]) => <option value={value} selected={value === (texts.scope ?? "")}>{text}
          </option>)}
        </select>
      </label>
      {field("group", "Group")}
      {field("key", "Key")}
      {field("user", "End user of this key")}
      <label>
        Maximum end users
        <input name="limit" value={texts.limit ?? ""} placeholder="20" inputmode="numeric" autocomplete="off" />
      </label>
      <button type="submit">Find</button>
    </form>
  );
}

/**
 * Shows the owner of a budget, with a link to the requests of its period.
 * @param props `now`: Unix time in milliseconds
 */
export function BudgetOwnerLink({ line, now }: { line: BudgetLine; now: number }): VNode {
  const filter = requestsOfBudget(line, now);
  if (filter === undefined) return <>{nameOf(line)}</>;
  return <a href={requestsPath({ ...filter, sort: "cost" })}>{nameOf(line)}</a>;
}

function nameOf({ scope, name, user }: BudgetLine): string {
  if (scope !== "user") return `${scope} ${name}`;
  return `${user === "" ? "requests without an end user" : `end user ${user}`} of key ${name}`;
}
