/**
 * Keeps charged and held amounts of keys and groups in the memory of the process that owns the ledger, and decides with
 * them which requests a budget allows. Decisions are synchronous, so they never interleave.
 */
import type { Amount } from "../../billing/money.ts";
import { dayOf, NO_TOKENS } from "../days.ts";
import type { BudgetClaim, Entry, Hold, HoldAnswer, Spender, Spending } from "../ledger.ts";

/**
 * Maximum number of periods of one key or group whose charged amounts are kept. Dropped ones are read again if needed.
 */
const MAX_PERIODS = 8;

/** Adds up the charges of a spender, with pauses. The result is the sum at the moment of the call of `onBegin`. */
export type ReadCharged = (spender: Spender, onBegin: () => void) => Promise<Amount>;

/** Amounts of one key or group. */
interface Account {
  /** Amounts charged since the first day of a period, by that day, the least recently used first. */
  charged: Map<number, Amount>;
  /** Amounts held, by the day on which the requests arrived, to which they will be charged. */
  held: Map<number, Amount>;
}

/** The accounts and open holds of a ledger. */
export class Accounts {
  readonly #chargedSince: (spender: Spender) => Amount;
  readonly #accounts = new Map<string, Account>();
  readonly #holds = new Map<string, Hold>();
  /**
   * Held amounts of end users, by period and account. Their charges are not kept in memory: clients may invent users.
   */
  readonly #usersHeld = new Map<string, Amount>();
  /** Reads of charged amounts in progress, with the amounts that were charged since they began. */
  readonly #reads = new Set<{ name: string; since: number; added: Amount }>();

  /** @param chargedSince reads the charges of a spender synchronously; called once for each period of a key or group */
  constructor(chargedSince: (spender: Spender) => Amount) {
    this.#chargedSince = chargedSince;
  }

