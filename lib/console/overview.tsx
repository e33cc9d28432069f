/** The first page of the console: recent spending by key and model, and current problems. */
import type { VNode } from "preact";
import { type BudgetLine, listBudgets } from "../billing/reports/budget_report.ts";
import { parseUsd } from "../billing/money.ts";
import { type UsageReport, usageReport } from "../billing/reports/usage.ts";
import type { Gateway } from "../gateway.ts";
import { healthRows, readiness } from "../request/health.ts";
import type { RouteContext } from "../server/router.ts";
import { DAY_MS } from "../store/days.ts";
import { DayChart } from "./chart.tsx";
import { Cards, Count, Moment, State, Table, Usd } from "./format.tsx";
import { CONSOLE, type Page, queryOf, showPage } from "./html.tsx";

/** Periods to choose from, in days. */
const PERIODS = [1, 7, 30, 90, 365] as const;
/** Lines of each list. */
const LINES = 8;
/** Share of a budget, in percent, from which on it is listed. */
const NEAR_END_PERCENT = 80;

/** `GET /admin/console`. */
export function overview(request: Request, context: RouteContext): Promise<Response> {
  return showPage(
    context,
    () => overviewPage(periodDays(request), { gateway: context.gateway, signal: request.signal }),
  );
}

/** The period of the query, in days: 7 unless it names another of the list. */
function periodDays(request: Pick<Request, "url">): number {
  const asked = Number(queryOf(request).get("days"));
  return PERIODS.find((days) => days === asked) ?? 7;
}

async function overviewPage(
  days: number,
  { gateway, signal }: { gateway: Gateway; signal: AbortSignal },
): Promise<Page> {
  const { store: { ledger, keys }, config, now } = gateway;
  const until = now() + 1;
  // From the beginning of a UTC day on, so that sums per day suffice.
  const since = days === 1 ? until - DAY_MS : (Math.floor(until / DAY_MS) - days + 1) * DAY_MS;
  const report = (by: UsageReport["by"]) => usageReport({ ledger, keys, config }, { since, until, by, signal });
  const [byDay, byModel, byKey] = [await report("day"), await report("model"), await report("key")];
  const budgets = await listBudgets({ ledger, keys, config }, { now: until, signal });
  const { status, message } = await readiness(gateway);
  const { total } = byDay;
  return {
    title: "Overview",
    body: (
      <>
        <p>
          <State state={status} text={message} />
        </p>
        <PeriodLinks days={days} />
        <Cards
          cards={[
            ["Cost", <Usd usd={total.cost_usd} />],
            ["Requests", <Count value={total.requests} />],
            ["Failed or refused", <Count value={total.failed} />],
            ["Input tokens", <Count value={total.tokens.prompt + total.tokens.input_cache_read} />],
            ["Output tokens", <Count value={total.tokens.completion} />],
            ["Images", <Count value={total.images} />],
          ]}
        />
        {days > 1 && <DayChart days={byDay.lines} since={since} until={until} />}
        <h2>By model</h2>
        <Spenders report={byModel} parameter="model" days={days} />
        <h2>By key</h2>
        <Spenders report={byKey} parameter="key" days={days} />
        <h2>{`Budgets used by ${NEAR_END_PERCENT}% or more`}</h2>
        <NearBudgets budgets={budgets} />
        <h2>Targets in trouble</h2>
        <TroubledTargets gateway={gateway} />
      </>
    ),
  };
}

function PeriodLinks({ days: shown }: { days: number }): VNode {
  return (
    <nav aria-label="Period">
      {PERIODS.map((days) => (
        <>
          <a href={`${CONSOLE}?days=${days}`} aria-current={days === shown ? "true" : undefined}>
            {days === 1 ? "24 hours" : `${days} days`}
          </a>
          {" "}
        </>
      ))}
    </nav>
  );
}

/** The dearest lines of a report, each with a link to its requests. */
function Spenders(
  { report, parameter, days }: { report: UsageReport; parameter: "key" | "model"; days: number },
): VNode {
  const linkOf = (name: string) =>
    `${CONSOLE}/requests?${new URLSearchParams({ [parameter]: name, since: `${days}d`, sort: "cost" })}`;
  return (
    <Table
      columns={["Name", "#Cost", "#Requests", "#Failed", "#Output tokens"]}
      rows={report.lines.slice(0, LINES).map(({ id, name, cost_usd, requests, failed, tokens }) => [
        name === "" ? "–" : <a href={linkOf(id ?? name)}>{name}</a>,
        <Usd usd={cost_usd} />,
        <Count value={requests} />,
        <Count value={failed} />,
        <Count value={tokens.completion} />,
      ])}
      empty="No requests in this period."
    />
  );
}

function NearBudgets({ budgets }: { budgets: readonly BudgetLine[] }): VNode {
  const near = budgets.map((budget) => ({ ...budget, percent: usedPercent(budget) }))
    .filter(({ percent }) => percent >= NEAR_END_PERCENT)
    .sort((a, b) => b.percent - a.percent);
  return (
    <Table
      columns={["Budget of", "#Used", "#Left", "Resets"]}
      rows={near.slice(0, LINES).map(({ scope, name, percent, left_usd, resets_at }) => [
        `${scope} ${name}`,
        `${percent}%`,
        <Usd usd={left_usd} />,
        <Moment iso={resets_at} />,
      ])}
      empty="None."
    />
  );
}

/** Share of a budget that is spent or held, in whole percent. */
export function usedPercent({ budget_usd, spent_usd, held_usd }: BudgetLine): number {
  const budget = parseUsd(budget_usd);
  if (budget === 0n) return 100;
  return Number((parseUsd(spent_usd) + parseUsd(held_usd)) * 100n / budget);
}

function TroubledTargets({ gateway }: { gateway: Gateway }): VNode {
  return (
    <Table
      columns={["Target", "State", "#Answered of last attempts"]}
      rows={healthRows(gateway).filter(({ state }) => state !== "closed").map((row) => [
        `${row.upstream} ${row.model}`,
        <State state={row.state} />,
        `${row.recent_answers} of ${row.recent_attempts}`,
      ])}
      empty="None."
    />
  );
}
