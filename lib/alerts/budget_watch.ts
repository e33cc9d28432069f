/** Creates alerts about budgets that reach a threshold: checks the keys, groups and end users with new charges. */
import { budgetClaim } from "../billing/budgets.ts";
import { formatUsd, periodText } from "../billing/money.ts";
import { configuredKeys } from "../access/keys.ts";
import { budgetOfKey, userBudgetOfKey } from "../billing/reports/budget_report.ts";
import { type Budget, groupOf } from "../config.ts";
import type { Gateway } from "../gateway.ts";
import type { LogEntry } from "../log_events.ts";
import { DAY_MS, dayName } from "../store/days.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import {
  type BudgetClaim,
  type LedgerStore,
  readUserAccount,
  type Spenders,
  SPENDERS_AT_ONCE,
  type Spending,
  userAccount,
} from "../store/ledger.ts";
import type { AlertDraft } from "./event.ts";

/** Age of entries that are checked at start, in milliseconds: the previous process may not have checked them. */
const FIRST_CHECK_MS = 3_600_000;

const ALL_PERCENT = 100;

/** Maximum number of reported thresholds that are remembered, so that the store is asked only once about each. */
const MAX_REPORTED = 10_000;

/** Maximum number of end users that one check reads: clients may invent users. */
const MAX_USERS = 10_000;

/** A key, a group, or an end user of a key with a budget. */
interface BudgetHolder {
  scope: BudgetClaim["scope"];
  /** Id as in `BudgetClaim`. */
  id: string;
  name: string;
  group: string;
  /** The end user; `null` for keys and groups. */
  user: string | null;
  budget: Budget;
  /** True if the budget refused a request of the end user since the last check; absent for keys and groups. */
  isRefused?: boolean;
}

type Watched = Pick<Gateway, "config" | "store" | "now">;

/** Stores an alert. With `isSent` false, it is not sent, and only its threshold counts as reported. */
type Publish = (draft: AlertDraft, isSent: boolean) => Promise<void>;

/** Watches budgets. Each threshold is reported once per period; of several reached at once, only the highest is. */
export class BudgetWatch {
  readonly #reported = new Set<string>();
  /** Keys and groups with an exhausted budget, such as `key key_1`. */
  readonly #exhausted = new Set<string>();
  /** Seq after which the next check reads entries; undefined before the first check. */
  #after: number | undefined;
  /** Unix time of the last check, in milliseconds. */
  #checkedAt: number | undefined;

  /** Reads a log line: a budget that refuses a request counts as exhausted, although a small amount is unspent. */
  read({ event, scope, id }: LogEntry): void {
    if (event === "budget_exhausted") this.#exhausted.add(`${scope} ${id}`);
  }

