/** Budgets of groups and keys. */
import { listBudgets } from "../billing/reports/budget_report.ts";
import type { RouteContext } from "../server/router.ts";
import { Moment, Share, Table, Usd } from "./format.tsx";
import { showPage } from "./html.tsx";
import { usedPercent } from "./overview.tsx";

/** `GET /admin/console/budgets`. */
export function budgetsPage({ signal }: Request, context: RouteContext): Promise<Response> {
  const { gateway: { store: { ledger, keys }, config, now } } = context;
  return showPage(context, async () => ({
    title: "Budgets",
    body: (
      <>
        <p class="dim">Budgets and limits of groups are set in the configuration file.</p>
        <Table
          columns={["Budget of", "Group", "Period", "#Budget", "#Spent", "#Held", "#Left", "Used", "Resets"]}
          rows={(await listBudgets({ ledger, keys, config }, { now: now(), signal })).map((line) => [
            `${line.scope} ${line.name}`,
            line.group,
            line.period,
            <Usd usd={line.budget_usd} />,
            <Usd usd={line.spent_usd} />,
            <Usd usd={line.held_usd} />,
            <Usd usd={line.left_usd} />,
            <Share percent={usedPercent(line)} of={`Used part of the budget of ${line.name}`} />,
            <Moment iso={line.resets_at} />,
          ])}
          empty="No group and no key has a budget."
        />
      </>
    ),
  }));
}
