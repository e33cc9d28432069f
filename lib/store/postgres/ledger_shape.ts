/**
 * Steps of the migration: the tables of the ledger, and the functions that write them. A call of a function is one
 * statement, so that a node that stalls or loses its connection never leaves a lock behind.
 */
import { HOLDS_SHAPE, PLAN_SETTINGS } from "./ledger_holds_shape.ts";

// Amounts are in 1e-12 USD: `bigint` for those of one request, `numeric` for sums, which may exceed 2^63. Texts use the
// "C" collation, which is faster, and the same on every server. `spent` has the costs of keys and groups per day, for
// their budgets; `ledger_head` the last entry, which the next one follows; `ledger_start` the last pruned entry.
const TABLES = `
CREATE TABLE price_sheets (
  version integer PRIMARY KEY,
  model text NOT NULL,
  factor text NOT NULL,
  prompt text NOT NULL,
  completion text NOT NULL,
  input_cache_read text NOT NULL,
  input_cache_write_5m text NOT NULL,
  input_cache_write_1h text NOT NULL,
  UNIQUE (model, factor, prompt, completion, input_cache_read, input_cache_write_5m, input_cache_write_1h)
);
CREATE TABLE entries (
  seq bigint PRIMARY KEY,
  at bigint NOT NULL CHECK (at >= 0),
  status bigint NOT NULL,
  prompt bigint NOT NULL CHECK (prompt >= 0),
  input_cache_read bigint NOT NULL CHECK (input_cache_read >= 0),
  input_cache_write_5m bigint NOT NULL CHECK (input_cache_write_5m >= 0),
  input_cache_write_1h bigint NOT NULL CHECK (input_cache_write_1h >= 0),
  completion bigint NOT NULL CHECK (completion >= 0),
  reasoning bigint NOT NULL CHECK (reasoning >= 0),
  cost bigint NOT NULL CHECK (cost >= 0),
  held bigint NOT NULL CHECK (held >= 0),
  overrun bigint NOT NULL CHECK (overrun >= 0),
  first_ms bigint,
  total_ms bigint NOT NULL,
  attempts bigint NOT NULL,
  images bigint NOT NULL CHECK (images >= 0),
  check_sum bigint NOT NULL,
  price_version integer,
  id text COLLATE "C" NOT NULL UNIQUE,
  key_id text COLLATE "C" NOT NULL,
  group_name text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  upstream text NOT NULL,
  endpoint text NOT NULL,
  ending text NOT NULL,
  source text NOT NULL
);
CREATE INDEX entries_by_time ON entries (at);
CREATE TABLE days (
  day bigint NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  group_name text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  failed bigint NOT NULL,
  prompt bigint NOT NULL,
  input_cache_read bigint NOT NULL,
  input_cache_write_5m bigint NOT NULL,
  input_cache_write_1h bigint NOT NULL,
  completion bigint NOT NULL,
  reasoning bigint NOT NULL,
  images bigint NOT NULL,
  cost numeric NOT NULL,
  overrun numeric NOT NULL,
  PRIMARY KEY (day, key_id, group_name, model)
) WITH (fillfactor = 70);
CREATE TABLE spent (
  scope text COLLATE "C" NOT NULL CHECK (scope IN ('key', 'group')),
  id text COLLATE "C" NOT NULL,
  day bigint NOT NULL,
  cost numeric NOT NULL CHECK (cost >= 0),
  PRIMARY KEY (scope, id, day)
) WITH (fillfactor = 50);
CREATE TABLE ledger_head (
  one integer PRIMARY KEY CHECK (one = 1),
  seq bigint NOT NULL,
  check_sum bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO ledger_head VALUES (1, 0, 0);
CREATE TABLE ledger_start (
  one integer PRIMARY KEY CHECK (one = 1),
  seq bigint NOT NULL,
  check_sum bigint NOT NULL,
  day bigint NOT NULL
);
INSERT INTO ledger_start VALUES (1, 0, 0, -1);
`;