  /** Checks the budgets that have been charged since the last check. @throws the store's errors */
  async check({ config, store, now }: Watched, publish: Publish): Promise<void> {
    const percents = config.alerts?.budget_percent ?? [];
    if (percents.length === 0) return;
    const at = now();
    const exhausted = new Set(this.#exhausted);
    this.#after ??= await firstSeq(store.ledger, at);
    const { seq, keys, groups, users } = await readSpenders(store.ledger, this.#after);
    for (const spender of exhausted) {
      const [scope, id = ""] = spender.split(" ");
      (scope === "key" ? keys : groups).add(id);
    }
    const holders = await holdersOf({ keys, groups, users }, { config, store });
    // A period that ended between two checks is checked once more.
    for (const moment of new Set([this.#checkedAt ?? at, at])) {
      const claims = holders.map(({ scope, id, budget }) => budgetClaim(budget, { scope, id, now: moment }));
      const amounts = claims.length === 0 ? [] : await store.ledger.spending(claims);
      for (const [index, holder] of holders.entries()) {
        const [claim, spending] = [claims[index], amounts[index]];
        if (claim === undefined || spending === undefined || claim.budget === 0n) continue;
        // A client may invent an end user, who has spent nothing.
        const isRefused = holder.isRefused ? spending.charged > 0n : exhausted.has(`${holder.scope} ${holder.id}`);
        const isExhausted = moment === at && isRefused;
        await this.#report({ holder, claim, spending, isExhausted }, { percents, publish });
      }
    }
    // Updated last, so that a failed check is repeated.
    this.#after = seq;
    this.#checkedAt = at;
    for (const spender of exhausted) this.#exhausted.delete(spender);
  }

  async #report(
    state: { holder: BudgetHolder; claim: BudgetClaim; spending: Spending; isExhausted: boolean },
    { percents, publish }: { percents: readonly number[]; publish: Publish },
  ): Promise<void> {
    const { claim, spending, isExhausted } = state;
    const reached = percents.filter((percent) =>
      spending.charged * BigInt(ALL_PERCENT) >= claim.budget * BigInt(percent) ||
      (isExhausted && percent <= ALL_PERCENT)
    ).sort((a, b) => b - a);
    for (const [index, percent] of reached.entries()) {
      const draft = budgetAlert(state, percent);
      if (this.#reported.has(draft.subject)) continue;
      await publish(draft, index === 0);
      if (this.#reported.size === MAX_REPORTED) this.#reported.clear();
      this.#reported.add(draft.subject);
    }
  }
}

/**
 * Returns the seq after which the first check reads entries. It reads all entries since the first request of the last
 * hour, and at least the last `SPENDERS_AT_ONCE`. Older entries can be unchecked if the process was down for more than an
 * hour, or if the entry of a long request came after those of shorter ones.
 */
async function firstSeq(ledger: LedgerStore, now: number): Promise<number> {
  const [first] = await ledger.entriesWithin({ since: now - FIRST_CHECK_MS, after: 0, until: now + 1, limit: 1 });
  const pageStart = Math.max(0, await ledger.lastSeq() - SPENDERS_AT_ONCE);
  return first === undefined ? pageStart : Math.min(first.seq - 1, pageStart);
}

/** Reads all keys, groups and end users that entries after a seq have charged, and the last seq. */
async function readSpenders(
  ledger: LedgerStore,
  after: number,
): Promise<{ seq: number; keys: Set<string>; groups: Set<string>; users: SpendingUsers }> {
  const users: SpendingUsers = new Map();
  const spenders = { seq: after, keys: new Set<string>(), groups: new Set<string>(), users };
  for (;;) {
    const begin = spenders.seq;
    const { seq, keys, groups, users: ofPage } = await ledger.spenders(begin);
    for (const user of ofPage) addUser(users, user);
    spenders.seq = seq;
    for (const key of keys) spenders.keys.add(key);
    for (const group of groups) spenders.groups.add(group);
    if (seq - begin < SPENDERS_AT_ONCE) return spenders;
    await yieldToEventLoop();
  }
}

type SpendingUsers = Map<string, Spenders["users"][number]>;

function addUser(users: SpendingUsers, { keyId, user, refused }: Spenders["users"][number]): void {
  const account = userAccount(keyId, user);
  const known = users.get(account);
  if (known === undefined && users.size === MAX_USERS) return;
  users.set(account, { keyId, user, refused: refused || known?.refused === true });
}

/** Finds the budgets of keys, groups and end users. Those without a budget are left out. */
async function holdersOf(
  { keys, groups, users }: { keys: ReadonlySet<string>; groups: ReadonlySet<string>; users: SpendingUsers },
  { config, store }: Pick<Gateway, "config" | "store">,
): Promise<BudgetHolder[]> {
  const ids = new Set([...keys, ...[...users.values()].map(({ keyId }) => keyId)]);
  const records = [...configuredKeys(config).filter(({ id }) => ids.has(id)), ...await store.keys.findIds([...ids])];
  const byId = new Map(records.map((record) => [record.id, record]));
  return [
    ...[...users].flatMap(([account, { keyId, user, refused: isRefused }]): BudgetHolder[] => {
      const key = byId.get(keyId);
      const budget = key && userBudgetOfKey(key, config);
      if (key === undefined || budget === undefined) return [];
      return [{ scope: "user", id: account, name: key.name, group: key.group, user, budget, isRefused }];
    }),
    ...records.filter(({ id }) => keys.has(id)).flatMap(({ id, name, group, rules }): BudgetHolder[] => {
      const budget = budgetOfKey({ group, rules }, config);
      return budget === undefined ? [] : [{ scope: "key", id, name, group, user: null, budget }];
    }),
    ...[...groups].flatMap((name): BudgetHolder[] => {
      const budget = groupOf(config, name)?.budget;
      return budget === undefined ? [] : [{ scope: "group", id: name, name, group: name, user: null, budget }];
    }),
  ];
}

function budgetAlert(
  { holder, claim, spending, isExhausted }: {
    holder: BudgetHolder;
    claim: BudgetClaim;
    spending: Spending;
    isExhausted: boolean;
  },
  percent: number,
): AlertDraft {
  const { scope, name, group, user, budget: { period } } = holder;
  const id = scope === "user" ? readUserAccount(holder.id).keyId : holder.id;
  const { budget, since, until } = claim;
  const spent = formatUsd(spending.charged);
  const owner = ownerText(holder);
  const amount = `${formatUsd(budget)} USD ${periodText(period)}`;
  const what = isExhausted
    ? `${owner}: a request was refused because it may cost more than is left of its budget; spent`
    : `${owner} has reached ${percent}% of its budget:`;
  return {
    type: "budget.threshold",
    // The amount is part of the subject, so that all thresholds apply again after it was raised.
    subject: `budget of ${scope} ${id}${user === null ? "" : ` "${user}"`}, ${formatUsd(budget)} USD from day ` +
      `${since}: ${percent}%`,
    begins: true,
    rememberUntil: until === undefined ? Number.MAX_SAFE_INTEGER : (until + 1) * DAY_MS,
    text: `${what} ${spent} of ${amount}`,
    data: {
      scope,
      id,
      name,
      group,
      user,
      percent,
      budget_usd: formatUsd(budget),
      spent_usd: spent,
      period,
      period_start: period === "total" ? null : dayName(since),
      resets_at: until === undefined ? null : new Date(until * DAY_MS).toISOString(),
    },
  };
}

function ownerText({ scope, name, user }: BudgetHolder): string {
  if (scope === "group") return `Group "${name}"`;
  if (scope === "key") return `Key "${name}"`;
  return user === "" ? `Requests of key "${name}" without an end user` : `End user "${user}" of key "${name}"`;
}
