/** Many alarms on one timer: to set and clear one of the runtime's costs 2 µs, and nearly all are cleared. */

/** Something that is to happen unless it is cleared before. */
export interface Alarm {
  /** By `performance.now()`. */
  readonly due: number;
  readonly ring: () => void;
  /** Its place among the others; -1: it is not set any more. */
  at: number;
}

/** An alarm may ring this much too late, so that many ring at once, in milliseconds. */
const GRAIN_MS = 10;

/** Alarms of one app. The timer runs while anybody is there who might set one. */
export class Alarms {
  /** Not a `Set`: one that is added to and taken from all the time leaves garbage that survives most collections. */
  readonly #alarms: Alarm[] = [];
  #users = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #armedFor = Infinity;

  /** Somebody is there. */
  enter(): void {
    this.#users++;
  }

  /** Somebody is there no more. */
  leave(): void {
    if (--this.#users === 0) this.#disarm();
  }

  /** Rings after so many milliseconds, or a little later. */
  set(ms: number, ring: () => void): Alarm {
    const now = performance.now();
    const alarm = { due: now + ms, ring, at: this.#alarms.length };
    this.#alarms.push(alarm);
    if (alarm.due < this.#armedFor) this.#arm(alarm.due, now);
    return alarm;
  }

  /** It does not ring any more. Safe at any time. */
  clear(alarm: Alarm): void {
    const last = this.#alarms.at(-1);
    if (alarm.at < 0 || last === undefined) return;
    this.#alarms[alarm.at] = last;
    last.at = alarm.at;
    alarm.at = -1;
    this.#alarms.pop();
    if (this.#users === 0 && this.#alarms.length === 0) this.#disarm();
  }

  #arm(due: number, now: number): void {
    clearTimeout(this.#timer);
    this.#armedFor = due;
    this.#timer = setTimeout(() => this.#check(), due - now + 1);
  }

  #disarm(): void {
    if (this.#alarms.length > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#armedFor = Infinity;
  }

  #check(): void {
    const now = performance.now();
    this.#armedFor = Infinity;
    for (const alarm of this.#alarms.filter(({ due }) => due <= now)) {
      // One that rings may clear another.
      if (alarm.at < 0) continue;
      this.clear(alarm);
      alarm.ring();
    }
    const next = this.#alarms.reduce((least, { due }) => Math.min(least, due), Infinity);
    if (next < this.#armedFor) this.#arm(Math.max(next, now + GRAIN_MS), now);
  }
}
