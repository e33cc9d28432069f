/** Shuts the server down: running requests may finish within time limits. */
import { settlesWithin } from "../abort.ts";
import type { LogEntry } from "../log_events.ts";
import type { Drain } from "../server/drain.ts";
import type { InFlightRequests } from "../billing/in_flight_requests.ts";

/** Time for the last bytes to reach clients after all requests have ended, in milliseconds. */
const LAST_BYTES_MS = 800;

/**
 * Time within which signals count as one, in milliseconds. Ctrl-C goes to every process of the terminal, and `deno
 * task` also forwards it to the program, which then gets it twice.
 */
const SAME_SIGNAL_MS = 300;

/** Signals that request the end of the process. */
export interface StopSignals {
  /** Resolves at the first signal. */
  first: Promise<void>;
  /** Resolves at the next signal that is not a repetition of the first. */
  second: Promise<void>;
  /** Removes the listeners. While a process shuts down it must keep them, or the next signal would kill it. */
  forget: () => void;
}

/** Listens for SIGINT (Ctrl-C) and, except on Windows, SIGTERM. @param monotonic time in milliseconds */
export function listenForStopSignals(monotonic: () => number = () => performance.now()): StopSignals {
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  let firstAt: number | undefined;
  const onSignal = (): void => {
    if (firstAt === undefined) {
      firstAt = monotonic();
      first.resolve();
    } else if (monotonic() - firstAt >= SAME_SIGNAL_MS) {
      second.resolve();
    }
  };
  const names: Deno.Signal[] = Deno.build.os === "windows" ? ["SIGINT"] : ["SIGINT", "SIGTERM"];
  for (const name of names) Deno.addSignalListener(name, onSignal);
  return {
    first: first.promise,
    second: second.promise,
    forget: () => names.forEach((name) => Deno.removeSignalListener(name, onSignal)),
  };
}

/** Durations of the phases of a shutdown, in milliseconds. */
export interface ShutdownTimes {
  /** Time for which requests are still served while `/readyz` reports that the gateway is not ready. */
  readyDelayMs: number;
  /** Longest time for running requests to finish. */
  drainMs: number;
  /** The same for image requests; never less than `drainMs` in effect. */
  imagesDrainMs: number;
}

/** The parts to shut down, and the times to wait. */
export interface ShutdownParts {
  server: { shutdown(): Promise<void> };
  drain: Drain;
  inFlight: Pick<InFlightRequests, "count" | "whenDone">;
  /** Ends the text requests that are still running. */
  stopTexts: () => Promise<void>;
  /** Ends all requests that are still running. */
  stopAll: () => Promise<void>;
  /** Resolves when the operator wants to stop immediately. */
  second: Promise<void>;
  times: ShutdownTimes;
  log: (entry: LogEntry) => void;
}

/**
 * `drained`: all requests finished. `late`: some were ended after the time limit. `cut`: the operator ended the wait.
 */
export type ShutdownOutcome = "drained" | "late" | "cut";

/**
 * Reports that the gateway is not ready, then refuses new requests and waits for the running ones. After the time
 * limit, the remaining ones end with an error.
 */
export async function shutDownServer(parts: ShutdownParts): Promise<ShutdownOutcome> {
  const { inFlight, log, second } = parts;
  log({ level: "info", event: "stopping", texts: inFlight.count("text"), images: inFlight.count("images") });
  const outcome = await Promise.race([endAll(parts), second.then(() => "cut" as const)]);
  log({ level: "info", event: "stopped", outcome });
  return outcome;
}

async function endAll({ server, drain, inFlight, stopTexts, stopAll, times }: ShutdownParts): Promise<ShutdownOutcome> {
  const { readyDelayMs, drainMs } = times;
  drain.beginShutdown();
  if (readyDelayMs > 0) await settlesWithin(readyDelayMs, new Promise<void>(() => {}));
  drain.refuse();
  const startedAt = performance.now();
  const remainingMs = (limitMs: number): number => Math.max(0, startedAt + limitMs - performance.now());

  // The listener closes when no request body is arriving. Until then, new requests are refused with `retry-after`.
  const closed = settlesWithin(drainMs, drain.arrived()).then(() => server.shutdown());
  const ended = Promise.all([closed, inFlight.whenDone()]);
  if (await settlesWithin(remainingMs(drainMs), ended)) return "drained";
  let wereStopped = inFlight.count("text") > 0;
  await stopTexts();
  const imagesEnded = inFlight.whenDone("images").then(() => settlesWithin(LAST_BYTES_MS, ended));
  await settlesWithin(remainingMs(Math.max(drainMs, times.imagesDrainMs)), imagesEnded);
  wereStopped ||= inFlight.count() > 0;
  await stopAll();
  return await settlesWithin(LAST_BYTES_MS, ended) && !wereStopped ? "drained" : "late";
}
