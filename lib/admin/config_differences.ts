/** Differences of two configurations, member by member and without secrets. */
import type { Config } from "../config.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import { withoutSecrets } from "./config.ts";

/** A member in which two configurations differ. */
export interface ConfigDifference {
  /** Such as `groups.team.limits.requests_per_minute`; models and keys are named by their ids. */
  path: string;
  /** Absent: the member is new. */
  before?: Json;
  /** Absent: the member is gone. */
  after?: Json;
}

/** Most differences of one reload that are logged. */
const MAX_LOGGED = 100;

/** Lists the members that differ, the outermost that only one configuration has. Secrets that differ are not among them. */
export function configDifferences(before: Config, after: Config): ConfigDifference[] {
  return [...differences([], [toJson(before), toJson(after)])];
}

/** The differences as values for the log of changes. */
export function differenceValues(found: readonly ConfigDifference[]): { before: JsonObject; after: JsonObject } {
  const [before, after]: [JsonObject, JsonObject] = [{}, {}];
  for (const difference of found.slice(0, MAX_LOGGED)) {
    before[difference.path] = difference.before ?? null;
    after[difference.path] = difference.after ?? null;
  }
  if (found.length > MAX_LOGGED) after["more differences"] = found.length - MAX_LOGGED;
  return { before, after };
}

/** Secrets redact themselves in JSON. */
function toJson(config: Config): Json {
  return JSON.parse(JSON.stringify(withoutSecrets(config)));
}

function* differences(path: string[], [old, now]: [Json | undefined, Json | undefined]): Generator<ConfigDifference> {
  const [oldMembers, newMembers] = [membersOf(old), membersOf(now)];
  if (oldMembers === undefined || newMembers === undefined) {
    if (JSON.stringify(old) === JSON.stringify(now)) return;
    yield {
      path: path.join("."),
      ...(old !== undefined && { before: old }),
      ...(now !== undefined && { after: now }),
    };
    return;
  }
  for (const name of new Set([...oldMembers.keys(), ...newMembers.keys()])) {
    yield* differences([...path, name], [oldMembers.get(name), newMembers.get(name)]);
  }
}

/** The members of an object, or the rows of a list by their ids; `undefined` for any other value. */
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
