/** Pages that only show: budgets, models with the health of their targets, nodes. */
import { listBudgets } from "../billing/reports/budget_report.ts";
import { healthRows } from "../request/health.ts";
import type { RouteContext } from "../server/router.ts";
import { Count, Moment, Share, State, Table, Usd } from "./format.tsx";
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

/** `GET /admin/console/models`. */
export function modelsPage(_request: Request, context: RouteContext): Promise<Response> {
  const { gateway } = context;
  return showPage(context, () => ({
    title: "Models",
    body: (
      <>
        <Table
          columns={["Model", "#Context", "#Input / 1M", "#Output / 1M", "Targets"]}
          rows={gateway.catalog.models.map(({ id, context_length, pricing, targets }) => [
            id,
            <Count value={context_length} />,
            perMillion(pricing.prompt),
            perMillion(pricing.completion),
            targets.map(({ upstream, model }) => `${upstream}: ${model}`).join(", "),
          ])}
          empty="The catalog is empty."
        />
        <h2>Targets that were asked</h2>
        <Table
          columns={["Upstream", "Model", "State", "#Answered of last attempts"]}
          rows={healthRows(gateway).map((row) => [
            row.upstream,
            row.model,
            <State state={row.state} />,
            `${row.recent_answers} of ${row.recent_attempts}`,
          ])}
          empty="No target was asked since the start."
        />
      </>
    ),
  }));
}

/** A price per million tokens. @param price USD per token, as a decimal string */
function perMillion(price: string): string {
  const [whole = "0", fraction = ""] = price.split(".");
  const digits = `${whole}${fraction.padEnd(6, "0").slice(0, 6)}`.replace(/^0+(?=\d)/, "");
  const rest = fraction.slice(6).replace(/0+$/, "");
  return `$${digits}${rest === "" ? "" : `.${rest}`}`;
}
