/** Reports the spent, held and remaining amounts of the budgets of groups and keys. */
import { keyPages, publicKey } from "../../access/key_admin.ts";
import { configuredKeys } from "../../access/keys.ts";
import type { PublicKey } from "../../access/public_key.ts";
import { type Budget, type Config, type Group, groupOf, type UserBudget } from "../../config.ts";
import { DAY_MS } from "../../store/days.ts";
import type { KeyRecord, KeyStore } from "../../store/keys.ts";
import type { BudgetClaim, LedgerStore } from "../../store/ledger.ts";
import { budgetClaim, periodStart } from "../budgets.ts";
import { formatUsd, parseUsd } from "../money.ts";
import type { BudgetLine, BudgetState } from "./schemas.ts";

/** Costs of a key's requests received in a period. */
export interface PeriodSpending {
  period: Budget["period"];
  /** Start of the period (UTC). */
  since: string;
  /** Exact USD, as a decimal string. */
  spent_usd: string;
}

/** A key with the state of its budget; `null` if it has none. */
export interface KeyWithBudget extends PublicKey {
  budget: BudgetState | null;
}

/** Owner of a budget. */
export interface BudgetOwner extends Pick<BudgetClaim, "scope" | "id"> {
  budget: Budget;
}

/** The sources of keys, groups and amounts. */
export interface BudgetParts {
  ledger: Pick<LedgerStore, "spending">;
  keys: Pick<KeyStore, "page">;
  config: Pick<Config, "groups" | "keys">;
}

/** The facts of a key that decide which budget applies. */
export type BudgetedKey = Pick<KeyRecord, "id" | "name" | "group" | "rules">;

/** Reads the states of budgets in their current periods, in the given order. @param now Unix time in milliseconds */
export async function budgetStates(
  ledger: BudgetParts["ledger"],
  owners: readonly BudgetOwner[],
  now: number,
): Promise<BudgetState[]> {
  if (owners.length === 0) return [];
  const claims = owners.map(({ scope, id, budget }) => budgetClaim(budget, { scope, id, now }));
  const amounts = await ledger.spending(claims);
  return owners.map(({ scope, id, budget: { period } }, index) => {
    const [claim, spending] = [claims[index], amounts[index]];
    if (claim === undefined || spending === undefined) throw new Error(`Cannot read the budget of ${scope} "${id}"`);
    const { budget, until } = claim;
    const { charged, held } = spending;
    return {
      period,
      budget_usd: formatUsd(budget),
      spent_usd: formatUsd(charged),
      held_usd: formatUsd(held),
      left_usd: formatUsd(budget - charged - held),
      resets_at: until === undefined ? null : new Date(until * DAY_MS).toISOString(),
    };
  });
}

/**
 * Returns the filters that find the requests of a budget's current period. Returns undefined for the budget of requests
 * that name no end user, because no filter finds these.
 * @param now Unix time in milliseconds
 */
export function requestsOfBudget(
  { scope, id, user, period }: Pick<BudgetLine, "scope" | "id" | "user" | "period">,
  now: number,
): { group?: string; key?: string; user?: string; since?: string } | undefined {
  if (user === "") return undefined;
  const since = period === "total" ? {} : { since: new Date(periodStart(period, now) * DAY_MS).toISOString() };
  return { ...since, ...(user === null ? { [scope]: id } : { key: id, user }) };
}

/** Returns the share of a budget that is spent or held, in whole percent, rounded down. */
export function usedPercent({ budget_usd, spent_usd, held_usd }: BudgetState): number {
  const budget = parseUsd(budget_usd);
  return budget === 0n ? 100 : Number((parseUsd(spent_usd) + parseUsd(held_usd)) * 100n / budget);
}

/** Reads the spending of a key today and in the current month. @param now Unix time in milliseconds */
export async function spendingOfKey(ledger: BudgetParts["ledger"], id: string, now: number): Promise<PeriodSpending[]> {
  const periods = (["day", "month"] as const).map((period) => ({ period, since: periodStart(period, now) }));
  const amounts = await ledger.spending(periods.map(({ since }) => ({ scope: "key", id, since })));
  return periods.map(({ period, since }, index) => ({
    period,
    since: new Date(since * DAY_MS).toISOString(),
    spent_usd: formatUsd(amounts[index]?.charged ?? 0n),
  }));
}

/** Returns the budget of a key: its own, or its group's `key_budget`; undefined if there is none. */
export function budgetOfKey(
  { group, rules }: Pick<BudgetedKey, "group" | "rules">,
  config: Pick<Config, "groups">,
): Budget | undefined {
  return rules.budget ?? groupOf(config, group)?.key_budget;
}

