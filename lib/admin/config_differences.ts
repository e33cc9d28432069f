/** Compares two configurations member by member, without secrets. */
import type { Config } from "../config.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import { withoutSecrets } from "./config.ts";

/** A member in which two configurations differ. */
export interface ConfigDifference {
  /** Path of the member, such as `groups.team.limits.requests_per_minute`. Models and keys appear with their ids. */
  path: string;
  /** Absent: the member is new. */
  before?: Json;
  /** Absent: the member was removed. */
  after?: Json;
}

/** Largest number of differences that are logged for one reload. */
const MAX_LOGGED = 100;

/**
 * Returns the members that differ. An object that only one configuration has is a single difference. Differences of
 * secrets are not found.
 */
export function configDifferences(before: Config, after: Config): ConfigDifference[] {
  return [...differences([], [toJson(before), toJson(after)])];
}

/** Returns differences as the values before and after, by path, for the log of changes. */
export function differenceValues(all: readonly ConfigDifference[]): { before: JsonObject; after: JsonObject } {
  const [before, after]: [JsonObject, JsonObject] = [{}, {}];
  for (const difference of all.slice(0, MAX_LOGGED)) {
    before[difference.path] = difference.before ?? null;
    after[difference.path] = difference.after ?? null;
  }
  if (all.length > MAX_LOGGED) after["more differences"] = all.length - MAX_LOGGED;
  return { before, after };
}

/** Returns a configuration as plain JSON, in which secrets are hidden. */
function toJson(config: Config): Json {
  return JSON.parse(JSON.stringify(withoutSecrets(config)));
}

function* differences(
  path: string[],
  [before, after]: [Json | undefined, Json | undefined],
): Generator<ConfigDifference> {
  const [oldMembers, newMembers] = [membersOf(before), membersOf(after)];
  if (oldMembers === undefined || newMembers === undefined) {
    if (JSON.stringify(before) === JSON.stringify(after)) return;
    yield {
      path: path.join("."),
      ...(before !== undefined && { before }),
      ...(after !== undefined && { after }),
    };
    return;
  }
  for (const name of new Set([...oldMembers.keys(), ...newMembers.keys()])) {
    yield* differences([...path, name], [oldMembers.get(name), newMembers.get(name)]);
  }
}

/**
 * Returns the members of an object, or the items of a list by their ids or names; `undefined` for any other value,
 * which is compared as a whole.
 */
function membersOf(value: Json | undefined): ReadonlyMap<string, Json | undefined> | undefined {
  if (Array.isArray(value)) {
    const rows = value.map((row): [Json | undefined, Json] => [isObject(row) ? row.id ?? row.name : undefined, row]);
    const isNamed = rows.length > 0 && rows.every(([id]) => typeof id === "string");
    return isNamed && new Set(rows.map(([id]) => id)).size === rows.length
      ? new Map(rows as [string, Json][])
      : undefined;
  }
  return isObject(value) ? new Map(Object.entries(value)) : undefined;
}
