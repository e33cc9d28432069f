/** Requests at random times under six limits, and the expected limit headers, computed from a list of all requests. */
import { assertEquals } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import { seeded } from "../../support/random.ts";
import { model, startGateway } from "../../support/gateway.ts";
import { limitedTo, prompt, PROTOCOLS } from "../../upstream/replies.ts";

const BEGIN = Date.UTC(2027, 0, 1);
const UNITS = ["requests", "tokens"] as const;
/** Limits per minute by scope. Which one is tightest varies. */
const LIMITS = {
  key: { requests: 20, tokens: 1_500 },
  group: { requests: 30, tokens: 1_300 },
  model: { requests: 24, tokens: 1_700 },
};
/** Keys of the one group; models. */
const KEYS = 2;
const MODELS = ["acme/one", "acme/two"];
/** Estimated tokens of a "Hello" beside its maximum output: 3 and 3 around it, 2 for its bytes. */
const AROUND = 8;
/** Actual tokens of it and its answer, the same word: 7 and 1. */
const ACTUAL = 8;

/** A request that was admitted. */
interface Taken {
  key: number;
  model: string;
  /** Time from which it no longer counts. */
  end: number;
  tokens: number;
}

interface Limit {
  unit: typeof UNITS[number];
  limit: number;
  of: (taken: Taken) => boolean;
}

/** Counts of compared values. */
export interface Compared {
  answers: number;
  refusals: number;
}

/** Sends requests and compares each answer's headers. @throws on the first difference */
export async function compareHeaders({ requests, seed }: { requests: number; seed: number }): Promise<Compared> {
  const { below } = seeded(seed);
  const file = ({ requests, tokens }: typeof LIMITS.key) => ({
    requests_per_minute: requests,
    tokens_per_minute: tokens,
  });
  let now = 0;
  await using gateway = startGateway({
    models: MODELS.map((id) => model(id, [{ upstream: "embedded", model: "echo" }], { limits: file(LIMITS.model) })),
    groups: { default: { key_limits: file(LIMITS.key), limits: file(LIMITS.group) } },
  }, { now: () => BEGIN + now, monotonic: () => now });
  const keys = [gateway.key];
  while (keys.length < KEYS) keys.push(await gateway.addKey());
  let log: Taken[] = [];
  const compared: Compared = { answers: 0, refusals: 0 };

  for (let number = 0; number < requests; number++) {
    // Occasionally a minute of silence, otherwise two or three requests per second.
    now += below(100) === 0 ? 60_000 + below(5_000) : below(900);
    log = log.filter(({ end }) => end > now);
    const [key, named] = [below(KEYS), MODELS[below(MODELS.length)] ?? ""];
    const protocol = PROTOCOLS[below(PROTOCOLS.length)] ?? "chat";
    const [most, stream] = [1 + below(200), below(3) === 0];
    const limits = limitsOf(key, named);
    const cost = { requests: 1, tokens: AROUND + most };
    const waitMs = Math.max(...limits.map((limit) => waitOf(limit, { log, now, cost: cost[limit.unit] })));
    const taken: Taken = {
      key,
      model: named,
      end: (Math.floor(now / 500) + 1) * 500 + 60_000,
      tokens: stream ? cost.tokens : ACTUAL,
    };
    if (waitMs === 0) log.push(taken);

    const about = `seed ${seed}, request ${number}: ${protocol}${stream ? " stream" : ""} at ${now} ms`;
    const own = keys[key];
    const response = await gateway.ask(
      protocol,
      prompt(protocol, { model: named, ...limitedTo(protocol, most), stream }),
      {
        ...(own !== undefined && { key: own }),
      },
    );
    await response.text();
    await gateway.gateway.backgroundTasks.done();
    assertEquals(response.status, waitMs === 0 ? 200 : 429, about);
    const expected = expectedHeaders(limits, { log, now, protocol });
    if (waitMs > 0) {
      const seconds = Math.ceil(waitMs / 1_000);
      // Claude Code does not wait for more.
      expected["retry-after"] = String(protocol === "messages" ? Math.min(60, seconds) : seconds);
      expected["retry-after-ms"] = String(waitMs);
      if (protocol === "messages") {
        expected["anthropic-ratelimit-unified-status"] = "rejected";
        expected["anthropic-ratelimit-unified-reset"] = unixSeconds(now + waitMs);
      }
    }
    const reported = [...response.headers].filter(([name]) => /ratelimit|retry-after/.test(name));
    assertEquals(Object.fromEntries(reported), expected, about);
    // Its headers go out before the end of a stream is known.
    taken.tokens = ACTUAL;
    compared[waitMs === 0 ? "answers" : "refusals"]++;
  }
  return compared;
}

