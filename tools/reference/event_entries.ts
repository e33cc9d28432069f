/** Instructions for log events of level `warn` or `error`. The type requires an entry for each of them. */
import type { LOG_EVENTS, LogEvent } from "../../lib/log_events.ts";
import type { Entry } from "./error_entries.ts";

/** Events that are not only of level info. */
type TroubleshootingEntry = {
  [Event in LogEvent]: (typeof LOG_EVENTS)[Event]["levels"] extends readonly ["info"] ? never : Event;
}[LogEvent];

const HEALTH = "`GET /admin/v1/health`, and `sluice_breaker_state` in the metrics";
const STORE = "`sluice doctor` checks the database; `cause` and `code` are the driver's";
const REDIS = "`sluice doctor` checks Redis; `sluice_limits_store_up` in the metrics";
const DISK = "`fault` and `path` in the line; `df` and the file's permissions";
const REPORT = "Report it with the line. Other requests are not affected";

/** Entries by event. Their meanings are in `LOG_EVENTS`. */
export const EVENT_ENTRIES: Readonly<Record<TroubleshootingEntry, Omit<Entry, "about">>> = {
  request: {
    see: "`sluice explain REQUEST_ID`, with `request_id` of the line",
    act: "See the entry of its `kind` or `code` above",
  },
  request_failed: {
    see: "`sluice explain REQUEST_ID`; the other lines with the same `request_id`",
    act: "At `warn`, look at the upstream or store. At `error`, report it with `cause` and `stack`",
  },
  target_failed: {
    see: "`status`, `vendor_message` and `vendor_request_id` in the line; `sluice requests --failed`",
    act: "If it continues: `sluice doctor`, the vendor's status page, or another target",
  },
  breaker_opened: { see: HEALTH, act: "Nothing if a second target answers. Otherwise find out why the target failed" },
  upstream_key_refused: {
    see: "`sluice doctor` tries the key",
    act:
      "Put a valid key into the variable that `api_key` names, and restart the gateway. If the vendor accepts the old " +
      "key again, a reload sends a probe at once",
  },
  transport_fallback: {
    see: "[Vendors](reference/vendors.md) on connections",
    act: 'Nothing. Set `"transport": "fetch"` to avoid the first attempt',
  },
  image_size_mismatch: { see: "`asked` and `delivered` in the line", act: "Use sizes that the model makes" },
  limit_exceeded: {
    see: "`name`, `unit` and `limit` in the line; `sluice_report_only_exceeded_total`",
    act: "Raise the limit, or enforce it: remove `report_only`, or `sluice keys change NAME --enforce`",
  },
  limits_not_released: { see: REDIS, act: "Nothing: the slot expires. If it continues, check Redis" },
  limits_store_down: {
    see: REDIS,
    act: "Repair Redis or the network. `nodes.limits_outage` decides what nodes do until then",
  },
  limits_store_up: { see: REDIS, act: "Nothing: limits are shared again" },
  limits_session_ended: {
    see: REDIS,
    act: "Nothing if it is rare. Otherwise look for pauses of the node and evictions in Redis",
  },
  requests_lost: {
    see: "`sluice requests --failed` shows them as lost",
    act: "Find out why the node died: its log, memory, restarts",
  },
  lost_requests_not_recorded: { see: STORE, act: "Repair the store. Writing the entries is retried" },
  recall_not_shared: {
    see: REDIS,
    act: "Repair Redis. Without it, requests of a conversation must reach the same node",
  },
  ledger_failed: {
    see: DISK,
    act: "Free disk space, or end the process that locks the database. After `disk failed` or `file deleted or " +
      "replaced`, put the file or a backup in its place and restart. Requests with a cost are refused until then",
  },
  entry_not_written: { see: `${DISK}; \`sluice audit\``, act: "Repair the store. The request stays unbilled" },
  refusals_not_written: {
    see: "`sluice requests --key NAME --failed`",
    act: "Ask the key's owner to stop the retries, or disable the key",
  },
  budget_exhausted: { see: "`sluice budgets`", act: "Raise the budget, or wait for its reset" },
  hold_expired: {
    see: "`sluice explain REQUEST_ID`",
    act: "Nothing if it is rare. Otherwise raise `nodes.lease_seconds`, or check the store",
  },
  holds_not_renewed: { see: STORE, act: "Check the load and the latency of the store" },
  holds_not_swept: { see: STORE, act: "Check the load and the latency of the store" },
  store_down: { see: STORE, act: "Repair the database or the network. Entries wait in the journal" },
  store_changes_unreadable: { see: STORE, act: "Check the permissions and connections of the database user" },
  store_rolled_back: {
    see: "The time of the failover or restore, and the changes of keys in your own log before it",
    act: "Revoke keys again that were revoked shortly before. Set `synchronous_standby_names` in Postgres",
  },
  journal_truncated: { see: "`bytes` in the line", act: "Nothing: that request was not answered" },
  journal_damaged: {
    see: "`kept` in the line: a copy of the file",
    act: "Check the disk. Compare the bill with `sluice usage --by upstream`",
  },
  journal_entry_refused: {
    see: "The file beside the journal that ends with `.refused`",
    act: "Keep the file and report the line. The request is not billed",
  },
  drain_limit_reached: {
    see: "`resource_limits.drained_requests` in the configuration",
    act: "Raise the limit if clients often disconnect and upstreams bill whole answers",
  },
  answer_not_stored: { see: `${STORE}, or ${DISK}`, act: "Repair the store. A repeated request makes new images" },
  key_use_not_stored: { see: `${STORE}, or ${DISK}`, act: "Repair the store. Storing the times is retried" },
  sweep_failed: { see: `${STORE}, or ${DISK}`, act: "Repair the store. The step is retried" },
  prune_failed: { see: `${STORE}, or ${DISK}`, act: "Repair the store, then `sluice prune`" },
  sums_failed: {
    see: `${STORE}, or ${DISK}`,
    act: "Repair the store. The update is retried; until then, reports and searches are correct but slow",
  },
  change_not_logged: { see: `${STORE}, or ${DISK}`, act: "Repair the store. The change itself took effect" },
  sign_out_not_stored: {
    see: `${STORE}, or ${DISK}`,
    act: "Repair the store and sign out again. A new admin key ends all sessions",
  },
  admin_refused: {
    see: "`address` and `message` in the line",
    act: "Correct the key of the client. If there are many lines, block the address",
  },
  address_refused: {
    see: "`address` in the line",
    act: "Find the client with the invalid key. Set `trusted_proxies` if the address is your proxy's",
  },
  log_lines_suppressed: { see: "`count` and `of` in the line", act: "Look at the lines of that event before this one" },
  log_lines_lost: {
    see: "`sluice_log_lines_lost_total`",
    act: "Free disk space, make the log's reader faster, or log less: `log.requests`, `log.level`",
  },
  reload_refused: {
    see: "`problem` in the line; `sluice check`",
    act: "Correct the file soon: the previous configuration stays in force, but a restart would fail",
  },
  reload_ignored: { see: "`member` in the line", act: "Restart the gateway for this change" },
  shared_config_differs: {
    see: "`GET /admin/v1/config` shows the configuration in force",
    act: "Make the node's file the same, or send `POST /admin/v1/reload` to put it into the store",
  },
  shared_config_rejected: {
    see: "The lines `reload_refused` with the reasons",
    act: "Set the variables that this node lacks, then restart it",
  },
  alert_not_delivered: {
    see: "`status` or `fault` in the line; `sluice alerts test`",
    act: "Correct the address or the receiver. The alert is sent again",
  },
  alert_given_up: { see: "`sluice alerts test`", act: "Correct the address. The event itself is in the log" },
  alerts_failed: { see: "`step` and `cause` in the line", act: "Check the store. The step is retried" },
  listener_failed: {
    see: "`fault` in the line; `ls /proc/PID/fd | wc -l` and `ulimit -n`",
    act: "After `too many open files`, raise the limit (`LimitNOFILE` of systemd): a stream takes two descriptors",
  },
  response_failed: { see: "`cause` and `stack` in the line", act: REPORT },
  uncaught_error: { see: "`cause` and `stack` in the line", act: REPORT },
  unhandled_rejection: { see: "`cause` and `stack` in the line", act: REPORT },
};
