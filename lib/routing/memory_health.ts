/** Health in memory: one process knows what it has seen itself. */
import { ByPlace, nameOf } from "./by_place.ts";
import { Gate, type Ticket } from "./gate.ts";
import type {
  Absence,
  Admission,
  Asked,
  BreakerOptions,
  Health,
  HealthChange,
  HealthOptions,
  HealthRow,
  Outcome,
  Pass,
  Place,
  Speed,
} from "./health.ts";
import { Measures } from "./measures.ts";
import { OutcomeWindow } from "./window.ts";

/** A breaker stays open for up to this many times its first time. */
const MOST_STEPS = 3;
/** Times vary by this share, so that several gateways do not come back at one moment. */
const JITTER = 0.2;
/** Pause of a target at its limit that says no time, and the longest that is believed, in milliseconds. */
const COOL_MS = 1_000;
const MOST_COOL_MS = 60_000;
/** First and longest time for which a key that was refused is not tried again, in milliseconds. */
const QUARANTINE_MS = 60_000;
const MOST_QUARANTINE_MS = 3_600_000;
/** Doublings of a quarantine that make a difference. */
const MOST_DOUBLINGS = 6;

/** Everything that is kept of one target. */
interface Row {
  readonly place: Place;
  readonly breaker: Gate;
  readonly access: Quarantine;
  outcomes: OutcomeWindow;
  readonly firstMs: Measures;
  readonly tokensPerSecond: Measures;
  /** Targets of the models that it is a target of, by model. */
  readonly groups: Map<string, readonly Place[]>;
  /** Failures to connect, one after another. */
  unreachable: number;
  /** How often the breaker has opened without a long enough rest. */
  step: number;
  closedAt: number;
  coolUntil: number;
}

/** A gate that stays shut for longer each time. */
interface Quarantine {
  readonly gate: Gate;
  step: number;
}

/** Health of targets that nobody has asked yet. */
export function createHealth(options: HealthOptions): Health {
  return new MemoryHealth(options);
}

class MemoryHealth implements Health {
  readonly #options: HealthOptions;
  #breaker: BreakerOptions;
  readonly #rows = new ByPlace<Row>((place) => this.#newRow(place));
  /** Keys of upstreams, by the upstream's name. */
  readonly #keys = new Map<string, Quarantine>();

  constructor(options: HealthOptions) {
    this.#options = options;
    this.#breaker = options.breaker;
  }