function limitsOf(key: number, model: string): Limit[] {
  const owners: [keyof typeof LIMITS, Limit["of"]][] = [
    ["key", (taken) => taken.key === key],
    ["group", () => true],
    ["model", (taken) => taken.model === model],
  ];
  return owners.flatMap(([owner, of]) => UNITS.map((unit) => ({ unit, limit: LIMITS[owner][unit], of })));
}

function usedOf({ unit, of }: Limit, log: readonly Taken[]): number {
  return log.filter(of).reduce((sum, { tokens }) => sum + (unit === "tokens" ? tokens : 1), 0);
}

/** Time until there is room, in milliseconds: counted requests expire one after another. */
function waitOf(limit: Limit, { log, now, cost }: { log: readonly Taken[]; now: number; cost: number }): number {
  const ends = [now, ...log.filter(limit.of).map(({ end }) => end).sort((a, b) => a - b)];
  const free = ends.find((at) => usedOf(limit, log.filter(({ end }) => end > at)) + cost <= limit.limit);
  return (free ?? Infinity) - now;
}

function expectedHeaders(
  limits: readonly Limit[],
  { log, now, protocol }: { log: readonly Taken[]; now: number; protocol: Protocol },
): Record<string, string> {
  const expected: Record<string, string> = {};
  const resets: number[] = [];
  for (const unit of UNITS) {
    const [shown] = limits.filter((limit) => limit.unit === unit).map((limit) => ({
      limit: limit.limit,
      remaining: Math.max(0, limit.limit - usedOf(limit, log)),
      resetMs: Math.max(0, ...log.filter(limit.of).map(({ end }) => end - now)),
    })).sort((a, b) => a.remaining - b.remaining || a.limit - b.limit);
    if (shown === undefined) continue;
    const isNative = protocol === "messages";
    const nameOf = (what: string) => isNative ? `anthropic-ratelimit-${unit}-${what}` : `x-ratelimit-${what}-${unit}`;
    expected[nameOf("limit")] = String(shown.limit);
    expected[nameOf("remaining")] = String(shown.remaining);
    expected[nameOf("reset")] = isNative
      ? `${new Date(Math.ceil((BEGIN + now + shown.resetMs) / 1_000) * 1_000).toISOString().slice(0, 19)}Z`
      : durationOf(shown.resetMs);
    resets.push(shown.resetMs);
  }
  if (protocol === "messages") {
    expected["anthropic-ratelimit-unified-status"] = "allowed";
    expected["anthropic-ratelimit-unified-reset"] = unixSeconds(now + Math.max(...resets));
  }
  return expected;
}

function unixSeconds(ms: number): string {
  return String(Math.ceil((BEGIN + ms) / 1_000));
}

/** As OpenAI writes it: `12ms`, `59.5s`, `1m0.5s`. */
function durationOf(ms: number): string {
  if (ms > 0 && ms < 1_000) return `${ms}ms`;
  return ms < 60_000 ? `${ms / 1_000}s` : `1m${(ms - 60_000) / 1_000}s`;
}
