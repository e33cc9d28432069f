/** Members of bodies of this protocol: left over, spread. */
import type { Rest } from "../../canonical/types.ts";
import type { JsonObject } from "../../json.ts";

/** An object without the members whose value is `undefined`. */
export function present<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

/**
 * The members of an object that the canonical form does not model, as a `rest` member to spread; nothing where there are
 * none.
 * @param more members to keep that the wire has elsewhere
 */
export function restOf(
  value: JsonObject,
  { modelled, more = {} }: { modelled: ReadonlySet<string>; more?: JsonObject },
): { rest?: Rest } {
  const entries = [
    ...Object.entries(value).filter(([name]) => !modelled.has(name)),
    ...Object.entries(more).filter(([, member]) => member !== undefined),
  ];
  return entries.length === 0 ? {} : { rest: { from: "responses", members: Object.fromEntries(entries) } };
}
