/**
 * What health must do, written for the reader: everything that ever happened is kept, and looked through each time. There
 * is no jitter.
 */
import type { Asked, Away, Outcome, Place } from "../../lib/routing/health.ts";

/** A request that was let through, and what held then. */
export interface ReferencePass {
  place: Place;
  at: number;
  /** How often the breaker, the key, and the access to the model had changed. */
  changes: { breaker: number; key: number; access: number };
  /** Which of them it was let through for although they were shut. */
  trials: Set<"breaker" | "key" | "access">;
  reported: boolean;
}

interface Lock {
  changes: number;
  isShut: boolean;
  until: number;
  /** How often it was shut without having been opened (keys), or without a rest (breakers). */
  times: number;
}

interface Known {
  place: Place;
  breaker: Lock;
  access: Lock;
  closedAt: number;
  /** What counts for the breaker: it forgets all of it when it closes. */
  samples: { at: number; kind: "ok" | "failure" | "unreachable" }[];
  coolUntil: number;
}

const PART_MS = 1_000;

export class ReferenceHealth {
  now = 0;
  readonly #known: Known[] = [];
  readonly #keys = new Map<string, Lock>();
  readonly #models = new Map<string, readonly Place[]>();
  readonly #passes: ReferencePass[] = [];

  admit({ model, target }: Asked): { pass: ReferencePass } | { why: Away; waitMs: number } {
    this.#models.set(model.id, model.targets);
    const known = this.#of(target);
    const locks = this.#locks(known);
    const waits = {
      breaker: this.#wait("breaker", known),
      key: this.#wait("key", known),
      access: this.#wait("access", known),
      cool: Math.max(0, known.coolUntil - this.now),
    };
    const waitMs = Math.max(...Object.values(waits));
    if (waitMs > 0) {
      const why = waits.key > 0 || waits.access > 0 ? "quarantined" : waits.breaker > 0 ? "open" : "cooling";
      return { why, waitMs };
    }
    const names = ["breaker", "key", "access"] as const;
    const pass: ReferencePass = {
      place: known.place,
      at: this.now,
      changes: { breaker: locks.breaker.changes, key: locks.key.changes, access: locks.access.changes },
      trials: new Set(names.filter((name) => locks[name].isShut)),
      reported: false,
    };
    this.#passes.push(pass);
    return { pass };
  }

  report(pass: ReferencePass, outcome: Outcome): void {
    const known = this.#of(pass.place);
    const { breaker, key, access } = this.#locks(known);
    const kind = outcome.type;
    if (kind === "success") {
      for (const [name, lock] of [["key", key], ["access", access]] as const) {
        if (pass.trials.has(name) && pass.changes[name] === lock.changes) {
          lock.isShut = false;
          lock.times = 0;
          lock.changes++;
        }
      }
    }
    if (kind === "refused") {
      const [name, lock] = outcome.scope === "upstream" ? ["key", key] as const : ["access", access] as const;
      const counts = lock.isShut ? this.#isLatest(pass, name) : pass.changes[name] === lock.changes;
      if (counts) {
        const minutes = Math.min(60, 2 ** Math.min(6, lock.times));
        lock.times++;
        lock.isShut = true;
        lock.until = this.now + minutes * 60_000;
        lock.changes++;
      }
    }
    const told = kind === "limited"
      ? outcome.retryAfterMs ?? 1_000
      : kind === "busy"
      ? outcome.retryAfterMs
      : undefined;
    if (told !== undefined) known.coolUntil = Math.max(known.coolUntil, this.now + Math.min(told, 60_000));
    const isSample = kind === "success" || kind === "failure" || kind === "unreachable" || kind === "busy";
    if (isSample && pass.changes.breaker === breaker.changes) {
      if (breaker.isShut) {
        if (kind === "success" && pass.trials.has("breaker")) {
          breaker.isShut = false;
          breaker.changes++;
          known.closedAt = this.now;
          known.samples = [{ at: this.now, kind: "ok" }];
        } else if (kind !== "success" && this.#isLatest(pass, "breaker")) this.#open(known, true);
      } else {
        const sample = kind === "success" ? "ok" : kind === "unreachable" ? "unreachable" : "failure";
        known.samples.push({ at: this.now, kind: sample });
        if (kind !== "success" && this.#isBad(known) && this.#mayOpen(known)) {
          this.#open(known, this.now - known.closedAt < 30_000);
        }
      }
    }
    pass.reported = true;
  }

  state(place: Place): { state: string; samples: number; failures: number } {
    const known = this.#of(place);
    const { breaker, key, access } = this.#locks(known);
    const state = key.isShut || access.isShut
      ? "quarantined"
      : breaker.isShut
      ? breaker.until > this.now ? "open" : "half_open"
      : known.coolUntil > this.now
      ? "cooling"
      : "closed";
    const recent = this.#recent(known);
    return { state, samples: recent.length, failures: recent.filter(({ kind }) => kind !== "ok").length };
  }

  /** Targets of a model that failures have taken out. */
  out(targets: readonly Place[]): Place[] {
    return targets.filter((target) => {
      const { breaker, key, access } = this.#locks(this.#of(target));
      return breaker.isShut && !key.isShut && !access.isShut;
    });
  }

  #wait(name: "breaker" | "key" | "access", known: Known): number {
    const lock = this.#locks(known)[name];
    if (!lock.isShut) return 0;
    const latest = this.#trialsOf(name, known).at(-1);
    const busyUntil = latest === undefined || latest.reported ? 0 : latest.at + 30_000;
    return Math.max(0, lock.until - this.now, busyUntil - this.now);
  }

