/** Keys: list, create, rotate, disable, revoke. */
import type { VNode } from "preact";
import type { ConsoleSession } from "../access/console_session.ts";
import { changeKey, createKey, findKey, keyPages, revokeKey, rotateKey, type ShownKey } from "../access/key_admin.ts";
import { type KeyAction, keyAdmin, logKeyAction, readExpiry, readOverlap } from "../admin/keys.ts";
import { keysWithBudgets, type KeyWithBudget } from "../billing/reports/budget_report.ts";
import { usageReport } from "../billing/reports/usage.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { RouteContext } from "../server/router.ts";
import { DAY_MS } from "../store/days.ts";
import { DayChart } from "./chart.tsx";
import { Cards, Count, Moment, State, Table, Usd } from "./format.tsx";
import { CONSOLE, CsrfField, type Page, runForm, showPage } from "./html.tsx";

/** Keys that the page lists; the command line and the admin API list all. */
const MOST_LISTED = 1_000;
/** Days of a key's chart. */
const CHART_DAYS = 30;

/** `GET /admin/console/keys`. */
export function keysPage(_request: Request, context: RouteContext): Promise<Response> {
  return showPage(context, async (session) => {
    const { gateway } = context;
    const keys = await readKeys(gateway);
    return {
      title: "Keys",
      body: (
        <>
          {session.role === "admin" && <NewKeyForm session={session} groups={Object.keys(gateway.config.groups)} />}
          <h2>{keys.length < MOST_LISTED ? `${keys.length} keys` : `The newest ${MOST_LISTED} keys`}</h2>
          <KeyTable keys={keys} />
        </>
      ),
    };
  });
}

/** `POST /admin/console/keys`: creates a key, whose secret the page shows once. */
export function createFromForm(request: Request, context: RouteContext): Promise<Response> {
  return runForm(request, context, async (fields) => {
    const { gateway } = context;
    const expiry = fields.get("expires_at")?.trim() ?? "";
    const shown = await createKey(keyAdmin(context), {
      name: fields.get("name")?.trim() ?? "",
      group: fields.get("group") ?? "default",
      ...(expiry !== "" && { expiresAt: readExpiry(expiry, gateway.now()) }),
    });
    logKeyAction(context, { action: "create_key", record: shown.record });
    return secretPage(shown);
  });
}

/** `GET /admin/console/keys/[key]`. */
export function keyPage({ signal }: Request, context: RouteContext): Promise<Response> {
  return showPage(context, (session) => detailPage(context, { session, signal }));
}

/** `POST /admin/console/keys/[key]`: the change that the field `action` names. */
export function changeFromForm(request: Request, context: RouteContext): Promise<Response> {
  return runForm(request, context, async (fields) => {
    const { gateway, params: { key = "" } } = context;
    const action = fields.get("action");
    const done = (record: ShownKey["record"], name: KeyAction["action"], members?: string): string => {
      logKeyAction(context, { action: name, record, ...(members !== undefined && { members }) });
      return `${CONSOLE}/keys/${encodeURIComponent(record.id)}`;
    };
    switch (action) {
      case "rotate": {
        const shown = await rotateKey(keyAdmin(context), key, {
          overlapMs: readOverlap(fields.get("overlap") ?? "24h"),
        });
        done(shown.record, "rotate_key");
        return secretPage(shown);
      }
      case "disable":
      case "enable":
        return done(
          await changeKey(keyAdmin(context), key, { disabled: action === "disable" }),
          "change_key",
          "disabled",
        );
      case "revoke":
        if (fields.get("confirm") !== (await findKey(gateway.store, key)).name) {
          throw new GatewayError("invalid", "Nothing was revoked: type the name of the key to confirm");
        }
        return done(await revokeKey(keyAdmin(context), key), "revoke_key");
      default:
        throw new GatewayError("invalid", "Cannot change this key: the form names no known action");
    }
  });
}

async function readKeys({ store: { keys, ledger }, config, now }: Gateway): Promise<KeyWithBudget[]> {
  let records: Parameters<typeof keysWithBudgets>[1] = [];
  for await (const page of keyPages(keys)) records = [...records, ...page].slice(-MOST_LISTED);
  return (await keysWithBudgets({ ledger, config }, records, now())).reverse();
}

