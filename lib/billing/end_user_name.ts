/** The names of end users, as the ledger has them. */
import { plainText } from "../text.ts";

/** Longest name of an end user, in UTF-16 code units. */
export const MAX_USER_LENGTH = 256;

/** Returns a name without control characters, cut if it is long. Vendors accept any end user, so none is refused. */
export function endUserName(text: string): string {
  return plainText(text, MAX_USER_LENGTH);
}
