/** Many alarms on one timer: to set and clear one of the runtime's costs 2 µs, and nearly all are cleared. */

import { Bag, type Bagged } from "../unordered_list.ts";

/** Something that is to happen unless it is cleared before. */
export interface Alarm extends Bagged {
  /** By `performance.now()`. */
  readonly due: number;
  readonly ring: () => void;
}

/** An alarm may ring this much too late, so that many ring at once, in milliseconds. */
const GRAIN_MS = 10;

/** Alarms of one app. The timer runs while anybody is there who might set one. */
export class Alarms {
  readonly #alarms = new Bag<Alarm>();
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

  /** Rings after so many milliseconds, or a little later; of several that are due by then, any one first. */
  set(ms: number, ring: () => void): Alarm {
    const now = performance.now();
    const alarm = { due: now + ms, ring, at: -1 };
    this.#alarms.add(alarm);
    if (alarm.due < this.#armedFor) this.#arm(alarm.due, now);
    return alarm;
  }

  /** It does not ring any more. Safe at any time. */
  clear(alarm: Alarm): void {
    this.#alarms.delete(alarm);
    if (this.#users === 0) this.#disarm();
  }

  #arm(due: number, now: number): void {
    clearTimeout(this.#timer);
    this.#armedFor = due;
    this.#timer = setTimeout(() => this.#check(), due - now + 1);
  }

  #disarm(): void {
    if (this.#alarms.items.length > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#armedFor = Infinity;
  }

  #check(): void {
    const now = performance.now();
    this.#armedFor = Infinity;
    for (const alarm of this.#alarms.items.filter(({ due }) => due <= now)) {
      // One that rings may clear another.
      if (alarm.at < 0) continue;
      this.clear(alarm);
      alarm.ring();
    }
    const next = this.#alarms.items.reduce((least, { due }) => Math.min(least, due), Infinity);
    if (next < this.#armedFor) this.#arm(Math.max(next, now + GRAIN_MS), now);
  }
}
