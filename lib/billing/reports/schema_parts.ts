/** Parts of the schemas of reports. */
import { z } from "zod";

/** A type with every member that it may have. */
type Whole<T> = T extends object ? { [Name in keyof T]-?: Whole<T[Name]> } : T;

/** `unknown` where the types accept the same values and have the same members; else `never`. */
type Same<One, Other> = [One, Whole<One>, Whole<Other>] extends [Other, Whole<Other>, Whole<One>] ? unknown : never;

/** Checks that a schema has exactly the members of a response type, which a type annotation does not. */
export function exactly<T>(): <S extends z.ZodType<T>>(schema: S & Same<T, z.output<S>>) => z.ZodType<T> {
  return (schema) => schema;
}

/** A moment. */
export const time = z.iso.datetime();
/** A whole number from 0. */
export const count = z.number().int().min(0);
/** An amount of money. */
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
