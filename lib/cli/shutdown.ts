/** How the server ends: open requests are let finish, within limits. */
import type { LogEntry } from "../gateway.ts";
import type { Drain } from "../server/drain.ts";
import type { Running } from "../billing/running.ts";

/** How long the last bytes may take to reach clients once everything was ended, in milliseconds. */
const LAST_BYTES_MS = 800;

/**
 * Time within which two signals are one, in milliseconds: Ctrl-C goes to everything in the terminal, and `deno task`
 * passes it on to the program that has got it already.
 */
const SAME_SIGNAL_MS = 300;

/** The signals of the system that ask for an end. */
export interface StopSignals {
  /** Resolves at the first signal. */
  first: Promise<void>;
  /** Resolves at the next one that is no repetition of the first. */
  second: Promise<void>;
  /** Takes the listeners away; a process that ends keeps them to its last, as the next signal would kill it. */
  forget: () => void;
}

/** Listens for SIGINT (Ctrl-C) and, where the system has it, SIGTERM. */
export function listenForStopSignals(): StopSignals {
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  let firstAt: number | undefined;
  const onSignal = (): void => {
    if (firstAt === undefined) {
      firstAt = performance.now();
      first.resolve();
    } else if (performance.now() - firstAt >= SAME_SIGNAL_MS) {
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

/** What is to end. */
export interface ShutdownParts {
  server: { shutdown(): Promise<void> };
  drain: Drain;
  running: Pick<Running, "count" | "over">;
  /** Ends the texts that are still under way. */
  stopTexts: () => Promise<void>;
  /** Ends whatever is still under way. */
  stopAll: () => Promise<void>;
  /** Resolves when the operator does not want to wait. */
  second: Promise<void>;
  times: ShutdownTimes;
  log: (entry: LogEntry) => void;
}

/** `drained`: everything came to its own end. `late`: some was ended. `cut`: the operator did not want to wait. */
export type ShutdownOutcome = "drained" | "late" | "cut";

/**
 * Is not ready any more, then accepts nothing new and waits for what is open, but not for ever: what is then still open
 * is told so, in its protocol, and ended.
 */
export async function shutDownServer(ending: ShutdownParts): Promise<ShutdownOutcome> {
  const { running, log, second } = ending;
  log({ level: "info", event: "stopping", texts: running.count("text"), images: running.count("images") });
  const outcome = await Promise.race([endAll(ending), second.then(() => "cut" as const)]);
  log({ level: "info", event: "stopped", outcome });
  return outcome;
}

async function endAll({ server, drain, running, stopTexts, stopAll, times }: ShutdownParts): Promise<ShutdownOutcome> {
  const { readyDelayMs, drainMs } = times;
  drain.leave();
  if (readyDelayMs > 0) await settlesWithin(readyDelayMs, new Promise<void>(() => {}));
  drain.refuse();
  const begin = performance.now();
  const leftUntil = (limitMs: number): number => Math.max(0, begin + limitMs - performance.now());

  // The listener closes when no body is arriving; whoever comes until then is told to come back.
  const closed = settlesWithin(drainMs, drain.arrived()).then(() => server.shutdown());
  const ended = Promise.all([closed, running.over()]);
  if (await settlesWithin(leftUntil(drainMs), ended)) return "drained";
  let stopped = running.count("text") > 0;
  await stopTexts();
  const imaged = running.over("images").then(() => settlesWithin(LAST_BYTES_MS, ended));
  await settlesWithin(leftUntil(Math.max(drainMs, times.imagesDrainMs)), imaged);
  stopped ||= running.count() > 0;
  await stopAll();
  return await settlesWithin(LAST_BYTES_MS, ended) && !stopped ? "drained" : "late";
}

/** True where it resolves within this time, in milliseconds. */
export async function settlesWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const late = Promise.withResolvers<false>();
  const timer = setTimeout(() => late.resolve(false), ms);
  try {
    return await Promise.race([promise.then(() => true), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
