/**
 * Opens the log of a serving process, together with the alerts and the handlers of uncaught errors that depend on it.
 */
import { type Alerts, createAlerts } from "../alerts/alerts.ts";
import type { LogEntry } from "../log_events.ts";
import { createLog, createLogWriter, type LogWriter } from "./log.ts";
import { describeCause } from "../causes.ts";

/** The log of a serving process. */
export interface ServeLog {
  readonly log: (entry: LogEntry) => void;
  readonly lines: LogWriter;
  /** Alerts that log lines cause. */
  readonly alerts: Alerts;
  readonly stopErrorLog: () => void;
}

/** Opens the log on standard error. @param level returns the lowest level that is written */
export function openServeLog(level: Parameters<typeof createLog>[0]["level"]): ServeLog {
  const lines = createLogWriter(Deno.stderr);
  const alerts = createAlerts(createLog({ write: lines.write, now: Date.now, level }));
  return { log: alerts.log, lines, alerts, stopErrorLog: logUncaughtErrors(alerts.log) };
}

/**
 * Logs uncaught errors and unhandled rejections from now on. They do not end the process, and with it all other
 * requests. Returns a function that stops it.
 */
export function logUncaughtErrors(log: (entry: LogEntry) => void): () => void {
  const onRejection = (event: PromiseRejectionEvent): void => {
    event.preventDefault();
    log({ level: "error", event: "unhandled_rejection", ...describeCause(event.reason) });
  };
  const onError = (event: ErrorEvent): void => {
    event.preventDefault();
    log({ level: "error", event: "uncaught_error", ...describeCause(event.error) });
  };
  globalThis.addEventListener("unhandledrejection", onRejection);
  globalThis.addEventListener("error", onError);
  return () => {
    globalThis.removeEventListener("unhandledrejection", onRejection);
    globalThis.removeEventListener("error", onError);
  };
}
