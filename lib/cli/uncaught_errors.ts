/**
 * Logs uncaught errors and keeps the process alive, because one unhandled rejection must not end all other requests.
 */
import type { LogEntry } from "../log_events.ts";
import { describeCause } from "../server/cause.ts";

/** Logs uncaught errors and unhandled rejections from now on. Returns a function that stops it. */
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
