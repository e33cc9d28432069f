/** Checks that entries and holds can be stored exactly. */
import type { Entry, Hold } from "./ledger.ts";

/** Largest 64-bit amount of SQLite and Postgres: about 9.2 million USD. */
const MAX_AMOUNT = 2n ** 63n - 1n;

/** Checks an entry. @throws {RangeError} for a number or amount that cannot be stored exactly */
export function assertEntry(entry: Entry): void {
  const { tokens } = entry;
  assertCount(entry, "at", entry.at);
  assertCount(entry, "status", entry.status);
  assertCount(entry, "prompt", tokens.prompt);
  assertCount(entry, "input_cache_read", tokens.input_cache_read);
  assertCount(entry, "input_cache_write_5m", tokens.input_cache_write_5m);
  assertCount(entry, "input_cache_write_1h", tokens.input_cache_write_1h);
  assertCount(entry, "completion", tokens.completion);
  assertCount(entry, "reasoning", tokens.reasoning);
  if (entry.firstMs !== undefined) assertCount(entry, "firstMs", entry.firstMs);
  assertCount(entry, "totalMs", entry.totalMs);
  assertCount(entry, "attempts", entry.attempts);
  assertCount(entry, "images", entry.images);
  for (const { item, count } of entry.details?.extras ?? []) assertCount(entry, item, count);
  assertAmount(entry, "cost", entry.cost);
  assertAmount(entry, "held", entry.held);
  assertAmount(entry, "overrun", entry.overrun);
}

function assertCount({ id }: Entry, name: string, count: number): void {
  if (!Number.isSafeInteger(count) || count < 0) throw new RangeError(`Cannot enter "${id}": ${name} is ${count}`);
}

function assertAmount({ id }: Entry, name: string, amount: bigint): void {
  if (!isAmount(amount)) throw new RangeError(`Cannot enter "${id}": ${name} is ${amount}`);
}

/** Checks a hold. @throws {RangeError} for an amount that cannot be stored exactly */
export function assertHold({ id, amount }: Hold): void {
  if (!isAmount(amount)) throw new RangeError(`Cannot hold for "${id}": the amount is ${amount}`);
}

function isAmount(amount: bigint): boolean {
  return amount >= 0n && amount <= MAX_AMOUNT;
}
