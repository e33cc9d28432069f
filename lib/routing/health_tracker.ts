/**
 * Tracks the health of all targets in the memory of one process: grants permits, counts outcomes, and probes upstreams.
 */
import type { BreakerScope } from "./circuit_breaker.ts";
import {
  type BreakerOptions,
  type HealthChange,
  type HealthOptions,
  type HealthRow,
  type Permit,
  type PermitDecision,
  type PermitRequest,
  type TargetKey,
  targetModelName,
  targetName,
  type TargetOutcome,
  type TargetSpeed,
  type Unavailability,
  type UpstreamProbe,
} from "./health.ts";
import { KeyCheck } from "./key_check.ts";
import { startTimer } from "../start_timer.ts";
import { TargetHealth } from "./target_health.ts";
import type { RetryBudget } from "./target_statistics.ts";

/** Share by which times vary at random, so that several gateways do not retry at the same moment. */
const JITTER = 0.2;
/** Pause of a target that is at its limit and names no time, in milliseconds. */
const DEFAULT_COOL_MS = 1_000;

/** Tracks the health of targets. Without outcomes at first. */
export class HealthTracker {
  readonly #options: HealthOptions;
  #breaker: BreakerOptions;
  #probe: UpstreamProbe;
  readonly #targets = new Map<string, TargetHealth>();
  /** The same by object, so that the name of each target is built only once. */
  readonly #byObject = new WeakMap<TargetKey, TargetHealth>();
  /** Targets of each requested model, by model id. */
  readonly #models = new Map<string, readonly TargetKey[]>();
  /** State of the gateway's keys at the upstreams, by upstream name. */
  readonly #keyChecks = new Map<string, KeyCheck>();
  readonly #timers = new Set<() => void>();
  readonly #closing = new AbortController();

  constructor(options: HealthOptions) {
    this.#options = options;
    this.#breaker = options.breaker;
    this.#probe = options.probe ?? (() => undefined);
  }

