/** The shape of the database, step by step. Append only: a released step never changes. */

/** `PRAGMA user_version` counts how many of these have run. */
export const MIGRATIONS: readonly string[] = [
  `CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE CHECK (length(hash) = 64),
    group_name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    disabled INTEGER NOT NULL DEFAULT 0 CHECK (disabled IN (0, 1)),
    revoked_at INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX keys_name_in_use ON keys (name) WHERE revoked_at IS NULL;`,
];