// Triggers that protect the ledger from any other changes than appending entries and pruning the oldest ones.
const GUARDS = `
CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'restrict_violation';
END $body$;

CREATE FUNCTION ledger_entries_follow() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  former bigint := (SELECT seq FROM ledger_head);
BEGIN
  IF EXISTS (
    SELECT FROM added HAVING count(*) > 0 AND (min(seq) <> former + 1 OR max(seq) <> former + count(*))
  ) THEN
    RAISE EXCEPTION 'a new entry must follow the last one' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $body$;
CREATE TRIGGER entries_follow AFTER INSERT ON entries REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION ledger_entries_follow();

CREATE FUNCTION ledger_entries_go() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  IF EXISTS (SELECT FROM gone WHERE seq > (SELECT seq FROM ledger_start)) THEN
    RAISE EXCEPTION 'only the oldest entries may be deleted, after ledger_start has been moved past them'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $body$;
CREATE TRIGGER entries_go AFTER DELETE ON entries REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION ledger_entries_go();

CREATE TRIGGER entries_stay BEFORE UPDATE OR TRUNCATE ON entries
FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('entries must not be changed');
CREATE TRIGGER price_sheets_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON price_sheets
FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('price sheets must not be changed or deleted');
CREATE TRIGGER ledger_head_once BEFORE INSERT OR DELETE OR TRUNCATE ON ledger_head
FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('the ledger must have exactly one head');
CREATE TRIGGER ledger_start_once BEFORE INSERT OR DELETE OR TRUNCATE ON ledger_start
FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('the ledger must have exactly one start');

CREATE FUNCTION ledger_head_moves() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  IF NEW.seq <= OLD.seq OR NEW.check_sum IS DISTINCT FROM (SELECT check_sum FROM entries WHERE seq = NEW.seq) THEN
    RAISE EXCEPTION 'the head of the ledger must be moved to a later entry' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $body$;
CREATE TRIGGER ledger_head_moves BEFORE UPDATE ON ledger_head
FOR EACH ROW EXECUTE FUNCTION ledger_head_moves();

CREATE FUNCTION ledger_start_moves() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  IF NEW.seq <= OLD.seq OR NEW.day < OLD.day
    OR NEW.check_sum IS DISTINCT FROM (SELECT check_sum FROM entries WHERE seq = NEW.seq) THEN
    RAISE EXCEPTION 'the start of the ledger must be moved to a later entry' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $body$;
CREATE TRIGGER ledger_start_moves BEFORE UPDATE ON ledger_start
FOR EACH ROW EXECUTE FUNCTION ledger_start_moves();
`;

