/** Limiters on the test's Redis, opened as by nodes, and helpers for tests. */
import type { LimitDecision, Limiter, LimitRequest, LimitUnit } from "../../lib/limits/limiter.ts";
import type { NodeSessionOptions } from "../../lib/limits/node_session.ts";
import { openSharedLimiter } from "../../lib/limits/redis_limiter.ts";
import { Secret } from "../../lib/secret.ts";

/** A line of a limiter's log. */
export type Line = Parameters<NodeSessionOptions["log"]>[0];

/** A limiter with its log. */
export interface OpenNode extends AsyncDisposable {
  limiter: Limiter;
  lines: Line[];
}

/** Opens a node. */
export async function openNode(url: string, change: Partial<NodeSessionOptions> = {}): Promise<OpenNode> {
  const lines: Line[] = [];
  const limiter = await openSharedLimiter(new Secret(url), {
    monotonic: () => performance.now(),
    outage: "local",
    timeoutMs: 250,
    leaseMs: 3_000,
    log: (line) => lines.push(line),
    random: Math.random,
    node: crypto.randomUUID(),
    prefix: "{test}:",
    ...change,
  });
  return { limiter, lines, [Symbol.asyncDispose]: () => limiter.close() };
}

/** A limit of a name. */
export function limitOf(name: string, unit: LimitUnit, limit: number, cost = 1): LimitRequest {
  return { name, unit, limit, cost, reportOnly: false };
}

/** The remaining amount of a limit. */
export async function leftOf(limiter: Limiter, limitRequest: LimitRequest): Promise<number> {
  return (await limiter.statuses([limitRequest]))[0]?.remaining ?? NaN;
}

/** Reserves under a new id. */
export async function takeOne(
  limiter: Limiter,
  limitRequests: LimitRequest[],
  forMs = 60_000,
): Promise<LimitDecision & { id: string }> {
  const id = crypto.randomUUID();
  return { id, ...await limiter.take({ id, limitRequests, forMs }) };
}
