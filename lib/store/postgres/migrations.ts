/**
 * The steps that create the schema of the database. New steps are appended. A step may lose only what a later one drops
 * or replaces: all missing steps run in one transaction.
 */
import { ANSWER_ROWS_STEP, ANSWER_SHARES_STEP, ANSWERS_SHAPE } from "./answers_shape.ts";
import { AHEAD_STEP, DETAILS_STEP, LEDGER_STEP, SEARCH_STEP, USERS_STEP } from "./ledger_shape.ts";
import { NODES_SHAPE } from "./nodes.ts";
import { HOURS_STEP, SUMS_STEP } from "./sums_shape.ts";

/**
 * A step of the migration: the tables of the keys, and the counter of changes that nodes watch.
 *
 * Every change takes the next number from the row of `changes` in its own transaction, and locks the row until it
 * commits. So a transaction that reads a number sees all changes up to it. Triggers count manual changes, too.
 * `keys_gone` is the number of the last deletion, which Sluice never makes: nodes then read all their keys again.
 */
const KEYS_SHAPE = `
CREATE TABLE changes (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  keys bigint NOT NULL,
  keys_gone bigint NOT NULL,
  config bigint NOT NULL
);
INSERT INTO changes (keys, keys_gone, config) VALUES (0, 0, 0);

CREATE TABLE keys (
  id text PRIMARY KEY,
  place bigint GENERATED ALWAYS AS IDENTITY,
  name text NOT NULL,
  hash text NOT NULL UNIQUE CHECK (length(hash) = 64),
  group_name text NOT NULL,
  created_at bigint NOT NULL,
  disabled boolean NOT NULL,
  revoked_at bigint,
  expires_at bigint,
  last_used_at bigint,
  rules text NOT NULL,
  former_hash text UNIQUE,
  former_until bigint,
  changed bigint NOT NULL
);
CREATE UNIQUE INDEX keys_name_in_use ON keys (name) WHERE revoked_at IS NULL;
CREATE INDEX keys_changed ON keys (changed);

-- The first statement lets one change in at a time, so the later ones see all earlier changes. A row whose hash is in
-- use, as the current or the former hash of a key, is not written.
CREATE FUNCTION keys_change() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE taken boolean;
BEGIN
  EXECUTE format('UPDATE %I.changes SET keys = keys + 1 RETURNING keys', TG_TABLE_SCHEMA) INTO NEW.changed;
  IF TG_OP = 'INSERT' OR NEW.hash <> OLD.hash THEN
    EXECUTE format('SELECT EXISTS (SELECT FROM %I.keys WHERE hash = $1 OR former_hash = $1)', TG_TABLE_SCHEMA)
    INTO taken USING NEW.hash;
    IF NOT taken AND TG_OP = 'INSERT' AND NEW.former_hash IS NOT NULL THEN
      EXECUTE format('SELECT EXISTS (SELECT FROM %I.keys WHERE hash = $1 OR former_hash = $1)', TG_TABLE_SCHEMA)
      INTO taken USING NEW.former_hash;
    END IF;
    IF taken THEN RETURN NULL; END IF;
  END IF;
  PERFORM pg_notify('sluice_changes', '');
  RETURN NEW;
END $body$;
CREATE TRIGGER keys_change BEFORE INSERT OR UPDATE OF
  id, name, hash, group_name, created_at, disabled, revoked_at, expires_at, rules, former_hash, former_until ON keys
FOR EACH ROW EXECUTE FUNCTION keys_change();

-- Sluice never deletes a key. After a manual deletion, nodes read all their keys again.
CREATE FUNCTION keys_go() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  EXECUTE format('UPDATE %I.changes SET keys = keys + 1, keys_gone = keys + 1', TG_TABLE_SCHEMA);
  PERFORM pg_notify('sluice_changes', '');
  RETURN NULL;
END $body$;
CREATE TRIGGER keys_go AFTER DELETE OR TRUNCATE ON keys FOR EACH STATEMENT EXECUTE FUNCTION keys_go();
`;

/**
 * A step of the migration: the tables of the operators' state. Logged changes are never changed. The oldest can be
 * deleted after `change_log_start` has been set to a later time.
 */
