/** Health in memory: one process knows what it has seen itself. */
import { ByTarget, targetModelName, targetName } from "./by_target.ts";
import { type BreakerTicket, CircuitBreaker } from "./circuit_breaker.ts";
import { FailureStreak } from "./failure_streak.ts";
import type {
  BreakerOptions,
  Health,
  HealthChange,
  HealthOptions,
  HealthRow,
  Permit,
  PermitDecision,
  PermitRequest,
  TargetKey,
  TargetOutcome,
  TargetSpeed,
  Unavailability,
  UpstreamProbe,
} from "./health.ts";
import { KeyCheck } from "./key_check.ts";
import { SpeedSamples } from "./speed_samples.ts";
import { OutcomeWindow } from "./outcome_window.ts";

/** Times vary by this share, so that several gateways do not come back at one moment. */
const JITTER = 0.2;
/** Pause of a target at its limit that says no time, and the longest that is believed, in milliseconds. */
const COOL_MS = 1_000;
const MOST_COOL_MS = 60_000;
/** Most client keys whose failures at a target are kept apart. */
const MOST_KEYS = 32;

/** Everything that is kept of one target. */
interface Row {
  readonly place: TargetKey;
  /** For all keys. */
  readonly breaker: CircuitBreaker;
  /** The client key whose trial has failed since the breaker opened, without a sign that it fails for others. */
  failedTrial: string | undefined;
  outcomes: OutcomeWindow;
  /** For single keys: of those whose requests have failed, or have met a limit. */
  readonly byKey: Map<string, KeyRow>;
  streak: FailureStreak;
  /** The success that began the streak, and the streak that it ended. */
  lastSuccess: Permit | undefined;
  endedStreak: FailureStreak | undefined;
  readonly firstMs: SpeedSamples;
  readonly tokensPerSecond: SpeedSamples;
  /** Failures to connect, one after another. */
  unreachable: number;
  coolUntil: number;
}

/** What is kept of one client key at a target. */
interface KeyRow {
  readonly breaker: CircuitBreaker;
  outcomes: OutcomeWindow;
  coolUntil: number;
}

/** Health of targets that were not asked yet. */
export function createHealth(options: HealthOptions): Health {
  return new MemoryHealth(options);
}

class MemoryHealth implements Health {
  readonly #options: HealthOptions;
  #breaker: BreakerOptions;
  #probe: UpstreamProbe;
  readonly #rows = new ByTarget<Row>((place) => this.#newRow(place));
  /** Targets of the models that were asked for, by model. */
  readonly #models = new Map<string, readonly TargetKey[]>();
  /** Whether upstreams accept the gateway's keys, by the upstream's name. */
  readonly #keys = new Map<string, KeyCheck>();
  /** Cancels what is to happen later. */
  readonly #timers = new Set<() => void>();
  readonly #closing = new AbortController();

  constructor(options: HealthOptions) {
    this.#options = options;
    this.#breaker = options.breaker;
    this.#probe = options.probe ?? (() => undefined);
  }

