/** What must hold of an entry before it is kept, and the check sums that chain entries together. */
import { crc32 } from "node:zlib";
import { tokenCounts } from "./days.ts";
import type { Entry, EntryDetails, Hold, KeptEntry, PriceSheet } from "./ledger.ts";

/** Largest amount that a column of SQLite or Postgres holds: about 9.2 million USD. */
const MAX_AMOUNT = 2n ** 63n - 1n;

/**
 * Check sum of an entry, from all it says but its own `check`, and from the check sum of the entry before: a change of any
 * of them changes it and all that follow. It finds damage, not forgery.
 */
export function checkSum(entry: Omit<KeptEntry, "check">, before: number): number {
  const facts = [
    // Part of the text and not crc32's second argument: Deno 2.4 miscounts with one from 2^31 on, once it is compiled.
    before,
    entry.seq,
    entry.id,
    entry.at,
    entry.keyId,
    entry.group,
    entry.model,
    entry.upstream,
    entry.endpoint,
    entry.status,
    entry.ending,
    ...tokenCounts(entry.tokens),
    entry.source,
    entry.priceVersion ?? null,
    entry.sheet === undefined ? null : sheetText(entry.sheet),
    entry.cost.toString(),
    entry.held.toString(),
    entry.overrun.toString(),
    entry.firstMs ?? null,
    entry.totalMs,
    entry.attempts,
    entry.images,
  ];
  // Entries without details have the check sum that they had before there were any.
  if (entry.details !== undefined) facts.push(detailsText(entry.details));
  return crc32(JSON.stringify(facts));
}

/** The details of an entry as they are kept. */
export function detailsText(details: EntryDetails): string {
  return JSON.stringify(details);
}

/** The same text for the same prices. */
export function sheetText(sheet: PriceSheet): string {
  let text = sheetTexts.get(sheet);
  if (text === undefined) {
    text = JSON.stringify([
      sheet.model,
      sheet.factor,
      sheet.prompt,
      sheet.completion,
      sheet.input_cache_read,
      sheet.input_cache_write_5m,
      sheet.input_cache_write_1h,
    ]);
    sheetTexts.set(sheet, text);
  }
  return text;
}

/** Sheets are pinned to requests and shared by many; nobody changes one. */
const sheetTexts = new WeakMap<PriceSheet, string>();

/** @throws {RangeError} for an entry with a number or an amount that cannot be kept exactly */
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

/** @throws {RangeError} for a hold of an amount that cannot be kept exactly */
export function assertHold({ id, amount }: Hold): void {
  if (!isAmount(amount)) throw new RangeError(`Cannot hold for "${id}": the amount is ${amount}`);
}

function isAmount(amount: bigint): boolean {
  return amount >= 0n && amount <= MAX_AMOUNT;
}
