import { assert, assertEquals } from "@std/assert";
import type { Gateway } from "../../lib/gateway.ts";
import { metrics } from "../../lib/status/metrics.ts";
import { answerReadiness, readiness } from "../../lib/status/health.ts";
import { createDrain } from "../../lib/server/drain.ts";
import type { Health } from "../../lib/routing/health.ts";
import { BREAKER } from "../routing/breaker.ts";
import { HealthTracker } from "../../lib/routing/health_tracker.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import type { NodeReports, SharedConfigs, Store, StoreReach } from "../../lib/store/store.ts";
import { valueOf } from "../e2e/observe/exposition.ts";
import { startGateway } from "../support/gateway.ts";

const MODEL = {
  id: "acme/one",
  targets: [{ upstream: "first", model: "m" }, { upstream: "second", model: "m" }],
};

/** Targets that were tried; the named ones refuse the gateway's key. */
async function healthWith(refused: readonly string[]): Promise<Health> {
  const health = new HealthTracker({
    breaker: BREAKER,
    monotonic: () => 0,
    now: () => 0,
    random: () => 0.5,
    later: () => () => {},
    probe: () => Promise.resolve("refused"),
  });
  for (const target of MODEL.targets) {
    const admission = health.acquirePermit({ model: MODEL, target, key: "k1" });
    assert(admission.granted);
    health.report(admission.permit, { type: refused.includes(target.upstream) ? "refused" : "success" });
  }
  // The probes are answered.
  await new Promise((resolve) => setTimeout(resolve, 0));
  return health;
}

/** Targets that were tried; the named ones have had this number of consecutive failures. */
function healthAfter(failures: Readonly<Record<string, number>>, passedMs = 0): Health {
  let now = 0;
  const health = new HealthTracker({
    breaker: BREAKER,
    monotonic: () => now,
    now: () => now,
    random: () => 0.5,
    later: () => () => {},
  });
  for (const target of MODEL.targets) {
    for (let time = 0; time < (failures[target.upstream] ?? 1); time++) {
      const admission = health.acquirePermit({ model: MODEL, target, key: "k1" });
      const failed = failures[target.upstream] !== undefined;
      if (admission.granted) health.report(admission.permit, { type: failed ? "failure" : "success" });
    }
  }
  now = passedMs;
  return health;
}

/** A store of several nodes whose reachability is scripted. */
function sharedStore(reach: Partial<StoreReach>): Store {
  const configs: SharedConfigs = {
    latest: () => Promise.resolve(undefined),
    put: () => Promise.resolve(1),
    watch: () => () => {},
  };
  const nodes: NodeReports = {
    report: () => Promise.resolve(),
    list: () => Promise.resolve([]),
    leave: () => Promise.resolve(),
  };
  return {
    ...openMemoryStore(),
    shared: { configs, nodes, reach: () => ({ up: true, isReadable: true, downMs: 0, waiting: 0, ...reach }) },
  };
}

Deno.test("readiness reports store, ledger and upstreams, and only the gateway's own parts make it unavailable", async () => {
  await using running = startGateway({});
  const base = running.gateway;
  const sick = { ...base.ledger, healthy: false };
  const keys = { ...base.keys, check: () => Promise.reject(new Error("no store")) };
  const down = (downMs: number) => sharedStore({ up: false, downMs });
  const unreadable = (downMs: number) => sharedStore({ isReadable: false, downMs });
  const hearing = (msSinceOthersAnswered: number) => ({ ...base.limiter, msSinceOthersAnswered });
  const cases: [name: string, gateway: Gateway, status: number, says: string, upstreams: string][] = [
    ["fresh", base, 200, "ok", "ok"],
    ["all well", { ...base, health: await healthWith([]) } as Gateway, 200, "ok", "ok"],
    ["one refused", { ...base, health: await healthWith(["first"]) } as Gateway, 200, "degraded", "some"],
    ["all refused", { ...base, health: await healthWith(["first", "second"]) } as Gateway, 200, "degraded", "none"],
    ["one fails at times", { ...base, health: healthAfter({ first: 4 }) }, 200, "ok", "ok"],
    ["one open", { ...base, health: healthAfter({ first: 5 }) }, 200, "degraded", "some"],
    ["one half-open", { ...base, health: healthAfter({ first: 5 }, 6_000) }, 200, "degraded", "some"],
    // The breaker of the second may not open as well.
    ["both fail", { ...base, health: healthAfter({ first: 5, second: 5 }) }, 200, "degraded", "none"],
    ["no ledger", { ...base, ledger: sick }, 503, "unavailable", "ok"],
    ["no store", { ...base, keys }, 503, "unavailable", "ok"],
    ["a store that nodes share", { ...base, store: sharedStore({}) }, 200, "ok", "ok"],
    ["one away", { ...base, keys, store: sharedStore({ up: false, downMs: 299_000 }) }, 200, "degraded", "ok"],
    ["a key known", { ...base, store: sharedStore({ up: false, downMs: 1 }) }, 200, "degraded", "ok"],
    ["away for long", { ...base, store: sharedStore({ up: false, downMs: 301_000 }) }, 503, "unavailable", "ok"],
    ["away from all", { ...base, limiter: hearing(9_000), store: down(10_000) }, 200, "degraded", "ok"],
    ["away from this one", { ...base, limiter: hearing(1_000), store: down(10_000) }, 503, "unavailable", "ok"],
    ["away for a moment", { ...base, limiter: hearing(0), store: down(1_900) }, 200, "degraded", "ok"],
    ["back", { ...base, limiter: hearing(0), store: sharedStore({}) }, 200, "ok", "ok"],
    ["limits of its own", { ...base, limiter: { ...base.limiter, healthy: false } }, 200, "degraded", "ok"],
    ["no room", { ...base, ledger: sick, store: sharedStore({ up: false, downMs: 1 }) }, 503, "unavailable", "ok"],
    ["there, but no key", { ...base, keys, store: sharedStore({}) }, 503, "unavailable", "ok"],
    ["no changes", { ...base, store: unreadable(301_000) }, 200, "degraded", "ok"],
    ["no keys", { ...base, keys, store: unreadable(299_000) }, 200, "degraded", "ok"],
    ["no keys for long", { ...base, keys, store: unreadable(301_000) }, 503, "unavailable", "ok"],
    ["no keys here", { ...base, keys, limiter: hearing(0), store: unreadable(9_000) }, 503, "unavailable", "ok"],
  ];
  for (const [name, gateway, status, says, upstreams] of cases) {
    const response = await answerReadiness({ gateway, drain: createDrain() });
    const { message, ...body } = await response.json();
    assertEquals([response.status, body], [status, { status: says }], name);
    assertEquals(message === undefined ? "ok" : message.split(": ")[0], says, name);
    const { status: actual, upstreams: stand } = await readiness(gateway);
    assertEquals([actual, stand], [says, upstreams], name);
  }
});

