/**
 * Runs one history: the billing of a gateway in a simulated world in which anything may fail at any time, with checks
 * of all invariants.
 */
import { DISCONNECTED } from "../../../lib/request/request_meter.ts";
import type { Limiter } from "../../../lib/limits/limiter.ts";
import { createMemoryLimiter } from "../../../lib/limits/memory_limiter.ts";
import { createLedger, type Ledger } from "../../../lib/billing/ledger.ts";
import { type Arrival, Meter, type MeterParts } from "../../../lib/billing/meter.ts";
import { dayOf } from "../../../lib/store/days.ts";
import type { Ending } from "../../../lib/store/ledger.ts";
import { type Random, seeded } from "../../support/random.ts";
import { Away, borderOf, type Call, limiterBeyond, storeBeyond, watchHolds } from "./calls.ts";
import { Checker, must, Violation } from "./checker.ts";
import { type Clock, createClock, settle } from "./clock.ts";
import { type Disk, openMemoryDisk } from "./disk.ts";
import { type History, historyOf, LAST_STEP, seedOf, writeHistory } from "./history.ts";
import { failBroken, leave, live, type Road } from "./life.ts";
import { LimitsChecker } from "./limits_checker.ts";
import { type Mood, moodOf } from "./mood.ts";
import { checkReports } from "./reports_checker.ts";
import { arrivalOf, sheetOf } from "./shop.ts";
import type { Truth } from "./truth.ts";

/** Replaceable parts of a run: to plant bugs, or to test another store. */
export interface Variant {
  /** Opens the storage that survives crashes; it is closed at the end. Absent: in memory. */
  disk?: (clock: Clock) => Disk | Promise<Disk>;
  ledger?: (ledger: Ledger, clock: Clock) => Ledger;
  limiter?: (limiter: Limiter) => Limiter;
  open?: (parts: MeterParts, arrival: Arrival) => Meter;
  broken?: Road["broken"];
}

/** Results of a run. */
export interface Summary {
  steps: number;
  requests: number;
  crashes: number;
  overruns: number;
  endings: Ending[];
  /** Why requests were refused: codes or kinds of their errors. */
  refusals: string[];
}

/** A run that went wrong: with its history, to be had again. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly history: History;

  constructor({ history, step, cause }: { history: History; step: number; cause: unknown }) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(`HISTORY=${writeHistory(history)} fails at step ${step}: ${why}`, { cause });
    this.history = history;
  }

  /** The violated invariant; absent if something else failed. */
  get invariant(): string | undefined {
    return this.cause instanceof Violation ? this.cause.invariant : undefined;
  }
}

/** Runs a history: that of a seed, or one of which steps were dropped. @throws {Failure} */
export async function simulate(of: number | History, variant: Variant = {}): Promise<Summary> {
  const history = typeof of === "number" ? historyOf(of) : of;
  const clock = createClock();
  const disk = await (variant.disk?.(clock) ?? openMemoryDisk());
  const world = new World(history, { variant, clock, disk });
  try {
    return await world.run();
  } catch (cause) {
    throw new Failure({ history, step: world.steps, cause });
  } finally {
    await world.close();
  }
}

/** A gateway process. */
interface Process {
  parts: MeterParts;
  ledger: Ledger;
  /** The limiter, past the border. */
  near: Limiter;
  limits: LimitsChecker;
  /** Requests wait here until they may continue. */
  gates: (() => void)[];
  calls: Call[];
}

/** Maximum number of calls and gates until everything has ended. */
const LONGEST_END = 5_000;
/** Quarters of a minute until the last lease is over: the longest request, and a minute after it. */
const QUIET_PASSES = 16;
/** Steps between two checks of budgets' rests. */
const LEFT_STEPS = 16;

class World {
  steps = 0;
  readonly #history: History;
  /** Random numbers of the current step. */
  #random: Random;
  readonly #clock: Clock;
  readonly #variant: Variant;
  readonly #mood: Mood;
  readonly #disk: Disk;
  readonly #checker: Checker;
  readonly #truths: Truth[] = [];
  /** Requests without charge whose entries were given up. */
  readonly #excused = new Set<string>();
  #live: Truth[] = [];
  #process: Process;
  #crashes = 0;
  /** Calls that will fail from now on. */
  #outage = 0;
  /** An unexpected error of a request. */
  #thrown: { cause: unknown } | undefined;

  constructor(history: History, { variant, clock, disk }: { variant: Variant; clock: Clock; disk: Disk }) {
    this.#history = history;
    this.#random = seeded(seedOf(history.seed, LAST_STEP));
    this.#variant = variant;
    this.#mood = moodOf(seeded(history.seed));
    this.#clock = clock;
    this.#disk = disk;
    this.#checker = new Checker(this.#disk, clock.monotonic);
    this.#process = this.#start();
  }

