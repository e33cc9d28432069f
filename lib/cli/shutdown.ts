/** Shuts the server down: open requests may finish, within limits. */
import type { LogEntry } from "../log_events.ts";
import type { Drain } from "../server/drain.ts";
import type { InFlightRequests } from "../billing/in_flight_requests.ts";

/** Longest time for the last bytes to reach clients after everything has ended, in milliseconds. */
const LAST_BYTES_MS = 800;

/**
 * Signals within this time count as one, in milliseconds: Ctrl-C goes to every process of the terminal, and `deno task`
 * forwards it to the program that has received it already.
 */
const SAME_SIGNAL_MS = 300;

/** The signals of the system that ask for an end. */
export interface StopSignals {
  /** Resolves at the first signal. */
  first: Promise<void>;
  /** Resolves at the next signal that is not a repetition of the first. */
  second: Promise<void>;
  /** Removes the listeners. A process that exits keeps them, as without them the next signal would kill it. */
  forget: () => void;
}

/**
 * Listens for SIGINT (Ctrl-C) and, where the system has it, SIGTERM.
 * @param monotonic time in milliseconds
 */
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

/** Times of an end, in milliseconds. */
export interface ShutdownTimes {
  /** Everything is served still, and the gateway says that it is not ready. */
  readyDelayMs: number;
  /** Longest time that answers get to finish. */
  drainMs: number;
  /** The same for images; never less than for the others. */
  imagesDrainMs: number;
}

/** Parts that are shut down. */
export interface ShutdownParts {
  server: { shutdown(): Promise<void> };
  drain: Drain;
  inFlight: Pick<InFlightRequests, "count" | "whenDone">;
  /** Ends the texts that are still under way. */
  stopTexts: () => Promise<void>;
  /** Ends whatever is still under way. */
  stopAll: () => Promise<void>;
  /** Resolves when the operator asks to stop immediately. */
  second: Promise<void>;
  times: ShutdownTimes;
  log: (entry: LogEntry) => void;
}

/** `drained`: all requests finished. `late`: some were ended by the timeout. `cut`: the operator stopped the wait. */
export type ShutdownOutcome = "drained" | "late" | "cut";

/**
 * Reports that it is not ready, then accepts no new requests and waits for the open ones. After the timeout the
 * remaining ones end with an error of their protocol.
 */
export async function shutDownServer(ending: ShutdownParts): Promise<ShutdownOutcome> {
  const { inFlight, log, second } = ending;
  log({ level: "info", event: "stopping", texts: inFlight.count("text"), images: inFlight.count("images") });
  const outcome = await Promise.race([endAll(ending), second.then(() => "cut" as const)]);
  log({ level: "info", event: "stopped", outcome });
  return outcome;
}

async function endAll({ server, drain, inFlight, stopTexts, stopAll, times }: ShutdownParts): Promise<ShutdownOutcome> {
  const { readyDelayMs, drainMs } = times;
  drain.beginShutdown();
  if (readyDelayMs > 0) await settlesWithin(readyDelayMs, new Promise<void>(() => {}));
  drain.refuse();
  const begin = performance.now();
  const leftUntil = (limitMs: number): number => Math.max(0, begin + limitMs - performance.now());

  // The listener closes when no body is arriving; new requests until then are refused with `retry-after`.
  const closed = settlesWithin(drainMs, drain.arrived()).then(() => server.shutdown());
  const ended = Promise.all([closed, inFlight.whenDone()]);
  if (await settlesWithin(leftUntil(drainMs), ended)) return "drained";
  let stopped = inFlight.count("text") > 0;
  await stopTexts();
  const imaged = inFlight.whenDone("images").then(() => settlesWithin(LAST_BYTES_MS, ended));
  await settlesWithin(leftUntil(Math.max(drainMs, times.imagesDrainMs)), imaged);
  stopped ||= inFlight.count() > 0;
  await stopAll();
  return await settlesWithin(LAST_BYTES_MS, ended) && !stopped ? "drained" : "late";
}

/** True where it resolves within this time, in milliseconds. */
async function settlesWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const late = Promise.withResolvers<false>();
  const timer = setTimeout(() => late.resolve(false), ms);
  try {
    return await Promise.race([promise.then(() => true), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
