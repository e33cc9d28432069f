/** The pages of groups, with their limits, budgets and keys. Groups are changed in the configuration, not here. */
import type { VNode } from "preact";
import { keyPages } from "../access/key_admin.ts";
import { configuredKeys } from "../access/keys.ts";
import { groupBudgets, keysWithBudgets } from "../billing/reports/budget_report.ts";
import { usageReport } from "../billing/reports/usage.ts";
import { type Config, groupOf } from "../config.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import { limitRequestsFor } from "../limits/limit_requests.ts";
import type { RouteContext } from "../server/router.ts";
import type { KeyRecord } from "../store/keys.ts";
import { CHART_DAYS, chartPeriod, DayChart } from "./chart.tsx";
import { BudgetAmount, Cards, Count, Moment, shortCount, State, Table, Usd } from "./format.tsx";
import { CONSOLE, keyPath, type Page, showPage } from "./html.tsx";
import { LimitTable, readLimits } from "./limits.tsx";

/** Largest number of keys that a page lists. */
const MAX_LISTED_KEYS = 1_000;

/** `GET /admin/console/groups`. */
export function groupsPage(_request: Request, context: RouteContext): Promise<Response> {
  return showPage(context, async () => {
    const { gateway } = context;
    const groups = Object.entries(gateway.config.groups);
    const budgets = await groupBudgets(gateway.store.ledger, gateway.config.groups, gateway.now());
    const members = await countMembers(gateway);
    return {
      title: "Groups",
      body: (
        <>
          <SetInConfiguration />
          <Table
            columns={["Name", "#Keys", "Models", "#Price factor", "Limits", "#Spent", "#Left", "#Budget"]}
            rows={groups.map(([name, group]) => {
              const budget = budgets.get(name);
              const usd = (amount: string | undefined) => amount === undefined ? "–" : <Usd usd={amount} />;
              return [
                <a href={`${CONSOLE}/groups/${encodeURIComponent(name)}`}>{name}</a>,
                <Count value={members.get(name) ?? 0} />,
                group.models.join(", ") || "none",
                group.price_factor,
                limitsText(group.limits),
                usd(budget?.spent_usd),
                usd(budget?.left_usd),
                budget === undefined ? "none" : <BudgetAmount budget={budget} />,
              ];
            })}
            empty="There are no groups."
          />
          <p>
            <a href={`${CONSOLE}/budgets`}>Budgets of groups, keys and end users</a>
          </p>
        </>
      ),
    };
  });
}

/** `GET /admin/console/groups/[group]`. */
export function groupPage({ signal }: Request, context: RouteContext): Promise<Response> {
  return showPage(context, () => detailPage(context, signal));
}

async function detailPage({ gateway, params: { group: name = "" } }: RouteContext, signal: AbortSignal): Promise<Page> {
  const { config, store: { ledger, keys }, now } = gateway;
  const group = groupOf(config, name);
  if (group === undefined) {
    throw new GatewayError("not_found", `Cannot find group "${name}": the configuration has no group of this name`);
  }
  const budget = (await groupBudgets(ledger, { [name]: group }, now())).get(name);
  const period = chartPeriod(now());
  const usage = await usageReport({ ledger, keys, config }, { ...period, by: "day", only: { group: name }, signal });
  const limits = await readLimits(gateway, limitRequestsFor({ type: "group", id: name }, group.limits));
  return {
    title: `Group ${name}`,
    body: (
      <>
        <SetInConfiguration name={name} />
        <Cards
          cards={[
            [`Cost in ${CHART_DAYS} days`, <Usd usd={usage.total.cost_usd} />],
            [`Requests in ${CHART_DAYS} days`, <Count value={usage.total.requests} />],
            ["Budget", budget === undefined ? "none" : <BudgetAmount budget={budget} />],
            ["Spent", budget === undefined ? "–" : <Usd usd={budget.spent_usd} />],
            ["Held", budget === undefined ? "–" : <Usd usd={budget.held_usd} />],
            ["Left", budget === undefined ? "–" : <Usd usd={budget.left_usd} />],
            ["Resets", <Moment iso={budget?.resets_at ?? null} />],
          ]}
        />
        <DayChart days={usage.lines} {...period} />
        <h2>Limits that all its keys share</h2>
        <LimitTable limits={limits} />
        <h2>Members</h2>
        {await membersTable(gateway, name)}
        <h2>Configuration</h2>
        <pre tabIndex={0}>{JSON.stringify(group, null, 2)}</pre>
      </>
    ),
  };
}

/** Tells the operator where groups are changed. */
function SetInConfiguration({ name }: { name?: string }): VNode {
  return (
    <p class="notice">
      {name === undefined ? "Groups are" : "This group is"} set in the configuration:{" "}
      <code>{name === undefined ? "groups" : `groups.${name}`}</code>. Change it there, and{" "}
      <a href={`${CONSOLE}/configuration`}>reload the configuration</a>.
    </p>
  );
}

/** Counts the keys of each group that are not revoked, including those of the configuration. */
async function countMembers(
  { store, config }: Pick<Gateway, "store" | "config">,
): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  const count = (group: string) => counts.set(group, (counts.get(group) ?? 0) + 1);
  for (const { group } of config.keys) count(group);
  for await (const page of keyPages(store.keys)) {
    for (const { group, revokedAt } of page) if (revokedAt === undefined) count(group);
  }
  return counts;
}

/** Returns the unrevoked keys of a group: those of the configuration, then those of the store, newest first. */
async function readMembers({ store, config }: Pick<Gateway, "store" | "config">, name: string): Promise<KeyRecord[]> {
  const records: KeyRecord[] = [];
  for await (const page of keyPages(store.keys)) {
    records.push(...page.filter(({ group, revokedAt }) => group === name && revokedAt === undefined));
  }
  return [
    ...configuredKeys(config).filter(({ group }) => group === name),
    ...records.reverse().slice(0, MAX_LISTED_KEYS),
  ];
}

/** Makes the table of a group's keys. */
async function membersTable(gateway: Gateway, name: string): Promise<VNode> {
  const { store: { ledger }, config, now } = gateway;
  const members = await keysWithBudgets({ ledger, config }, await readMembers(gateway, name), now());
  return (
    <Table
      columns={["Name", "State", "#Spent", "#Budget", "Last used"]}
      rows={members.map(({ id, name, state, budget, last_used_at }) => [
        <a href={keyPath(id)}>{name}</a>,
        id.startsWith("config:") ? "in the configuration" : <State state={state} />,
        budget === null ? "–" : <Usd usd={budget.spent_usd} />,
        budget === null ? "none" : <Usd usd={budget.budget_usd} />,
        <Moment iso={last_used_at} />,
      ])}
      empty="No key in use belongs to this group."
    />
  );
}

function limitsText(limits: Config["groups"][string]["limits"]): string {
  const { requests_per_minute: requests, tokens_per_minute: tokens, concurrency, report_only } = limits ?? {};
  const text = [
    ...(requests === undefined ? [] : [`${shortCount(requests)} requests/min`]),
    ...(tokens === undefined ? [] : [`${shortCount(tokens)} tokens/min`]),
    ...(concurrency === undefined ? [] : [`${concurrency} concurrent`]),
  ].join(", ");
  if (text === "") return "none";
  return report_only === true ? `${text} (reported only)` : text;
}
