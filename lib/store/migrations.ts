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

  // Ids are never used again: pieces that outlive their answer must not become another's.
  `CREATE TABLE answers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    request_hash TEXT NOT NULL CHECK (length(request_hash) = 64),
    status INTEGER NOT NULL,
    headers TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    kept INTEGER NOT NULL CHECK (kept IN (0, 1)),
    done_at INTEGER NOT NULL,
    sealed INTEGER NOT NULL CHECK (sealed IN (0, 1))
  ) STRICT;
  CREATE UNIQUE INDEX answers_sealed ON answers (scope, key) WHERE sealed = 1;
  CREATE INDEX answers_by_age ON answers (done_at);
  CREATE INDEX answers_kept ON answers (id, bytes) WHERE kept = 1;
  CREATE TABLE answer_pieces (
    answer INTEGER NOT NULL,
    part INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (answer, part)
  ) STRICT;`,

  // `rules` is a JSON object: what the key may do beside, or less than, its group.
  `ALTER TABLE keys ADD COLUMN expires_at INTEGER;
  ALTER TABLE keys ADD COLUMN last_used_at INTEGER;
  ALTER TABLE keys ADD COLUMN rules TEXT NOT NULL DEFAULT '{}';
  ALTER TABLE keys ADD COLUMN former_hash TEXT;
  ALTER TABLE keys ADD COLUMN former_until INTEGER;
  CREATE UNIQUE INDEX keys_former_hash ON keys (former_hash) WHERE former_hash IS NOT NULL;`,
];
