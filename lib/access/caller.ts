/** The authenticated caller of a request. */
import type { Group, KeyRules } from "../config.ts";
import { GatewayError } from "../errors.ts";

/** An authenticated key with the rules of its group and its own. */
export interface Caller {
  /** Id of the key, not the key. */
  keyId: string;
  keyName: string;
  groupName: string;
  group: Group;
  /** Rules of the key, which narrow those of its group. */
  rules: KeyRules;
}

/** Returns the caller of a route that needs a key. @throws {GatewayError} `unauthenticated` */
export function requireCaller(caller: Caller | undefined): Caller {
  if (caller === undefined) throw new GatewayError("unauthenticated", "This request needs an API key");
  return caller;
}
