/** SQL of the table of open holds, and of the functions that grant them. Part of released steps of the migration. */

/**
 * Settings of functions. Plans must not depend on table statistics: a table that was empty a moment ago grows fast.
 * Sequential scans are off, which makes their estimated cost so high that the server would use JIT, at 30 ms per
 * statement. So JIT is off, too.
 */
export const PLAN_SETTINGS = "SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off";

// `nr` is the order of the holds. `lease_until` and `alive_at` are Unix milliseconds by the server's clock; `alive_at`
// is when the node of the hold has made or last renewed it.
const TABLE = `
CREATE TABLE holds (
  id text COLLATE "C" PRIMARY KEY,
  nr bigint GENERATED ALWAYS AS IDENTITY,
  at bigint NOT NULL,
  day bigint NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  group_name text COLLATE "C" NOT NULL,
  model text NOT NULL,
  endpoint text NOT NULL,
  amount bigint NOT NULL CHECK (amount >= 0),
  claims json NOT NULL,
  lease_until bigint NOT NULL,
  alive_at bigint NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE INDEX holds_by_key ON holds (key_id, day);
CREATE INDEX holds_by_group ON holds (group_name, day);
`;

// Two transactions that claim the same budget run one after the other: a claim locks the owner of the budget
// exclusively; a transaction that only adds to the held amount takes a shared lock. All transactions take locks in the
// same order. One statement reads charged and held amounts, because an entry can turn one into the other at any time.
const FUNCTIONS = `
CREATE FUNCTION ledger_clock() RETURNS bigint LANGUAGE sql VOLATILE AS $body$
  SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
$body$;

-- A transaction that has waited for a lock must see what others wrote meanwhile, and results must be on the disk.
CREATE FUNCTION ledger_prepare() RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'the ledger must be written in the isolation level "read committed"'
      USING ERRCODE = 'invalid_transaction_state';
  END IF;
END $body$;

CREATE FUNCTION ledger_hold(accounts json, spenders json, requests json)
RETURNS TABLE (place integer, outcome text, claim integer, room numeric, on_hold numeric)
LANGUAGE plpgsql ${PLAN_SETTINGS} AS $body$
#variable_conflict use_column
DECLARE
  account record;
  request record;
  spender integer;
  charged numeric[];
  held numeric[];
  granted integer[] := '{}';
  ids text[] := ARRAY(SELECT r.id FROM json_to_recordset(requests) AS r (id text));
  open_ids text[];
  entered_ids text[];
BEGIN
  PERFORM ledger_prepare();
  FOR account IN
    SELECT hashtextextended(name, 0) AS lock, bool_or(is_claimed) AS is_claimed
    FROM json_to_recordset(accounts) AS a (name text, is_claimed boolean) GROUP BY 1 ORDER BY 1
  LOOP
    IF account.is_claimed THEN
      PERFORM pg_advisory_xact_lock(account.lock);
    ELSE
      PERFORM pg_advisory_xact_lock_shared(account.lock);
    END IF;
  END LOOP;

  SELECT array_agg(s.charged ORDER BY s.place), array_agg(s.held ORDER BY s.place) INTO charged, held FROM (
    SELECT place, ledger_charged(scope, id, since) AS charged, ledger_on_hold(scope, id, since) AS held
    FROM json_to_recordset(spenders) AS s (place integer, scope text, id text, since bigint)
  ) s;

  open_ids := ARRAY(SELECT id FROM holds WHERE id = ANY (ids));
  entered_ids := ARRAY(SELECT id FROM entries WHERE id = ANY (ids));
  <<requests>>
  FOR request IN
    SELECT * FROM json_to_recordset(requests)
      AS r (place integer, id text, amount numeric, against integer[], budgets numeric[], adds_to integer[])
    ORDER BY place
  LOOP
    place := request.place;
    IF request.id = ANY (open_ids) THEN
      outcome := 'held';
      RETURN NEXT;
      CONTINUE;
    END IF;
    IF request.id = ANY (entered_ids) THEN
      outcome := 'entered';
      RETURN NEXT;
      CONTINUE;
    END IF;
    FOR i IN 1 .. cardinality(request.against) LOOP
      spender := request.against[i];
      room := request.budgets[i] - charged[spender] - held[spender];
      IF request.amount > room THEN
        outcome := 'refused';
        claim := i;
        on_hold := held[spender];
        RETURN NEXT;
        CONTINUE requests;
      END IF;
    END LOOP;
    FOREACH spender IN ARRAY request.adds_to LOOP
      held[spender] := held[spender] + request.amount;
    END LOOP;
    granted := granted || request.place;
    outcome := 'held';
    RETURN NEXT;
  END LOOP;

  INSERT INTO holds (id, at, day, key_id, group_name, model, endpoint, amount, claims, lease_until, alive_at)
    SELECT id, at, day, key_id, group_name, model, endpoint, amount, claims, lease_until, ledger_clock()
    FROM json_to_recordset(requests) AS r (place integer, id text, at bigint, day bigint, key_id text, group_name text,
      model text, endpoint text, amount bigint, claims json, lease_until bigint)
    WHERE place = ANY (granted) ORDER BY place
  ON CONFLICT (id) DO NOTHING;
END $body$;
`;

/** The table of open holds, and its functions. */
export const HOLDS_SHAPE: string = TABLE + FUNCTIONS;
