import { Secret } from "../../lib/secret.ts";
import type { PresenceParts } from "../../lib/limits/presence.ts";
import { openSharedLimiter } from "../../lib/limits/shared.ts";
import { HAS_REDIS, someRedis } from "../engines/engines.ts";
import { testLimiter } from "./behaviours.ts";
import type { CreateLimiter, OpenLimiter } from "./simulate.ts";

/** Opens a limiter on the clock of the test, in a place of its own. */
async function create(monotonic: () => number, change: Partial<PresenceParts> = {}): Promise<OpenLimiter> {
  const limiter = await openSharedLimiter(new Secret(await someRedis()), {
    monotonic,
    clock: monotonic,
    outage: "closed",
    timeoutMs: 5_000,
    leaseMs: 1e9,
    log: () => {},
    random: Math.random,
    name: () => crypto.randomUUID(),
    prefix: `{test ${crypto.randomUUID()}}:`,
    ...change,
  });
  return { limiter, close: () => limiter.close() };
}

const ordinary: CreateLimiter = ({ monotonic }) => create(monotonic);

if (HAS_REDIS) testLimiter("the limiter in Redis", ordinary, { seeds: 200 });
