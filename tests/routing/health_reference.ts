/**
 * A readable reference of health: it keeps all events, and searches them each time. It has no jitter and no upstream
 * keys.
 */
import type { PermitRequest, TargetKey, TargetOutcome, UnavailableReason } from "../../lib/routing/health.ts";

/** A request that was let through, and what held then. */
export interface ReferencePass {
  place: TargetKey;
  key: string;
  at: number;
  /** Number of times that the breakers had changed: the one for all keys, and the one for this key. */
  changes: { all: number; own: number };
  /** Breakers that were open when it was let through as a trial. */
  trials: Set<"all" | "own">;
  /** When its outcome was reported. */
  reportedAt: number | undefined;
}

type Sample = { at: number; key: string; kind: "ok" | "failure" | "unreachable"; pass: ReferencePass; undone?: true };

interface Breaker {
  changes: number;
  isOpen: boolean;
  until: number;
  /** Number of times that it has opened without a rest. */
  times: number;
  closedAt: number;
  /** Samples for its failure rate: cleared when it closes. */
  samples: Sample[];
  coolUntil: number;
  /** True if it has failed or met a limit: before, a key's successes are not kept. */
  isKept: boolean;
}

interface Known {
  place: TargetKey;
  /** Keys that asked while the breaker for all was open, since it closed last; refused by that breaker alone: no pass. */
  asks: { key: string; pass?: ReferencePass }[];
  /** Keys whose trials have failed since the shared breaker opened. */
  failedTrials: Set<string>;
  all: Breaker;
  own: Map<string, Breaker>;
  /** Samples for consecutive failures: cleared when a breaker closes. */
  streak: Sample[];
  /** Samples for consecutive connection failures. */
  connects: Sample[];
}

const PART_MS = 1_000;

export class ReferenceHealth {
  now = 0;
  readonly #known: Known[] = [];
  readonly #models = new Map<string, readonly TargetKey[]>();
  readonly #passes: ReferencePass[] = [];

