/** The events of the log: names, levels and meanings. docs/reference/log-events.md is generated from them. */

/** Level of a log line. */
export type LogLevel = "info" | "warn" | "error";

interface LogEventFacts {
  /** Levels that lines of the event can have. */
  readonly levels: readonly [LogLevel, ...LogLevel[]];
  /** Meaning of the event, with the names of its facts, for the documentation. */
  readonly about: string;
}

/** Every event by its name. */
export const LOG_EVENTS = {
  request: {
    levels: ["info", "warn", "error"],
    about: "A request has ended. `error`: the gateway failed; `warn`: an upstream failed",
  },
  request_failed: {
    levels: ["warn", "error"],
    about:
      "A request got a status of 500 or more. `kind`; `cause` and `stack` name the place in the code. `error`: the " +
      "gateway itself failed",
  },
  target_failed: {
    levels: ["warn"],
    about:
      "An attempt at an `upstream` failed, and another one may have answered; or its answer broke off. `kind`, `reason`, `fault`. If the upstream " +
      "answered with an error: its HTTP `status`, `vendor_message` and `vendor_request_id`",
  },
  breaker_opened: {
    levels: ["warn"],
    about:
      "An upstream's `model` gets no requests for `for_ms`. `scope`: `upstream`, `model`, or `client_key` for the " +
      "client key `key_id` alone",
  },
  breaker_half_open: {
    levels: ["info"],
    about: "The pause after `breaker_opened` is over. One request at a time tests the target",
  },
  breaker_closed: { levels: ["info"], about: "The target gets requests normally again, or a reload has `removed` it" },
  upstream_key_refused: {
    levels: ["error"],
    about: "The upstream refuses the gateway's key. The next probe is in `for_ms`",
  },
  upstream_key_accepted: {
    levels: ["info"],
    about: "The upstream accepts the gateway's key again, or a reload has `removed` it",
  },
  transport_fallback: {
    levels: ["warn"],
    about: "The `upstream` speaks only HTTP/2. The gateway uses `fetch` for it from now on",
  },
  image_size_mismatch: {
    levels: ["warn"],
    about: "An upstream made an image of another size than was `asked` for. The size `delivered` is billed",
  },
  limit_exceeded: {
    levels: ["warn"],
    about: "A limit with `report_only` would have refused the request. `name`, `unit`, `limit`",
  },
  limits_not_released: {
    levels: ["error"],
    about: "A concurrency slot of request `request_id` could not be released. It expires by itself",
  },
  limits_store_down: {
    levels: ["error"],
    about:
      "Redis has been unreachable for 1 s or more, so nodes do not share limits. `cause`, such as `timeout`, `OOM` (its memory is full), " +
      "`READONLY` (a replica) or `NOPERM`. `policy`: `local` or `closed`; `share`: the part of each limit that this node admits",
  },
  limits_store_up: { levels: ["warn"], about: "Redis is reachable again after `outage_ms`" },
  limits_session_ended: {
    levels: ["warn"],
    about: "Redis ended the session of this node, or lost its data. Requests that ran here no longer count",
  },
  requests_lost: {
    levels: ["warn"],
    about: "A node died. Its running `requests` are in the ledger as lost, without charge",
  },
  lost_requests_not_recorded: {
    levels: ["error"],
    about: "The store did not accept the entries of requests of a node that died. This is retried. `cause`",
  },
  recall_not_shared: {
    levels: ["warn"],
    about:
      "Redis did not keep or find a recent response, so that other nodes may not know it. One line a minute. `cause`",
  },
  ledger_failed: {
    levels: ["error"],
    about: "The ledger cannot be written; requests with a cost are refused. `fault`, `path`, `waiting` entries",
  },
  ledger_recovered: { levels: ["info"], about: "The ledger can be written again" },
  entry_not_written: {
    levels: ["warn", "error"],
    about: "An entry could not be written: request `request_id` is not billed. `cause`, `fault`, `path`",
  },
  refusals_not_written: {
    levels: ["warn"],
    about: "Key `key_id` had more than 600 refused requests in a minute. `count` of them have no entry in the ledger",
  },
  budget_exhausted: {
    levels: ["warn"],
    about: "A budget refused a request for the first time in its period. `scope`, `id`, `budget_usd`",
  },
  hold_expired: {
    levels: ["warn"],
    about: "A budget hold expired before request `request_id` ended. The request is not billed",
  },
  holds_not_renewed: { levels: ["error"], about: "The store did not renew budget holds in time. `cause`" },
  holds_not_swept: { levels: ["error"], about: "The store did not release expired budget holds in time. `cause`" },
  store_down: {
    levels: ["error"],
    about:
      "The shared store has been unreachable for 1 s or more. Known keys work, requests with a budget do not, entries wait " +
      "in the journal. `fault`; `cause` and `code` are the database driver's",
  },
  store_up: { levels: ["info"], about: "The shared store is reachable again after `down_ms`" },
  store_migrating: {
    levels: ["info"],
    about:
      "The start waits for the migration of the store from version `from` to `to`, by this node or, with Postgres, by " +
      "another one",
  },
  store_migrated: {
    levels: ["info"],
    about: "The store was migrated from version `from` to `to`. `copy`: the file as it was before",
  },
  store_changes_unreadable: {
    levels: ["error"],
    about:
      "Keys or the changes by other nodes cannot be read, though the database answers. Keys are read again for each " +
      "request; if that fails, known keys work as in an outage. `fault`, `code`, `cause`",
  },
  store_changes_readable: {
    levels: ["info"],
    about: "Keys and changes can be read again after `down_ms`",
  },
  store_rolled_back: {
    levels: ["error"],
    about:
      "The database lacks entries or changes of keys (`lost`) that it had confirmed, as after a failover to a replica that " +
      "lagged, or after a restore. Revoked keys may be valid again",
  },
  store_behind_pooler: {
    levels: ["info"],
    about: "A connection pooler hides notifications of the database. Changes are polled every second",
  },
  journal_found: {
    levels: ["info"],
    about: "An earlier process left `entries` in the journal. They are added to the store",
  },
  journal_replayed: {
    levels: ["info"],
    about: "Waiting `entries` are in the store. `not_new`: the store had them already, or their holds had expired",
  },
  journal_truncated: {
    levels: ["warn"],
    about:
      "The last record of the journal was incomplete and was discarded. Its request had not been answered. `bytes`",
  },
  journal_damaged: {
    levels: ["error"],
    about: "Records of the journal are damaged, and entries are lost. `kept`: a copy of the file",
  },
  journal_entry_refused: {
    levels: ["error"],
    about: "The store refuses an entry of the journal. It is kept in a file that ends with `.refused`",
  },
  drain_limit_reached: {
    levels: ["warn"],
    about:
      "A client disconnected while `resource_limits.drained_requests` answers were being drained. Its answer was cancelled, and " +
      "the part that was sent is billed",
  },
  answer_not_stored: {
    levels: ["warn"],
    about: "Images could not be kept for repeated requests for half a minute. `cause`",
  },
  key_use_not_stored: {
    levels: ["warn"],
    about: "The times when keys were last used could not be stored. This is retried",
  },
  sweep_failed: { levels: ["warn"], about: "Expired images could not be removed from the store. This is retried" },
  prune_failed: { levels: ["warn"], about: "Old ledger rows could not be deleted. This is retried" },
  sums_failed: { levels: ["warn"], about: "The sums of reports could not be updated. This is retried" },
  key_changed: { levels: ["info"], about: "A key was changed over the admin API. `action`, `key_id`, `members`" },
  change_not_logged: {
    levels: ["warn"],
    about: "The store did not accept an entry of the log of changes. `action`, `cause`",
  },
  sign_out_not_stored: {
    levels: ["warn"],
    about:
      "An operator signed out on this node, but the store did not record it: other nodes accept the cookie until it " +
      "expires. `cause`",
  },
  admin_refused: {
    levels: ["warn"],
    about: "A request to the admin side had no valid admin key. `address`, `method`, `message`",
  },
  address_refused: {
    levels: ["warn"],
    about: "More than 20 invalid keys came from `address` within a minute. Further invalid ones get 429",
  },
  log_lines_suppressed: {
    levels: ["warn"],
    about:
      "`count` lines `of` one event were left out. Unauthenticated requests cause at most 60 lines a minute about " +
      "refused keys and 600 about failed requests",
  },
  log_lines_lost: {
    levels: ["warn"],
    about: "The reader of the log was too slow or gone, or its disk full: `lines` before this one are lost",
  },
  reloaded: {
    levels: ["info"],
    about: "A new configuration is in force. `version`, `source`, `trigger`, `shared_version`",
  },
  reload_unchanged: { levels: ["info"], about: "The configuration was read again and has not changed" },
  reload_refused: {
    levels: ["error"],
    about: "The new configuration has mistakes, and the old one stays in force. One line per mistake: `problem`",
  },
  reload_ignored: { levels: ["warn"], about: "A changed `member` takes effect only at the next start" },
  shared_config_stored: {
    levels: ["info"],
    about: "This node put its file into the store, which had no configuration",
  },
  shared_config_used: { levels: ["info"], about: "This node uses the configuration of the store. `version`" },
  shared_config_differs: {
    levels: ["warn"],
    about: "The node's own file differs from the configuration of the store, which is used. `source`: the file",
  },
  shared_config_rejected: {
    levels: ["error"],
    about:
      "The node cannot use the configuration of the store and starts with its own file. `reload_refused` has the " +
      "reasons",
  },
  alert_delivered: { levels: ["info"], about: "The webhook accepted an alert. `alert_id`, `type`, `attempts`" },
  alert_not_delivered: {
    levels: ["warn"],
    about: "The webhook did not accept an alert. It is sent again after `retry_ms`. `status` or `fault`",
  },
  alert_given_up: {
    levels: ["error"],
    about: "The webhook answered 410, or the last attempt failed. The alert is not sent again",
  },
  alerts_failed: { levels: ["warn"], about: "A `step` of the alerts failed. It is repeated every 5 seconds" },
  memory_released: {
    levels: ["info"],
    about: "After a peak, the heap shrank from `heap_before_mb` to `heap_after_mb`. All requests waited for `took_ms`",
  },
  listener_failed: {
    levels: ["error"],
    about: "The gateway accepts no new connections on `port`, and opens it again after a second. `fault`, `cause`",
  },
  listener_reopened: { levels: ["info"], about: "The gateway accepts connections on `port` again" },
  response_failed: { levels: ["error"], about: "The HTTP server could not send an answer. `cause`, `stack`" },
  uncaught_error: { levels: ["error"], about: "A bug: an error that no code handles. `cause`, `stack`" },
  unhandled_rejection: { levels: ["error"], about: "A bug: a rejected promise that no code handles. `cause`, `stack`" },
  stopping: { levels: ["info"], about: "The gateway stops. `texts` and `images`: running requests" },
  stopped: { levels: ["info"], about: "The gateway has stopped. `outcome`" },
} as const satisfies Record<string, LogEventFacts>;

/** Name of an event. */
export type LogEvent = keyof typeof LOG_EVENTS;

/** Events whose lines can have this level. */
type EventOfLevel<Level extends LogLevel> = {
  [Event in LogEvent]: Level extends (typeof LOG_EVENTS)[Event]["levels"][number] ? Event : never;
}[LogEvent];

/** A line of the log: an event with its facts; never a key, a prompt or an answer. */
export type LogEntry = {
  [Level in LogLevel]: {
    level: Level;
    event: EventOfLevel<Level>;
    [fact: string]: string | number | boolean | undefined;
  };
}[LogLevel];

/** Writes a line of the log. */
export type Log = (entry: LogEntry) => void;
