/** Finds budgets of groups, keys and end users by their owners. */
import { compareValues } from "../../compare_values.ts";
import { configuredKeys } from "../../access/keys.ts";
import type { Budget, Config } from "../../config.ts";
import type { KeyStore } from "../../store/keys.ts";
import { type LedgerStore, userAccount, type UserSum } from "../../store/ledger.ts";
import { periodStart } from "../budgets.ts";
import { type BudgetedKey, budgetStates, linesOfKeys, listBudgets, userBudgetOfKey } from "./budget_report.ts";
import type { BudgetLine } from "./schemas.ts";
import { endUserName } from "../end_user_name.ts";
import { ReportQueryError } from "./report_errors.ts";
import { findFilterKey, readCount, readOneOf } from "./usage_filter.ts";

/** Number of end users in a result: by default, and at most. */
const DEFAULT_USERS = 20;
const MAX_USERS = 1_000;

const SCOPES = ["group", "key", "user"] as const;
const PERIODS: readonly Budget["period"][] = ["day", "week", "month", "total"];

/** Names of the parameters of a search. */
export const BUDGET_PARAMETERS = ["scope", "group", "key", "user", "limit"] as const;

/** The parameters of a search as text. */
export type BudgetTexts = Partial<Record<typeof BUDGET_PARAMETERS[number], string>>;

/** The sources of budgets, keys and end users. */
export interface BudgetSearchParts {
  ledger: Pick<LedgerStore, "spending" | "topUsers">;
  keys: Pick<KeyStore, "page" | "find" | "findIds">;
  config: Pick<Config, "groups" | "keys">;
}

/** The moment of a search, Unix time in milliseconds, and a signal that cancels it. */
interface Moment {
  now: number;
  signal?: AbortSignal;
}

/**
 * Lists budgets of groups, of keys, and of the end users who spent most; of end users, at most `limit`.
 * @throws {ReportQueryError} for parameters that cannot be read
 * @throws the signal's reason if it is aborted
 */
export async function findBudgets(
  parts: BudgetSearchParts,
  texts: BudgetTexts,
  moment: Moment,
): Promise<BudgetLine[]> {
  const { group } = texts;
  const user = texts.user === undefined ? undefined : endUserName(texts.user);
  const scope = readOneOf(texts.scope, "scope", SCOPES);
  const limit = readCount(texts.limit, "limit", { min: 1, max: MAX_USERS }) ?? DEFAULT_USERS;
  if (group !== undefined && !Object.hasOwn(parts.config.groups, group)) {
    throw new ReportQueryError(`Cannot find group "${group}": it is not configured`, "group");
  }
  if (user !== undefined && texts.key === undefined) {
    throw new ReportQueryError("Expected the key of this end user: each key has its own end users", "user");
  }
  let excluding: "user" | "key" | undefined;
  if (user !== undefined) excluding = "user";
  else if (texts.key !== undefined) excluding = "key";
  if (scope === "group" && excluding !== undefined || scope === "key" && excluding === "user") {
    throw new ReportQueryError(`Cannot use scope "${scope}" together with "${excluding}"`, "scope");
  }
  const key = texts.key === undefined ? undefined : await findFilterKey(texts.key, parts);
  const lines: BudgetLine[] = [];
  if (scope !== "user" && user === undefined) {
    lines.push(...key === undefined ? await listBudgets(parts, moment) : await linesOfKeys(parts, [key], moment.now));
  }
  if (scope === undefined || scope === "user") {
    lines.push(
      ...key !== undefined && user !== undefined
        ? await linesOfUsers(parts, [{ key, user }], moment.now)
        : await linesOfTopUsers(parts, { key, group, limit }, moment),
    );
  }
  return lines.filter((line) => (scope ?? line.scope) === line.scope && (group ?? line.group) === line.group);
}

/** Lists the end users who spent most in the current periods of their budgets. */
async function linesOfTopUsers(
  parts: BudgetSearchParts,
  { key, group, limit }: { key?: BudgetedKey; group: string | undefined; limit: number },
  { now, signal }: Moment,
): Promise<BudgetLine[]> {
  const budget = key === undefined ? undefined : userBudgetOfKey(key, parts.config);
  if (key !== undefined && budget === undefined) return [];
  const periods = budget === undefined ? PERIODS : [budget.period];
  const sums: UserSum[] = [];
  // Two periods may begin on the same day.
  for (const since of new Set(periods.map((period) => periodStart(period, now)))) {
    // More than the limit, as some may belong to keys that are revoked, or whose budgets have another period now.
    sums.push(...await parts.ledger.topUsers({ since, ...(key && { keyId: key.id }), limit: MAX_USERS }, signal));
  }
  const keys = key === undefined ? await keysInUse(parts, sums) : new Map([[key.id, key]]);
  const current = sums.flatMap(({ keyId, user, since, charged }) => {
    const key = keys.get(keyId);
    const period = key && userBudgetOfKey(key, parts.config)?.period;
    if (key === undefined || period === undefined || periodStart(period, now) !== since) return [];
    return (group ?? key.group) === key.group ? [{ key, user, charged }] : [];
  });
  current.sort((one, other) => compareValues(other.charged, one.charged));
  return await linesOfUsers(parts, current.slice(0, limit), now);
}

async function keysInUse(
  { keys, config }: BudgetSearchParts,
  sums: readonly UserSum[],
): Promise<ReadonlyMap<string, BudgetedKey>> {
  const stored = await keys.findIds([...new Set(sums.map(({ keyId }) => keyId))]);
  const inUse = stored.filter(({ revokedAt }) => revokedAt === undefined);
  return new Map([...configuredKeys(config), ...inUse].map((key) => [key.id, key]));
}

async function linesOfUsers(
  { ledger, config }: Pick<BudgetSearchParts, "ledger" | "config">,
  users: readonly { key: BudgetedKey; user: string }[],
  now: number,
): Promise<BudgetLine[]> {
  const owners = users.flatMap(({ key, user }) => {
    const budget = userBudgetOfKey(key, config);
    return budget === undefined ? [] : [{ key, user, scope: "user" as const, id: userAccount(key.id, user), budget }];
  });
  const states = await budgetStates(ledger, owners, now);
  return owners.flatMap(({ key: { id, name, group }, user }, index): BudgetLine[] => {
    const state = states[index];
    return state === undefined ? [] : [{ scope: "user", id, name, group, user, ...state }];
  });
}
