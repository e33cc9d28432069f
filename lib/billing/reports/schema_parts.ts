/** Types and checks that the schemas of reports share. */
import { z } from "zod";

/** A type whose optional members are required, at every depth. */
type AllRequired<T> = T extends object ? { [Name in keyof T]-?: AllRequired<T[Name]> } : T;

/** `unknown` if the types accept the same values and have the same members, otherwise `never`. */
type Same<One, Other> = [One, AllRequired<One>, AllRequired<Other>] extends
  [Other, AllRequired<Other>, AllRequired<One>] ? unknown : never;

/**
 * Returns a function that checks at compile time that a schema has exactly the members of `T`. A type annotation would
 * not find missing optional members.
 */
export function exactly<T>(): <S extends z.ZodType<T>>(schema: S & Same<T, z.output<S>>) => z.ZodType<T> {
  return (schema) => schema;
}

/** A moment. */
export const time = z.iso.datetime();
/** A non-negative integer. */
export const count = z.number().int().min(0);
/** An exact amount in USD, as a decimal string. */
export const usd = z.string().regex(/^-?\d+(\.\d{1,12})?$/).describe("USD, exact, as a decimal string");

/** Numbers of tokens by class. */
export const tokens = z.strictObject({
  prompt: count,
  input_cache_read: count,
  input_cache_write_5m: count,
  input_cache_write_1h: count,
  completion: count,
  reasoning: count.describe("Included in `completion`"),
});
