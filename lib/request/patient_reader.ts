/** Reading from a source that may keep still for long. */

/** Something that is read step by step and can be given up. */
export interface Source<T> {
  /** The next step; `undefined` after the last. */
  read(): Promise<T | undefined>;
  /** Ends it early. Safe at any time, more than once. */
  cancel(): void;
}

/** Told what a source gives. */
export interface Told<T> {
  /** The next step, or "silence"; `undefined` after the last. */
  take(step: T | "silence" | undefined): void;
  fail(error: unknown): void;
}

/** A source that also says when it has been silent for too long. */
export interface PatientReader<T> {
  /** The next step, or "silence" where none has come for the time given; a read under way is not lost by it. */
  read(): Promise<T | "silence" | undefined>;
  /** The same for somebody who is told, at once where the step is there already. Who asked before is told nothing. */
  ask(told: Told<T>): void;
  /** Ends the source and the watch. */
  stop(): void;
}

/** Reads a source and says "silence" when it keeps still for too long. One timer serves it from start to stop. */
export function patientReader<T extends object>(source: Source<T>, silenceMs: number): PatientReader<T> {
  let asking: Told<T> | undefined;
  let reading = false;
  /** Tells what came while nobody asked: after "silence" was said. */
  let kept: ((told: Told<T>) => void) | undefined;
  let quiet = false;
  const timer = setInterval(() => {
    if (quiet) answered()?.take("silence");
    quiet = true;
  }, silenceMs / 2);

  function answered(): Told<T> | undefined {
    const told = asking;
    asking = undefined;
    return told;
  }

  function take(step: T | undefined): void {
    reading = false;
    const told = answered();
    if (told === undefined) kept = (told) => told.take(step);
    else told.take(step);
  }

  function fail(error: unknown): void {
    reading = false;
    const told = answered();
    if (told === undefined) kept = (told) => told.fail(error);
    else told.fail(error);
  }

  function ask(told: Told<T>): void {
    quiet = false;
    if (kept !== undefined) {
      const tell = kept;
      kept = undefined;
      return tell(told);
    }
    asking = told;
    if (reading) return;
    reading = true;
    source.read().then(take, fail);
  }

  return {
    read: () => new Promise((take, fail) => ask({ take, fail })),
    ask,
    stop() {
      clearInterval(timer);
      source.cancel();
    },
  };
}