Deno.test("a degraded gateway says what fails, and since when", async () => {
  await using running = startGateway({});
  const base = running.gateway;
  const limiter = { ...base.limiter, healthy: false };
  assertEquals((await readiness({ ...base, limiter })).message, "degraded: the limits store is unreachable");
  const row = { upstream: "first", model: "m", awaits_trial: true, samples: 5, failures: 5 };
  const failing = { ...row, state: "open", consecutive_failures: 5, recent_attempts: 20, recent_answers: 15 } as const;
  const health = { ...base.health, snapshot: () => [failing] };
  const message = "degraded: first answered 15 of its last 20 attempts, none of the last 5";
  assertEquals((await readiness({ ...base, health } as Gateway)).message, message);
});

Deno.test("metrics show whether shared stores are up, and how many entries wait", async () => {
  await using running = startGateway({});
  const base = running.gateway;
  const values = async (gateway: Gateway) => {
    const text = await (await metrics(gateway)).text();
    return ["store_up", "store_journal_entries", "limits_store_up"].map((name) => valueOf(text, `sluice_${name}`));
  };
  assertEquals(await values(base), ["1", "0", "1"]);
  const limiter = { ...base.limiter, healthy: false };
  const store = sharedStore({ up: false, downMs: 1, waiting: 7 });
  assertEquals(await values({ ...base, store, limiter }), ["0", "7", "0"]);
});

Deno.test("metrics show the worst breakers, and whether the ledger is healthy", async () => {
  await using running = startGateway({});
  const base = running.gateway;
  const gateway = {
    ...base,
    health: await healthWith(["second"]),
    ledger: { ...base.ledger, healthy: false, queued: 7 },
  } as Gateway;
  const text = await (await metrics(gateway)).text();
  assertEquals(valueOf(text, "sluice_breaker_state", { upstream: "first", model: "m" }), "0");
  assertEquals(valueOf(text, "sluice_breaker_state", { upstream: "second", model: "m" }), "4");
  assertEquals([valueOf(text, "sluice_ledger_healthy"), valueOf(text, "sluice_ledger_queue")], ["0", "7"]);
});

Deno.test("/healthz answers while the event loop runs, and reports its lag", async () => {
  await using running = startGateway({});
  const blocked = fetch(`${running.url}/healthz`).then((response) => response.json());
  const { status, loop_lag_ms, loop_lag_max_ms } = await blocked;
  assertEquals(status, "ok");
  assert(Number.isInteger(loop_lag_ms) && loop_lag_max_ms >= loop_lag_ms);
  const end = running.gateway.observer.loop.start();
  await new Promise((resolve) => setTimeout(resolve, 0));
  for (const until = performance.now() + 700; performance.now() < until;);
  await new Promise((resolve) => setTimeout(resolve, 10));
  end();
  const late = await (await fetch(`${running.url}/healthz`)).json();
  assert(late.loop_lag_max_ms >= 150, JSON.stringify(late));
});
