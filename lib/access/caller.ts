/** Who sends a request. */
import type { Group, KeyRules } from "../config.ts";
import { GatewayError } from "../errors.ts";

/** An authenticated key with the rules of its group and its own. */
export interface Caller {
  /** Id of the key, not the key. */
  keyId: string;
  keyName: string;
  groupName: string;
  group: Group;
  /** What the key may do beside, or less than, its group. */
  rules: KeyRules;
}

/** The caller of a route that the access table closes to strangers. @throws {GatewayError} `unauthenticated` */
export function requireCaller(caller: Caller | undefined): Caller {
  if (caller === undefined) throw new GatewayError("unauthenticated", "This request needs an API key");
  return caller;
}
