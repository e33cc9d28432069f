/**
 * A step of the migration: the claims of answers, and a function that changes them. A call of a function is one
 * statement, so that a node that stalls never leaves a lock behind.
 */
export const ANSWERS_SHAPE = `
CREATE TABLE answer_claims (
  lease_until timestamptz NOT NULL,
  holder text COLLATE "C" NOT NULL,
  scope text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  request_hash text COLLATE "C" NOT NULL CHECK (length(request_hash) = 64),
  PRIMARY KEY (scope, key)
);

-- Keeps the sum of the bytes unchanged until the caller's transaction ends.
CREATE FUNCTION lock_answer_bytes() RETURNS void LANGUAGE sql
AS $$ SELECT pg_advisory_xact_lock(1907354411, 0) $$;

-- Claims a request for a holder, or returns the claim of another holder. Takes over an expired claim only from
-- the holder "after".
CREATE FUNCTION claim_request(
  of_scope text, of_key text, of_hash text, of_holder text, for_ms double precision, after text
) RETURNS TABLE (other_hash text, other_holder text, is_over boolean) LANGUAGE plpgsql AS $$
DECLARE
  old answer_claims%ROWTYPE;
  until timestamptz := clock_timestamp() + for_ms * interval '1 ms';
BEGIN
  LOOP
    INSERT INTO answer_claims (scope, key, request_hash, holder, lease_until)
      VALUES (of_scope, of_key, of_hash, of_holder, until) ON CONFLICT DO NOTHING;
    IF FOUND THEN RETURN; END IF;
    SELECT * INTO old FROM answer_claims WHERE scope = of_scope AND key = of_key FOR UPDATE;
    CONTINUE WHEN NOT FOUND;
    IF old.holder = of_holder OR old.holder = after AND old.lease_until <= clock_timestamp() THEN
      UPDATE answer_claims SET request_hash = of_hash, holder = of_holder, lease_until = until
        WHERE scope = of_scope AND key = of_key;
    ELSE
      RETURN QUERY SELECT old.request_hash, old.holder, old.lease_until <= clock_timestamp();
    END IF;
    RETURN;
  END LOOP;
END $$;
`;

/** A step of the migration: one row per answer. Answers of older tables are deleted, since they live only an hour. */
export const ANSWER_ROWS_STEP = `
DROP FUNCTION IF EXISTS begin_answer, seal_answer;
DROP TABLE IF EXISTS answer_pieces, answers;
CREATE TABLE answers (
  done_at bigint NOT NULL,
  bytes bigint NOT NULL,
  status integer NOT NULL,
  scope text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  request_hash text COLLATE "C" NOT NULL CHECK (length(request_hash) = 64),
  headers text NOT NULL,
  body bytea,
  PRIMARY KEY (scope, key)
);
-- Images cannot be compressed further.
ALTER TABLE answers ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX answers_by_age ON answers (done_at);
CREATE INDEX answers_with_body ON answers (done_at, bytes) WHERE body IS NOT NULL;

CREATE FUNCTION put_answer(
  of_scope text, of_key text, of_hash text, of_status integer, of_headers text, of_done_at bigint, of_body bytea,
  most bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF of_body IS NOT NULL THEN
    PERFORM lock_answer_bytes();
    IF length(of_body) + (SELECT coalesce(sum(bytes), 0) FROM answers
      WHERE body IS NOT NULL AND (scope, key) <> (of_scope, of_key)) > most THEN
      of_body := NULL;
    END IF;
  END IF;
  INSERT INTO answers (scope, key, request_hash, status, headers, done_at, bytes, body)
    VALUES (of_scope, of_key, of_hash, of_status, of_headers, of_done_at, coalesce(length(of_body), 0), of_body)
    ON CONFLICT (scope, key) DO UPDATE SET request_hash = excluded.request_hash, status = excluded.status,
      headers = excluded.headers, done_at = excluded.done_at, bytes = excluded.bytes, body = excluded.body;
END $$;
`;

/**
 * A step of the migration: `prune_answers` deletes from the scope with the most answers, so that no API key evicts the
 * answers of others. It locks in the order of `put_answer`, so that the two cannot deadlock.
 */
export const ANSWER_SHARES_STEP = `
-- Nodes that prune at the same time skip each other's rows. Returns whether there may be more to delete.
CREATE OR REPLACE FUNCTION prune_answers(until bigint, most_bytes bigint, most_answers bigint, at_once integer)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  old integer;
  excess bigint;
  deleted integer := 0;
  excess_bytes bigint;
  dropped_bytes bigint := 0;
BEGIN
  DELETE FROM answer_claims WHERE (scope, key) IN (
    SELECT scope, key FROM answer_claims WHERE lease_until <= to_timestamp(until / 1000.0) FOR UPDATE SKIP LOCKED);
  PERFORM lock_answer_bytes();
  DELETE FROM answers WHERE (scope, key) IN (
    SELECT scope, key FROM answers WHERE done_at <= until LIMIT at_once FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS old = ROW_COUNT;
  SELECT count(*) - most_answers INTO excess FROM answers;
  IF excess > 0 THEN
    DELETE FROM answers WHERE (scope, key) IN (
      SELECT scope, key FROM answers
      WHERE scope = (SELECT scope FROM answers GROUP BY scope ORDER BY count(*) DESC, scope LIMIT 1)
      ORDER BY done_at LIMIT least(at_once, excess) FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS deleted = ROW_COUNT;
  END IF;
  SELECT coalesce(sum(bytes), 0) - most_bytes INTO excess_bytes FROM answers WHERE body IS NOT NULL;
  IF excess_bytes > 0 THEN
    -- Drops a body if the older ones do not free enough bytes.
    WITH dropped AS (
      UPDATE answers SET body = NULL WHERE (scope, key) IN (
        SELECT scope, key FROM (
          SELECT scope, key, sum(bytes) OVER (ORDER BY done_at, key) - bytes AS before
          FROM (
            SELECT scope, key, done_at, bytes FROM answers
            WHERE body IS NOT NULL AND scope = (
              SELECT scope FROM answers WHERE body IS NOT NULL GROUP BY scope ORDER BY sum(bytes) DESC, scope LIMIT 1)
            ORDER BY done_at, key LIMIT at_once
          ) AS oldest
        ) AS running WHERE before < excess_bytes)
      RETURNING bytes)
    SELECT coalesce(sum(bytes), 0) INTO dropped_bytes FROM dropped;
  END IF;
  RETURN old = at_once OR deleted > 0 AND excess > deleted OR dropped_bytes > 0 AND excess_bytes > dropped_bytes;
END $$;
`;
