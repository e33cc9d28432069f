/**
 * A step of the migration: the tables of the alerts. Times are in Unix milliseconds; `due_at` is by the server's clock.
 * `alert_states` has conditions that have begun and not ended, and facts that are reported only once.
 */
export const ALERTS_SHAPE = `
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

-- What has begun and is not over, and what was reported once and is not to be reported again.
CREATE TABLE alert_states (
  subject text COLLATE "C" PRIMARY KEY,
  active boolean NOT NULL,
  at bigint NOT NULL,
  remember_until bigint NOT NULL
);
`;

/** A step of the migration: the subject of each alert, by which they are sent in order; null for older ones. */
export const ALERT_SUBJECTS_STEP = 'ALTER TABLE alerts ADD COLUMN subject text COLLATE "C";';
