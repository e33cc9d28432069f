/** Lists what a change of an operator has changed. */
import { isObject } from "../json/mod.ts";
import type { ChangeLine } from "./schemas.ts";

/** Longest value that lists of changes show in full, in characters. */
export const MAX_VALUE_CHARACTERS = 120;

/** A member and its value after a change; `undefined` if it has none. */
export interface ChangedMember {
  /** Path of the member, such as `rules.limits.requests_per_minute`. */
  path: string;
  after: unknown;
  /** Absent: only the new value is known, as of a new key. `undefined`: the member had no value. */
  before?: unknown;
}

/**
 * Lists the members that differ, down to the innermost. Those whose former value is unknown are listed if they have a
 * value.
 */
export function changedMembers({ before, after }: Pick<ChangeLine, "before" | "after">): ChangedMember[] {
  return Object.keys({ ...before, ...after }).flatMap((name) => {
    const value = after?.[name];
    if (before !== null && name in before) return [...differences(name, before[name], value)];
    return hasValue(value) ? [{ path: name, after: value }] : [];
  });
}

function* differences(path: string, before: unknown, after: unknown): Generator<ChangedMember> {
  if (isObject(before) && isObject(after)) {
    for (const name of Object.keys({ ...before, ...after })) {
      yield* differences(`${path}.${name}`, before[name], after[name]);
    }
  } else if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    for (const [index, value] of before.entries()) yield* differences(`${path}[${index}]`, value, after[index]);
  } else if ((before ?? null) !== (after ?? null)) {
    yield { path, before: before ?? undefined, after: after ?? undefined };
  }
}

function hasValue(value: unknown): boolean {
  if (isObject(value)) return Object.keys(value).length > 0;
  return value !== undefined && value !== null && value !== false;
}
