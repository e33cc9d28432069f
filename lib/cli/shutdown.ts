/** How the server ends: open requests are let finish, within limits. */
import type { LogEntry } from "../gateway.ts";

/** Longest time that open requests get to finish. */
const DRAIN_MS = 10_000;

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
  /** Takes the listeners away. */
  forget: () => void;
}

/** Listens for SIGINT (Ctrl-C) and, where the system has it, SIGTERM. */
export function stopSignals(): StopSignals {
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

/** What is to end. */
export interface ShutDown {
  server: { shutdown(): Promise<void> };
  /** Resolves when the operator does not want to wait. */
  second: Promise<void>;
  log: (entry: LogEntry) => void;
  drainMs?: number;
}

/**
 * Accepts nothing new and waits for what is open, but not for ever. Requests that are then still open end with the
 * process. Returns the exit code: 1 where the operator did not want to wait.
 */
export async function shutDown({ server, second, log, drainMs = DRAIN_MS }: ShutDown): Promise<number> {
  const late = Promise.withResolvers<"late">();
  const timer = setTimeout(() => late.resolve("late"), drainMs);
  const drained = server.shutdown().then(() => "drained" as const);
  const outcome = await Promise.race([drained, late.promise, second.then(() => "cut" as const)]);
  clearTimeout(timer);
  log({ level: "info", event: "stopped", outcome });
  return outcome === "cut" ? 1 : 0;
}