const OPERATORS_SHAPE = `
CREATE TABLE change_log (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  author text NOT NULL,
  address text,
  request_id text,
  action text NOT NULL,
  subject text,
  before_values text,
  after_values text
);
CREATE INDEX change_log_by_time ON change_log (at);
CREATE TABLE change_log_start (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  at bigint NOT NULL
);
INSERT INTO change_log_start (at) VALUES (0);

CREATE FUNCTION change_log_refuse() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'restrict_violation';
END $body$;
CREATE TRIGGER change_log_stay BEFORE UPDATE OR TRUNCATE ON change_log
FOR EACH STATEMENT EXECUTE FUNCTION change_log_refuse('logged changes must not be changed');
CREATE TRIGGER change_log_one_start BEFORE INSERT OR DELETE OR TRUNCATE ON change_log_start
FOR EACH STATEMENT EXECUTE FUNCTION change_log_refuse('the log of changes must have exactly one start');

CREATE FUNCTION change_log_go() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE start_at bigint;
BEGIN
  EXECUTE format('SELECT at FROM %I.change_log_start', TG_TABLE_SCHEMA) INTO start_at;
  IF OLD.at >= start_at THEN
    RAISE EXCEPTION 'only the oldest logged changes may be deleted' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN OLD;
END $body$;
CREATE TRIGGER change_log_go BEFORE DELETE ON change_log FOR EACH ROW EXECUTE FUNCTION change_log_go();

CREATE FUNCTION change_log_start_moves() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  IF NEW.at < OLD.at THEN
    RAISE EXCEPTION 'the start of the log of changes only moves on' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $body$;
CREATE TRIGGER change_log_start_moves BEFORE UPDATE ON change_log_start
FOR EACH ROW EXECUTE FUNCTION change_log_start_moves();

CREATE TABLE sign_in_links (
  hash text COLLATE "C" PRIMARY KEY CHECK (length(hash) = 64),
  expires_at bigint NOT NULL
);
CREATE TABLE ended_sessions (
  id text COLLATE "C" PRIMARY KEY,
  expires_at bigint NOT NULL
);
`;

/**
 * A step of the migration: the tables of the alerts. Times are in Unix milliseconds; `due_at` is by the server's clock.
 * `alert_states` has conditions that have begun and not ended, and facts that are reported only once.
 */
const ALERTS_SHAPE = `
CREATE TABLE alerts (
  id text COLLATE "C" PRIMARY KEY,
  nr bigint GENERATED ALWAYS AS IDENTITY,
  at bigint NOT NULL,
  body text NOT NULL,
  state text NOT NULL CHECK (state IN ('pending', 'delivered', 'given_up')),
  attempts integer NOT NULL,
  due_at bigint NOT NULL
);
CREATE INDEX alerts_due ON alerts (due_at) WHERE state = 'pending';
CREATE INDEX alerts_done ON alerts (at) WHERE state <> 'pending';

CREATE TABLE alert_states (
  subject text COLLATE "C" PRIMARY KEY,
  active boolean NOT NULL,
  at bigint NOT NULL,
  remember_until bigint NOT NULL
);
`;

/** A step of the migration: the subject of each alert, by which they are sent in order; null for older ones. */
const ALERT_SUBJECTS_STEP = 'ALTER TABLE alerts ADD COLUMN subject text COLLATE "C";';

/**
 * A step of the migration: the table of the shared configuration, with the last 100 texts. The latest one is in force.
 */
const CONFIGS_SHAPE = `
CREATE TABLE configs (
  version bigint PRIMARY KEY,
  text text NOT NULL,
  at bigint NOT NULL
);

-- Texts that several nodes store at the same time get successive versions.
CREATE FUNCTION configs_put(new_text text) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE latest configs%ROWTYPE;
BEGIN
  PERFORM FROM changes FOR UPDATE;
  SELECT * INTO latest FROM configs ORDER BY version DESC LIMIT 1;
  IF latest.text = new_text THEN RETURN latest.version; END IF;
  UPDATE changes SET config = config + 1;
  INSERT INTO configs
  SELECT config, new_text, floor(extract(epoch FROM clock_timestamp()) * 1000) FROM changes
  RETURNING version INTO latest.version;
  DELETE FROM configs WHERE version <= latest.version - 100;
  PERFORM pg_notify('sluice_changes', '');
  RETURN latest.version;
END $body$;
`;

/** All steps, in order. The number of applied steps is the version of the schema. */
export const MIGRATIONS: readonly string[] = [
  KEYS_SHAPE,
  LEDGER_STEP,
  ANSWERS_SHAPE,
  CONFIGS_SHAPE,
  DETAILS_STEP,
  ANSWER_ROWS_STEP,
  ALERTS_SHAPE,
  SEARCH_STEP,
  OPERATORS_SHAPE,
  NODES_SHAPE,
  USERS_STEP,
  SUMS_STEP,
  HOURS_STEP,
  ALERT_SUBJECTS_STEP,
  // Replaced by the next step; it still counts as a version.
  "",
  ANSWER_SHARES_STEP,
  AHEAD_STEP,
];
