/** Creates alerts from log lines, so that the log has every fact of an alert. */
import type { LogEntry, LogEvent } from "../log_events.ts";
import type { AlertDraft } from "./event.ts";

/**
 * Time after which a lasting condition is reported again, in milliseconds. The end of a condition is not reported if
 * the gateway stops before.
 */
const REPEAT_MS = 3_600_000;

/** Facts of an alert that its line does not have. */
export interface AlertContext {
  /** The last `target_failed` line of the upstream and model. */
  failure?: LogEntry | undefined;
  /** Name of the client key `key_id`. */
  keyName?: string | undefined;
}

/** Creates an alert from a line; `undefined` if the line needs none. */
type LineReader = (line: LogEntry, context: AlertContext) => AlertDraft | undefined;

/** The end of the text of an alert whose upstream, or its model, a reload has removed. */
const NO_LONGER_USED = "is no longer used: the configuration has no model for it";

/** Faults of the ledger from which it does not recover by itself, because the state of the file is unknown. */
const NEEDS_RESTART: ReadonlySet<string> = new Set(["disk failed", "file deleted or replaced"]);

/** The readers that turn the lines of each event into alerts. */
const READERS: Readonly<Partial<Record<LogEvent, LineReader>>> = {
  breaker_opened: (line, context) => {
    const { failure } = context;
    const draft = breakerAlert(line, context, (what) => ({
      type: "upstream.down",
      begins: true,
      repeatMs: REPEAT_MS,
      text: `${what} is down: requests fail, so the gateway pauses requests to it${failureText(failure)}`,
    }));
    const message = failure?.vendor_message ?? failure?.reason;
    return {
      ...draft,
      data: {
        ...draft.data,
        status: numberOf(failure?.status),
        message: message === undefined ? null : String(message),
      },
    };
  },
  breaker_closed: (line, context) =>
    breakerAlert(line, context, (what) => ({
      type: "upstream.up",
      begins: false,
      text: `${what} ${line.removed === true ? NO_LONGER_USED : "is up again"}`,
    })),
  upstream_key_refused: ({ upstream }) => ({
    type: "upstream.key_refused",
    subject: `key of upstream ${upstream}`,
    begins: true,
    repeatMs: REPEAT_MS,
    text: `Upstream "${upstream}" refuses the gateway's key: it gets no requests until it accepts one`,
    data: { upstream: String(upstream), status: 401 },
  }),
  upstream_key_accepted: ({ upstream, removed }) => ({
    type: "upstream.key_accepted",
    subject: `key of upstream ${upstream}`,
    begins: false,
    text: `Upstream "${upstream}" ${removed === true ? NO_LONGER_USED : "accepts the gateway's key again"}`,
    data: { upstream: String(upstream) },
  }),
  target_failed: ({ upstream, model, status }) =>
    status !== 403 ? undefined : {
      type: "upstream.key_refused",
      subject: `right to model ${model} of upstream ${upstream}`,
      begins: true,
      repeatMs: REPEAT_MS,
      text: `Upstream "${upstream}" answered 403 for model "${model}": the gateway's key may lack a permission`,
      data: { upstream: String(upstream), model: String(model), status },
    },
  store_down: ({ fault }) =>
    storeAlert(
      "store",
      `The store of keys and the ledger is unreachable${inBrackets(fault)}: ` +
        "cached keys keep working, requests with a budget are refused",
    ),
  store_up: () => storeAlert("store", undefined),
  store_changes_unreadable: ({ code, fault }) => ({
    type: "store.down",
    subject: "store keys",
    begins: true,
    repeatMs: REPEAT_MS,
    text: `Keys or their changes cannot be read from the store${inBrackets(fault ?? code)}: ` +
      "cached keys keep working for a while, other keys may not",
    data: { store: "store" },
  }),
  store_changes_readable: () => ({
    type: "store.up",
    subject: "store keys",
    begins: false,
    text: "Keys and their changes can be read from the store again",
    data: { store: "store" },
  }),
  limits_store_down: ({ policy, cause }) =>
    storeAlert(
      "limits_store",
      `The limits store is unreachable${inBrackets(cause)}: ${
        policy === "closed" ? "requests with limits are refused" : "each node enforces its share of the limits"
      }`,
    ),
  limits_store_up: () => storeAlert("limits_store", undefined),
  ledger_failed: ({ fault }) =>
    ledgerAlert(
      "ledger_failed",
      `The ledger cannot be written: requests with a cost are refused${
        NEEDS_RESTART.has(String(fault)) ? " until the file is repaired and the gateway restarted" : ""
      }`,
      fault,
    ),
  ledger_recovered: () => ({
    type: "ledger.recovered",
    subject: "ledger ledger_failed",
    begins: false,
    text: "The ledger can be written again",
    data: { log_event: "ledger_recovered" },
  }),
  entry_not_written: ({ fault }) =>
    ledgerAlert("entry_not_written", "An entry could not be written to the ledger", fault),
  holds_not_renewed: ({ fault }) =>
    ledgerAlert("holds_not_renewed", "Budget holds of running requests could not be renewed", fault),
  store_rolled_back: () =>
    ledgerAlert(
      "store_rolled_back",
      "The database lacks changes that it had confirmed, as after a failover to a replica that lagged: entries may be " +
        "missing, and revoked keys may be valid again",
    ),
  journal_damaged: () => ledgerAlert("journal_damaged", "The journal of waiting ledger entries is damaged"),
  journal_entry_refused: () => ledgerAlert("journal_entry_refused", "The store refused an entry of the journal"),
};

