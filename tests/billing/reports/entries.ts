/** Entries for tests of the reports. */
import { recomputeCharge } from "../../../lib/billing/reports/audit_entry.ts";
import { NO_TOKENS } from "../../../lib/store/days.ts";
import type { BilledTokens, Entry, PriceSheet } from "../../../lib/store/ledger.ts";
import { seeded } from "../../support/random.ts";

/** 2026-11-20T00:00:00Z in Unix milliseconds. */
export const DAY_ONE = Date.UTC(2026, 10, 20);

/** One day in milliseconds. */
export const DAY_MS = 86_400_000;

/** Prices with a factor below 1. */
export const SHEET: PriceSheet = Object.freeze({
  model: "acme/one",
  factor: "0.8",
  prompt: "0.00000125",
  completion: "0.00001",
  input_cache_read: "0.000000125",
  input_cache_write_5m: "0.0000015625",
  input_cache_write_1h: "0.0000025",
});

/** Tokens that are all 0, except the given ones. */
export function tokensOf(change: Partial<BilledTokens> = {}): BilledTokens {
  return { ...NO_TOKENS, ...change };
}

/** A consistent entry with the given changes. */
export function entryOf(change: Partial<Entry> = {}): Entry {
  const whole = {
    id: "r1",
    at: DAY_ONE + 1000,
    keyId: "key_1",
    group: "default",
    model: "acme/one",
    upstream: "acme",
    endpoint: "chat" as const,
    status: 200,
    ending: "end" as const,
    tokens: tokensOf({ prompt: 1234, input_cache_read: 400, completion: 56, reasoning: 20 }),
    source: "upstream" as const,
    sheet: SHEET,
    held: 0n,
    firstMs: 210,
    totalMs: 1830,
    attempts: 1,
    images: 0,
    ...change,
  };
  return { ...whole, ...recomputeCharge(whole), ...change };
}

/** An entry of a request without charge. */
export function freeEntryOf(change: Partial<Entry> = {}): Entry {
  const { sheet: _, firstMs: __, ...rest } = entryOf({
    tokens: tokensOf(),
    source: "none",
    ending: "failed",
    status: 502,
  });
  return { ...rest, cost: 0n, overrun: 0n, ...change };
}

/** A ledger's worth of entries of several keys, groups, models and days; the same for the same seed. */
export function someEntries(count: number, { seed = 1, firstId = 0 } = {}): Entry[] {
  const { below } = seeded(seed);
  return Array.from({ length: count }, (_, index) => {
    const key = below(7);
    const common = {
      id: `r${(firstId + index).toString(36).padStart(6, "0")}`,
      at: DAY_ONE + below(3) * DAY_MS + below(86_400) * 1000,
      keyId: `key_${key}`,
      group: key < 3 ? "default" : "ops",
      totalMs: below(9000),
    };
    if (below(10) === 0) return freeEntryOf({ ...common, ending: below(2) === 0 ? "failed" : "refused" });
    const model = below(2) === 0 ? "acme/one" : "acme/two";
    const completion = below(4000);
    return entryOf({
      ...common,
      model,
      sheet: Object.freeze({ ...SHEET, model }),
      tokens: tokensOf({
        prompt: below(50_000),
        input_cache_read: below(3) * 1000,
        completion,
        reasoning: below(completion + 1),
      }),
    });
  });
}
