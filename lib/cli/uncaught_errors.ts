/** Keeps the process alive: a rejection that is not handled must not end every other request. */
import type { LogEntry } from "../log_events.ts";
import { describeCause } from "../server/cause.ts";

/** Logs uncaught errors and rejections, one line each. Returns a function that stops it. */
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
