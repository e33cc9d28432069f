/** Entries, holds and prices for tests. */
import { NO_TOKENS } from "../../lib/store/days.ts";
import type { Entry, Hold, PriceSheet } from "../../lib/store/ledger.ts";

/** Prices that differ in every class. */
export const SHEET: PriceSheet = {
  model: "acme/one",
  factor: "1",
  prompt: "0.000003",
  completion: "0.000015",
  input_cache_read: "0.0000003",
  input_cache_write_5m: "0.00000375",
  input_cache_write_1h: "0.000006",
};

/** An entry of a refused request, with the given members. */
export function entryOf(id: string, members: Partial<Entry> = {}): Entry {
  return {
    id,
    at: Date.UTC(2026, 10, 21, 12),
    keyId: "key_a",
    group: "default",
    model: "acme/one",
    upstream: "",
    endpoint: "chat",
    status: 429,
    ending: "refused",
    tokens: NO_TOKENS,
    source: "none",
    cost: 0n,
    held: 0n,
    overrun: 0n,
    totalMs: 0,
    attempts: 0,
    images: 0,
    ...members,
  };
}

/** A hold of 100 by one key, without budgets. */
export function holdOf(id: string, members: Partial<Hold> = {}): Omit<Hold, "leaseUntil"> {
  return {
    id,
    at: Date.UTC(2026, 10, 21, 12),
    keyId: "key_a",
    group: "default",
    model: "acme/one",
    endpoint: "chat",
    amount: 100n,
    claims: [{ scope: "key", id: "key_a", budget: 1_000n, since: 0 }],
    ...members,
  };
}
