/** The part of the audit that compares the sums of end users' budgets with the entries. */
import { type Entry, type LedgerStore, readUserAccount, userAccount, type UserSum } from "../../store/ledger.ts";
import { dayName } from "../../store/days.ts";
import { formatUsd } from "../money.ts";
import type { Comparison } from "./audit_walk.ts";
import type { AuditCounts } from "./schemas.ts";

/** Sums that are read and compared at a time. */
const PAGE_SUMS = 500;

/** Maximum number of sums that are computed, about 60 MB: clients may invent users. */
const MAX_SUMS = 200_000;

/** Length of the longest period of a budget, in days. */
const MAX_PERIOD_DAYS = 31;

/** Numbers of compared sums. `alone`: those that can only be compared in part. */
type UserCounts = Pick<AuditCounts, "user_sums" | "user_sums_alone">;

/** The numbers if nothing was compared. */
export const NO_USERS: UserCounts = { user_sums: 0, user_sums_alone: 0 };

/** Costs of entries by end user and budget period. */
export class UserSums {
  readonly #charged = new Map<string, bigint>();
  /** True: the limit is reached, and some sums are missing. */
  isFull = false;

  /** Adds an entry that counts against the budget of an end user. */
  add({ keyId, cost, details }: Pick<Entry, "keyId" | "cost" | "details">): void {
    if (cost === 0n || details?.user_since === undefined) return;
    const name = nameOf({ since: details.user_since, keyId, user: details.user ?? "" });
    const charged = this.#charged.get(name);
    if (charged === undefined && this.#charged.size === MAX_SUMS) this.isFull = true;
    else this.#charged.set(name, (charged ?? 0n) + cost);
  }

  /** Returns the charged amount of an end user in a period; undefined if there is none. */
  charged(sum: Omit<UserSum, "charged">): bigint | undefined {
    return this.#charged.get(nameOf(sum));
  }

  /** Returns all sums but those with these names. */
  others(seen: ReadonlySet<string>): Omit<UserSum, "charged">[] {
    return [...this.#charged.keys()].filter((name) => !seen.has(name)).map(readName);
  }
}

/**
 * Compares the sums of end users with the entries. Sums may grow meanwhile, so each is read before and after the
 * newest entries: the computed sum must be at least the former and at most the latter.
 */
export async function checkUsers(
  ledger: Pick<LedgerStore, "userSums" | "spending" | "entries" | "start">,
  { walk, findings, pause }: Comparison,
): Promise<UserCounts> {
  const counts = { ...NO_USERS };
  const seen = new Set<string>();

  async function compare(page: readonly UserSum[]): Promise<void> {
    await walk.toEnd(ledger, pause);
    const after = await ledger.spending(page.map((sum) => ({ scope: "user", id: accountOf(sum), since: sum.since })));
    // Read last, because sums of former periods may have been pruned meanwhile.
    const { day: prunedDay, ahead = [] } = await ledger.start();
    for (const [index, sum] of page.entries()) {
      const computed = walk.users.charged(sum) ?? 0n;
      const stored = after[index]?.charged ?? 0n;
      const isAhead = ahead.some((day) => sum.since <= day && day < sum.since + MAX_PERIOD_DAYS);
      const isPartial = sum.since <= prunedDay || isAhead || walk.users.isFull;
      if (isPartial) counts.user_sums_alone++;
      else counts.user_sums++;
      const isPruned = sum.since <= prunedDay && stored === 0n;
      if (isPruned || computed <= stored && (isPartial || sum.charged <= computed)) continue;
      findings.add({
        kind: "user_sum",
        message:
          `${periodText(sum)}, key "${sum.keyId}", end user "${sum.user}": the sum is ${formatUsd(stored)} USD, ` +
          `the entries add up to ${formatUsd(computed)} USD`,
      });
    }
    await pause();
  }

  for (let page = await ledger.userSums({ limit: PAGE_SUMS }); page.length > 0;) {
    for (const sum of page) if (seen.size < MAX_SUMS) seen.add(nameOf(sum));
    await compare(page);
    const after = page.at(-1);
    page = page.length < PAGE_SUMS || after === undefined ? [] : await ledger.userSums({ after, limit: PAGE_SUMS });
  }
  // Sums that the store lacks, or that it made after the pages that they belong to were read.
  const others = walk.users.others(seen).map((sum) => ({ ...sum, charged: 0n }));
  for (let start = 0; start < others.length; start += PAGE_SUMS) await compare(others.slice(start, start + PAGE_SUMS));
  return counts;
}

function accountOf({ keyId, user }: Omit<UserSum, "charged">): string {
  return userAccount(keyId, user);
}

function nameOf(sum: Omit<UserSum, "charged">): string {
  return `${sum.since}\n${accountOf(sum)}`;
}

function readName(name: string): Omit<UserSum, "charged"> {
  const end = name.indexOf("\n");
  return { since: Number(name.slice(0, end)), ...readUserAccount(name.slice(end + 1)) };
}

function periodText({ since }: Pick<UserSum, "since">): string {
  return since === 0 ? "in total" : `period from ${dayName(since)}`;
}
