/** Checks of texts and times that Postgres cannot store unchanged. */
import type { Entry } from "../ledger.ts";

/** @throws {RangeError} for a text that would come back as another one: with a zero byte, or half of a pair of surrogates */
export function assertTexts(what: string, texts: readonly string[]): void {
  for (const text of texts) {
    if (!isKept(text)) throw new RangeError(`Cannot ${what}: ${JSON.stringify(text)} is no text that can be kept`);
  }
}

/** Returns whether Postgres stores a text unchanged. */
export function isKept(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

/** @throws {RangeError} for a time that is no whole number of milliseconds */
export function assertInstant(what: string, time: number): void {
  if (!Number.isSafeInteger(time)) throw new RangeError(`Cannot ${what}: ${time} is no time`);
}

/** @throws {RangeError} for an entry with a text that cannot be kept */
export function assertEntryTexts({ id, keyId, group, model, upstream, sheet }: Entry): void {
  assertTexts(`enter "${id}"`, [id, keyId, group, model, upstream, ...Object.values(sheet ?? {})]);
}
