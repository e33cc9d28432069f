/** Members that the canonical form does not model, on their way back to an upstream. */
import type { Dropped } from "../canonical/dropped.ts";
import type { Rest } from "../canonical/types.ts";
import { isObject, type Json, type JsonObject } from "../../json/json.ts";

/** The members that chat itself has kept. Those of another protocol are named instead. */
export function ownRest(rest: Rest | undefined, dropped: Dropped): JsonObject {
  if (rest === undefined || rest.from === "chat") return rest?.members ?? {};
  for (const name of Object.keys(rest.members)) dropped.add(name);
  return {};
}

/** Puts kept members back where they were read: beside what is written, and inside objects that are written. */
export function withRest(written: JsonObject, rest: JsonObject): JsonObject {
  const members = new Map<string, Json | undefined>(Object.entries(written));
  for (const [name, value] of Object.entries(rest)) {
    const had = members.get(name);
    members.set(name, isObject(had) && isObject(value) ? { ...had, ...value } : value);
  }
  return Object.fromEntries(members);
}
