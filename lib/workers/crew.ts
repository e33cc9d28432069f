/** The workers of a process, and what their owner does for them: it supplies, sums up, starts again, and ends them. */
import { type EndTimes, type Outcome, within } from "../cli/shutdown.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway, IsolateHealth, LogEntry, Whole } from "../gateway.ts";
import { describeCause } from "../server/cause.ts";
import { isolateHealth } from "../request/health.ts";
import { metricsText } from "../request/metrics.ts";
import type { Isolate, OwnerState, Place } from "./contract.ts";
import type { OwnerDoors } from "./doors.ts";
import { hire, type Member } from "./member.ts";
import { countersOf, sumMetrics } from "./metrics.ts";
import { packConfig } from "./packed.ts";

/** Time between two looks at the workers, in milliseconds. */
const LOOK_MS = 1_000;

/** Looks at which a worker may say nothing before its event loop counts as stuck. */
const MOST_SILENT = 30;

/** How long a worker may take to answer what an operator asks, in milliseconds. */
const ANSWER_MS = 2_000;

/** How long a worker may take to obey another configuration, in milliseconds. */
const RENEW_MS = 10_000;

/** Pause before a worker is started again, in milliseconds: at first, and at most. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;

/** A worker that has served for so long is started again as if for the first time, in milliseconds. */
const STEADY_MS = 60_000;

/** How long workers may take for their books when nobody wants to wait, in milliseconds. */
const CUT_MS = 150;

/** What a crew is made of. */
export interface CrewParts {
  workers: number;
  /** The owner's gateway of the moment: its configuration, its store, its limits. */
  gateway: () => Gateway;
  doors: OwnerDoors;
  /** Takes lines of the log. */
  write: (line: string) => void;
  log: (entry: LogEntry) => void;
  /** Another module than that of the workers. */
  module?: URL;
  /** Time between two looks at the workers, in milliseconds; absent: a second. */
  lookMs?: number;
}

/** The workers of a process. */
export interface Crew extends Whole {
  /** Starts all of them, on one port. @throws {ListenError} where they cannot listen */
  start(): Promise<Place>;
  /** Tells all of them the configuration in force. Resolves when they obey. */
  renew(): Promise<void>;
  /**
   * Resolves when the event loop of a worker is stuck. No isolate can end another one that does not turn, and it goes on to
   * take its share of the connections: the process has to end, and to be started anew.
   */
  readonly stuck: Promise<void>;
  /** Ends all of them in good order, within these times. `second` resolves where nobody wants to wait. */
  end(times: EndTimes, second: Promise<void>): Promise<Outcome>;
}

/** Makes a crew. It is to be started. */
export function createCrew(parts: CrewParts): Crew {
  return new WorkerCrew(parts);
}

class WorkerCrew implements Crew {
  readonly #parts: CrewParts;
  readonly #members = new Map<number, Member>();
  readonly #pauses = new Map<number, number>();
  #place: Place | undefined;
  #state = "";
  #looking: ReturnType<typeof setInterval> | undefined;
  readonly #restarts = new Set<ReturnType<typeof setTimeout>>();
  #restarted = 0;
  /** What workers that were lost had counted, as far as it was ever told. */
  #gone = "";
  #ending = false;
  readonly #stuck = Promise.withResolvers<void>();

  constructor(parts: CrewParts) {
    this.#parts = parts;
  }

  get stuck(): Promise<void> {
    return this.#stuck.promise;
  }

