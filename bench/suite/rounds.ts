/** Measures targets in turns, round by round, so that disturbances of the machine affect all of them alike. */
import type { JobResult, LoadJob } from "./load.ts";
import type { Peer } from "./peer.ts";
import { cpuNs } from "./proc.ts";
import type { Running } from "./running.ts";
import type { Scenario } from "./scenarios.ts";

/** Medians over the rounds. */
export interface Figures {
  /** CPU time of the target in microseconds: per request, or per event with text where the scenario has such. */
  cpuUs: number;
  /** Time to the end of an answer, in microseconds; p99 is over all rounds together. */
  p50Us: number;
  p99Us: number;
  /** Time to the first byte of the answer's body, in microseconds. */
  firstP50Us: number;
  /** Time from the sending of an event to its arrival, in microseconds; NaN without timed events. */
  delayP50Us: number;
  requestsPerSecond: number;
  /** Share of its core that the target used: below 0.9 something else was the limit. */
  busy: number;
  /** CPU time per request or event in every round. */
  rounds: number[];
}

/** Figures by the target's name, or the reason why there are none. */
export type Measured = Record<string, Figures | { failed: string }>;

/** Number and length of the rounds. */
export interface Pace {
  rounds: number;
  /** Length of a round without pauses, and of a round at a fixed rate, in milliseconds. */
  roundMs: number;
  calmMs: number;
}

/** Time after a round for the target's deferred work, in milliseconds. It is part of the cost. */
const AFTERWORK_MS = 250;
/** Work before a round that does not count, in milliseconds. */
const LEAD_MS = 400;

/** Measures one scenario on all targets. A target that fails is left out from then on. */
export async function measure(
  scenario: Scenario,
  { targets, load, pace }: { targets: readonly Running[]; load: Peer; pace: Pace },
): Promise<Measured> {
  const rounds = new Map<string, Round[]>();
  const measured: Measured = {};
  // The first round warms up.
  for (let number = 0; number <= pace.rounds; number++) {
    // The order differs in each round: otherwise a target would always be affected by the same predecessor.
    const first = number % targets.length;
    for (const running of [...targets.slice(first), ...targets.slice(0, first)]) {
      const { name } = running.target;
      if (name in measured) continue;
      try {
        const round = await playRound(scenario, { running, load, pace, first: number === 0 });
        if (round !== undefined && number > 0) rounds.set(name, [...rounds.get(name) ?? [], round]);
      } catch (error) {
        measured[name] = { failed: String(error) };
      }
    }
  }
  for (const [name, played] of rounds) measured[name] ??= figuresOf(scenario, played);
  return measured;
}

/**
 * Opens the connections of a scenario to a target; `undefined` if the target cannot do it.
 * @param options `untried`: no connection is tested by a request
 */
export async function openConnections(
  scenario: Scenario,
  { running, load, untried = false }: { running: Running; load: Peer; untried?: boolean },
): Promise<JobResult | undefined> {
  const { client, size, stream, turns, connections } = scenario;
  const entrance = running.target.entrance(scenario);
  if (entrance === undefined) return undefined;
  const { path, headers, model } = entrance;
  const ask = { protocol: client, size, model, stream, ...(turns !== undefined && { turns }) };
  return await tell(load, { kind: "open", port: running.port, path, headers, ask, connections, untried });
}

interface Round extends JobResult {
  cpuUs: number;
}

/** Minimum number of warm-up requests of each scenario, and maximum time for them, in milliseconds. */
export interface WarmUp {
  requests: number;
  ms: number;
}

/**
 * Warms a target up: V8 needs tens of thousands of requests to compile it. A target that fails here fails in the
 * rounds, too.
 */
export async function warmUp(
  scenario: Scenario,
  { running, load, until }: { running: Running; load: Peer; until: WarmUp },
): Promise<void> {
  const begin = performance.now();
  try {
    if (await openConnections(scenario, { running, load }) === undefined) return;
    for (let requests = 0; requests < until.requests && performance.now() - begin < until.ms;) {
      requests += (await tell(load, { kind: "closed", ms: 500 })).requests;
    }
  } catch {
    // The rounds report the error.
  }
}

/** Sends a job to the clients. @throws {Error} with the clients' own message */
export async function tell(load: Peer, job: LoadJob): Promise<JobResult> {
  const done: JobResult = JSON.parse(await load.ask(JSON.stringify(job)));
  if (done.failed !== undefined) throw new Error(done.failed);
  return done;
}

async function playRound(
  scenario: Scenario,
  { running, load, pace, first }: { running: Running; load: Peer; pace: Pace; first: boolean },
): Promise<Round | undefined> {
  const { perSecond, once, events } = scenario;
  const opened = await openConnections(scenario, { running, load, untried: !first });
  if (opened === undefined) return undefined;
  // An answer that is too short shows that the target has not done the work.
  const found = (opened.sample ?? "").split(/^data:/m).length - 1;
  if (first && events !== undefined && found < events) throw new Error(`${found} of ${events} events came`);
  // A process that has been idle while others had their turns is slower at first.
  if (perSecond === undefined && once !== true) await tell(load, { kind: "closed", ms: LEAD_MS });
  const before = await cpuNs(running.pid);
  const done = await tell(load, jobOf(scenario, pace));
  await new Promise((resolve) => setTimeout(resolve, AFTERWORK_MS));
  return { ...done, cpuUs: (await cpuNs(running.pid) - before) / 1000 };
}

function jobOf({ play, perSecond, once }: Scenario, { roundMs, calmMs }: Pace): LoadJob {
  if (play === "timed") return { kind: "timed" };
  if (perSecond !== undefined) return { kind: "rate", ms: calmMs, perSecond };
  return { kind: "closed", ms: once === true ? 0 : roundMs };
}

function figuresOf({ events = 1 }: Scenario, played: readonly Round[]): Figures {
  const of = (value: (round: Round) => number) => median(played.map(value));
  const costs = played.map(({ cpuUs, requests }) => cpuUs / requests / events);
  return {
    cpuUs: median(costs),
    p50Us: of(({ totalUs }) => median(totalUs)),
    p99Us: quantile(played.flatMap(({ totalUs }) => totalUs), 0.99),
    firstP50Us: of(({ firstUs }) => median(firstUs)),
    delayP50Us: of(({ delaysUs = [] }) => median(delaysUs)),
    requestsPerSecond: of(({ requests, wallMs }) => requests / wallMs * 1000),
    busy: of(({ cpuUs, wallMs }) => cpuUs / 1000 / wallMs),
    rounds: costs,
  };
}

/** The median; NaN for an empty list. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value below which this share of the values lies; NaN for an empty list. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}