/** Returns the budget of each end user of a key, which the key or its group sets; undefined if there is none. */
export function userBudgetOfKey(
  { group, rules }: Pick<BudgetedKey, "group" | "rules">,
  config: Pick<Config, "groups">,
): UserBudget | undefined {
  return rules.user_budget ?? groupOf(config, group)?.user_budget;
}

/** Reads the states of the budgets of some keys, by key id. Keys without a budget are left out. */
async function keyBudgets(
  { ledger, config }: Pick<BudgetParts, "ledger"> & { config: Pick<Config, "groups"> },
  keys: readonly BudgetedKey[],
  now: number,
): Promise<ReadonlyMap<string, BudgetState>> {
  const owners = keys.map((key) => ({ scope: "key" as const, id: key.id, budget: budgetOfKey(key, config) }));
  return await statesById(ledger, owners, now);
}

/** Reads the states of the budgets of groups, by name. Groups without a budget are left out. */
export async function groupBudgets(
  ledger: BudgetParts["ledger"],
  groups: Readonly<Record<string, Pick<Group, "budget">>>,
  now: number,
): Promise<ReadonlyMap<string, BudgetState>> {
  const owners = Object.entries(groups).map(([id, { budget }]) => ({ scope: "group" as const, id, budget }));
  return await statesById(ledger, owners, now);
}

/** Reads the states of budgets, by the ids of their owners. Owners without a budget are left out. */
async function statesById(
  ledger: BudgetParts["ledger"],
  candidates: readonly (Omit<BudgetOwner, "budget"> & { budget: Budget | undefined })[],
  now: number,
): Promise<ReadonlyMap<string, BudgetState>> {
  const owners = candidates.flatMap(({ budget, ...owner }) => budget === undefined ? [] : [{ ...owner, budget }]);
  const states = await budgetStates(ledger, owners, now);
  return new Map(states.map((state, index) => [owners[index]?.id ?? "", state]));
}

/** Adds the state of its budget to a key. @param now Unix time in milliseconds */
export async function keyWithBudget(
  parts: Pick<BudgetParts, "ledger"> & { config: Pick<Config, "groups"> },
  key: KeyRecord,
  now: number,
): Promise<KeyWithBudget> {
  return { ...publicKey(key, now), budget: (await keyBudgets(parts, [key], now)).get(key.id) ?? null };
}

/** Adds the state of its budget to each key. @param now Unix time in milliseconds */
export async function keysWithBudgets(
  parts: Pick<BudgetParts, "ledger"> & { config: Pick<Config, "groups"> },
  keys: readonly KeyRecord[],
  now: number,
): Promise<KeyWithBudget[]> {
  const states = await keyBudgets(parts, keys, now);
  return keys.map((key) => ({ ...publicKey(key, now), budget: states.get(key.id) ?? null }));
}

/**
 * Lists the budgets of groups, then those of configured keys, then those of stored keys that are not revoked. Budgets
 * of end users are left out. Reads a page of keys at a time; each page is a consistent snapshot.
 * @throws the signal's reason if it is aborted
 */
export async function listBudgets(
  { ledger, keys, config }: BudgetParts,
  { now, signal }: { now: number; signal?: AbortSignal },
): Promise<BudgetLine[]> {
  const lines = [...await groupBudgets(ledger, config.groups, now)].map(([name, state]): BudgetLine => ({
    scope: "group",
    id: name,
    name,
    group: name,
    user: null,
    ...state,
  }));
  lines.push(...await linesOfKeys({ ledger, config }, configuredKeys(config), now));
  for await (const page of keyPages(keys)) {
    signal?.throwIfAborted();
    const inUse = page.filter(({ revokedAt }) => revokedAt === undefined);
    lines.push(...await linesOfKeys({ ledger, config }, inUse, now));
  }
  return lines;
}

/** Lists the budgets of some keys. Keys without a budget are left out. @param now Unix time in milliseconds */
export async function linesOfKeys(
  parts: Pick<BudgetParts, "ledger" | "config">,
  keys: readonly BudgetedKey[],
  now: number,
): Promise<BudgetLine[]> {
  const states = await keyBudgets(parts, keys, now);
  return keys.flatMap(({ id, name, group }): BudgetLine[] => {
    const state = states.get(id);
    return state === undefined ? [] : [{ scope: "key", id, name, group, user: null, ...state }];
  });
}
