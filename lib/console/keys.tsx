/** The page that lists and creates keys, and the forms that change, rotate, disable and revoke them. */
import type { VNode } from "preact";
import type { ConsoleSession } from "../access/console_session.ts";
import { changeKey, createKey, findKey, keyPages, revokeKey, rotateKey, type ShownKey } from "../access/key_admin.ts";
import { type KeyAction, keyAdmin, logKeyAction, readOverlap } from "../admin/keys.ts";
import { formatUsd } from "../billing/money.ts";
import { keysWithBudgets, type KeyWithBudget } from "../billing/reports/budget_report.ts";
import { readPeriod } from "../billing/reports/period.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { RouteContext } from "../server/router.ts";
import { counted } from "../text.ts";
import { Moment, State, Table, Usd } from "./format.tsx";
import { CONSOLE, CsrfField, keyPath, type Page, runForm, showPage } from "./html.tsx";
import { findSeenKey, keyDetailPage } from "./key_page.tsx";
import { readExpiryField, readRules, RuleFields } from "./key_rules.tsx";

/** Largest number of keys that the page lists. The command line and the admin API list all. */
const MAX_LISTED_KEYS = 1_000;

/** `GET /admin/console/keys`. */
export function keysPage({ signal }: Request, context: RouteContext): Promise<Response> {
  return showPage(context, async (session) => {
    const { gateway } = context;
    const keys = await readKeys(gateway);
    const costs = await readCosts(gateway, signal);
    return {
      title: "Keys",
      body: (
        <>
          {session.role === "admin" && <NewKeyForm session={session} groups={Object.keys(gateway.config.groups)} />}
          <h2>{keys.length < MAX_LISTED_KEYS ? counted(keys.length, "key") : `The newest ${MAX_LISTED_KEYS} keys`}</h2>
          <KeyTable keys={keys} costs={costs} />
        </>
      ),
    };
  });
}

/** `POST /admin/console/keys`: creates a key. Its secret is shown only on the page that this returns. */
export function createFromForm(request: Request, context: RouteContext): Promise<Response> {
  return runForm(request, context, async (fields) => {
    const expiresAt = readExpiryField(fields, context.gateway.now());
    const shown = await createKey(keyAdmin(context), {
      name: fields.get("name")?.trim() ?? "",
      group: fields.get("group") ?? "default",
      rules: readRules(fields),
      ...(expiresAt !== null && { expiresAt }),
    });
    logKeyAction(context, { action: "create_key", record: shown.record });
    return secretPage(shown);
  });
}

/** `GET /admin/console/keys/[key]`. */
export function keyPage({ signal }: Request, context: RouteContext): Promise<Response> {
  const { gateway, params: { key: nameOrId = "" } } = context;
  return showPage(context, (session) => keyDetailPage(gateway, { nameOrId, session, signal }));
}

/** `POST /admin/console/keys/[key]`: makes the change that the field `action` names. */
export function changeFromForm(request: Request, context: RouteContext): Promise<Response> {
  return runForm(request, context, async (fields) => {
    const { gateway, params: { key = "" } } = context;
    const action = fields.get("action");
    const logAndRedirect = (record: ShownKey["record"], name: KeyAction["action"], members?: string): string => {
      logKeyAction(context, { action: name, record, ...(members !== undefined && { members }) });
      return keyPath(record.id);
    };
    switch (action) {
      case "change": {
        const seen = await findSeenKey(gateway, key, fields);
        const { group, rules, expiresAt } = seen;
        const requested = {
          group: fields.get("group") ?? group,
          rules: readRules(fields, rules),
          expiresAt: fields.get("expires_at") === isoOf(expiresAt)
            ? expiresAt ?? null
            : readExpiryField(fields, gateway.now()),
        };
        // Unchanged members are left out, because they would be validated again, and an expiry may have passed.
        const change = {
          ...(requested.group !== group && { group: requested.group }),
          ...(!isEqualJson(requested.rules, rules) && { rules: requested.rules }),
          ...(requested.expiresAt !== (expiresAt ?? null) && { expiresAt: requested.expiresAt }),
        };
        return logAndRedirect(
          await changeKey(keyAdmin(context), key, { ...change, seen }),
          "change_key",
          Object.keys(change).join(" "),
        );
      }
      case "rotate": {
        const { hash: seen } = await findSeenKey(gateway, key, fields);
        const shown = await rotateKey(keyAdmin(context), key, {
          seen,
          overlapMs: readOverlap(fields.get("overlap") ?? "24h"),
        });
        logAndRedirect(shown.record, "rotate_key");
        return secretPage(shown);
      }
      case "disable":
      case "enable":
        return logAndRedirect(
          await changeKey(keyAdmin(context), key, { disabled: action === "disable" }),
          "change_key",
          "disabled",
        );
      case "revoke":
        if (fields.get("confirm") !== (await findKey(gateway, key)).name) {
          throw new GatewayError("invalid", "Nothing was revoked: type the name of the key to confirm");
        }
        return logAndRedirect(await revokeKey(keyAdmin(context), key), "revoke_key");
      default:
        throw new GatewayError("invalid", "Cannot change this key: the form names no known action");
    }
  });
}

async function readKeys({ store: { keys, ledger }, config, now }: Gateway): Promise<KeyWithBudget[]> {
  let records: Parameters<typeof keysWithBudgets>[1] = [];
  for await (const page of keyPages(keys)) records = [...records, ...page].slice(-MAX_LISTED_KEYS);
  return (await keysWithBudgets({ ledger, config }, records, now())).reverse();
}

/** Returns the cost of each key in this month (UTC), by id. Keys that were not used are missing. */
async function readCosts({ store: { ledger }, now }: Gateway, signal: AbortSignal): Promise<Map<string, string>> {
  const sums = await ledger.usage({ ...readPeriod({}, now()), by: "key" }, signal);
  return new Map(sums.map(({ name, cost }) => [name, formatUsd(cost)]));
}

/** @param props `costs`: cost of this month in USD, by the key's id */
function KeyTable({ keys, costs }: { keys: readonly KeyWithBudget[]; costs: ReadonlyMap<string, string> }): VNode {
  return (
    <Table
      columns={["Name", "Group", "State", "#This month", "#Budget", "#Spent of it", "Last used", "Expires"]}
      rows={keys.map(({ id, name, group, state, budget, last_used_at, expires_at }) => [
        <a href={keyPath(id)}>{name}</a>,
        group,
        <State state={state} />,
        <Usd usd={costs.get(id) ?? "0"} />,
        budget === null ? "none" : <Usd usd={budget.budget_usd} />,
        budget === null ? "–" : <Usd usd={budget.spent_usd} />,
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
      <details>
        <summary>Rules, budget and expiry</summary>
        <div>
          <RuleFields />
        </div>
      </details>
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
          <a href={keyPath(record.id)}>{record.name}</a>
        </p>
      </>
    ),
  };
}

/** Returns the text that the form shows for an expiry, and sends if it is not changed. */
function isoOf(time: number | undefined): string {
  return time === undefined ? "" : new Date(time).toISOString();
}

/** Returns whether two values are equal as JSON, whatever the order of members. */
function isEqualJson(a: unknown, b: unknown): boolean {
  const sorted = (value: unknown): string =>
    JSON.stringify(
      value,
      (_, member) =>
        member !== null && typeof member === "object" && !Array.isArray(member)
          ? Object.fromEntries(Object.entries(member).sort(([one], [other]) => one < other ? -1 : 1))
          : member,
    );
  return sorted(a) === sorted(b);
}
