/** Who sends a request. */
import type { Group } from "../config.ts";

/** An authenticated key with the rules of its group. */
export interface Caller {
  /** Id of the key, not the key. */
  keyId: string;
  keyName: string;
  groupName: string;
  group: Group;
}