  obey({ breaker, probe }: Parameters<Health["obey"]>[0]): void {
    if (breaker.windowMs !== this.#breaker.windowMs) {
      for (const row of this.#rows.all()) {
        for (const kept of [row, ...row.byKey.values()]) kept.outcomes = new OutcomeWindow(breaker.windowMs);
      }
    }
    this.#breaker = breaker;
    this.#models.clear();
    if (probe === undefined) return;
    this.#probe = probe;
    for (const key of this.#keys.values()) key.renew();
  }

  close(): void {
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    this.#probe = () => undefined;
    this.#closing.abort();
  }

  admit({ model, target, key, early }: PermitRequest, now = this.#options.monotonic()): PermitDecision {
    const row = this.#rows.of(target);
    if (this.#models.get(model.id) !== model.targets) this.#models.set(model.id, model.targets);
    const away = this.#away(row, { key, now, early });
    const own = row.byKey.get(key)?.breaker;
    if (away !== undefined) {
      if ((own?.waitMs(now, key, early) ?? 0) === 0) row.breaker.refused(key);
      return { admitted: false, ...away };
    }
    const tickets = { all: row.breaker.enter(now, key), own: own?.enter(now, key) };
    const isTrial = tickets.all.trial !== undefined || tickets.own?.trial !== undefined;
    return { admitted: true, pass: { place: row.place, key, isTrial, tickets } };
  }

  away(place: TargetKey, key: string): Unavailability | undefined {
    return this.#away(this.#rows.of(place), { key, now: this.#options.monotonic() });
  }

  isUp(place: TargetKey, key: string): boolean {
    const now = this.#options.monotonic();
    const row = this.#rows.of(place);
    if (this.#away(row, { key, now }) !== undefined) return false;
    return row.breaker.mayLead(now, key) && row.byKey.get(key)?.breaker.mayLead(now, key) !== false;
  }

  isFailing(place: TargetKey, key: string): boolean {
    const streak = this.#rows.find(place)?.streak;
    return streak !== undefined && (streak.of(key) > 0 || streak.withoutWorstKey > 0);
  }

  #away(
    row: Row,
    { key, now, early }: { key: string; now: number; early?: boolean | undefined },
  ): Unavailability | undefined {
    const own = row.byKey.get(key);
    const cool = Math.max(0, row.coolUntil - now, (own?.coolUntil ?? 0) - now);
    const breaker = Math.max(row.breaker.waitMs(now, key, early), own?.breaker.waitMs(now, key, early) ?? 0);
    const check = this.#keys.get(row.place.upstream);
    const quarantine = check?.isRefused === true ? Math.max(1, check.nextAt - now) : 0;
    const waitMs = Math.max(cool, breaker, quarantine);
    if (waitMs === 0) return undefined;
    return { why: quarantine > 0 ? "quarantined" : breaker > 0 ? "open" : "cooling", waitMs };
  }

  report(pass: Permit, outcome: TargetOutcome): void {
    const now = this.#options.monotonic();
    const row = this.#rows.of(pass.place);
    if (outcome.type === "refused") this.#keyOf(pass.place).suspect();
    if (outcome.type === "limited") this.#cool(row, { pass, forMs: outcome.retryAfterMs ?? COOL_MS, now });
    if (outcome.type === "busy" && outcome.retryAfterMs !== undefined) {
      this.#cool(row, { pass, forMs: outcome.retryAfterMs, now });
    }
    if (outcome.type === "success") this.#succeeded(row, { pass, now });
    else if (outcome.type === "failure" || outcome.type === "unreachable" || outcome.type === "busy") {
      this.#failed(row, { pass, isUnreachable: outcome.type === "unreachable", now });
    }
    row.breaker.giveBack(pass.tickets.all, now);
    if (pass.tickets.own !== undefined) row.byKey.get(pass.key)?.breaker.giveBack(pass.tickets.own, now);
  }

  /** What passed before a breaker changed counts no more. */
  #succeeded(row: Row, { pass, now }: { pass: Permit; now: number }): void {
    const { breaker } = row;
    const own = row.byKey.get(pass.key);
    if (own !== undefined && isOf(own.breaker, pass.tickets.own)) {
      if (own.breaker.isOpen) this.#close(row, { breaker: own.breaker, key: pass.key, now, ticket: pass.tickets.own });
      else own.outcomes.add(false, now);
    }
    if (!breaker.isCurrent(pass.tickets.all)) return;
    if (breaker.isOpen) return this.#close(row, { breaker, now, ticket: pass.tickets.all });
    row.unreachable = 0;
    row.outcomes.add(false, now);
    row.lastSuccess = pass;
    row.endedStreak = row.streak.total > 0 ? row.streak : undefined;
    if (row.endedStreak !== undefined) row.streak = new FailureStreak();
  }

  /**
   * A failed trial opens the breaker for all keys where no connection could be made, the last probe failed too, or the
   * trial of another key has failed before; else the one for its key, and the next trial is another key's.
   */
  #failed(row: Row, { pass, isUnreachable, now }: { pass: Permit; isUnreachable: boolean; now: number }): void {
    const { breaker } = row;
    const own = this.#ownRow(row, { key: pass.key, now });
    const wasOpen = breaker.isOpen;
    let isOwnTrouble = false;
    if (breaker.isCurrent(pass.tickets.all)) {
      if (breaker.isOpen) {
        if (isDecisive(breaker, { ticket: pass.tickets.all, now })) {
          const { failedTrial = pass.key } = row;
          if (isUnreachable || breaker.isDown || failedTrial !== pass.key) this.#open(row, { breaker, now });
          else {
            row.failedTrial = pass.key;
            isOwnTrouble = true;
          }
        }
      } else {
        // An answer that began well and broke off was no success.
        if (row.lastSuccess === pass && row.endedStreak !== undefined) {
          row.streak.addAll(row.endedStreak);
          row.endedStreak = undefined;
        }
        row.unreachable = isUnreachable ? row.unreachable + 1 : 0;
        row.outcomes.add(true, now);
        row.streak.add(pass.key);
      }
    }
    if (isOf(own.breaker, pass.tickets.own)) {
      if (own.breaker.isOpen) {
        if (isDecisive(own.breaker, { ticket: pass.tickets.own, now })) {
          this.#open(row, { breaker: own.breaker, key: pass.key, now });
        }
      } else {
        own.outcomes.add(true, now);
        if (isOwnTrouble) this.#open(row, { breaker: own.breaker, key: pass.key, now });
      }
    }
    if (wasOpen || breaker.isOpen) return;
    if (this.#isBadForAll(row, now) && this.#mayOpen(row)) this.#open(row, { breaker, now });
    else if (!own.breaker.isOpen && this.#isBadFor(row, { key: pass.key, now }) && this.#mayOpen(row, pass.key)) {
      this.#open(row, { breaker: own.breaker, key: pass.key, now });
    }
  }

  /** It would be bad also without the requests of any one key; that no connection can be made is no request's doing. */
  #isBadForAll({ outcomes, byKey, streak, unreachable }: Row, now: number): boolean {
    const { consecutiveFailures, connectFailures } = this.#breaker;
    if (unreachable >= connectFailures || streak.withoutWorstKey >= consecutiveFailures) return true;
    const all = outcomes.read(now);
    if (!this.#isBadShare(all)) return false;
    const [worst = { samples: 0, failures: 0 }] = [...byKey.values()].map((own) => own.outcomes.read(now))
      .sort((a, b) => b.failures - a.failures || a.samples - b.samples);
    return this.#isBadShare({ samples: all.samples - worst.samples, failures: all.failures - worst.failures });
  }

  #isBadFor({ byKey, streak }: Row, { key, now }: { key: string; now: number }): boolean {
    if (streak.of(key) >= this.#breaker.consecutiveFailures) return true;
    const own = byKey.get(key);
    return own !== undefined && this.#isBadShare(own.outcomes.read(now));
  }

  #isBadShare({ samples, failures }: { samples: number; failures: number }): boolean {
    const { leastSamples, failureShare } = this.#breaker;
    return samples >= leastSamples && failures >= samples * failureShare;
  }