/** Log events that may create an alert. */
export const LOGGED_ALERTS = Object.keys(READERS) as readonly LogEvent[];

/** Creates the alert of a log line; `undefined` if the line needs none. */
export function alertOf(line: LogEntry, context: AlertContext = {}): AlertDraft | undefined {
  return READERS[line.event]?.(line, context);
}

/** Describes the last failure in a sentence: the vendor's status and message, or why there was no answer. */
function failureText(failure: LogEntry | undefined): string {
  if (failure === undefined) return "";
  const { status, vendor_message: message, reason, fault } = failure;
  if (status === undefined) return `. Last failure: ${reason}${inBrackets(fault)}`;
  return `. Last failure: status ${status}${message === undefined ? "" : `, "${message}"`}`;
}

function inBrackets(reason: unknown): string {
  return reason === undefined ? "" : ` (${reason})`;
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

/** Creates the alert of a circuit breaker, which may be that of one client key: its own requests may be the cause. */
function breakerAlert(
  { upstream, model, scope, key_id }: LogEntry,
  { keyName }: AlertContext,
  describe: (what: string) => Pick<AlertDraft, "type" | "begins" | "repeatMs" | "text">,
): AlertDraft {
  const isWholeUpstream = scope === "upstream";
  const of = key_id === undefined ? "" : ` for requests of key "${keyName ?? key_id}"`;
  return {
    ...describe(`Upstream "${upstream}"${isWholeUpstream ? "" : ` with model "${model}"`}${of}`),
    subject: `upstream ${upstream}${isWholeUpstream ? "" : ` model ${model}`}${
      key_id === undefined ? "" : ` for key ${key_id}`
    }`,
    data: {
      upstream: String(upstream),
      model: isWholeUpstream ? null : String(model),
      key_id: String(key_id ?? "") || null,
      key_name: keyName ?? null,
    },
  };
}

/** Creates the alert of a store. @param down the sentence about the outage; undefined: the outage is over */
function storeAlert(store: "store" | "limits_store", down: string | undefined): AlertDraft {
  const begins = down !== undefined;
  return {
    type: begins ? "store.down" : "store.up",
    subject: store,
    begins,
    ...(begins && { repeatMs: REPEAT_MS }),
    text: down ?? `The store of ${store === "store" ? "keys and ledger" : "limits"} is reachable again`,
    data: { store },
  };
}

function ledgerAlert(event: string, what: string, fault?: unknown): AlertDraft {
  return {
    type: "ledger.trouble",
    subject: `ledger ${event}`,
    begins: true,
    repeatMs: REPEAT_MS,
    text: `${what}${inBrackets(fault)}; the log has "${event}"`,
    data: { log_event: event, fault: fault === undefined ? null : String(fault) },
  };
}