  async start(): Promise<Place> {
    try {
      // The first one finds the port for all.
      const place = await this.#begin(1);
      this.#place = place;
      const others = Array.from({ length: this.#parts.workers - 1 }, (_, index) => index + 2);
      await Promise.all(others.map((number) => this.#begin(number)));
      this.#looking = setInterval(() => this.#look(), this.#parts.lookMs ?? LOOK_MS);
      return place;
    } catch (error) {
      this.#ending = true;
      for (const member of this.#members.values()) member.leave(ended());
      throw error;
    }
  }

  async #begin(number: number): Promise<Place> {
    const { gateway, workers } = this.#parts;
    const member = hire(number, { ...this.#parts, whole: this, lost: (member, cause) => this.#lose(member, cause) });
    this.#members.set(number, member);
    const { config, reloader } = gateway();
    const status = reloader.status();
    const port = this.#place?.port ?? config.listen.port;
    const place = await member.isolate.start({
      config: packConfig(config),
      status,
      isolates: workers,
      port,
      state: this.#ownerState(),
    });
    member.serves = true;
    member.status = JSON.stringify(status);
    if (JSON.stringify(reloader.status()) !== member.status) await this.#renew(member);
    return place;
  }

  /** A worker has ended, or hangs. What its requests have taken is given back, and another one takes its place. */
  #lose(member: Member, cause: unknown): void {
    const { number } = member;
    if (this.#members.get(number) !== member) return;
    this.#members.delete(number);
    this.#gone = sumMetrics([this.#gone, countersOf(member.lastMetrics)]);
    member.leave(member.serves ? ended() : new Error(`Cannot start worker ${number}`, { cause }));
    this.#parts.log({ level: "error", event: "worker_lost", worker: number, ...describeCause(cause) });
    void this.#settle(member);
    if (!this.#ending && this.#place !== undefined) this.#startAgain(member);
  }

  async #settle({ number, dues }: Member): Promise<void> {
    const { log } = this.#parts;
    try {
      const requests = await dues.settle();
      if (requests > 0) log({ level: "warn", event: "requests_lost", worker: number, requests });
    } catch (error) {
      // What is held ends with its lease.
      log({ level: "error", event: "worker_not_settled", worker: number, ...describeCause(error) });
    }
  }

  #startAgain({ number, since }: Member): void {
    const isSteady = performance.now() - since >= STEADY_MS;
    const pauseMs = isSteady ? FIRST_PAUSE_MS : this.#pauses.get(number) ?? FIRST_PAUSE_MS;
    this.#pauses.set(number, Math.min(LONGEST_PAUSE_MS, pauseMs * 2));
    const timer = setTimeout(async () => {
      this.#restarts.delete(timer);
      this.#restarted++;
      try {
        await this.#begin(number);
        this.#parts.log({ level: "info", event: "worker_started", worker: number });
      } catch (error) {
        const member = this.#members.get(number);
        if (member !== undefined) this.#lose(member, error);
      }
    }, pauseMs);
    this.#restarts.add(timer);
  }

  #look(): void {
    const state = this.#ownerState();
    const text = JSON.stringify(state);
    const status = JSON.stringify(this.#parts.gateway().reloader.status());
    for (const member of this.#members.values()) {
      if (text !== this.#state && member.serves) member.told.learn(state);
      if (status !== member.status && member.serves) void this.#renew(member);
      if (++member.silent > MOST_SILENT) {
        this.#ending = true;
        this.#lose(member, new Error("Its event loop does not turn any more"));
        this.#stuck.resolve();
      } else void member.isolate.ping()?.then(() => member.silent = 0, () => {});
    }
    this.#state = text;
  }

  #ownerState(): OwnerState {
    const { limiter, store } = this.#parts.gateway();
    const reach = store.shared?.reach();
    const { takes } = store.ledger;
    const { othersHeardMs } = limiter;
    return {
      limitsHealthy: limiter.healthy,
      // Only where it matters: what changes all the time would be sent all the time.
      ...(reach?.up === false && othersHeardMs !== undefined && { othersHeardMs }),
      ...(takes !== undefined && { ledgerTakes: takes }),
      ...(reach !== undefined && { reach }),
    };
  }

  async renew(): Promise<void> {
    await Promise.all(this.#serving().map((member) => this.#renew(member)));
  }

  async #renew(member: Member): Promise<void> {
    const { config, reloader } = this.#parts.gateway();
    const status = reloader.status();
    member.status = JSON.stringify(status);
    try {
      const renewed = Promise.resolve(member.isolate.renew(packConfig(config), status));
      if (!await within(RENEW_MS, renewed)) throw new Error("It does not obey the configuration");
    } catch (error) {
      // It must not go on with what is not in force any more.
      this.#lose(member, error);
    }
  }

  async metrics(): Promise<string> {
    const { gateway } = this.#parts;
    const serving = this.#serving();
    const texts = await this.#ask(async (isolate, member) => member.lastMetrics = await isolate.metrics());
    // One that says nothing now is not forgotten: counters never go back.
    const silent = serving.filter((_, index) => texts[index] === undefined).map(({ lastMetrics }) => lastMetrics);
    return sumMetrics([
      metricsText(gateway()),
      this.#gone,
      ...texts.filter((text) => text !== undefined),
      ...silent,
    ]);
  }

  workers(): { serving: number; restarts: number } {
    return { serving: this.#serving().length, restarts: this.#restarted };
  }

  async health(): Promise<IsolateHealth[]> {
    const { gateway } = this.#parts;
    const all = await Promise.all([isolateHealth(gateway()), this.#ask((isolate) => isolate.health())]);
    return all.flat().filter((health) => health !== undefined);
  }

  #serving(): Member[] {
    return [...this.#members.values()].filter(({ serves }) => serves);
  }

  /** Asks all that serve; `undefined` for those that do not answer in time. */
  #ask<T>(what: (isolate: Isolate, member: Member) => Promise<T> | T): Promise<(T | undefined)[]> {
    return Promise.all(
      this.#serving().map(async (member) => {
        try {
          const answer = Promise.resolve(what(member.isolate, member));
          return await within(ANSWER_MS, answer) ? await answer : undefined;
        } catch (error) {
          this.#parts.log({ level: "warn", event: "worker_silent", worker: member.number, ...describeCause(error) });
          return undefined;
        }
      }),
    );
  }

  async end(times: EndTimes, second: Promise<void>): Promise<Outcome> {
    const { log } = this.#parts;
    this.#ending = true;
    clearInterval(this.#looking);
    for (const timer of this.#restarts) clearTimeout(timer);
    const running = (await this.#ask((isolate) => isolate.running())).filter((count) => count !== undefined);
    const sum = (counts: readonly number[]) => counts.reduce((all, count) => all + count, 0);
    log({
      level: "info",
      event: "stopping",
      texts: sum(running.map(({ text }) => text)),
      images: sum(running.map(({ images }) => images)),
    });
    const members = this.#serving();
    const ends = Promise.all(members.map(({ isolate }) => isolate.end(times).catch(() => "late" as const)));
    const all = ends.then((outcomes): Outcome => outcomes.includes("late") ? "late" : "drained");
    const outcome = await Promise.race([all, second.then(() => "cut" as const)]);
    if (outcome === "cut") {
      for (const { told } of members) told.cut();
      await within(CUT_MS, ends);
    }
    for (const member of this.#members.values()) member.leave(ended());
    await within(CUT_MS, Promise.all([...this.#members.values()].map((member) => this.#settle(member))));
    log({ level: "info", event: "stopped", outcome });
    return outcome;
  }
}

/** What whoever waits for a worker is told when it has ended. */
function ended(): GatewayError {
  return new GatewayError("overloaded", "Cannot finish this request: a part of the gateway has ended; try again");
}
