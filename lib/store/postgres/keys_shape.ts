/**
 * A step of the migration: the tables of the keys, and the counter of changes that nodes watch.
 *
 * Every change takes the next number from the row of `changes` in its own transaction, and locks the row until it
 * commits. So a transaction that reads a number sees all changes up to it. Triggers count manual changes, too.
 * `keys_gone` is the number of the last deletion, which Sluice never makes: nodes then read all their keys again.
 */
export const KEYS_SHAPE = `
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

-- One change at a time gets past the first statement; what comes after it sees all that were before. A hash that is
-- taken, as a key's own or as a former one, leaves the row out.
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

-- Sluice never deletes a key. Where somebody does, nodes look at all of theirs anew.
CREATE FUNCTION keys_go() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  EXECUTE format('UPDATE %I.changes SET keys = keys + 1, keys_gone = keys + 1', TG_TABLE_SCHEMA);
  PERFORM pg_notify('sluice_changes', '');
  RETURN NULL;
END $body$;
CREATE TRIGGER keys_go AFTER DELETE OR TRUNCATE ON keys FOR EACH STATEMENT EXECUTE FUNCTION keys_go();
`;