// There is one writer at a time, under an advisory lock: a lock on the head's row would be written to the WAL even if
// nothing is entered. All transactions that lock several holds do so in the order of their numbers.
const FUNCTIONS = `
CREATE FUNCTION ledger_write(
  expected_seq bigint, expected_check bigint, known_sheets integer,
  given_ids json, new_sheets json, new_entries json, void_at bigint,
  OUT outcome text, OUT head_seq bigint, OUT head_check bigint, OUT entered json, OUT sheets json, OUT sheet_count bigint
) LANGUAGE plpgsql ${PLAN_SETTINGS} AS $body$
#variable_conflict use_column
DECLARE
  ids text[] := ARRAY(SELECT json_array_elements_text(given_ids));
  found_ids text[];
  overdue bigint;
BEGIN
  PERFORM ledger_prepare();
  PERFORM pg_advisory_xact_lock(1397507155, 1);
  SELECT seq, check_sum INTO head_seq, head_check FROM ledger_head;
  found_ids := ARRAY(SELECT id FROM entries WHERE id = ANY (ids));
  IF head_seq <> expected_seq OR head_check <> expected_check
    OR cardinality(found_ids) + json_array_length(new_entries) <> cardinality(ids) THEN
    outcome := 'moved';
    entered := to_json(found_ids);
    sheets := (SELECT coalesce(json_agg(s ORDER BY version), '[]') FROM price_sheets s WHERE version > known_sheets);
    sheet_count := (SELECT coalesce(max(version), 0) FROM price_sheets);
    RETURN;
  END IF;
  PERFORM FROM holds WHERE id = ANY (ids) AND (void_at IS NULL OR lease_until <= void_at) ORDER BY nr FOR UPDATE;
  GET DIAGNOSTICS overdue = ROW_COUNT;
  IF void_at IS NOT NULL AND overdue <> cardinality(ids) THEN
    outcome := 'renewed';
    RETURN;
  END IF;

  outcome := 'written';
  DELETE FROM holds WHERE id = ANY (ids);
  IF json_array_length(new_entries) = 0 THEN
    RETURN;
  END IF;
  INSERT INTO price_sheets SELECT * FROM json_populate_recordset(NULL::price_sheets, new_sheets);
  INSERT INTO entries SELECT * FROM json_populate_recordset(NULL::entries, new_entries);
  INSERT INTO days AS d
    SELECT at / 86400000, key_id, group_name, model, count(*),
      count(*) FILTER (WHERE ending IN ('failed', 'refused', 'lost')),
      sum(prompt), sum(input_cache_read), sum(input_cache_write_5m), sum(input_cache_write_1h), sum(completion),
      sum(reasoning), sum(images), sum(cost), sum(overrun)
    FROM entries WHERE seq > expected_seq GROUP BY 1, 2, 3, 4
  ON CONFLICT (day, key_id, group_name, model) DO UPDATE SET
    requests = d.requests + excluded.requests, failed = d.failed + excluded.failed,
    prompt = d.prompt + excluded.prompt, input_cache_read = d.input_cache_read + excluded.input_cache_read,
    input_cache_write_5m = d.input_cache_write_5m + excluded.input_cache_write_5m,
    input_cache_write_1h = d.input_cache_write_1h + excluded.input_cache_write_1h,
    completion = d.completion + excluded.completion, reasoning = d.reasoning + excluded.reasoning,
    images = d.images + excluded.images, cost = d.cost + excluded.cost, overrun = d.overrun + excluded.overrun;
  INSERT INTO spent AS s
    SELECT 'key', key_id, at / 86400000, sum(cost) FROM entries
    WHERE seq > expected_seq AND cost > 0 GROUP BY 2, 3
    UNION ALL
    SELECT 'group', group_name, at / 86400000, sum(cost) FROM entries
    WHERE seq > expected_seq AND cost > 0 GROUP BY 2, 3
  ON CONFLICT (scope, id, day) DO UPDATE SET cost = s.cost + excluded.cost;
  UPDATE ledger_head SET (seq, check_sum) = (SELECT seq, check_sum FROM entries ORDER BY seq DESC LIMIT 1);
END $body$;

-- Deletes the oldest entries, at most "most", and stops at the first entry that is not before the day. Returns the number
-- of deleted entries.
CREATE FUNCTION ledger_prune(before_day bigint, most integer) RETURNS bigint LANGUAGE plpgsql ${PLAN_SETTINGS} AS $body$
#variable_conflict use_column
DECLARE
  begin_seq bigint;
  end_seq bigint;
  last_day bigint;
BEGIN
  SELECT seq INTO begin_seq FROM ledger_start FOR UPDATE;
  SELECT max(seq), max(at / 86400000) INTO end_seq, last_day FROM (
    SELECT seq, at, bool_and(at < before_day * 86400000) OVER (ORDER BY seq) AS goes
    FROM (SELECT seq, at FROM entries WHERE seq > begin_seq ORDER BY seq LIMIT most) oldest
  ) judged WHERE goes;
  IF end_seq IS NULL THEN
    RETURN 0;
  END IF;
  UPDATE ledger_start SET seq = end_seq, day = greatest(day, last_day),
    check_sum = (SELECT check_sum FROM entries WHERE seq = end_seq);
  DELETE FROM entries WHERE seq > begin_seq AND seq <= end_seq;
  RETURN end_seq - begin_seq;
END $body$;
`;

/** The first version of the ledger's tables. */
export const LEDGER_STEP: string = TABLES + HOLDS_SHAPE + GUARDS + FUNCTIONS;

/** Adds the facts that few entries have, as JSON text: `jsonb` would change the text that the checksum covers. */
export const DETAILS_STEP = "ALTER TABLE entries ADD COLUMN details text;";

/** Adds columns and indexes for searches. The columns repeat facts of the details. */
export const SEARCH_STEP = `
ALTER TABLE entries ADD COLUMN reason text COLLATE "C", ADD COLUMN end_user text COLLATE "C",
  ADD COLUMN tags text COLLATE "C";
CREATE INDEX entries_by_key ON entries (key_id, at);
CREATE INDEX entries_by_user ON entries (end_user, at) WHERE end_user IS NOT NULL;
`;

/**
 * Adds sums of end users in periods of their budgets. Entries name the period in their details. The index is for the
 * held amount of a user: the claim of a user is the first one of a hold.
 */
