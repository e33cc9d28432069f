/**
 * Charged and held amounts per key and group, in the memory of the process that owns the ledger. They decide which
 * requests a budget allows. Each method is synchronous, so calls never interleave.
 */
import { dayOf, NO_TOKENS } from "../days.ts";
import type { BudgetClaim, Entry, Hold, HoldAnswer, Spender, Spending } from "../ledger.ts";

type Amount = bigint;

/**
 * Periods of one key or group that are kept current; the least recently used are dropped and read again when needed.
 */
const MAX_PERIODS = 8;

/** Sums the charges of a spender in slices: the state of the ledger at the moment it calls `started`. */
export type ReadCharged = (spender: Spender, started: () => void) => Promise<Amount>;

/** One key, or one group. */
interface Account {
  /** Amounts charged since a day, by that day. */
  charged: Map<number, Amount>;
  /** Amounts held, by the day of arrival, which they will be charged to. */
  held: Map<number, Amount>;
}

/** The accounts and open holds of a ledger. */
export class Accounts {
  readonly #chargedSince: (spender: Spender) => Amount;
  readonly #accounts = new Map<string, Account>();
  readonly #holds = new Map<string, Hold>();
  /** Amounts held of end users, by their claims. Their charges are not kept in memory: anyone may invent users. */
  readonly #usersHeld = new Map<string, Amount>();
  /** Reads of charged amounts in progress, with the amounts charged since they began. */
  readonly #readings = new Set<{ name: string; since: number; added: Amount }>();

  /** @param chargedSince reads the charges since a day; called once per period of a key or group */
  constructor(chargedSince: (spender: Spender) => Amount) {
    this.#chargedSince = chargedSince;
  }

  /**
   * Holds the amount in all claimed budgets, or in none. Repeated for an open hold, it returns the same answer. Amounts
   * are kept per key and group, not per budget, so a new budget includes earlier charges and holds.
   */
  hold(hold: Hold): HoldAnswer {
    if (this.#holds.has(hold.id)) return { held: true };
    for (const claim of hold.claims) {
      const onHold = this.#heldAmount(claim);
      const available = claim.budget - this.#charged(claim) - onHold;
      if (hold.amount > available) return { held: false, claim, available, onHold };
    }
    this.reopen(hold);
    return { held: true };
  }

  /** Adds a hold without checking budgets. */
  reopen(hold: Hold): void {
    this.#holds.set(hold.id, { ...hold, claims: [...hold.claims] });
    this.#addHeld(hold, hold.amount);
  }

  /** Sums charges in slices before `hold` or `available` need them, which would sum them synchronously. */
  async learn(spender: Spender, read: ReadCharged): Promise<void> {
    const name = nameOf(spender.scope, spender.id);
    const { charged } = this.#account(name);
    if (charged.has(spender.since)) return;
    const reading = { name, since: spender.since, added: 0n };
    try {
      const sum = await read(spender, () => this.#readings.add(reading));
      // A synchronous read may have finished first.
      if (!charged.has(spender.since)) keep(charged, spender.since, sum + reading.added);
    } finally {
      this.#readings.delete(reading);
    }
  }

  /** Returns the rest of a budget. */
  available(claim: BudgetClaim): Amount {
    return claim.budget - this.#charged(claim) - this.#heldAmount(claim);
  }

  /** Returns the amounts of a key or group. Unlike `available` it caches nothing, since reports ask for all keys. */
  spending(spender: Spender): Spending {
    const known = this.#accounts.get(nameOf(spender.scope, spender.id))?.charged.get(spender.since);
    return { charged: known ?? this.#chargedSince(spender), held: this.#heldAmount(spender) };
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

  /** Returns the open hold of a request. */
  find(id: string): Readonly<Hold> | undefined {
    return this.#holds.get(id);
  }

  /** Copies of all open holds. */
  open(): Hold[] {
    return [...this.#holds.values()].map((hold) => ({ ...hold, claims: hold.claims.map((claim) => ({ ...claim })) }));
  }

  /** Charges a new entry, and ends its hold. */
  enter({ id, at, keyId, group, cost }: Pick<Entry, "id" | "at" | "keyId" | "group" | "cost">): void {
    this.release(id);
    if (cost === 0n || this.#accounts.size === 0) return;
    const day = dayOf(at);
    for (const name of [nameOf("key", keyId), nameOf("group", group)]) {
      const charged = this.#accounts.get(name)?.charged ?? [];
      for (const [since, sum] of charged) {
        if (since <= day) this.#accounts.get(name)?.charged.set(since, sum + cost);
      }
      for (const reading of this.#readings) {
        if (reading.name === name && reading.since <= day) reading.added += cost;
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
    const known = charged.get(spender.since);
    if (known !== undefined) return known;
    const sum = this.#chargedSince(spender);
    keep(charged, spender.since, sum);
    return sum;
  }

  #heldAmount(spender: Spender): Amount {
    const { scope, id, since } = spender;
    if (scope === "user") return this.#usersHeld.get(userName(spender)) ?? 0n;
    let sum = 0n;
    for (const [day, amount] of this.#accounts.get(nameOf(scope, id))?.held ?? []) {
      if (day >= since) sum += amount;
    }
    return sum;
  }

  #addHeld({ keyId, group, at, claims }: Hold, amount: Amount): void {
    for (const claim of claims) if (claim.scope === "user") this.#addUserHeld(userName(claim), amount);
    const day = dayOf(at);
    for (const name of [nameOf("key", keyId), nameOf("group", group)]) {
      const { held } = this.#account(name);
      const sum = (held.get(day) ?? 0n) + amount;
      if (sum === 0n) held.delete(day);
      else held.set(day, sum);
    }
  }

  #addUserHeld(name: string, amount: Amount): void {
    const sum = (this.#usersHeld.get(name) ?? 0n) + amount;
    if (sum === 0n) this.#usersHeld.delete(name);
    else this.#usersHeld.set(name, sum);
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

function keep(charged: Account["charged"], since: number, sum: Amount): void {
  const [oldest] = charged.keys();
  if (charged.size === MAX_PERIODS && oldest !== undefined) charged.delete(oldest);
  charged.set(since, sum);
}

/** The entry of a request whose process ended before it did. */
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
