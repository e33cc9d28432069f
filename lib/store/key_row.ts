/** Converts rows of both databases to API keys. */
import type { KeyRecord } from "./keys.ts";

/** A row of `keys`, with integers and booleans as the database returns them. */
export interface KeyRow {
  id: string;
  name: string;
  hash: string;
  group_name: string;
  created_at: number | bigint;
  disabled: number | boolean;
  revoked_at: number | bigint | null;
  expires_at: number | bigint | null;
  last_used_at: number | bigint | null;
  rules: string;
  former_hash: string | null;
  former_until: number | bigint | null;
}

/** Converts a row to a key. */
export function toKeyRecord(row: KeyRow): KeyRecord {
  return {
    id: row.id,
    name: row.name,
    hash: row.hash,
    group: row.group_name,
    createdAt: Number(row.created_at),
    disabled: Boolean(row.disabled),
    ...(row.revoked_at !== null && { revokedAt: Number(row.revoked_at) }),
    ...(row.expires_at !== null && { expiresAt: Number(row.expires_at) }),
    ...(row.last_used_at !== null && { lastUsedAt: Number(row.last_used_at) }),
    rules: JSON.parse(row.rules),
    ...(row.former_hash !== null && row.former_until !== null && {
      former: { hash: row.former_hash, until: Number(row.former_until) },
    }),
  };
}