export const USERS_STEP = `
CREATE TABLE user_sums (
  since bigint NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  end_user text COLLATE "C" NOT NULL,
  cost numeric NOT NULL CHECK (cost >= 0),
  PRIMARY KEY (since, key_id, end_user)
) WITH (fillfactor = 70);
CREATE INDEX holds_by_user ON holds ((claims #>> '{0,id}'), (claims #>> '{0,since}'))
  WHERE claims #>> '{0,scope}' = 'user';

CREATE FUNCTION ledger_charge_users() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  INSERT INTO user_sums AS s
    SELECT (details::json ->> 'user_since')::bigint, key_id, coalesce(end_user, ''), sum(cost) FROM added
    WHERE cost > 0 AND details IS NOT NULL AND details::json ->> 'user_since' IS NOT NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (since, key_id, end_user) DO UPDATE SET cost = s.cost + excluded.cost;
  RETURN NULL;
END $body$;
CREATE TRIGGER entries_charge_users AFTER INSERT ON entries REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION ledger_charge_users();

CREATE OR REPLACE FUNCTION ledger_on_hold(spender_scope text, spender_id text, since bigint) RETURNS numeric
LANGUAGE plpgsql STABLE AS $body$
BEGIN
  IF spender_scope = 'key' THEN
    RETURN (SELECT coalesce(sum(amount), 0) FROM holds WHERE key_id = spender_id AND day >= since);
  ELSIF spender_scope = 'user' THEN
    RETURN (SELECT coalesce(sum(amount), 0) FROM holds
      WHERE claims #>> '{0,scope}' = 'user' AND claims #>> '{0,id}' = spender_id AND claims #>> '{0,since}' = since::text);
  END IF;
  RETURN (SELECT coalesce(sum(amount), 0) FROM holds WHERE group_name = spender_id AND day >= since);
END $body$;

CREATE OR REPLACE FUNCTION ledger_charged(spender_scope text, spender_id text, since bigint) RETURNS numeric
LANGUAGE plpgsql STABLE AS $body$
DECLARE
  break integer := strpos(spender_id, E'\\n');
BEGIN
  IF spender_scope = 'user' THEN
    RETURN coalesce((SELECT cost FROM user_sums u WHERE u.since = ledger_charged.since
      AND key_id = left(spender_id, break - 1) AND end_user = substr(spender_id, break + 1)), 0);
  END IF;
  RETURN (SELECT coalesce(sum(cost), 0) FROM spent
    WHERE scope = spender_scope AND id = spender_id AND day >= ledger_charged.since);
END $body$;
`;

/**
 * Adds `ahead`, days after `day` with pruned entries, whose clock was ahead. They are pruned with the older entries that
 * follow them.
 */
export const AHEAD_STEP = `
ALTER TABLE ledger_start ADD COLUMN ahead bigint[] NOT NULL DEFAULT '{}';

CREATE FUNCTION ledger_prune(before_day bigint, today bigint, most integer) RETURNS bigint
LANGUAGE plpgsql ${PLAN_SETTINGS} AS $body$
#variable_conflict use_column
DECLARE
  begin_seq bigint;
  last_old bigint;
  end_seq bigint;
  days bigint[];
  last_day bigint;
BEGIN
  SELECT seq INTO begin_seq FROM ledger_start FOR UPDATE;
  -- One of these entries is later than the ones below, if there is any such entry.
  SELECT coalesce(max(seq), 0) INTO last_old FROM (
    SELECT seq FROM entries WHERE at < before_day * 86400000 ORDER BY at LIMIT most + 1
  ) old;
  SELECT max(seq), array_agg(DISTINCT at / 86400000) INTO end_seq, days FROM (
    SELECT seq, at, bool_and(at < before_day * 86400000 OR at / 86400000 > today AND seq < last_old)
      OVER (ORDER BY seq) AS goes
    FROM (SELECT seq, at FROM entries WHERE seq > begin_seq ORDER BY seq LIMIT most) oldest
  ) judged WHERE goes;
  IF end_seq IS NULL THEN
    RETURN 0;
  END IF;
  SELECT greatest(day, (SELECT max(pruned) FROM unnest(ahead || days) pruned WHERE pruned < before_day)), ahead || days
    INTO last_day, days FROM ledger_start;
  UPDATE ledger_start SET seq = end_seq, day = last_day,
    ahead = ARRAY(SELECT DISTINCT pruned FROM unnest(days) pruned WHERE pruned > last_day),
    check_sum = (SELECT check_sum FROM entries WHERE seq = end_seq);
  DELETE FROM entries WHERE seq > begin_seq AND seq <= end_seq;
  RETURN end_seq - begin_seq;
END $body$;
`;
