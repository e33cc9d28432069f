/** Checks texts and times that Postgres cannot store unchanged, and passes lists of texts to it. */
import type { Entry } from "../ledger.ts";
import type { Sql } from "./client.ts";

/** Returns an array of texts as a part of a statement. It is sent as JSON: see `fetch_types` in `client.ts`. */
export function textArray(sql: Sql, texts: readonly string[]): ReturnType<Sql> {
  return sql`ARRAY(SELECT json_array_elements_text(${JSON.stringify(texts)}::text::json))`;
}

/**
 * Checks texts.
 * @param what what cannot be done otherwise, for the error
 * @throws {RangeError} for a text with a zero byte or a lone surrogate
 */
export function assertTexts(what: string, texts: readonly string[]): void {
  for (const text of texts) {
    if (!isStorableText(text)) throw new RangeError(`Cannot ${what}: ${JSON.stringify(text)} cannot be stored as text`);
  }
}

/** Returns whether Postgres stores a text unchanged. */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

/**
 * Checks a time.
 * @param what what cannot be done otherwise, for the error
 * @throws {RangeError} unless it is a whole number of milliseconds
 */
export function assertInstant(what: string, time: number): void {
  if (!Number.isSafeInteger(time)) throw new RangeError(`Cannot ${what}: ${time} is not a time`);
}

/** Checks the texts of an entry. @throws {RangeError} for a text that cannot be stored */
export function assertEntryTexts({ id, keyId, group, model, upstream, sheet }: Entry): void {
  assertTexts(`enter "${id}"`, [id, keyId, group, model, upstream, ...Object.values(sheet ?? {})]);
}
