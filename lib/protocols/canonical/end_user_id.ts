import { createHash } from "node:crypto";

/** Longest id of an end user that OpenAI accepts. */
const MAX_LENGTH = 64;

/** Returns the id of an end user, hashed if it is too long. */
export function endUserId(user: string): string {
  return user.length > MAX_LENGTH ? createHash("sha256").update(user).digest("hex") : user;
}
