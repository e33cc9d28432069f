/**
 * A step of the migration: the table of the shared configuration, with the last 100 texts. The latest one is in force.
 */
export const CONFIGS_SHAPE = `
CREATE TABLE configs (
  version bigint PRIMARY KEY,
  text text NOT NULL,
  at bigint NOT NULL
);

-- Texts that are put at once get their versions one after the other.
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
