/** Reading from a source that may keep still for long. */

/** Something that is read step by step and can be given up. */
export interface Source<T> {
  /** The next step; `undefined` after the last. */
  read(): Promise<T | undefined>;
  /** Ends it early. Safe at any time, more than once. */
  cancel(): void;
}

/** A source that also says when it has been silent for too long. */
export interface PatientReader<T> {
  /** The next step, or "silence" where none has come for the time given; a read under way is not lost by it. */
  read(): Promise<T | "silence" | undefined>;
  /** Ends the source and the watch. */
  stop(): void;
}

/** Reads a source and says "silence" when it keeps still for too long. One timer serves it from start to stop. */
export function patientReader<T extends object>(source: Source<T>, silenceMs: number): PatientReader<T> {
  let pending: Promise<T | undefined> | undefined;
  let wake: (() => void) | undefined;
  let quiet = false;
  const timer = setInterval(() => {
    if (quiet) wake?.();
    quiet = true;
  }, silenceMs / 2);

  return {
    read() {
      quiet = false;
      const reading = pending ??= source.read();
      return new Promise<T | "silence" | undefined>((resolve, reject) => {
        let answered = false;
        wake = () => {
          answered = true;
          wake = undefined;
          resolve("silence");
        };
        const take = (give: () => void) => {
          // What comes after "silence" was said is kept for the next read.
          if (answered) return;
          pending = undefined;
          wake = undefined;
          give();
        };
        reading.then((step) => take(() => resolve(step)), (error) => take(() => reject(error)));
      });
    },
    stop() {
      clearInterval(timer);
      source.cancel();
    },
  };
}