  /**
   * Of the targets of a model at most half are taken out by their failures, and one where there is only one: what is
   * wrong with all of them may be wrong with the requests. Those whose upstream refuses its key do not count.
   */
  #mayOpen({ place }: Row, key?: string): boolean {
    const name = targetName(place);
    for (const targets of this.#models.values()) {
      const places = new Map(targets.map((target) => [targetName(target), target]));
      const most = Math.max(1, Math.floor(places.size / 2));
      if (!places.delete(name)) continue;
      const out = [...places.values()].filter((other) => this.#isOpen(other, key)).length;
      if (out + 1 > most) return false;
    }
    return true;
  }

  #isOpen(place: TargetKey, key?: string): boolean {
    const row = this.#rows.find(place);
    if (row === undefined || this.#keys.get(place.upstream)?.isRefused === true) return false;
    return row.breaker.isOpen || (key !== undefined && row.byKey.get(key)?.breaker.isOpen === true);
  }

  #open(row: Row, { breaker, key, now }: { breaker: CircuitBreaker; key?: string; now: number }): void {
    const { openMs, windowMs } = this.#breaker;
    const forMs = breaker.open(now, { openMs, restMs: windowMs }, this.#jittered);
    if (key === undefined) row.failedTrial = undefined;
    this.#changed(row, { change: "opened", key, forMs });
    const { epoch } = breaker;
    const isStill = () => breaker.epoch === epoch;
    this.#later(forMs, () => {
      if (!isStill()) return;
      this.#changed(row, { change: "half_open", key, forMs: 0 });
      this.#untilProbed(row, { breaker, isStill, everyMs: forMs });
    });
  }

  /** Probes the upstream of a half-open target until it answers. */
  #untilProbed(
    row: Row,
    { breaker, isStill, everyMs }: { breaker: CircuitBreaker; isStill: () => boolean; everyMs: number },
  ): void {
    const probing = this.#keyOf(row.place).probe();
    if (probing === undefined) return breaker.probed("up");
    void probing.then((answer) => {
      if (!isStill()) return;
      breaker.probed(answer === "down" ? "down" : "up");
      if (answer === "down") {
        this.#later(everyMs, () => {
          if (isStill()) this.#untilProbed(row, { breaker, isStill, everyMs });
        });
      }
    });
  }

  #close(
    row: Row,
    { breaker, key, now, ticket = NO_TICKET }: {
      breaker: CircuitBreaker;
      key?: string;
      now: number;
      ticket: BreakerTicket | undefined;
    },
  ): void {
    if (!breaker.wasTrial(ticket)) return;
    breaker.close(now);
    const kept = key === undefined ? row : row.byKey.get(key);
    kept?.outcomes.clear();
    kept?.outcomes.add(false, now);
    row.unreachable = 0;
    row.streak = new FailureStreak();
    row.endedStreak = undefined;
    this.#changed(row, { change: "closed", key, forMs: 0 });
  }

  /** A limit is one of the key's requests, until another key meets it as well. */
  #cool(row: Row, { pass: { key }, forMs, now }: { pass: Permit; forMs: number; now: number }): void {
    const until = now + Math.min(forMs, MOST_COOL_MS);
    for (const [other, { coolUntil }] of row.byKey) {
      if (other !== key && coolUntil > now) row.coolUntil = Math.max(row.coolUntil, Math.min(until, coolUntil));
    }
    const own = this.#ownRow(row, { key, now });
    own.coolUntil = Math.max(own.coolUntil, until);
  }

  #ownRow({ byKey }: Row, { key, now }: { key: string; now: number }): KeyRow {
    const known = byKey.get(key);
    if (known !== undefined) return known;
    if (byKey.size >= MOST_KEYS) {
      const isIdle = ({ breaker, coolUntil }: KeyRow) => !breaker.isOpen && coolUntil <= now;
      const [oldest] = [...byKey].find(([, row]) => isIdle(row)) ?? [...byKey][0] ?? [];
      if (oldest !== undefined) byKey.delete(oldest);
    }
    const own = {
      breaker: new CircuitBreaker(),
      outcomes: new OutcomeWindow(this.#breaker.windowMs),
      coolUntil: 0,
    };
    byKey.set(key, own);
    return own;
  }

  readonly #jittered = (ms: number): number => ms * (1 - JITTER + 2 * JITTER * this.#options.random());

  #changed(
    { place }: { place: TargetKey },
    { change, key, forMs }: Pick<HealthChange, "change" | "forMs"> & { key: string | undefined },
  ): void {
    const scope = key === undefined ? { scope: "model" as const } : { scope: "client_key" as const, key };
    this.#options.changed?.({ upstream: place.upstream, model: targetModelName(place), change, ...scope, forMs });
  }

  #later(ms: number, run: () => void): () => void {
    const { later = realTimer } = this.#options;
    const cancel = later(ms, () => {
      this.#timers.delete(cancel);
      run();
    });
    this.#timers.add(cancel);
    return () => {
      this.#timers.delete(cancel);
      cancel();
    };
  }

  measure(place: TargetKey, { firstMs, tokensPerSecond }: { firstMs?: number; tokensPerSecond?: number }): void {
    const now = this.#options.monotonic();
    const row = this.#rows.of(place);
    if (firstMs !== undefined) row.firstMs.add(firstMs, now);
    if (tokensPerSecond !== undefined) row.tokensPerSecond.add(tokensPerSecond, now);
  }

  speed(place: TargetKey): TargetSpeed {
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
      const { state, until, keys } = this.#state(row, now);
      return {
        upstream: row.place.upstream,
        model: targetModelName(row.place),
        state,
        ...(keys !== undefined && { keys }),
        ...(until > now && { until: Math.round(this.#options.now() + until - now) }),
        ...row.outcomes.read(now),
        consecutive_failures: row.streak.total,
        ...(first_ms !== undefined && { first_ms }),
        ...(tokens_per_second !== undefined && { tokens_per_second }),
      };
    });
  }

  #state(row: Row, now: number): { state: HealthRow["state"]; until: number; keys?: number } {
    const check = this.#keys.get(row.place.upstream);
    if (check?.isRefused === true) return { state: "quarantined", until: check.nextAt };
    const all = stateOf(row, now);
    if (all.state !== "closed") return all;
    const [worst, ...others] = [...row.byKey.values()].map((own) => stateOf(own, now))
      .filter(({ state }) => state !== "closed")
      .sort((a, b) => SEVERITY.indexOf(b.state) - SEVERITY.indexOf(a.state));
    if (worst === undefined) return all;
    return { ...worst, keys: 1 + others.filter(({ state }) => state === worst.state).length };
  }

  #newRow({ upstream, model, row }: TargetKey): Row {
    return {
      place: { upstream, model, ...(row !== undefined && { row }) },
      breaker: new CircuitBreaker(),
      failedTrial: undefined,
      outcomes: new OutcomeWindow(this.#breaker.windowMs),
      byKey: new Map(),
      streak: new FailureStreak(),
      lastSuccess: undefined,
      endedStreak: undefined,
      firstMs: new SpeedSamples(),
      tokensPerSecond: new SpeedSamples(),
      unreachable: 0,
      coolUntil: 0,
    };
  }

  #keyOf({ upstream, model }: TargetKey): KeyCheck {
    let key = this.#keys.get(upstream);
    if (key === undefined) {
      key = new KeyCheck({
        probe: () => this.#probe(upstream, this.#closing.signal),
        monotonic: this.#options.monotonic,
        jitter: this.#jittered,
        later: (ms, run) => this.#later(ms, run),
        changed: (change, forMs) => this.#options.changed?.({ upstream, model, change, scope: "upstream", forMs }),
      });
      this.#keys.set(upstream, key);
    }
    return key;
  }
}

/** The ticket of a request that passed before there was a breaker. */
const NO_TICKET: BreakerTicket = { epoch: 0 };

/** States of a breaker and of a limit, from the best to the worst. */
const SEVERITY: readonly HealthRow["state"][] = ["closed", "half_open", "cooling", "open"];

/** The failure of a trial opens the breaker again; one that came early leaves the open time as it is. */
function isDecisive(
  breaker: CircuitBreaker,
  { ticket = NO_TICKET, now }: { ticket: BreakerTicket | undefined; now: number },
): boolean {
  return breaker.isTrial(ticket) && now >= breaker.until;
}

function isOf(breaker: CircuitBreaker, ticket: BreakerTicket = NO_TICKET): boolean {
  return breaker.isCurrent(ticket);
}

function stateOf(
  { breaker, coolUntil }: Pick<KeyRow, "breaker" | "coolUntil">,
  now: number,
): { state: HealthRow["state"]; until: number } {
  if (breaker.isOpen) return { state: breaker.until > now ? "open" : "half_open", until: breaker.until };
  return { state: coolUntil > now ? "cooling" : "closed", until: coolUntil };
}

function realTimer(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms);
  Deno.unrefTimer(timer);
  return () => clearTimeout(timer);
}
