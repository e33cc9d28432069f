/** The log of a serving process, and its readers. */
import { type Alerts, createAlerts } from "../alerts/alerts.ts";
import type { LogEntry } from "../log_events.ts";
import { createLog, createLogWriter, type LogWriter } from "./log.ts";
import { logUncaughtErrors } from "./uncaught_errors.ts";

/** The log of a serving process. */
export interface ServeLog {
  readonly log: (entry: LogEntry) => void;
  readonly lines: LogWriter;
  readonly alerts: Alerts;
  /** Logs errors that nothing catches no longer. */
  readonly forget: () => void;
}

/** Opens the log on standard error. @param level the level of the moment */
export function openServeLog(level: Parameters<typeof createLog>[0]["level"]): ServeLog {
  const lines = createLogWriter(Deno.stderr);
  const alerts = createAlerts(createLog({ write: lines.write, now: Date.now, level }));
  return { log: alerts.log, lines, alerts, forget: logUncaughtErrors(alerts.log) };
}