  /**
   * Holds the amount in all claimed budgets, or in none. A repeated call for an open hold returns the same answer.
   * Amounts are kept per key and group, not per budget, so a new budget includes earlier charges and holds.
   */
  hold(hold: Hold): HoldAnswer {
    if (this.#holds.has(hold.id)) return { held: true };
    for (const claim of hold.claims) {
      const onHold = this.#held(claim);
      const available = claim.budget - this.#charged(claim) - onHold;
      if (hold.amount > available) return { held: false, claim, available, onHold };
    }
    this.#holds.set(hold.id, { ...hold, claims: [...hold.claims] });
    this.#addHeld(hold, hold.amount);
    return { held: true };
  }

  /** Adds up charges with pauses, before `hold` or `spending` need them, which would add them up synchronously. */
  async loadCharged(spender: Spender, read: ReadCharged): Promise<void> {
    const name = nameOf(spender.scope, spender.id);
    const { charged } = this.#account(name);
    if (charged.has(spender.since)) return;
    const pendingRead = { name, since: spender.since, added: 0n };
    try {
      const sum = await read(spender, () => this.#reads.add(pendingRead));
      // A synchronous read may have been faster.
      if (!charged.has(spender.since)) storeCharged(charged, spender.since, sum + pendingRead.added);
    } finally {
      this.#reads.delete(pendingRead);
    }
  }

  /** Returns the amounts of a spender. Caches nothing, since reports read all keys. */
  spending(spender: Spender): Spending {
    const cached = this.#accounts.get(nameOf(spender.scope, spender.id))?.charged.get(spender.since);
    return { charged: cached ?? this.#chargedSince(spender), held: this.#held(spender) };
  }

  /** Extends the leases of open holds. Returns the ids of those that changed. */
  renew(ids: readonly string[], leaseUntil: number): string[] {
    return ids.filter((id) => {
      const hold = this.#holds.get(id);
      if (hold === undefined || hold.leaseUntil >= leaseUntil) return false;
      hold.leaseUntil = leaseUntil;
      return true;
    });
  }

  /** Returns the open holds with expired leases. They stay open until their entries exist. */
  overdue(now: number): Readonly<Hold>[] {
    return [...this.#holds.values()].filter(({ leaseUntil }) => leaseUntil <= now);
  }

  find(id: string): Readonly<Hold> | undefined {
    return this.#holds.get(id);
  }

  /** Returns copies of all open holds. */
  open(): Hold[] {
    return [...this.#holds.values()].map((hold) => ({ ...hold, claims: hold.claims.map((claim) => ({ ...claim })) }));
  }

  /** Charges a new entry, and ends its hold. */
  enter({ id, at, keyId, group, cost }: Pick<Entry, "id" | "at" | "keyId" | "group" | "cost">): void {
    this.release(id);
    if (cost === 0n || this.#accounts.size === 0) return;
    const day = dayOf(at);
    for (const name of [nameOf("key", keyId), nameOf("group", group)]) {
      const charged = this.#accounts.get(name)?.charged;
      for (const [since, sum] of charged ?? []) if (since <= day) charged?.set(since, sum + cost);
      for (const pendingRead of this.#reads) {
        if (pendingRead.name === name && pendingRead.since <= day) pendingRead.added += cost;
      }
    }
  }

  /** Ends a hold without a charge. */
  release(id: string): void {
    const hold = this.#holds.get(id);
    if (hold === undefined) return;
    this.#holds.delete(id);
    this.#addHeld(hold, -hold.amount);
  }

  #charged(spender: Spender): Amount {
    if (spender.scope === "user") return this.#chargedSince(spender);
    const { charged } = this.#account(nameOf(spender.scope, spender.id));
    const sum = charged.get(spender.since) ?? this.#chargedSince(spender);
    storeCharged(charged, spender.since, sum);
    return sum;
  }

  #held(spender: Spender): Amount {
    const { scope, id, since } = spender;
    if (scope === "user") return this.#usersHeld.get(userName(spender)) ?? 0n;
    let sum = 0n;
    for (const [day, amount] of this.#accounts.get(nameOf(scope, id))?.held ?? []) {
      if (day >= since) sum += amount;
    }
    return sum;
  }

  #addHeld({ keyId, group, at, claims }: Hold, amount: Amount): void {
    for (const claim of claims) if (claim.scope === "user") addAmount(this.#usersHeld, userName(claim), amount);
    const day = dayOf(at);
    for (const name of [nameOf("key", keyId), nameOf("group", group)]) addAmount(this.#account(name).held, day, amount);
  }

  #account(name: string): Account {
    let account = this.#accounts.get(name);
    if (account === undefined) {
      account = { charged: new Map(), held: new Map() };
      this.#accounts.set(name, account);
    }
    return account;
  }
}

/** Adds to an amount. An amount of 0 is removed. */
function addAmount<Key>(amounts: Map<Key, Amount>, key: Key, amount: Amount): void {
  const sum = (amounts.get(key) ?? 0n) + amount;
  if (sum === 0n) amounts.delete(key);
  else amounts.set(key, sum);
}

/** Stores a charged amount as the last used one, and drops the first one if there are too many. */
function storeCharged(charged: Account["charged"], since: number, sum: Amount): void {
  charged.delete(since);
  charged.set(since, sum);
  const [first] = charged.keys();
  if (charged.size > MAX_PERIODS && first !== undefined) charged.delete(first);
}

/** Returns the entry of a request whose process ended before it did. @param now Unix time in milliseconds */
export function lostEntry(
  { id, at, keyId, group, model, endpoint, amount = 0n }: Omit<Readonly<Hold>, "amount" | "claims" | "leaseUntil"> & {
    amount?: Amount;
  },
  now: number,
): Entry {
  return {
    id,
    at,
    keyId,
    group,
    model,
    upstream: "",
    endpoint,
    status: 0,
    ending: "lost",
    tokens: NO_TOKENS,
    source: "none",
    cost: 0n,
    held: amount,
    overrun: 0n,
    totalMs: now > at ? now - at : 0,
    attempts: 0,
    images: 0,
  };
}

function userName({ id, since }: Pick<Spender, "id" | "since">): string {
  return `${since}\n${id}`;
}

function nameOf(scope: BudgetClaim["scope"], id: string): string {
  return `${scope}:${id}`;
}