  obey(breaker: BreakerOptions): void {
    if (breaker.windowMs !== this.#breaker.windowMs) {
      for (const row of this.#rows.all()) row.outcomes = new OutcomeWindow(breaker.windowMs);
    }
    this.#breaker = breaker;
  }

  admit({ model, target }: Asked, now = this.#options.monotonic()): Admission {
    const row = this.#rows.of(target);
    if (row.groups.get(model.id) !== model.targets) row.groups.set(model.id, model.targets);
    const away = this.#away(row, now);
    if (away !== undefined) return { admitted: false, ...away };
    const tickets = {
      upstream: this.#key(target.upstream).gate.enter(now),
      model: row.access.gate.enter(now),
      breaker: row.breaker.enter(now),
    };
    return { admitted: true, pass: { place: row.place, tickets } };
  }

  away(place: Place): Absence | undefined {
    return this.#away(this.#rows.of(place), this.#options.monotonic());
  }

  #away(row: Row, now: number): Absence | undefined {
    const cool = Math.max(0, row.coolUntil - now);
    const breaker = row.breaker.waitMs(now);
    const quarantine = Math.max(this.#key(row.place.upstream).gate.waitMs(now), row.access.gate.waitMs(now));
    const waitMs = Math.max(cool, breaker, quarantine);
    if (waitMs === 0) return undefined;
    return { why: quarantine > 0 ? "quarantined" : breaker > 0 ? "open" : "cooling", waitMs };
  }

  report({ place, tickets }: Pass, outcome: Outcome): void {
    const now = this.#options.monotonic();
    const row = this.#rows.of(place);
    const key = this.#key(place.upstream);
    switch (outcome.type) {
      case "success":
        this.#accept(key, { ticket: tickets.upstream, place, scope: "upstream" });
        this.#accept(row.access, { ticket: tickets.model, place, scope: "model" });
        break;
      case "refused":
        if (outcome.scope === "upstream") {
          this.#refuse(key, { ticket: tickets.upstream, place, scope: "upstream", now });
        } else this.#refuse(row.access, { ticket: tickets.model, place, scope: "model", now });
        break;
      case "limited":
        cool(row, now + (outcome.retryAfterMs ?? COOL_MS), now);
        break;
      case "busy":
        if (outcome.retryAfterMs !== undefined) cool(row, now + outcome.retryAfterMs, now);
    }
    this.#count(row, { ticket: tickets.breaker, outcome, now });
    key.gate.giveBack(tickets.upstream);
    row.access.gate.giveBack(tickets.model);
    row.breaker.giveBack(tickets.breaker);
  }

  /** What an outcome is to the breaker. Of requests that passed before it moved nothing counts any more. */
  #count(row: Row, { ticket, outcome, now }: { ticket: Ticket; outcome: Outcome; now: number }): void {
    const { breaker, outcomes } = row;
    const { type } = outcome;
    if (type !== "success" && type !== "failure" && type !== "unreachable" && type !== "busy") return;
    if (!breaker.isCurrent(ticket)) return;
    const failed = type !== "success";
    if (breaker.isShut) {
      if (failed && breaker.isTrial(ticket)) this.#open(row, now);
      if (!failed && breaker.wasTrial(ticket)) this.#close(row, now);
      return;
    }
    row.unreachable = type === "unreachable" ? row.unreachable + 1 : 0;
    outcomes.add(failed, now);
    if (failed && this.#isBad(row, now) && this.#mayOpen(row)) this.#open(row, now);
  }

  #isBad({ outcomes, unreachable }: Row, now: number): boolean {
    const { leastSamples, failureShare, connectFailures } = this.#breaker;
    if (unreachable >= connectFailures) return true;
    const { samples, failures } = outcomes.read(now);
    return samples >= leastSamples && failures >= samples * failureShare;
  }

  /**
   * Of the targets of a model at most half are taken out by their failures, and one where there is only one: what is
   * wrong with all of them may be wrong with the requests. Those whose key was refused do not count.
   */
  #mayOpen({ place, groups }: Row): boolean {
    for (const targets of groups.values()) {
      const places = new Map(targets.map((target) => [nameOf(target), target]));
      const most = Math.max(1, Math.floor(places.size / 2));
      places.delete(nameOf(place));
      const out = [...places.values()].filter((other) => this.#isOpen(other)).length;
      if (out + 1 > most) return false;
    }
    return true;
  }

