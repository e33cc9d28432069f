/**
 * The steps that create the schema of the database. New steps are appended. A step may lose only what a later one drops
 * or replaces: all missing steps run in one transaction.
 */

/** Columns of figures that all tables of sums have. */
const SUM_COLUMNS = `requests INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    prompt INTEGER NOT NULL,
    input_cache_read INTEGER NOT NULL,
    input_cache_write_5m INTEGER NOT NULL,
    input_cache_write_1h INTEGER NOT NULL,
    completion INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    images INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    overrun INTEGER NOT NULL,`;

/** Columns of the sums by upstream, per day and per hour. */
const UPSTREAM_SUM_COLUMNS = `key_id TEXT NOT NULL,
    group_name TEXT NOT NULL,
    model TEXT NOT NULL,
    upstream TEXT NOT NULL,
    price_version INTEGER NOT NULL,
    has_target_price INTEGER NOT NULL,
    ${SUM_COLUMNS}
    saved INTEGER NOT NULL,
    counted INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    target_cost INTEGER NOT NULL,`;

/** All steps, in order. `PRAGMA user_version` is the number of applied steps. */
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

  // Stored answers. A later step replaces this table.
  "",

  // `rules` is a JSON object with rules that extend or restrict those of the group.
  `ALTER TABLE keys ADD COLUMN expires_at INTEGER;
  ALTER TABLE keys ADD COLUMN last_used_at INTEGER;
  ALTER TABLE keys ADD COLUMN rules TEXT NOT NULL DEFAULT '{}';
  ALTER TABLE keys ADD COLUMN former_hash TEXT;
  ALTER TABLE keys ADD COLUMN former_until INTEGER;
  CREATE UNIQUE INDEX keys_former_hash ON keys (former_hash) WHERE former_hash IS NOT NULL;`,

  // Amounts are in 1e-12 USD. Sheets and entries are only appended. The oldest entries may be deleted in order, after
  // `ledger_start` has recorded the checksum of the last of them, with which the chain of the others begins.
  `CREATE TABLE price_sheets (
    version INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    factor TEXT NOT NULL,
    prompt TEXT NOT NULL,
    completion TEXT NOT NULL,
    input_cache_read TEXT NOT NULL,
    input_cache_write_5m TEXT NOT NULL,
    input_cache_write_1h TEXT NOT NULL,
    UNIQUE (model, factor, prompt, completion, input_cache_read, input_cache_write_5m, input_cache_write_1h)
  ) STRICT;
  CREATE TABLE entries (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL CHECK (at >= 0),
    key_id TEXT NOT NULL,
    group_name TEXT NOT NULL,
    model TEXT NOT NULL,
    upstream TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    status INTEGER NOT NULL,
    ending TEXT NOT NULL,
    prompt INTEGER NOT NULL CHECK (prompt >= 0),
    input_cache_read INTEGER NOT NULL CHECK (input_cache_read >= 0),
    input_cache_write_5m INTEGER NOT NULL CHECK (input_cache_write_5m >= 0),
    input_cache_write_1h INTEGER NOT NULL CHECK (input_cache_write_1h >= 0),
    completion INTEGER NOT NULL CHECK (completion >= 0),
    reasoning INTEGER NOT NULL CHECK (reasoning >= 0),
    source TEXT NOT NULL,
    price_version INTEGER,
    cost INTEGER NOT NULL CHECK (cost >= 0),
    held INTEGER NOT NULL CHECK (held >= 0),
    overrun INTEGER NOT NULL CHECK (overrun >= 0),
    first_ms INTEGER,
    total_ms INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    images INTEGER NOT NULL CHECK (images >= 0),
    check_sum INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX entries_by_time ON entries (at);
  CREATE TABLE days (
    day INTEGER NOT NULL,
    key_id TEXT NOT NULL,
    group_name TEXT NOT NULL,
    model TEXT NOT NULL,
    ${SUM_COLUMNS}
    PRIMARY KEY (day, key_id, group_name, model)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX days_by_key ON days (key_id, day);
  CREATE TABLE holds (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    key_id TEXT NOT NULL,
    group_name TEXT NOT NULL,
    model TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount >= 0),
    claims TEXT NOT NULL,
    lease_until INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE ledger_start (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL,
    check_sum INTEGER NOT NULL,
    day INTEGER NOT NULL
  ) STRICT;
  INSERT INTO ledger_start VALUES (1, 0, 0, -1);

  CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
  BEGIN SELECT RAISE(ABORT, 'entries must not be changed'); END;
  CREATE TRIGGER entries_go BEFORE DELETE ON entries WHEN OLD.seq > (SELECT seq FROM ledger_start)
  BEGIN SELECT RAISE(ABORT, 'only the oldest entries may be deleted, after ledger_start has been moved past them'); END;

  CREATE TRIGGER price_sheets_once BEFORE INSERT ON price_sheets
  WHEN NEW.version <> 1 + coalesce((SELECT max(version) FROM price_sheets), 0)
  BEGIN SELECT RAISE(ABORT, 'a new price sheet must follow the last one'); END;
  CREATE TRIGGER price_sheets_stay BEFORE UPDATE ON price_sheets
  BEGIN SELECT RAISE(ABORT, 'price sheets must not be changed'); END;
  CREATE TRIGGER price_sheets_go BEFORE DELETE ON price_sheets
  BEGIN SELECT RAISE(ABORT, 'price sheets must not be deleted'); END;

  CREATE TRIGGER ledger_start_once BEFORE INSERT ON ledger_start
  BEGIN SELECT RAISE(ABORT, 'the ledger must have exactly one start'); END;
  CREATE TRIGGER ledger_start_moves BEFORE UPDATE ON ledger_start
  WHEN NEW.seq < OLD.seq OR NEW.day < OLD.day
    OR NEW.check_sum IS NOT (SELECT check_sum FROM entries WHERE seq = NEW.seq)
  BEGIN SELECT RAISE(ABORT, 'the start of the ledger must be moved to a later entry with its checksum'); END;
  CREATE TRIGGER ledger_start_stays BEFORE DELETE ON ledger_start
  BEGIN SELECT RAISE(ABORT, 'the ledger must have exactly one start'); END;`,

  // No triggers on inserts, which take a quarter of their time: the owner of the ledger reads the last entry before it
  // writes, and entries of any other program break the chain of checksums.
  `DROP TRIGGER IF EXISTS entries_once;
  DROP TRIGGER IF EXISTS entries_follow;`,

  // A JSON object of facts that few entries have.
  `ALTER TABLE entries ADD COLUMN details TEXT;`,

  // One row per answer. Answers of older tables are deleted, since they live only an hour.
  `DROP TABLE IF EXISTS answer_pieces;
  DROP TABLE IF EXISTS answers;
  CREATE TABLE answers (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    request_hash TEXT NOT NULL CHECK (length(request_hash) = 64),
    status INTEGER NOT NULL,
    headers TEXT NOT NULL,
    done_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    body BLOB,
    UNIQUE (scope, key)
  ) STRICT;
  CREATE INDEX answers_by_age ON answers (done_at);
  CREATE INDEX answers_with_body ON answers (done_at, bytes) WHERE body IS NOT NULL;`,

  // Times are in Unix milliseconds. `alert_states` has conditions that have begun and not ended, and facts that are
  // reported only once.
  `CREATE TABLE alerts (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'given_up')),
    attempts INTEGER NOT NULL,
    due_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX alerts_due ON alerts (due_at) WHERE state = 'pending';
  CREATE INDEX alerts_done ON alerts (at) WHERE state <> 'pending';
  CREATE TABLE alert_states (
    subject TEXT PRIMARY KEY,
    active INTEGER NOT NULL CHECK (active IN (0, 1)),
    at INTEGER NOT NULL,
    remember_until INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;`,

  // For searches: the columns repeat facts of the details.
  `ALTER TABLE entries ADD COLUMN reason TEXT;
  ALTER TABLE entries ADD COLUMN end_user TEXT;
  ALTER TABLE entries ADD COLUMN tags TEXT;
  CREATE INDEX entries_by_key ON entries (key_id, at);
  CREATE INDEX entries_by_user ON entries (end_user, at) WHERE end_user IS NOT NULL;`,

  // The state of operators: logged changes, sign-in links by the hashes of their tokens, and sessions that were ended
  // before they expired. Times are in Unix milliseconds.
  `CREATE TABLE change_log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    author TEXT NOT NULL,
    address TEXT,
    request_id TEXT,
    action TEXT NOT NULL,
    subject TEXT,
    before_values TEXT,
    after_values TEXT
  ) STRICT;
  CREATE INDEX change_log_by_time ON change_log (at);
  CREATE TABLE change_log_start (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at INTEGER NOT NULL
  ) STRICT;
  INSERT INTO change_log_start VALUES (1, 0);
  CREATE TRIGGER change_log_stays BEFORE UPDATE ON change_log
  BEGIN SELECT RAISE(ABORT, 'logged changes must not be changed'); END;
  CREATE TRIGGER change_log_goes BEFORE DELETE ON change_log WHEN OLD.at >= (SELECT at FROM change_log_start)
  BEGIN SELECT RAISE(ABORT, 'only the oldest logged changes may be deleted'); END;
  CREATE TRIGGER change_log_start_once BEFORE INSERT ON change_log_start
  BEGIN SELECT RAISE(ABORT, 'the log of changes must have exactly one start'); END;
  CREATE TRIGGER change_log_start_moves BEFORE UPDATE ON change_log_start WHEN NEW.at < OLD.at
  BEGIN SELECT RAISE(ABORT, 'the start of the log of changes only moves on'); END;
  CREATE TRIGGER change_log_start_stays BEFORE DELETE ON change_log_start
  BEGIN SELECT RAISE(ABORT, 'the log of changes must have exactly one start'); END;
  CREATE TABLE sign_in_links (
    hash TEXT PRIMARY KEY CHECK (length(hash) = 64),
    expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE ended_sessions (
    id TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;`,

  // Spending of end users of keys in periods of their budgets. `since` is the first day of the period.
  `CREATE TABLE user_sums (
    since INTEGER NOT NULL,
    key_id TEXT NOT NULL,
    end_user TEXT NOT NULL,
    cost INTEGER NOT NULL,
    PRIMARY KEY (since, key_id, end_user)
  ) STRICT, WITHOUT ROWID;`,

  // Sums that are made from entries in order of `seq`, in the background. `sums_head` has the last of these entries,
  // and the first day of the sums; entries of earlier days were pruned before. `saved` may be negative. `price_version`
  // is 0 for entries without a price sheet.
  `CREATE TABLE sums_head (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL,
    first_day INTEGER NOT NULL
  ) STRICT;
  INSERT INTO sums_head SELECT 1, seq, day + 1 FROM ledger_start;
  CREATE TABLE upstream_days (
    day INTEGER NOT NULL,
    ${UPSTREAM_SUM_COLUMNS}
    PRIMARY KEY (day, key_id, group_name, model, upstream, price_version, has_target_price)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE user_days (
    day INTEGER NOT NULL,
    key_id TEXT NOT NULL,
    group_name TEXT NOT NULL,
    model TEXT NOT NULL,
    end_user TEXT NOT NULL,
    tags TEXT NOT NULL,
    ${SUM_COLUMNS}
    saved INTEGER NOT NULL,
    PRIMARY KEY (day, key_id, group_name, model, end_user, tags)
  ) STRICT, WITHOUT ROWID;
  -- The blocks of 2,000 entries that have an entry with a name, such as a model, and the bounds of those entries.
  CREATE TABLE entry_blocks (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    block INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    most_cost INTEGER NOT NULL,
    most_ms INTEGER NOT NULL,
    PRIMARY KEY (kind, name, block)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX entry_blocks_by_block ON entry_blocks (block);
  DROP INDEX IF EXISTS entries_failed;`,

  // Sums per hour of the last two days, otherwise as `upstream_days`. `first_hour` is the first one with sums: at the
  // migration, a later hour than that of any entry.
  `CREATE TABLE upstream_hours (
    hour INTEGER NOT NULL,
    ${UPSTREAM_SUM_COLUMNS}
    PRIMARY KEY (hour, key_id, group_name, model, upstream, price_version, has_target_price)
  ) STRICT, WITHOUT ROWID;
  ALTER TABLE sums_head ADD COLUMN first_hour INTEGER NOT NULL DEFAULT 0;
  UPDATE sums_head SET first_hour = max(
    (SELECT (day + 1) * 24 FROM ledger_start), (SELECT coalesce(max(at) / 3600000 + 1, 0) FROM entries));`,

  // Requests with an Idempotency-Key that are running. `lease_until` is in Unix milliseconds.
  `CREATE TABLE answer_claims (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    request_hash TEXT NOT NULL CHECK (length(request_hash) = 64),
    holder TEXT NOT NULL,
    lease_until INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
  ) STRICT, WITHOUT ROWID;`,

  // The subject of each alert, by which they are sent in order; null for older ones.
  "ALTER TABLE alerts ADD COLUMN subject TEXT;",

  // Days after `day` with pruned entries, whose clock was ahead: a JSON array.
  "ALTER TABLE ledger_start ADD COLUMN ahead TEXT NOT NULL DEFAULT '[]';",
];