  /** Trials since the lock last changed. */
  #trialsOf(name: "breaker" | "key" | "access", known: Known): ReferencePass[] {
    const lock = this.#locks(known)[name];
    return this.#passes.filter(({ place, trials, changes }) =>
      trials.has(name) && changes[name] === lock.changes && place.upstream === known.place.upstream &&
      (name === "key" || place.model === known.place.model)
    );
  }

  #isLatest(pass: ReferencePass, name: "breaker" | "key" | "access"): boolean {
    return this.#trialsOf(name, this.#of(pass.place)).at(-1) === pass && !pass.reported;
  }

  #recent({ samples }: Known): Known["samples"] {
    const part = Math.floor(this.now / PART_MS);
    return samples.filter(({ at }) => part - Math.floor(at / PART_MS) < 30);
  }

  #isBad(known: Known): boolean {
    const last = known.samples.slice(-5);
    if (last.length === 5 && last.every(({ kind }) => kind === "unreachable")) return true;
    const recent = this.#recent(known);
    return recent.length >= 10 && recent.filter(({ kind }) => kind !== "ok").length * 2 >= recent.length;
  }

  #mayOpen({ place }: Known): boolean {
    for (const targets of this.#models.values()) {
      if (!targets.some((target) => isSame(target, place))) continue;
      const others = this.out(targets).filter((target) => !isSame(target, place));
      if (others.length + 1 > Math.max(1, Math.floor(targets.length / 2))) return false;
    }
    return true;
  }

  #open(known: Known, soon: boolean): void {
    const { breaker } = known;
    breaker.times = soon ? Math.min(3, breaker.times + 1) : 1;
    breaker.until = this.now + 5_000 * breaker.times;
    breaker.isShut = true;
    breaker.changes++;
  }

  #locks({ place, breaker, access }: Known): { breaker: Lock; key: Lock; access: Lock } {
    let key = this.#keys.get(place.upstream);
    if (key === undefined) this.#keys.set(place.upstream, key = lock());
    return { breaker, key, access };
  }

  #of(place: Place): Known {
    let known = this.#known.find((other) => isSame(other.place, place));
    if (known === undefined) {
      known = { place, breaker: lock(), access: lock(), closedAt: -Infinity, samples: [], coolUntil: 0 };
      this.#known.push(known);
    }
    return known;
  }
}

function lock(): Lock {
  return { changes: 0, isShut: false, until: 0, times: 0 };
}

function isSame(a: Place, b: Place): boolean {
  return a.upstream === b.upstream && a.model === b.model;
}
