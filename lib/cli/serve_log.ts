/**
 * Opens the log of a serving process, together with the alerts and the handlers of uncaught errors that depend on it.
 */
import { type Alerts, createAlerts } from "../alerts/alerts.ts";
import type { LogEntry } from "../log_events.ts";
import { createLog, createLogWriter, type LogWriter } from "./log.ts";
import { logUncaughtErrors } from "./uncaught_errors.ts";

/** The log of a serving process. */
export interface ServeLog {
  readonly log: (entry: LogEntry) => void;
  /** Lines that wait to be written. */
  readonly lines: LogWriter;
  /** Alerts that log lines cause. */
  readonly alerts: Alerts;
  /** Stops logging uncaught errors. */
  readonly stopErrorLog: () => void;
}

/** Opens the log on standard error. @param level returns the lowest level that is written */
export function openServeLog(level: Parameters<typeof createLog>[0]["level"]): ServeLog {
  const lines = createLogWriter(Deno.stderr);
  const alerts = createAlerts(createLog({ write: lines.write, now: Date.now, level }));
  return { log: alerts.log, lines, alerts, stopErrorLog: logUncaughtErrors(alerts.log) };
}
