/**
 * A step of the migration: the tables of the operators' state. Logged changes are never changed. The oldest can be
 * deleted after `change_log_start` has been set to a later time.
 */
export const OPERATORS_SHAPE = `
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
FOR EACH STATEMENT EXECUTE FUNCTION change_log_refuse('logged changes never change');
CREATE TRIGGER change_log_one_start BEFORE INSERT OR DELETE OR TRUNCATE ON change_log_start
FOR EACH STATEMENT EXECUTE FUNCTION change_log_refuse('the log of changes has one start');

CREATE FUNCTION change_log_go() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE start_at bigint;
BEGIN
  EXECUTE format('SELECT at FROM %I.change_log_start', TG_TABLE_SCHEMA) INTO start_at;
  IF OLD.at >= start_at THEN
    RAISE EXCEPTION 'logged changes go from the old end' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN OLD;
END $body$;
CREATE TRIGGER change_log_go BEFORE DELETE ON change_log FOR EACH ROW EXECUTE FUNCTION change_log_go();

CREATE FUNCTION change_log_start_moves() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  IF NEW.at < OLD.at THEN
    RAISE EXCEPTION 'the start of the log of changes moves on' USING ERRCODE = 'restrict_violation';
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
