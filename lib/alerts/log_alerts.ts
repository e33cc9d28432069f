/** Creates alerts from log lines, so that the log contains every fact of an alert. */
import type { LogEntry, LogEvent } from "../log_events.ts";
import type { AlertDraft } from "./event.ts";

/**
 * Time after which a lasting condition is reported again, in milliseconds: a gateway that stops does not report its
 * end.
 */
const REPEAT_MS = 3_600_000;

/** Creates an alert from a line; `undefined` if it is not worth one. */
type LineReader = (line: LogEntry) => AlertDraft | undefined;

const LINES: Readonly<Partial<Record<LogEvent, LineReader>>> = {
  breaker_opened: (line) =>
    breakerAlert(line, (what) => ({
      type: "upstream.down",
      begins: true,
      repeatMs: REPEAT_MS,
      text: `${what} is down: requests fail, so the gateway pauses requests to it`,
    })),
  breaker_closed: (line) =>
    breakerAlert(line, (what) => ({ type: "upstream.up", begins: false, text: `${what} is up again` })),
  upstream_key_refused: ({ upstream }) => ({
    type: "upstream.key_refused",
    subject: `key of upstream ${upstream}`,
    begins: true,
    repeatMs: REPEAT_MS,
    text: `Upstream "${upstream}" refuses the gateway's key: it gets no requests until it accepts one`,
    data: { upstream: String(upstream), status: 401 },
  }),
  upstream_key_accepted: ({ upstream }) => ({
    type: "upstream.key_accepted",
    subject: `key of upstream ${upstream}`,
    begins: false,
    text: `Upstream "${upstream}" accepts the gateway's key again`,
    data: { upstream: String(upstream) },
  }),
  target_failed: ({ upstream, model, status }) =>
    status !== 403 ? undefined : {
      type: "upstream.key_refused",
      subject: `right to model ${model} of upstream ${upstream}`,
      begins: true,
      repeatMs: REPEAT_MS,
      text: `Upstream "${upstream}" answered 403 for model "${model}": the gateway's key may lack a right`,
      data: { upstream: String(upstream), model: String(model), status },
    },
  store_down: () => storeAlert("store", true),
  store_up: () => storeAlert("store", false),
  limits_store_down: () => storeAlert("limits_store", true),
  limits_store_up: () => storeAlert("limits_store", false),
  ledger_failed: () => ledgerAlert("ledger_failed", "The ledger cannot be written: requests that cost are refused"),
  ledger_recovered: () => ({
    type: "ledger.recovered",
    subject: "ledger ledger_failed",
    begins: false,
    text: "The ledger can be written again",
    data: { log_event: "ledger_recovered" },
  }),
  entry_not_written: () => ledgerAlert("entry_not_written", "An entry could not be written to the ledger"),
  holds_not_renewed: () => ledgerAlert("holds_not_renewed", "Budget holds of running requests could not be renewed"),
  journal_damaged: () => ledgerAlert("journal_damaged", "The journal of waiting ledger entries is damaged"),
  journal_entry_refused: () => ledgerAlert("journal_entry_refused", "The store refused an entry of the journal"),
};

/** Log events that may create an alert. */
export const LOGGED_ALERTS = Object.keys(LINES) as readonly LogEvent[];

/** The alert of a log line, if any. */
export function alertOf(line: LogEntry): AlertDraft | undefined {
  return LINES[line.event]?.(line);
}

/** A breaker may concern a single client key, whose own requests may be the cause. */
function breakerAlert(
  { upstream, model, scope, key_id }: LogEntry,
  describe: (what: string) => Pick<AlertDraft, "type" | "begins" | "repeatMs" | "text">,
): AlertDraft {
  const isWhole = scope === "upstream";
  const key = key_id === undefined ? "" : ` for key ${key_id}`;
  return {
    ...describe(`Upstream "${upstream}"${isWhole ? "" : ` with model "${model}"`}${key}`),
    subject: `upstream ${upstream}${isWhole ? "" : ` model ${model}`}${key}`,
    data: { upstream: String(upstream), model: isWhole ? null : String(model), key_id: String(key_id ?? "") || null },
  };
}

function storeAlert(store: "store" | "limits_store", begins: boolean): AlertDraft {
  const what = store === "store" ? "The store of keys and ledger" : "The store of limits";
  return {
    type: begins ? "store.down" : "store.up",
    subject: store,
    begins,
    ...(begins && { repeatMs: REPEAT_MS }),
    text: begins ? `${what} is out of reach` : `${what} is reachable again`,
    data: { store },
  };
}

function ledgerAlert(event: string, what: string): AlertDraft {
  return {
    type: "ledger.trouble",
    subject: `ledger ${event}`,
    begins: true,
    repeatMs: REPEAT_MS,
    text: `${what}; the log has "${event}"`,
    data: { log_event: event },
  };
}
