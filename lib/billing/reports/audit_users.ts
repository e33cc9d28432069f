/** The part of the audit that compares the sums of end users with the entries. */
import type { Entry, LedgerStore, UserSum } from "../../store/ledger.ts";
import { readUserAccount, userAccount } from "../../store/ledger.ts";
import { dayName } from "../../store/days.ts";
import { formatUsd } from "../money.ts";
import type { Comparison } from "./audit_walk.ts";
import type { AuditCounts } from "./schemas.ts";

/** Sums compared between two turns of the event loop. */
const PAGE = 500;

/** Most sums that are made of entries, about 60 MB: clients may invent users. */
const MAX_SUMS = 200_000;

/** Counts of compared sums. */
type UserCounts = Pick<AuditCounts, "user_sums" | "user_sums_alone">;

/** No sum compared. */
export const NO_USERS: UserCounts = { user_sums: 0, user_sums_alone: 0 };

/** Sums of end users over entries. */
export class UserSums {
  readonly #charged = new Map<string, bigint>();
  /** True: some are missing. */
  isFull = false;

  /** Adds an entry that counts against the budget of an end user. */
  add({ keyId, cost, details }: Pick<Entry, "keyId" | "cost" | "details">): void {
    if (cost === 0n || details?.user_since === undefined) return;
    const name = nameOf({ since: details.user_since, keyId, user: details.user ?? "" });
    const charged = this.#charged.get(name);
    if (charged === undefined && this.#charged.size === MAX_SUMS) this.isFull = true;
    else this.#charged.set(name, (charged ?? 0n) + cost);
  }

  charged(sum: Omit<UserSum, "charged">): bigint | undefined {
    return this.#charged.get(nameOf(sum));
  }

  /** All but these. */
  others(seen: ReadonlySet<string>): Omit<UserSum, "charged">[] {
    return [...this.#charged.keys()].filter((name) => !seen.has(name)).map(readName);
  }
}

/**
 * Compares the sums of end users with the entries. A sum in use grows meanwhile: the entries read between two readings of
 * the sum must make no less than the first and no more than the second.
 */
export async function checkUsers(
  ledger: Pick<LedgerStore, "userSums" | "spending" | "entries" | "start">,
  { walk, findings, turn }: Comparison,
): Promise<UserCounts> {
  const counts = { ...NO_USERS };
  const seen = new Set<string>();

  async function compare(page: readonly UserSum[]): Promise<void> {
    await walk.toEnd(ledger, turn);
    const after = await ledger.spending(page.map((sum) => ({ scope: "user", id: accountOf(sum), since: sum.since })));
    // Read last: sums of periods that are over may have been pruned meanwhile.
    const { day: goneDay } = await ledger.start();
    for (const [index, sum] of page.entries()) {
      const recomputed = walk.users.charged(sum) ?? 0n;
      const upper = after[index]?.charged ?? 0n;
      const isAlone = sum.since <= goneDay || walk.users.isFull;
      if (isAlone) counts.user_sums_alone++;
      else counts.user_sums++;
      const isGone = sum.since <= goneDay && upper === 0n;
      if (isGone || recomputed <= upper && (isAlone || sum.charged <= recomputed)) continue;
      findings.add({
        kind: "user_sum",
        message:
          `${periodText(sum)}, key "${sum.keyId}", end user "${sum.user}": the sum is ${formatUsd(upper)} USD, ` +
          `the entries make ${formatUsd(recomputed)} USD`,
      });
    }
    await turn();
  }

  for (let page = await ledger.userSums({ limit: PAGE }); page.length > 0;) {
    for (const sum of page) if (seen.size < MAX_SUMS) seen.add(nameOf(sum));
    await compare(page);
    const after = page.at(-1);
    page = page.length < PAGE || after === undefined ? [] : await ledger.userSums({ after, limit: PAGE });
  }
  // Sums that are missing, or were made behind the place of the reading.
  const others = walk.users.others(seen).map((sum) => ({ ...sum, charged: 0n }));
  for (let at = 0; at < others.length; at += PAGE) await compare(others.slice(at, at + PAGE));
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