  #isOpen(place: Place): boolean {
    const row = this.#rows.find(place);
    if (row === undefined || !row.breaker.isShut) return false;
    return !row.access.gate.isShut && this.#keys.get(place.upstream)?.gate.isShut !== true;
  }

  #open(row: Row, now: number): void {
    const { openMs, windowMs } = this.#breaker;
    const soon = row.breaker.isShut || now - row.closedAt < windowMs;
    row.step = soon ? Math.min(MOST_STEPS, row.step + 1) : 1;
    const forMs = this.#jittered(openMs * row.step);
    row.breaker.shut(now + forMs);
    this.#changed({ ...row.place, change: "opened", scope: "model", forMs });
  }

  #close(row: Row, now: number): void {
    row.breaker.open();
    row.closedAt = now;
    row.unreachable = 0;
    row.outcomes.clear();
    row.outcomes.add(false, now);
    this.#changed({ ...row.place, change: "closed", scope: "model", forMs: 0 });
  }

  /** Many requests may be refused at one moment: the first of them counts. */
  #refuse(
    quarantine: Quarantine,
    { ticket, place, scope, now }: { ticket: Ticket; place: Place; scope: HealthChange["scope"]; now: number },
  ): void {
    const { gate } = quarantine;
    if (gate.isShut ? !gate.isTrial(ticket) : !gate.isCurrent(ticket)) return;
    const forMs = this.#jittered(
      Math.min(MOST_QUARANTINE_MS, QUARANTINE_MS * 2 ** Math.min(quarantine.step, MOST_DOUBLINGS)),
    );
    quarantine.step++;
    gate.shut(now + forMs);
    this.#changed({ ...place, change: "key_refused", scope, forMs });
  }

  #accept(
    quarantine: Quarantine,
    { ticket, place, scope }: { ticket: Ticket; place: Place; scope: HealthChange["scope"] },
  ): void {
    const { gate } = quarantine;
    if (!gate.wasTrial(ticket)) return;
    quarantine.step = 0;
    gate.open();
    this.#changed({ ...place, change: "key_accepted", scope, forMs: 0 });
  }

  #jittered(ms: number): number {
    return ms * (1 - JITTER + 2 * JITTER * this.#options.random());
  }

  #changed(change: HealthChange): void {
    this.#options.changed?.(change);
  }

  measure(place: Place, { firstMs, tokensPerSecond }: { firstMs?: number; tokensPerSecond?: number }): void {
    const now = this.#options.monotonic();
    const row = this.#rows.of(place);
    if (firstMs !== undefined) row.firstMs.add(firstMs, now);
    if (tokensPerSecond !== undefined) row.tokensPerSecond.add(tokensPerSecond, now);
  }

  speed(place: Place): Speed {
    const row = this.#rows.find(place);
    const now = this.#options.monotonic();
    return {
      firstMs: (share) => row?.firstMs.percentile(share, now),
      tokensPerSecond: (share) => row?.tokensPerSecond.reached(share, now),
    };
  }

  snapshot(): HealthRow[] {
    const now = this.#options.monotonic();
    return this.#rows.all().map((row) => {
      const first_ms = row.firstMs.percentile(0.5, now);
      const tokens_per_second = row.tokensPerSecond.percentile(0.5, now);
      const { state, until } = this.#state(row, now);
      return {
        ...row.place,
        state,
        ...(until > now && { until: Math.round(this.#options.now() + until - now) }),
        ...row.outcomes.read(now),
        ...(first_ms !== undefined && { first_ms }),
        ...(tokens_per_second !== undefined && { tokens_per_second }),
      };
    });
  }

  #state(row: Row, now: number): { state: HealthRow["state"]; until: number } {
    const gates = [this.#key(row.place.upstream).gate, row.access.gate].filter(({ isShut }) => isShut);
    if (gates.length > 0) return { state: "quarantined", until: Math.max(...gates.map(({ until }) => until)) };
    const { breaker, coolUntil } = row;
    if (breaker.isShut) return { state: breaker.until > now ? "open" : "half_open", until: breaker.until };
    return { state: coolUntil > now ? "cooling" : "closed", until: coolUntil };
  }

  #newRow({ upstream, model }: Place): Row {
    return {
      place: { upstream, model },
      breaker: new Gate(),
      access: { gate: new Gate(), step: 0 },
      outcomes: new OutcomeWindow(this.#breaker.windowMs),
      firstMs: new Measures(),
      tokensPerSecond: new Measures(),
      groups: new Map(),
      unreachable: 0,
      step: 0,
      closedAt: -Infinity,
      coolUntil: 0,
    };
  }

  #key(upstream: string): Quarantine {
    let key = this.#keys.get(upstream);
    if (key === undefined) this.#keys.set(upstream, key = { gate: new Gate(), step: 0 });
    return key;
  }
}

function cool(row: Row, until: number, now: number): void {
  row.coolUntil = Math.max(row.coolUntil, Math.min(until, now + MOST_COOL_MS));
}
