/** The steps that create the schema of the database. New steps are appended; a released step never changes. */
import { ALERT_SUBJECTS_STEP, ALERTS_SHAPE } from "./alerts_shape.ts";
import { ANSWER_LOCKS_STEP, ANSWER_ROWS_STEP, ANSWERS_SHAPE } from "./answers_shape.ts";
import { CONFIGS_SHAPE } from "./configs_shape.ts";
import { KEYS_SHAPE } from "./keys_shape.ts";
import { DETAILS_STEP, LEDGER_STEP, SEARCH_STEP, USERS_STEP } from "./ledger_shape.ts";
import { NODES_SHAPE } from "./nodes.ts";
import { OPERATORS_SHAPE } from "./operators_shape.ts";
import { HOURS_STEP, SUMS_STEP } from "./sums_shape.ts";

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
  ANSWER_LOCKS_STEP,
];
