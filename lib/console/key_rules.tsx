/** The form fields for the rules and the expiry of a key: shows and reads them. */
import type { VNode } from "preact";
import { readExpiry } from "../admin/keys.ts";
import type { PublicKey } from "../access/public_key.ts";
import { type KeyRules, PERIODS } from "../config.ts";

/** The text of an empty list, which permits nothing. */
const EMPTY_LIST = "none";

/** Fields with lists separated by commas: name and label. An empty field sets nothing. */
const LIST_FIELDS = [
  ["models", "Models, such as acme/*"],
  ["endpoints", "Endpoints, such as chat, models"],
  ["ips", "Client addresses, such as 10.0.0.0/8"],
] as const;

/** Budgets: beginning of the names of their fields, and the labels of the amount and of the period. */
const BUDGET_FIELDS = [
  ["budget", "Budget, USD", "Period of the budget"],
  ["user_budget", "Budget of each end user, USD", "Period of each end user"],
] as const;

const LIMIT_FIELDS = [
  ["requests_per_minute", "Requests per minute"],
  ["tokens_per_minute", "Tokens per minute"],
  ["concurrency", "Concurrent requests"],
] as const;

/** Shows the fields with the values of a key; empty without a key. */
export function RuleFields(
  { rules, expiresAt }: Partial<{ rules: PublicKey["rules"]; expiresAt: string | null }>,
): VNode {
  const { limits } = rules ?? {};
  return (
    <>
      {LIST_FIELDS.map(([name, label]) => (
        <label>
          {label}
          <input name={name} value={listText(rules?.[name])} autocomplete="off" />
        </label>
      ))}
      {LIMIT_FIELDS.map(([name, label]) => (
        <label>
          {label}
          <input name={name} value={limits?.[name] ?? ""} inputMode="numeric" autocomplete="off" />
        </label>
      ))}
      {BUDGET_FIELDS.map(([name, label, periodLabel]) => (
        <>
          <label>
            {label}
            <input name={`${name}_usd`} value={rules?.[name]?.usd ?? ""} inputMode="decimal" autocomplete="off" />
          </label>
          <label>
            {periodLabel}
            <select name={`${name}_period`}>
              {PERIODS.map((period) => (
                <option value={period} selected={period === (rules?.[name]?.period ?? "month")}>{period}</option>
              ))}
            </select>
          </label>
        </>
      ))}
      <label>
        Expires (such as 90d or 2027-01-01; empty: never)
        <input name="expires_at" value={expiresAt ?? ""} maxLength={64} autocomplete="off" />
      </label>
      <label>
        <input type="checkbox" name="report_only" checked={limits?.report_only ?? false} />
        Only report what exceeds the limits
      </label>
      <label>
        <input type="checkbox" name="require_user" checked={rules?.user_budget?.require_user ?? false} />
        Refuse requests without an end user
      </label>
    </>
  );
}

function listText(list: readonly string[] | undefined): string {
  return list?.length === 0 ? EMPTY_LIST : list?.join(", ") ?? "";
}

/**
 * Reads the rules from a form. They are validated when the key is stored.
 * @param present the rules that the key has; absent: it is new
 */
export function readRules(fields: URLSearchParams, present: KeyRules = {}): Record<string, unknown> {
  const rules: Record<string, unknown> = {};
  for (const [name] of LIST_FIELDS) {
    const items = (fields.get(name) ?? "").split(/[\s,]+/).filter((item) => item !== "");
    if (items.length > 0) rules[name] = items.length === 1 && items[0] === EMPTY_LIST ? [] : items;
  }
  const limits = LIMIT_FIELDS.flatMap(([name]) => {
    const text = fields.get(name)?.trim() ?? "";
    return text === "" ? [] : [[name, /^\d{1,15}$/.test(text) ? Number(text) : text]];
  });
  // Limits without numbers exempt a key from those of its group.
  const isExempt = present.limits !== undefined && LIMIT_FIELDS.every(([name]) => present.limits?.[name] === undefined);
  if (limits.length > 0 || isExempt) {
    rules.limits = { ...Object.fromEntries(limits), report_only: fields.has("report_only") };
  }
  for (const [name] of BUDGET_FIELDS) {
    const usd = fields.get(`${name}_usd`)?.trim() ?? "";
    if (usd === "") continue;
    rules[name] = {
      usd,
      period: fields.get(`${name}_period`) ?? "month",
      ...(name === "user_budget" && { require_user: fields.has("require_user") }),
    };
  }
  return rules;
}

/**
 * Reads the expiry from a form, as Unix time in milliseconds; `null`: it does not expire.
 * @throws {GatewayError} `invalid` if it cannot be read
 */
export function readExpiryField(fields: URLSearchParams, now: number): number | null {
  const text = fields.get("expires_at")?.trim() ?? "";
  return text === "" ? null : readExpiry(text, now);
}