  admit({ model, target, key }: PermitRequest): { pass: ReferencePass } | { why: UnavailableReason; waitMs: number } {
    this.#models.set(model.id, model.targets);
    const away = this.away(target, key);
    const known = this.#of(target);
    if (away !== undefined) {
      if (known.all.isOpen && this.#wait(known, "own", key) === 0) known.asks.push({ key });
      return away;
    }
    const [all, own] = [known.all, ownOf(known, key)];
    const pass: ReferencePass = {
      place: known.place,
      key,
      at: this.now,
      changes: { all: all.changes, own: own.changes },
      trials: new Set([...all.isOpen ? ["all" as const] : [], ...own.isOpen ? ["own" as const] : []]),
      reportedAt: undefined,
    };
    this.#passes.push(pass);
    if (all.isOpen) known.asks.push({ key, pass });
    return { pass };
  }

  away(place: TargetKey, key: string): { why: UnavailableReason; waitMs: number } | undefined {
    const known = this.#of(place);
    const own = ownOf(known, key);
    const breaker = Math.max(this.#wait(known, "all", key), this.#wait(known, "own", key));
    const cool = Math.max(0, known.all.coolUntil - this.now, own.coolUntil - this.now);
    const waitMs = Math.max(breaker, cool);
    return waitMs === 0 ? undefined : { why: breaker > 0 ? "open" : "cooling", waitMs };
  }

  isFailing(place: TargetKey, key: string): boolean {
    const streak = streakOf(this.#of(place));
    const keys = new Set(streak.map((sample) => sample.key));
    return keys.has(key) || keys.size > 1;
  }

  report(pass: ReferencePass, outcome: TargetOutcome): void {
    const known = this.#of(pass.place);
    const { type } = outcome;
    const told = type === "limited"
      ? outcome.retryAfterMs ?? 1_000
      : type === "busy"
      ? outcome.retryAfterMs
      : undefined;
    if (told !== undefined) this.#cool(known, pass.key, this.now + Math.min(told, 60_000));
    if (type === "success" || type === "failure" || type === "unreachable" || type === "busy") {
      const kind = type === "success" ? "ok" : type === "unreachable" ? "unreachable" : "failure";
      this.#count(known, { at: this.now, key: pass.key, kind, pass });
    }
    pass.reportedAt = this.now;
  }

  #count(known: Known, sample: Sample): void {
    const { pass, kind, key } = sample;
    const { all } = known;
    const own = ownOf(known, key);
    const failed = kind !== "ok";
    const isCurrent = { all: pass.changes.all === all.changes, own: pass.changes.own === own.changes };
    const wasOpen = all.isOpen;
    let isOwnTrouble = false;
    const isLatest = { all: this.#isLatest(pass, "all"), own: this.#isLatest(pass, "own") };
    // On closing the key's own breaker comes first, on opening the shared one.
    if (!failed && isCurrent.own) {
      if (own.isOpen) {
        if (pass.trials.has("own")) this.#close(known, own, sample);
      } else if (own.isKept) own.samples.push(sample);
    }
    if (isCurrent.all) {
      if (all.isOpen) {
        if (failed && isLatest.all) {
          known.failedTrials.add(key);
          if (kind === "unreachable" || known.failedTrials.size > 1) {
            known.failedTrials.clear();
            this.#open(all, true);
          } else isOwnTrouble = true;
        }
        if (!failed && pass.trials.has("all")) this.#close(known, all, sample);
      } else {
        all.samples.push(sample);
        if (failed) {
          const last = known.streak.findLast((other) => other.kind === "ok");
          if (last?.pass === pass) last.undone = true;
        }
        known.streak.push(sample);
        known.connects.push(sample);
      }
    }
    if (!failed) return;
    own.isKept = true;
    if (isCurrent.own) {
      if (own.isOpen) {
        if (isLatest.own) this.#open(own, true);
      } else {
        own.samples.push(sample);
        if (isOwnTrouble) this.#open(own, this.now - own.closedAt < 30_000);
      }
    }
    if (wasOpen || all.isOpen) return;
    if (this.#isBadForAll(known) && this.#mayOpen(known)) this.#open(all, this.now - all.closedAt < 30_000);
    else if (!own.isOpen && this.#isBadFor(known, key) && this.#mayOpen(known, key)) {
      this.#open(own, this.now - own.closedAt < 30_000);
    }
  }

  state(place: TargetKey): { state: string; samples: number; failures: number; consecutive_failures: number } {
    const known = this.#of(place);
    const states = [known.all, ...known.own.values()].map((breaker) =>
      breaker.isOpen
        ? breaker.until > this.now ? "open" : "half_open"
        : breaker.coolUntil > this.now
        ? "cooling"
        : "closed"
    );
    const [all = "", ...own] = states;
    const worst = (["open", "cooling", "half_open"] as const).find((state) => own.includes(state)) ?? "closed";
    const recent = this.#recent(known.all);
    return {
      state: all === "closed" ? worst : all,
      samples: recent.length,
      failures: recent.filter(({ kind }) => kind !== "ok").length,
      consecutive_failures: streakOf(known).length,
    };
  }

  /** Targets of a model that failures have taken out, for all or for a key. */
  out(targets: readonly TargetKey[], key?: string): TargetKey[] {
    return targets.filter((target) => {
      const known = this.#of(target);
      return known.all.isOpen || (key !== undefined && ownOf(known, key).isOpen);
    });
  }

  #cool(known: Known, key: string, until: number): void {
    for (const [other, { coolUntil }] of known.own) {
      if (other !== key && coolUntil > this.now) {
        known.all.coolUntil = Math.max(known.all.coolUntil, Math.min(until, coolUntil));
      }
    }
    const own = ownOf(known, key);
    own.coolUntil = Math.max(own.coolUntil, until);
    own.isKept = true;
  }

  #wait(known: Known, name: "all" | "own", key: string): number {
    const breaker = name === "all" ? known.all : ownOf(known, key);
    if (!breaker.isOpen) return 0;
    const latest = this.#trialsOf(known, name, key).at(-1);
    const busyUntil = latest === undefined || latest.reportedAt !== undefined ? 0 : latest.at + 30_000;
    const turn = name === "all" ? this.#turnAt(known, key) : 0;
    return Math.max(0, breaker.until - this.now, busyUntil - this.now, turn - this.now);
  }

  /** When a key that had the last trial may have the next, though others have asked since. */
  #turnAt({ asks, all }: Known, key: string): number {
    const last = asks.findLastIndex(({ pass }) => pass !== undefined);
    const pass = asks[last]?.pass;
    if (pass?.key !== key || !asks.slice(last).some((ask) => ask.key !== key)) return 0;
    return Math.max(all.until, Math.min(pass.reportedAt ?? Infinity, pass.at + 30_000)) + 5_000;
  }

  /** Trials since the breaker last changed. */
  #trialsOf(known: Known, name: "all" | "own", key: string): ReferencePass[] {
    const breaker = name === "all" ? known.all : ownOf(known, key);
    return this.#passes.filter((pass) =>
      pass.trials.has(name) && pass.changes[name] === breaker.changes && isSame(pass.place, known.place) &&
      (name === "all" || pass.key === key)
    );
  }

  #isLatest(pass: ReferencePass, name: "all" | "own"): boolean {
    return this.#trialsOf(this.#of(pass.place), name, pass.key).at(-1) === pass && pass.reportedAt === undefined;
  }

  #recent({ samples }: Breaker): Sample[] {
    const part = Math.floor(this.now / PART_MS);
    return samples.filter(({ at }) => part - Math.floor(at / PART_MS) < 30);
  }

  #isBadForAll(known: Known): boolean {
    const last = known.connects.slice(-5);
    if (last.length === 5 && last.every(({ kind }) => kind === "unreachable")) return true;
    const byKey = Map.groupBy(streakOf(known), ({ key }) => key);
    const counts = [...byKey.values()].map(({ length }) => length);
    if (counts.reduce((sum, count) => sum + count, 0) - Math.max(0, ...counts) >= 5) return true;
    const recent = this.#recent(known.all);
    if (!isBadShare(recent)) return false;
    const shares = [...known.own.values()].filter(({ isKept }) => isKept).map((own) => this.#recent(own));
    const worst = shares.toSorted((a, b) => failuresOf(b) - failuresOf(a) || a.length - b.length)[0] ?? [];
    const samples = recent.length - worst.length;
    const failures = failuresOf(recent) - failuresOf(worst);
    return samples >= 10 && failures * 2 >= samples;
  }

  #isBadFor(known: Known, key: string): boolean {
    if (streakOf(known).filter((sample) => sample.key === key).length >= 5) return true;
    return isBadShare(this.#recent(ownOf(known, key)));
  }

  #mayOpen({ place }: Known, key?: string): boolean {
    for (const targets of this.#models.values()) {
      if (!targets.some((target) => isSame(target, place))) continue;
      const others = this.out(targets, key).filter((target) => !isSame(target, place));
      if (others.length + 1 > Math.max(1, Math.floor(targets.length / 2))) return false;
    }
    return true;
  }

  #open(breaker: Breaker, soon: boolean): void {
    breaker.times = soon ? Math.min(3, breaker.times + 1) : 1;
    breaker.until = this.now + 5_000 * breaker.times;
    breaker.isOpen = true;
    breaker.changes++;
  }

  #close(known: Known, breaker: Breaker, sample: Sample): void {
    breaker.isOpen = false;
    breaker.changes++;
    breaker.closedAt = this.now;
    breaker.samples = [sample];
    if (breaker === known.all) {
      known.asks = [];
      known.failedTrials.clear();
    }
    known.streak = [];
    known.connects = [];
  }

  #of(place: TargetKey): Known {
    let known = this.#known.find((other) => isSame(other.place, place));
    if (known === undefined) {
      known = { place, asks: [], failedTrials: new Set(), all: newBreaker(), own: new Map(), streak: [], connects: [] };
      this.#known.push(known);
    }
    return known;
  }
}

/** Failures since the last success that did not break off. */
function streakOf({ streak }: Known): Sample[] {
  const last = streak.findLastIndex(({ kind, undone }) => kind === "ok" && undone === undefined);
  return streak.slice(last + 1).filter(({ kind }) => kind !== "ok");
}

function isBadShare(samples: readonly Sample[]): boolean {
  return samples.length >= 10 && failuresOf(samples) * 2 >= samples.length;
}

function failuresOf(samples: readonly Sample[]): number {
  return samples.filter(({ kind }) => kind !== "ok").length;
}

function ownOf({ own }: Known, key: string): Breaker {
  let breaker = own.get(key);
  if (breaker === undefined) own.set(key, breaker = newBreaker());
  return breaker;
}

function newBreaker(): Breaker {
  return {
    changes: 0,
    isOpen: false,
    until: 0,
    times: 0,
    closedAt: -Infinity,
    samples: [],
    coolUntil: 0,
    isKept: false,
  };
}

function isSame(a: TargetKey, b: TargetKey): boolean {
  return a.upstream === b.upstream && a.model === b.model;
}
