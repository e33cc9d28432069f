/**
 * The form of keys for operators, which the admin API describes. It has its own file, so that a start need not load it.
 */
import { z } from "zod";
import { keyRulesSchema } from "../config.ts";

const time = z.iso.datetime();

/** A key as operators see it, without its hash. Times are ISO 8601; `null` if absent. */
export const publicKeySchema = z.strictObject({
  id: z.string().describe("Unchanged when the key is rotated"),
  name: z.string(),
  group: z.string(),
  state: z.enum(["active", "disabled", "expired", "revoked"]),
  created_at: time,
  expires_at: time.nullable(),
  last_used_at: time.nullable().describe("Accurate to the minute"),
  revoked_at: time.nullable(),
  rules: keyRulesSchema,
  former_until: time.nullable().describe("End of the previous secret's validity"),
});

/** A key as `publicKeySchema` describes it. */
export type PublicKey = z.output<typeof publicKeySchema>;
