/** The page of a key: its budget, limits and usage, and the forms that change it. */
import type { VNode } from "preact";
import type { ConsoleSession } from "../access/console_session.ts";
import { findKey } from "../access/key_admin.ts";
import { type KeyWithBudget, keyWithBudget } from "../billing/reports/budget_report.ts";
import { usageReport } from "../billing/reports/usage.ts";
import { groupOf } from "../config.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import { callerLimitRequests } from "../limits/limit_requests.ts";
import type { KeyRecord } from "../store/keys.ts";
import { CHART_DAYS, chartPeriod, DayChart } from "./chart.tsx";
import { BudgetAmount, Cards, Count, Moment, State, Usd } from "./format.tsx";
import { CONSOLE, CsrfField, type Page, requestsPath } from "./html.tsx";
import { RuleFields } from "./key_rules.tsx";
import { LimitTable, type ReadLimits, readLimits } from "./limits.tsx";

/** Makes the page of the key with a name or id. @throws {GatewayError} `not_found` if there is none */
export async function keyDetailPage(
  gateway: Gateway,
  { nameOrId, session, signal }: { nameOrId: string; session: ConsoleSession; signal: AbortSignal },
): Promise<Page> {
  const { store: { keys, ledger }, config, now } = gateway;
  const record = await findKey(gateway, nameOrId);
  const key = await keyWithBudget({ ledger, config }, record, now());
  const period = chartPeriod(now());
  const only = { keyId: record.id };
  const usage = await usageReport({ ledger, keys, config }, { ...period, by: "day", only, signal });
  return {
    title: `Key ${key.name}`,
    body: (
      <>
        <Cards
          cards={[
            ["State", <State state={key.state} />],
            ["Group", <a href={`${CONSOLE}/groups/${encodeURIComponent(key.group)}`}>{key.group}</a>],
            [`Cost in ${CHART_DAYS} days`, <Usd usd={usage.total.cost_usd} />],
            [`Requests in ${CHART_DAYS} days`, <Count value={usage.total.requests} />],
            ["Budget", key.budget === null ? "none" : <BudgetAmount budget={key.budget} />],
            ["Spent", key.budget === null ? "–" : <Usd usd={key.budget.spent_usd} />],
            ["Held", key.budget === null ? "–" : <Usd usd={key.budget.held_usd} />],
            ["Left", key.budget === null ? "–" : <Usd usd={key.budget.left_usd} />],
            ["Last used", <Moment iso={key.last_used_at} />],
            ["Expires", <Moment iso={key.expires_at} />],
          ]}
        />
        <DayChart days={usage.lines} {...period} />
        <p>
          <a href={requestsPath({ key: key.id })}>Requests of this key</a>,{" "}
          <a href={`${CONSOLE}/connect?key=${encodeURIComponent(key.id)}`}>settings for clients</a>
        </p>
        <h2>Limits</h2>
        <LimitTable limits={await readKeyLimits(gateway, record)} />
        <h2>Rules</h2>
        {Object.keys(key.rules).length === 0
          ? <p class="dim">None of its own: those of its group apply.</p>
          : <pre tabIndex={0}>{JSON.stringify(key.rules, null, 2)}</pre>}
        {session.role === "admin" && key.state !== "revoked" && (
          <ChangeForms
            keyOf={key}
            version={keyVersion(record)}
            session={session}
            groups={Object.keys(config.groups)}
          />
        )}
      </>
    ),
  };
}

async function readKeyLimits(gateway: Gateway, { id, group: name, rules }: KeyRecord): Promise<ReadLimits> {
  const group = groupOf(gateway.config, name);
  if (group === undefined) return `The group "${name}" is not in the configuration, so the key cannot be used.`;
  const caller = { keyId: id, groupName: name, group, rules };
  return await readLimits(gateway, callerLimitRequests(caller));
}

/**
 * Finds the key that a form is about. The form replaces all rules, and a second rotation invalidates the current
 * secret. So neither may repeat or undo the change of another tab or operator.
 * @throws {GatewayError} `invalid` if the key was changed after the page with the form was loaded
 */
export async function findSeenKey(gateway: Gateway, nameOrId: string, fields: URLSearchParams): Promise<KeyRecord> {
  const record = await findKey(gateway, nameOrId);
  if (fields.get("version") === keyVersion(record)) return record;
  throw new GatewayError("invalid", "The key was changed since this page was loaded: load it again and repeat this");
}

/** Returns a text that differs whenever something has changed that the forms would replace. */
function keyVersion({ group, rules, expiresAt, former }: KeyRecord): string {
  return JSON.stringify([group, rules, expiresAt, former?.until]);
}

function ChangeForms(
  { keyOf: { id, name, state, group, rules, expires_at }, version, session, groups }: {
    keyOf: KeyWithBudget;
    version: string;
    session: ConsoleSession;
    groups: readonly string[];
  },
): VNode {
  const action = `${CONSOLE}/keys/${encodeURIComponent(id)}`;
  const isDisabled = state === "disabled";
  return (
    <>
      <h2>Change</h2>
      <form class="fields" method="post" action={action}>
        <CsrfField session={session} />
        <input type="hidden" name="action" value="change" />
        <input type="hidden" name="version" value={version} />
        <label>
          Group
          <select name="group">
            {[...new Set([group, ...groups])].map((name) => (
              <option value={name} selected={name === group}>{name}</option>
            ))}
          </select>
        </label>
        <RuleFields rules={rules} expiresAt={expires_at} />
        <button type="submit">Save</button>
      </form>
      <form class="inline" method="post" action={action}>
        <CsrfField session={session} />
        <input type="hidden" name="action" value={isDisabled ? "enable" : "disable"} />
        <button type="submit">{isDisabled ? "Enable" : "Disable"}</button>
      </form>
      <form class="inline" method="post" action={action}>
        <CsrfField session={session} />
        <input type="hidden" name="action" value="rotate" />
        <input type="hidden" name="version" value={version} />
        <label>
          The current secret stays valid for
          <input name="overlap" value="24h" size={6} />
        </label>
        <button type="submit">Rotate</button>
      </form>
      <form class="inline" method="post" action={action}>
        <CsrfField session={session} />
        <input type="hidden" name="action" value="revoke" />
        <label>
          {`Type "${name}" to revoke it permanently`}
          <input name="confirm" required autocomplete="off" />
        </label>
        <button type="submit" class="danger">Revoke</button>
      </form>
    </>
  );
}