  async run(): Promise<Summary> {
    const { seed, steps } = this.#history;
    for (const step of steps) {
      this.#random = seeded(seedOf(seed, step));
      await this.#step();
      await this.#check();
      this.steps++;
    }
    this.#random = seeded(seedOf(seed, LAST_STEP));
    await this.#end();
    const entries = [...this.#checker.entries.values()];
    return {
      steps: this.steps,
      requests: this.#truths.length,
      crashes: this.#crashes,
      overruns: entries.filter(({ overrun }) => overrun > 0n).length,
      endings: entries.map(({ ending }) => ending),
      refusals: this.#truths.flatMap(({ refusal }) => refusal === undefined ? [] : [refusal.code ?? refusal.kind]),
    };
  }

  close(): Promise<void> {
    return this.#disk.close();
  }

  #start(): Process {
    const calls: Call[] = [];
    const cross = borderOf(calls);
    const { now, monotonic, later } = this.#clock;
    const log: MeterParts["log"] = ({ event, request_id }) => {
      if (event === "entry_not_written") this.#excused.add(String(request_id));
    };
    const disk = watchHolds(this.#disk.ledger, this.#checker);
    const plain = createLedger({ store: storeBeyond(disk, cross), now, monotonic, later, log });
    const ledger = this.#variant.ledger?.(plain, this.#clock) ?? plain;
    const memory = createMemoryLimiter({ monotonic });
    const near = this.#variant.limiter?.(memory) ?? memory;
    const limiter = this.#mood.farLimits ? limiterBeyond(near, cross) : near;
    const limits = new LimitsChecker(monotonic, this.#mood.farLimits);
    return { parts: { ledger, limiter, now, monotonic, log }, ledger, near, limits, gates: [], calls };
  }

  async #step(): Promise<void> {
    const random = this.#random;
    const { gates, calls, ledger } = this.#process;
    const dice = random.below(100);
    if (dice < 40 && calls.length > 0) return await this.#call();
    if (dice < 72 && gates.length > 0) return this.#open();
    if (dice < 87 && this.#truths.length < this.#mood.requests) return this.#arrive();
    if (dice < 91) return await this.#pass(random.chance(0.1) ? 15_000 + random.below(50_000) : random.below(1_500));
    if (dice < 95 && this.#live.length > 0) return this.#leave();
    if (dice === 95 && this.#mood.fails > 0) this.#outage = random.below(40);
    if (dice === 96 && this.#mood.jumps) this.#clock.jump((random.below(97) - 24) * random.pick([1_000, 3_600_000]));
    if (dice === 97 && random.chance(this.#mood.crashes * 5)) return await this.#crash();
    if (dice === 98) void ledger.sweep();
    if (dice === 99 && random.chance(0.3)) return await this.#prune();
    if (calls.length > 0) return await this.#call();
    if (gates.length > 0) return this.#open();
  }

  /** Lets a queued call proceed, in any order: it succeeds, it fails, or the process dies before or after it. */
  async #call(): Promise<void> {
    const { calls } = this.#process;
    const [call] = calls.splice(this.#random.below(calls.length), 1);
    if (call === undefined) return;
    if (this.#random.chance(this.#mood.crashes)) {
      if (this.#random.chance(0.5)) await attempt(call);
      return await this.#crash();
    }
    if (this.#outage > 0 || this.#random.chance(this.#mood.fails)) {
      this.#outage--;
      if (call.isVague && this.#random.chance(0.3)) await attempt(call);
      return call.refuse(new Away("Nobody answers"));
    }
    const { value, failure } = await attempt(call);
    if (failure === undefined) call.answer(value);
    else call.refuse(failure);
  }

  #open(): void {
    const { gates } = this.#process;
    const [open] = gates.splice(this.#random.below(gates.length), 1);
    open?.();
  }

  #arrive(): void {
    const random = this.#random;
    const arrival = arrivalOf(random.pick(this.#mood.customers), { random, at: this.#clock.now() });
    const { customer, ware, endpoint, claims, budgets, most, forMs, at, within } = arrival;
    const { parts, gates } = this.#process;
    const number = String(this.#truths.length + 1).padStart(4, "0");
    const open = (id: string) => {
      const arrival = { id, keyId: customer.keyId, group: customer.group, endpoint };
      return this.#variant.open?.(parts, arrival) ?? new Meter(parts, arrival);
    };
    const id = `req_${number}`;
    const meter = open(id);
    const truth: Truth = {
      ...arrival,
      id,
      process: this.#crashes,
      meter,
      answering: { ware, picos: arrival.picos },
      wished: most,
      admitted: false,
      attempts: [],
      sent: 0,
      got: false,
      left: false,
      sawError: false,
      busy: 0,
      over: false,
    };
    this.#truths.push(truth);
    this.#live.push(truth);
    this.#checker.arrived(truth);
    const wish = {
      model: ware.model,
      sheet: sheetOf(ware, { customer, at }),
      limitRequests: claims,
      budgets,
      maxCost: most,
      forMs,
      ...(within !== undefined && { costWithin: (left: bigint) => truth.wished = within(left) }),
    };
    const road: Road = {
      random: seeded(random.below(2 ** 32)),
      gate: () => new Promise((resolve) => gates.push(resolve)),
      monotonic: this.#clock.monotonic,
      broken: this.#variant.broken ?? failBroken,
      again: () => open(`${id}-again`),
    };
    this.#watch(truth, live(truth, { wish, road }));
  }

  #leave(): void {
    const truth = this.#random.pick(this.#live);
    this.#watch(truth, leave(truth));
  }

  #watch(truth: Truth, work: Promise<void>): void {
    truth.busy++;
    const end = () => truth.over = --truth.busy === 0;
    work.then(end, (cause: unknown) => {
      end();
      this.#thrown ??= { cause };
    });
  }

  /** Advances time; requests beyond their duration are ended, except for a few. */
  async #pass(ms: number): Promise<void> {
    await this.#clock.pass(ms);
    const now = this.#clock.monotonic();
    for (const truth of this.#live) {
      const { meter, takenAt = now, forMs } = truth;
      if (now >= takenAt + forMs && this.#random.chance(0.9)) this.#watch(truth, meter.fail(504, DISCONNECTED));
    }
  }

  /** Kills the process with its memory. Calls in progress may still have succeeded. Another process starts. */
  async #crash(): Promise<void> {
    for (const call of this.#process.calls) {
      if (this.#random.chance(0.3)) await attempt(call);
    }
    this.#crashes++;
    this.#clock.stop();
    this.#live = [];
    this.#outage = 0;
    this.#checker.died();
    await this.#disk.crash();
    this.#process = this.#start();
  }

  /** Prunes old days, except those of requests that may still be entered. */
  async #prune(): Promise<void> {
    const { ledger } = this.#disk;
    if (this.#process.ledger.queued > 0) return;
    const open = [...this.#live, ...await ledger.holds()].map(({ at }) => dayOf(at));
    const before = Math.min(...open, dayOf(this.#clock.now()));
    while (await ledger.prune(before, Infinity));
  }

  async #check(): Promise<void> {
    await settle();
    if (this.#thrown !== undefined) throw this.#thrown.cause;
    await this.#checker.readStore();
    this.#checker.checkClients();
    if (this.steps % LEFT_STEPS === 0) await this.#checker.checkLeft();
    for (const truth of this.#live) this.#process.limits.look(truth);
    this.#live = this.#live.filter(({ over }) => !over);
  }

  /** Ends everything, and advances time until nothing can be held. */
  async #end(): Promise<void> {
    Object.assign(this.#mood, { fails: 0, crashes: 0 });
    this.#outage = 0;
    const { ledger, limits, near } = this.#process;
    await this.#drain(() => this.#live.length === 0);
    if (!this.#mood.farLimits) await limits.checkFree(near);
    await this.#drain(flag(ledger.flush()));
    for (let i = 0; i < QUIET_PASSES; i++) {
      await this.#pass(15_000);
      await this.#drain(() => true);
    }
    // Every process does this from time to time, because nothing else tells it about the holds of other processes.
    await this.#drain(flag(ledger.sweep()));
    await limits.checkFree(near);
    await this.#checker.checkEnd({ lastProcess: this.#crashes, excused: this.#excused });
    const { ledger: store } = this.#disk;
    await checkReports(store, {
      entries: [...this.#checker.entries.values()],
      clock: this.#clock,
      random: this.#random,
    });
    await this.#drain(flag(ledger.close()));
    must(this.#clock.timers === 0, "I17", () => `${this.#clock.timers} timers stay`);
  }

  /** Lets all calls take effect until none waits and the condition holds. */
  async #drain(isEnough: () => boolean): Promise<void> {
    const { gates, calls } = this.#process;
    for (let i = 0; i < LONGEST_END; i++) {
      await this.#check();
      this.steps++;
      if (calls.length > 0) await this.#call();
      else if (gates.length > 0) this.#open();
      else if (isEnough()) return;
      else await this.#clock.pass(1_000);
    }
    throw new Violation("I17", `it does not end: ${this.#live.map(({ id }) => id)} go on`);
  }
}

/** Lets a call take effect. @throws {Violation} */
async function attempt({ run }: Call): Promise<{ value?: unknown; failure?: Error }> {
  try {
    return { value: await run() };
  } catch (cause) {
    if (cause instanceof Violation) throw cause;
    return { failure: cause instanceof Error ? cause : new Error(String(cause)) };
  }
}

/** Returns a function that returns whether a promise has settled. */
function flag(promise: Promise<unknown>): () => boolean {
  let isOver = false;
  promise.then(() => isOver = true, () => isOver = true);
  return () => isOver;
}
