/** Shortens ids of end users to what OpenAI accepts. */
import { createHash } from "node:crypto";

/** Length of the longest id that OpenAI accepts. */
const MAX_LENGTH = 64;

/** Returns the id of an end user; the SHA-256 hash of it, in hexadecimal digits, if it has more than 64 characters. */
export function endUserId(user: string): string {
  return user.length > MAX_LENGTH ? createHash("sha256").update(user).digest("hex") : user;
}
