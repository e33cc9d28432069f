/** A month of traffic with a few incidents, the same for the same seed and moment. */
import type { Config } from "../../lib/config.ts";
import { DAY_MS } from "../../lib/store/days.ts";
import type { Entry, EntryAttempt } from "../../lib/store/ledger.ts";
import { type Random, seeded } from "../support/random.ts";
import { CLIENTS, type DemoClient, type Hours, keyIdOf } from "./clients.ts";
import { answeredEntry, around, type DemoRequest, failedEntry, type Failure } from "./entries.ts";

/** Days of traffic. */
export const DEMO_DAYS = 30;

const HOUR_MS = 3_600_000;

/** Share of the requests of each hour of the day, by UTC. */
const HOURLY: Readonly<Record<Hours, readonly number[]>> = {
  office: [0, 0, 0, 0, 0, 0, 1, 4, 9, 10, 9, 7, 5, 9, 10, 9, 7, 4, 2, 1, 0, 0, 0, 0],
  day: [2, 1, 1, 1, 1, 2, 4, 6, 8, 9, 9, 8, 8, 8, 9, 9, 8, 8, 7, 6, 6, 5, 4, 3],
  night: [0, 6, 10, 8, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
};

/** An incident at an upstream. */
interface Incident {
  /** Hours before now. */
  from: number;
  until: number;
  upstream: string;
  kind: "overloaded" | "slow";
}

const INCIDENTS: readonly Incident[] = [
  { from: 17 * 24 - 3, until: 17 * 24 - 6, upstream: "borealis", kind: "overloaded" },
  { from: 3 * 24 + 2, until: 3 * 24 - 4, upstream: "meridian", kind: "slow" },
];

/** Options of a month's traffic besides its seed. */
export interface TrafficOptions {
  config: Pick<Config, "models" | "groups">;
  /** End of the month, Unix time in milliseconds. */
  now: number;
  seed?: number;
  /** Factor of the number of requests; absent: 1. */
  volume?: number;
}

/** All entries in the order of their arrival. */
export function monthOfTraffic({ config, now, seed = 1, volume = 1 }: TrafficOptions): Entry[] {
  const random = seeded(seed);
  const models = new Map(config.models.map((model) => [model.id, model]));
  const requests = [
    ...CLIENTS.flatMap((client) => arrivalsOf(client, { now, random, volume })),
    ...runawayAgent(now, random),
    ...exhaustedBudget(now, random),
  ].filter(({ at }) => at < now - 1000).sort((one, other) => one.at - other.at);
  return requests.map(({ at, client, refused }, index) => {
    const model = models.get(pickModel(client, random));
    if (model === undefined) throw new RangeError(`Cannot make traffic of ${client.name}: its model is not configured`);
    const factor = config.groups[client.group]?.price_factor ?? "1";
    const request: DemoRequest = { id: `demo${String(index).padStart(8, "0")}`, at, client, model, factor };
    return refused === undefined ? entryOf(request, { now, random }) : failedEntry(request, refused, random);
  });
}

/** A request that is still to be sent. */
interface DemoArrival {
  at: number;
  client: DemoClient;
  /** It is refused in this way. */
  refused?: Failure;
}

function arrivalsOf(
  client: DemoClient,
  { now, random, volume }: { now: number; random: Random; volume: number },
): DemoArrival[] {
  const { from = DEMO_DAYS, until = -1 } = client.days ?? {};
  const today = Math.floor(now / DAY_MS);
  const arrivals: DemoArrival[] = [];
  for (let day = today - from; day <= today - Math.max(0, until); day++) {
    const weekday = (day + 4) % 7;
    const isWeekend = weekday === 0 || weekday === 6;
    const share = isWeekend ? client.hours === "office" ? 0.06 : 0.55 : 1;
    const growth = 0.75 + 0.5 * (day - today + DEMO_DAYS) / DEMO_DAYS;
    const count = Math.round(around(client.perDay * volume * share * growth, random, 0.15));
    for (let index = 0; index < count; index++) {
      arrivals.push({ at: day * DAY_MS + timeOfDay(client.hours, random), client });
    }
  }
  return arrivals;
}

function timeOfDay(hours: Hours, random: Random): number {
  const weights = HOURLY[hours];
  let left = random.next() * weights.reduce((sum, weight) => sum + weight, 0);
  const hour = weights.findIndex((weight) => (left -= weight) < 0);
  return Math.max(0, hour) * HOUR_MS + random.below(HOUR_MS);
}

function pickModel({ models }: DemoClient, random: Random): string {
  return random.pick(models.flatMap(([id, share]) => Array<string>(share).fill(id)));
}

function entryOf(request: DemoRequest, { now, random }: { now: number; random: Random }): Entry {
  const { at, model, client } = request;
  const upstream = model.targets[0]?.upstream ?? "";
  const incident = INCIDENTS.find(({ from, until, upstream: own }) =>
    own === upstream && at >= now - from * HOUR_MS && at < now - until * HOUR_MS
  );
  if (incident?.kind === "overloaded" && random.chance(0.85)) return overloaded(request, random);
  if (incident?.kind === "slow") {
    if (random.chance(0.2)) return timedOut(request, random);
    return answeredEntry(request, random, { slow: 3.5 });
  }
  if (client.endpoint !== "images.generations" && random.chance(0.006)) {
    return answeredEntry(request, random, { left: true });
  }
  return random.chance(0.012) ? everydayFailure(request, random) : answeredEntry(request, random);
}

/** The first target is overloaded: another answers, or none. */
function overloaded(request: DemoRequest, random: Random): Entry {
  const { model } = request;
  const [first, second] = model.targets;
  const busy = (ms: number): EntryAttempt => ({
    upstream: first?.upstream ?? "",
    model: model.id,
    outcome: "busy",
    ms: Math.round(ms),
    status: 503,
    code: "server_error",
    message: "The engine is currently overloaded, please try again later",
  });
  const attempt = busy(around(140, random));
  if (second !== undefined) return answeredEntry(request, random, { attempts: [attempt] });
  const attempts = [attempt, busy(around(140, random))];
  const totalMs = attempts.reduce((sum, { ms }) => sum + ms, 300);
  return failedEntry(request, { status: 503, reason: { code: "upstream_overloaded" }, totalMs, attempts }, random);
}

function timedOut(request: DemoRequest, random: Random): Entry {
  const { model } = request;
  const attempt = { upstream: model.targets[0]?.upstream ?? "", model: model.id, outcome: "failure", ms: 60_000 };
  const message = "The upstream did not answer within 60 s";
  return failedEntry(request, {
    status: 504,
    reason: { code: "upstream_timeout" },
    totalMs: 60_004,
    attempts: [{ ...attempt, message }],
  }, random);
}

/** Mistakes of clients and of vendors that happen on any day. */
function everydayFailure(request: DemoRequest, random: Random): Entry {
  const { model } = request;
  const upstream = model.targets[0]?.upstream ?? "";
  const kind = random.below(5);
  if (kind === 0) {
    const reason = { code: "invalid", param: "max_tokens", error: "invalid_value" } as const;
    return failedEntry(request, { status: 400, reason, totalMs: 2 }, random);
  }
  if (kind === 1) {
    const missing = { ...model, id: "" };
    return failedEntry(
      { ...request, model: missing },
      { status: 404, reason: { code: "model_not_found" }, totalMs: 1 },
      random,
    );
  }
  if (kind === 2) {
    const reason = { code: "permission", permission: { of: "model", name: model.id } } as const;
    return failedEntry(request, { status: 403, reason, totalMs: 1 }, random);
  }
  const ms = Math.round(around(900, random));
  const rejected = kind === 3;
  return failedEntry(request, {
    status: rejected ? 400 : 502,
    reason: { code: rejected ? "upstream_rejected" : "upstream_failed" },
    totalMs: ms + 3,
    attempts: [{
      upstream,
      model: model.id,
      outcome: rejected ? "neither" : "failure",
      ms,
      ...(rejected ? { status: 400 } : { message: "The connection was closed before the answer began" }),
    }],
  }, random);
}

function clientNamed(name: string): DemoClient {
  const client = CLIENTS.find((client) => client.name === name);
  if (client === undefined) throw new RangeError(`Cannot find the client ${name}`);
  return client;
}

/** An agent that went round in circles for two hours nine days ago, until its limit slowed it down. */
function runawayAgent(now: number, random: Random): DemoArrival[] {
  const client = { ...clientNamed("alice-laptop"), input: 70_000, output: 1500, cached: 0.5 };
  const begin = (Math.floor(now / DAY_MS) - 9) * DAY_MS + 15 * HOUR_MS;
  return Array.from({ length: 260 }, (_, index): DemoArrival => {
    const at = begin + Math.floor(index * 2 * HOUR_MS / 260) + random.below(9_000);
    if (index < 90 || random.chance(0.55)) return { at, client };
    const limit = {
      scope: "group",
      id: client.group,
      unit: "tokens",
      limit: 20_000_000,
      needed: 78_192,
      remaining: random.below(140_000),
      free_after_ms: 1_000 + random.below(20_000),
    } as const;
    const reason = { code: "limit", error: "rate_limit_tokens", limit } as const;
    return { at, client, refused: { status: 429, reason, totalMs: 1 } };
  });
}

/** A partner whose budget ran out yesterday and whose program keeps sending requests. */
function exhaustedBudget(now: number, random: Random): DemoArrival[] {
  const client = clientNamed("partner-tern");
  return Array.from({ length: 64 }, (): DemoArrival => {
    const budget = {
      scope: "key",
      id: keyIdOf(client),
      period: "total",
      budget_usd: "0.9",
      left_usd: "0.0006",
      held_usd: "0",
      needed_usd: `0.0${20 + random.below(40)}`,
    } as const;
    const reason = { code: "budget", error: "insufficient_quota", set_by: "key", budget } as const;
    return { at: now - random.below(DAY_MS), client, refused: { status: 429, reason, totalMs: 2 } };
  });
}