  /**
   * Applies another configuration, and forgets targets that no model has any more. Counted outcomes stay unless the
   * window changes. Refused keys are probed again.
   */
  reconfigure(
    { breaker, models, probe }: {
      breaker: BreakerOptions;
      models: readonly { readonly targets: readonly TargetKey[] }[];
      probe?: UpstreamProbe;
    },
  ): void {
    const targets = models.flatMap((model) => model.targets);
    const configured = new Set(targets.map(targetName));
    for (const [name, health] of this.#targets) if (!configured.has(name)) this.#remove(name, health);
    // A target that an earlier configuration had, too, is new.
    for (const target of targets) if (this.#byObject.get(target)?.isRemoved) this.#byObject.delete(target);
    const upstreams = new Set(targets.map(({ upstream }) => upstream));
    for (const [upstream, check] of this.#keyChecks) {
      if (upstreams.has(upstream)) continue;
      this.#keyChecks.delete(upstream);
      check.remove();
    }
    if (breaker.windowMs !== this.#breaker.windowMs) {
      for (const target of this.#targets.values()) target.restart(breaker.windowMs);
    }
    this.#breaker = breaker;
    this.#models.clear();
    if (probe === undefined) return;
    this.#probe = probe;
    this.renewKeys();
  }

  #remove(name: string, health: TargetHealth): void {
    this.#targets.delete(name);
    health.isRemoved = true;
    for (const scope of health.openScopes()) {
      this.#changed(health, scope, { change: "closed", forMs: 0, isRemoved: true });
    }
  }

  /** Probes refused keys at once. */
  renewKeys(): void {
    for (const check of this.#keyChecks.values()) check.renew();
  }

  /** Cancels timers and probes. */
  close(): void {
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    this.#probe = () => undefined;
    this.#closing.abort();
  }

  #healthOf(target: TargetKey): TargetHealth {
    let health = this.#byObject.get(target);
    if (health !== undefined) return health;
    const name = targetName(target);
    health = this.#targets.get(name);
    if (health === undefined) {
      health = new TargetHealth(target, this.#breaker.windowMs);
      this.#targets.set(name, health);
      // Its permits are still reported when a reload has removed the target, and must not add it again.
      this.#byObject.set(health.target, health);
    }
    this.#byObject.set(target, health);
    return health;
  }

  /** Returns the budget of retries at a target, which all requests share. */
  retryBudget(target: TargetKey): RetryBudget {
    return this.#healthOf(target).retryBudget;
  }

  /** Requests a permit for one attempt. */
  acquirePermit({ model, target, key, early }: PermitRequest): PermitDecision {
    const now = this.#options.monotonic();
    const health = this.#healthOf(target);
    if (this.#models.get(model.id) !== model.targets) this.#models.set(model.id, model.targets);
    const unavailable = this.#unavailability(health, { key, now, early });
    if (unavailable === undefined) return { granted: true, permit: health.enter(key, now) };
    health.noteRefusal(key, { now, early });
    return { granted: false, ...unavailable };
  }

  /** Returns why a permit would be refused now; `undefined` if it would be granted. */
  unavailability(target: TargetKey, key: string): Unavailability | undefined {
    return this.#unavailability(this.#healthOf(target), { key, now: this.#options.monotonic() });
  }

  /**
   * Returns true if a target is available and need not be tried after others. After its breaker opened, a target is up
   * only when a probe was answered.
   */
  isUp(target: TargetKey, key: string): boolean {
    const now = this.#options.monotonic();
    const health = this.#healthOf(target);
    return this.#unavailability(health, { key, now }) === undefined && health.mayLead(key, now);
  }

  /** Returns true if this key, or several other keys, had failures since the target's last success. */
  isFailing(target: TargetKey, key: string): boolean {
    const { streak } = this.#healthOf(target);
    return streak.of(key) > 0 || streak.withoutWorstKey > 0;
  }

  #unavailability(
    health: TargetHealth,
    { key, now, early }: { key: string; now: number; early?: boolean | undefined },
  ): Unavailability | undefined {
    const { coolMs, openMs } = health.waits(key, { now, early });
    const check = this.#keyChecks.get(health.target.upstream);
    const quarantineMs = check?.isRefused === true ? Math.max(1, check.nextAt - now) : 0;
    const waitMs = Math.max(coolMs, openMs, quarantineMs);
    if (waitMs === 0) return undefined;
    if (quarantineMs > 0) return { why: "quarantined", waitMs };
    return { why: openMs > 0 ? "open" : "cooling", waitMs };
  }

  /**
   * Counts an outcome. An answer that begins and then breaks off is reported twice, and counts as a failure. The outcome
   * at a target that a reload has removed does not count: nothing would ever end a condition that it began.
   */
  report(permit: Permit, outcome: TargetOutcome): void {
    const now = this.#options.monotonic();
    const health = this.#healthOf(permit.target);
    if (health.isRemoved) return;
    if (outcome.type !== "neither") health.recent.add(permit, outcome.type === "success");
    switch (outcome.type) {
      case "success":
        for (const scope of health.succeed(permit, now)) this.#changed(health, scope, { change: "closed", forMs: 0 });
        break;
      case "limited":
        health.cool(permit.key, { forMs: outcome.retryAfterMs ?? DEFAULT_COOL_MS, now });
        break;
      case "busy":
        if (outcome.retryAfterMs !== undefined) health.cool(permit.key, { forMs: outcome.retryAfterMs, now });
        this.#fail(health, permit, { isUnreachable: false, now });
        break;
      case "failure":
      case "unreachable":
        this.#fail(health, permit, { isUnreachable: outcome.type === "unreachable", now });
        break;
      case "refused":
        this.#keyCheckOf(permit.target).suspect();
    }
    if (permit.isTrial) health.giveBack(permit, now);
  }

  #fail(health: TargetHealth, permit: Permit, failure: { isUnreachable: boolean; now: number }): void {
    const { reopened, suspects } = health.fail(permit, { ...failure, options: this.#breaker });
    for (const scope of reopened) this.#open(health, scope, failure.now);
    const scope = suspects.find(({ key }) => this.#mayOpen(health.target, key));
    if (scope !== undefined) this.#open(health, scope, failure.now);
  }

  /**
   * Returns true if a breaker may open. Because the requests may be at fault, failures make at most half of a model's
   * targets unavailable, or the only one. Targets whose upstream refuses the gateway's key do not count.
   */
  #mayOpen(target: TargetKey, key?: string): boolean {
    const name = targetName(target);
    for (const targets of this.#models.values()) {
      const others = new Map(targets.map((other) => [targetName(other), other]));
      const maxOpen = Math.max(1, Math.floor(others.size / 2));
      if (!others.delete(name)) continue;
      const open = [...others.values()].filter((other) =>
        this.#keyChecks.get(other.upstream)?.isRefused !== true && this.#healthOf(other).isOpen(key)
      );
      if (open.length >= maxOpen) return false;
    }
    return true;
  }

  #open(health: TargetHealth, scope: BreakerScope, now: number): void {
    const { openMs, windowMs } = this.#breaker;
    const { breaker } = scope;
    const forMs = breaker.open(now, { openMs, restMs: windowMs }, this.#withJitter);
    this.#changed(health, scope, { change: "opened", forMs });
    const { epoch } = breaker;
    const isCurrent = () => breaker.epoch === epoch && !health.isRemoved;
    this.#later(() => {
      if (!isCurrent()) return;
      this.#changed(health, scope, { change: "half_open", forMs: 0 });
      this.#probeUntilUp(health, { breaker, isCurrent, everyMs: forMs });
    }, forMs);
  }

  /** Probes the upstream of a half-open target until it answers. */
  #probeUntilUp(
    health: TargetHealth,
    { breaker, isCurrent, everyMs }: {
      breaker: BreakerScope["breaker"];
      isCurrent: () => boolean;
      everyMs: number;
    },
  ): void {
    const probing = this.#keyCheckOf(health.target).probe();
    if (probing === undefined) return breaker.probed("up");
    void probing.then((answer) => {
      if (!isCurrent()) return;
      breaker.probed(answer === "down" ? "down" : "up");
      if (answer === "down") {
        this.#later(() => {
          if (isCurrent()) this.#probeUntilUp(health, { breaker, isCurrent, everyMs });
        }, everyMs);
      }
    });
  }

  readonly #withJitter = (ms: number): number => ms * (1 - JITTER + 2 * JITTER * this.#options.random());

  #changed(
    { target }: TargetHealth,
    { key }: BreakerScope,
    change: Pick<HealthChange, "change" | "forMs" | "isRemoved">,
  ): void {
    const scope = key === undefined ? { scope: "model" as const } : { scope: "client_key" as const, key };
    this.#options.changed?.({ upstream: target.upstream, model: targetModelName(target), ...scope, ...change });
  }

  #later(run: () => void, ms: number): () => void {
    // A probe may be answered after `close`.
    if (this.#closing.signal.aborted) return () => {};
    const { later = startTimer } = this.#options;
    const cancel = later(() => {
      this.#timers.delete(cancel);
      run();
    }, ms);
    this.#timers.add(cancel);
    return () => {
      this.#timers.delete(cancel);
      cancel();
    };
  }

  recordSpeed(target: TargetKey, { firstMs, tokensPerSecond }: { firstMs?: number; tokensPerSecond?: number }): void {
    const now = this.#options.monotonic();
    const health = this.#healthOf(target);
    if (firstMs !== undefined) health.firstMs.add(firstMs, now);
    if (tokensPerSecond !== undefined) health.tokensPerSecond.add(tokensPerSecond, now);
  }

  speed(target: TargetKey): TargetSpeed {
    const { firstMs, tokensPerSecond } = this.#healthOf(target);
    const now = this.#options.monotonic();
    return {
      firstMs: (share) => firstMs.percentile(share, now),
      tokensPerSecond: (share) => tokensPerSecond.reached(share, now),
    };
  }

  /** Returns the states of all targets that were used. */
  snapshot(): HealthRow[] {
    const now = this.#options.monotonic();
    return [...this.#targets.values()].map((health) => {
      const first_ms = health.firstMs.percentile(0.5, now);
      const tokens_per_second = health.tokensPerSecond.percentile(0.5, now);
      const check = this.#keyChecks.get(health.target.upstream);
      const { state, until, keys } = check?.isRefused === true
        ? { state: "quarantined" as const, until: check.nextAt }
        : health.state(now);
      return {
        upstream: health.target.upstream,
        model: targetModelName(health.target),
        state,
        awaits_trial: health.awaitsTrial,
        ...(keys !== undefined && { keys }),
        ...(until > now && { until: Math.round(this.#options.now() + until - now) }),
        ...health.all.outcomes.read(now),
        consecutive_failures: health.streak.total,
        ...health.recent.count(),
        ...(first_ms !== undefined && { first_ms }),
        ...(tokens_per_second !== undefined && { tokens_per_second }),
      };
    });
  }

  #keyCheckOf({ upstream, model }: TargetKey): KeyCheck {
    const existing = this.#keyChecks.get(upstream);
    if (existing !== undefined) return existing;
    const check = new KeyCheck({
      probe: () => this.#probe(upstream, this.#closing.signal),
      monotonic: this.#options.monotonic,
      jitter: this.#withJitter,
      later: (run, ms) => this.#later(run, ms),
      changed: (change) => this.#options.changed?.({ upstream, model, scope: "upstream", ...change }),
    });
    this.#keyChecks.set(upstream, check);
    return check;
  }
}