function KeyTable({ keys }: { keys: readonly KeyWithBudget[] }): VNode {
  return (
    <Table
      columns={["Name", "Group", "State", "#Spent", "#Budget", "Last used", "Expires"]}
      rows={keys.map(({ id, name, group, state, budget, last_used_at, expires_at }) => [
        <a href={`${CONSOLE}/keys/${encodeURIComponent(id)}`}>{name}</a>,
        group,
        <State state={state} />,
        budget === null ? "–" : <Usd usd={budget.spent_usd} />,
        budget === null ? "none" : <Usd usd={budget.budget_usd} />,
        <Moment iso={last_used_at} />,
        <Moment iso={expires_at} />,
      ])}
      empty="There are no keys in the store yet."
    />
  );
}

function NewKeyForm({ session, groups }: { session: ConsoleSession; groups: readonly string[] }): VNode {
  return (
    <form class="fields" method="post" action={`${CONSOLE}/keys`}>
      <CsrfField session={session} />
      <label>
        Name
        <input name="name" required maxLength={64} autocomplete="off" />
      </label>
      <label>
        Group
        <select name="group">{groups.map((group) => <option value={group}>{group}</option>)}</select>
      </label>
      <label>
        Expires (such as 90d; empty: never)
        <input name="expires_at" maxLength={64} autocomplete="off" />
      </label>
      <button type="submit">Create key</button>
    </form>
  );
}

function secretPage({ key, record }: ShownKey): Page {
  return {
    title: `Key ${record.name}`,
    body: (
      <>
        <p class="notice" role="status">Copy the key now: it is shown only once.</p>
        <pre id="secret">{key}</pre>
        <p>
          <a href={`${CONSOLE}/keys/${encodeURIComponent(record.id)}`}>{record.name}</a>
        </p>
      </>
    ),
  };
}

async function detailPage(
  { gateway, params }: RouteContext,
  { session, signal }: { session: ConsoleSession; signal: AbortSignal },
): Promise<Page> {
  const { store: { keys, ledger }, config, now } = gateway;
  const record = await findKey(gateway.store, params.key ?? "");
  const [key] = await keysWithBudgets({ ledger, config }, [record], now());
  if (key === undefined) throw new TypeError("Cannot show a key: there is no report of it");
  const until = now() + 1;
  const since = (Math.floor(until / DAY_MS) - CHART_DAYS + 1) * DAY_MS;
  const usage = await usageReport({ ledger, keys, config }, {
    since,
    until,
    by: "day",
    only: { keyId: record.id },
    signal,
  });
  return {
    title: `Key ${key.name}`,
    body: (
      <>
        <Cards
          cards={[
            ["State", <State state={key.state} />],
            ["Group", key.group],
            [`Cost in ${CHART_DAYS} days`, <Usd usd={usage.total.cost_usd} />],
            [`Requests in ${CHART_DAYS} days`, <Count value={usage.total.requests} />],
            ["Budget", key.budget === null ? "none" : <Usd usd={key.budget.budget_usd} />],
            ["Left", key.budget === null ? "–" : <Usd usd={key.budget.left_usd} />],
            ["Last used", <Moment iso={key.last_used_at} />],
            ["Expires", <Moment iso={key.expires_at} />],
          ]}
        />
        <DayChart days={usage.lines} since={since} until={until} />
        <h2>Rules</h2>
        <pre>{JSON.stringify(key.rules, null, 2)}</pre>
        {session.role === "admin" && key.state !== "revoked" && <ChangeForms keyOf={key} session={session} />}
      </>
    ),
  };
}

function ChangeForms(
  { keyOf: { id, name, state }, session }: { keyOf: KeyWithBudget; session: ConsoleSession },
): VNode {
  const action = `${CONSOLE}/keys/${encodeURIComponent(id)}`;
  const isDisabled = state === "disabled";
  return (
    <>
      <h2>Change</h2>
      <form class="inline" method="post" action={action}>
        <CsrfField session={session} />
        <input type="hidden" name="action" value={isDisabled ? "enable" : "disable"} />
        <button type="submit">{isDisabled ? "Enable" : "Disable"}</button>
      </form>
      <form class="inline" method="post" action={action}>
        <CsrfField session={session} />
        <input type="hidden" name="action" value="rotate" />
        <label>
          The present secret stays valid for
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
