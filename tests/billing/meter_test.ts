import { assert, assertEquals, assertRejects } from "@std/assert";
import { modelSchema } from "../../lib/catalog/model.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Limiter, LimitRequest } from "../../lib/limits/limiter.ts";
import { createMemoryLimiter } from "../../lib/limits/memory_limiter.ts";
import { createLedger, type Ledger } from "../../lib/billing/ledger.ts";
import { type Delivered, Meter } from "../../lib/billing/meter.ts";
import type { AdmissionTerms } from "../../lib/billing/reservation.ts";
import { pricesAt } from "../../lib/billing/price.ts";
import { DISCONNECTED } from "../../lib/request/request_meter.ts";
import { NO_TOKENS } from "../../lib/store/days.ts";
import type { BudgetClaim, LedgerStore } from "../../lib/store/ledger.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import { type Clock, createClock, settle } from "./simulator/clock.ts";
import { plainModel } from "../support/plain_model.ts";
import { availableIn } from "../support/available.ts";

const MODEL = modelSchema.parse(plainModel({
  pricing: { prompt: "0.000000000001", completion: "0.000000000010", input_cache_read: "0" },
  targets: [{ upstream: "first", model: "one" }],
}));

const CLAIMS: readonly LimitRequest[] = [
  { name: "key:key_a", unit: "requests", limit: 5, cost: 1, reportOnly: false },
  { name: "key:key_a", unit: "tokens", limit: 1_000, cost: 300, reportOnly: false },
  { name: "key:key_a", unit: "concurrency", limit: 2, cost: 1, reportOnly: false },
];

const BUDGET: BudgetClaim = { scope: "key", id: "key_a", budget: 10_000n, since: 0 };

/** 20 tokens of input and 30 of output at the prices of the model cost 320. */
const ANSWER: Delivered = {
  status: 200,
  ending: "end",
  tokens: { ...NO_TOKENS, prompt: 20, input_cache_read: 500, completion: 30 },
  source: "upstream",
};

interface Bench {
  store: LedgerStore;
  ledger: Ledger;
  limiter: Limiter;
  clock: Clock;
  lines: Record<string, unknown>[];
  open(id: string): Meter;
  wish(members?: Partial<AdmissionTerms>): AdmissionTerms;
}

function benchOf(
  { store: changeStore, limiter: changeLimiter }: {
    store?: (store: LedgerStore) => LedgerStore;
    limiter?: (limiter: Limiter) => Limiter;
  } = {},
): Bench {
  const clock = createClock();
  const store = openMemoryStore().ledger;
  const lines: Record<string, unknown>[] = [];
  const log = (line: Record<string, unknown>) => void lines.push(line);
  const { now, monotonic, later } = clock;
  const ledger = createLedger({ store: changeStore?.(store) ?? store, now, monotonic, later, log });
  const memory = createMemoryLimiter({ monotonic });
  const limiter = changeLimiter?.(memory) ?? memory;
  return {
    store,
    ledger,
    limiter: memory,
    clock,
    lines,
    open: (id) =>
      new Meter({ ledger, limiter, now, monotonic, log }, { id, keyId: "key_a", group: "default", endpoint: "chat" }),
    wish: (members) => ({
      model: MODEL,
      sheet: pricesAt(MODEL, { factor: "1", now: now() }).sheet,
      limitRequests: CLAIMS,
      budgets: [BUDGET],
      maxCost: 4_000n,
      forMs: 60_000,
      ...members,
    }),
  };
}

async function remaining(limiter: Limiter): Promise<number[]> {
  return (await limiter.statuses(CLAIMS)).map(({ remaining }) => remaining);
}

Deno.test("Meter reserves limits, holds a budget, charges, and releases everything", async () => {
  const { open, wish, store, ledger, limiter, clock } = benchOf();
  const meter = open("a");
  assertEquals(meter.limitStatuses(), []);
  await meter.admit(wish());
  assertEquals(meter.limitStatuses().map(({ remaining }) => remaining), [4, 700, 1]);
  assertEquals(await availableIn(ledger, BUDGET), 6_000n);
  assertEquals(await remaining(limiter), [4, 700, 1]);
  meter.entry.beginAttempt("first");
  Object.assign(meter.entry, { vendorRequestId: "v1", dropped: ["seed"], outputLimit: { cap: 5 } });
  meter.entry.beginAttempt("second");
  await clock.pass(120);
  meter.entry.recordFirstOutput();
  await clock.pass(400);
  meter.entry.recordFirstOutput();
  assertEquals(await meter.deliver(ANSWER), 320n);
  assertEquals(meter.ended, true);
  assertEquals(await availableIn(ledger, BUDGET), 9_680n);
  // Tokens read from a cache do not count.
  assertEquals(await remaining(limiter), [4, 950, 2]);
  assertEquals(meter.limitStatuses().map(({ remaining }) => remaining), [4, 950, 2]);
  const { check: _, ...entry } = await store.find("a") ?? {};
  assertEquals(entry, {
    id: "a",
    seq: 1,
    at: Date.UTC(2026, 10, 21, 12),
    keyId: "key_a",
    group: "default",
    model: "acme/one",
    upstream: "second",
    endpoint: "chat",
    status: 200,
    ending: "end",
    tokens: ANSWER.tokens,
    source: "upstream",
    sheet: wish().sheet,
    priceVersion: 1,
    cost: 320n,
    held: 4_000n,
    overrun: 0n,
    firstMs: 120,
    totalMs: 520,
    attempts: 2,
    images: 0,
  });
});

Deno.test("an entry lists a first attempt that succeeded only if it began late", async () => {
  const { open, wish, store, clock } = benchOf();
  const attempt = { upstream: "first", model: "acme/one", outcome: "success", ms: 40 };
  for (const [id, before] of [["soon", 900], ["late", 1_100]] as const) {
    const meter = open(id);
    await meter.admit(wish());
    await clock.pass(before);
    meter.entry.beginAttempt("first");
    await clock.pass(40);
    meter.entry.recordAttempt({ ...attempt });
    await meter.deliver(ANSWER);
  }
  const listed = async (id: string) => (await store.find(id))?.details?.attempts;
  assertEquals([await listed("soon"), await listed("late")], [undefined, [attempt]]);
});

Deno.test("Meter counts all tokens towards limits except those read from a cache", async () => {
  const tokens = { input_cache_read: 500, reasoning: 16, prompt: 1, input_cache_write_5m: 2, input_cache_write_1h: 4 };
  const { open, wish, limiter } = benchOf();
  const meter = open("a");
  await meter.admit(wish());
  await meter.deliver({ ...ANSWER, tokens: { ...tokens, completion: 32 } });
  assertEquals(await remaining(limiter), [4, 1_000 - 39, 2]);
});

Deno.test("Meter calls neither limiter nor ledger without limits and budgets", async () => {
  const refuse = () => Promise.reject(new Error("Nobody should ask"));
  const { open, wish, store } = benchOf({
    store: (store) => ({ ...store, hold: refuse }),
    limiter: (limiter) => ({ ...limiter, take: refuse, end: refuse, undo: refuse, standings: refuse }),
  });
  const cases: [string, Partial<AdmissionTerms>][] = [
    ["no rules", { limitRequests: [], budgets: [] }],
    ["free", { limitRequests: [], maxCost: 0n }],
  ];
  for (const [id, members] of cases) {
    const meter = open(id);
    await meter.admit(wish(members));
    assertEquals(meter.limitStatuses(), []);
    await meter.deliver(ANSWER);
    assertEquals((await store.find(id))?.held, 0n);
  }
  const failed = open("failed");
  await failed.admit(wish({ limitRequests: [], budgets: [] }));
  await failed.fail(502, DISCONNECTED);
});

Deno.test("Meter extrapolates limit statuses without a call of the limiter", async () => {
  const { open, wish, limiter, clock } = benchOf({
    limiter: (limiter) => ({ ...limiter, standings: () => Promise.reject(new Error("Nobody should ask")) }),
  });
  const meter = open("a");
  await meter.admit(wish());
  for (const ms of [0, 1_500, 20_000]) {
    await clock.pass(ms);
    assertEquals(meter.limitStatuses(), await limiter.statuses(CLAIMS), `${ms}`);
  }
  // Later reservations of other requests are unknown.
  await open("b").admit(wish());
  assertEquals(meter.limitStatuses().map(({ remaining }) => remaining), [4, 700, 1]);
  await meter.fail(500, DISCONNECTED);
  assertEquals(meter.limitStatuses(), await limiter.statuses(CLAIMS));
  await clock.pass(100_000);
  assertEquals(meter.limitStatuses().map(({ resetMs }) => resetMs), [0, 0, 0]);
});

Deno.test("Meter reports limit statuses after a refused budget and after a second admission", async () => {
  const { open, wish, limiter } = benchOf();
  const meter = open("a");
  await assertRejects(async () => await meter.admit(wish({ maxCost: 10_001n })), GatewayError);
  assertEquals(meter.limitStatuses(), await limiter.statuses(CLAIMS));
  await open("b").admit(wish());
  await assertRejects(async () => await meter.admit(wish({ maxCost: 10_001n })), GatewayError);
  assertEquals(meter.limitStatuses().map(({ remaining }) => remaining), [4, 700, 1]);
  await meter.admit(wish({ limitRequests: [] }));
  assertEquals(meter.limitStatuses(), []);
});

Deno.test("Meter reports limit statuses of whole answers at their end or refusal", async () => {
  const { open, wish, limiter } = benchOf();
  const free = { whole: true, budgets: [] };
  const [first, second, third, poor] = ["first", "second", "third", "poor"].map(open);
  await first?.admit(wish(free));
  await first?.deliver(ANSWER);
  assertEquals(first?.limitStatuses().map(({ remaining }) => remaining), [4, 950, 2]);
  await assertRejects(async () => await poor?.admit(wish({ isWhole: true, maxCost: 10_001n })), GatewayError);
  assertEquals(poor?.limitStatuses(), await limiter.statuses(CLAIMS));
  await second?.admit(wish(free));
  await second?.fail(502, DISCONNECTED);
  assertEquals(second?.limitStatuses(), await limiter.statuses(CLAIMS));
  const tokens = { name: "key:key_a", unit: "tokens", limit: 1_000, cost: 951, reportOnly: false } as const;
  await assertRejects(async () => await third?.admit(wish({ ...free, limitRequests: [tokens] })), GatewayError);
  assertEquals(third?.limitStatuses().map(({ remaining }) => remaining), [950]);
});

const GROUP_BUDGET: BudgetClaim = { scope: "group", id: "default", budget: 8_000n, since: 0 };

Deno.test("Meter holds a smaller amount if a budget lacks the rest, and keeps its limits reserved", async () => {
  const cases: { name: string; most: bigint; within?: (left: bigint) => bigint; amounts: bigint[]; held: bigint }[] = [
    { name: "enough left", most: 8_000n, within: (left) => left, amounts: [8_000n], held: 8_000n },
    { name: "all or nothing", most: 9_000n, amounts: [9_000n], held: 0n },
    { name: "one budget has less", most: 9_000n, within: (left) => left, amounts: [9_000n, 8_000n], held: 8_000n },
    {
      name: "both have less, each another amount",
      most: 20_000n,
      within: (left) => left - 1n,
      amounts: [20_000n, 9_999n, 7_999n],
      held: 7_999n,
    },
    { name: "it cannot cost less", most: 20_000n, within: () => 8_500n, amounts: [20_000n, 8_500n], held: 0n },
  ];
  for (const { name, most, within, amounts, held } of cases) {
    const calls: unknown[] = [];
    const { open, wish, store, limiter } = benchOf({
      store: (store) => ({
        ...store,
        hold(hold) {
          calls.push(hold.amount);
          return store.hold(hold);
        },
      }),
      limiter: (limiter) => ({
        ...limiter,
        take(request) {
          calls.push("take");
          return limiter.take(request);
        },
      }),
    });
    const meter = open("a");
    const claims = {
      budgets: [BUDGET, GROUP_BUDGET],
      maxCost: most,
      ...(within !== undefined && { costWithin: within }),
    };
    if (held > 0n) {
      await meter.admit(wish(claims));
      assertEquals(await remaining(limiter), [4, 700, 1], name);
    } else {
      const error = await assertRejects(async () => await meter.admit(wish(claims)), GatewayError);
      assertEquals(error.code, "insufficient_quota", name);
      assertEquals(await remaining(limiter), [5, 1_000, 2], name);
    }
    assertEquals(calls, ["take", ...amounts], name);
    assertEquals((await store.holds()).map(({ amount }) => amount), held > 0n ? [held] : [], name);
  }
});

Deno.test("Meter gives up on budgets that others keep emptying, with one log line", async () => {
  let requests = 0;
  const refusals: string[] = [];
  const { ledger, wish, limiter, clock } = benchOf({
    store: (store) => ({
      ...store,
      hold: () => Promise.resolve({ held: false, claim: BUDGET, available: BigInt(1_000 - ++requests), onHold: 0n }),
    }),
  });
  const observer = {
    counts: { refused: (owner: string, unit: string) => void refusals.push(`${owner} ${unit}`), exceeded() {} },
    ended() {},
  };
  const meter = new Meter({ ledger, limiter, observer, ...clock, log() {} }, {
    id: "a",
    keyId: "key_a",
    group: "default",
    endpoint: "chat",
  });
  await assertRejects(async () => await meter.admit(wish({ costWithin: (left) => left })), GatewayError);
  assertEquals([requests, refusals], [4, ["key usd"]]);
});

Deno.test("Meter releases slots while the entry is written, and deliver() waits for both", async () => {
  const CALLS = ["end", "append"] as const;
  for (const slow of CALLS) {
    const gate = Promise.withResolvers<void>();
    const over: string[] = [];
    const slowed = (name: typeof CALLS[number]) => async <Result>(work: Promise<Result>) => {
      if (name === slow) await gate.promise;
      const result = await work;
      over.push(name);
      return result;
    };
    const { open, wish } = benchOf({
      store: (store) => ({ ...store, append: (entries) => slowed("append")(store.append(entries)) }),
      limiter: (limiter) => ({
        ...limiter,
        end: (id, tokens) => slowed("end")(Promise.resolve(limiter.end(id, tokens))),
      }),
    });
    const meter = open("a");
    await meter.admit(wish());
    const delivered = meter.deliver(ANSWER).then(() => void over.push("delivered"));
    await settle();
    const fast = CALLS.filter((name) => name !== slow);
    assertEquals(over, fast);
    gate.resolve();
    await delivered;
    assertEquals(over, [...fast, slow, "delivered"]);
  }
});

Deno.test("Meter keeps a charged request known to other nodes until its entry is durable or given up", async () => {
  for (const fails of [false, true]) {
    const gate = Promise.withResolvers<void>();
    const calls: string[] = [];
    const { open, wish } = benchOf({
      store: (store) => ({
        ...store,
        async append(entries) {
          await gate.promise;
          if (fails) throw new RangeError("no such entry");
          calls.push("append");
          return await store.append(entries);
        },
      }),
      limiter: (limiter) => ({
        ...limiter,
        end(id, tokens, options) {
          calls.push(`end ${id} ${options?.isEntered}`);
          return limiter.end(id, tokens);
        },
        forget: (id) => void calls.push(`forget ${id}`),
      }),
    });
    const meter = open("a");
    await meter.admit(wish());
    const delivered = meter.deliver(ANSWER).catch(() => {});
    await settle();
    assertEquals(calls, ["end a false"]);
    gate.resolve();
    await delivered;
    assertEquals(calls, ["end a false", ...(fails ? [] : ["append"]), "forget a"]);
  }
});

Deno.test("Meter ends once, with the first call", async () => {
  const ends: Record<string, (meter: Meter) => Promise<unknown>> = {
    deliver: (meter) => meter.deliver(ANSWER),
    abandon: (meter) => meter.deliver({ ...ANSWER, ending: "client_disconnected" }),
    fail: (meter) => meter.fail(502, DISCONNECTED),
  };
  for (const [first, end] of Object.entries(ends)) {
    for (const [second, again] of Object.entries(ends)) {
      const { open, wish, store, ledger, limiter } = benchOf();
      const meter = open("a");
      await meter.admit(wish());
      meter.entry.beginAttempt("first");
      const both = await Promise.all([end(meter), again(meter)]);
      const ending = { deliver: "end", abandon: "client_disconnected", fail: "failed" }[first];
      const cost = first === "fail" ? 0n : 320n;
      const entry = await store.find("a");
      assertEquals([entry?.ending, entry?.cost], [ending, cost], `${first}, ${second}`);
      assertEquals(both[1], second === "fail" ? undefined : 0n, `${first}, ${second}`);
      assertEquals(await availableIn(ledger, BUDGET), 10_000n - cost);
      assertEquals(await remaining(limiter), [4, first === "fail" ? 1_000 : 950, 2], `${first}, ${second}`);
      assertEquals(await store.holds(), []);
    }
  }
});

Deno.test("Meter releases reservations that complete after its end", async () => {
  for (const slow of ["take", "hold"]) {
    const gate = Promise.withResolvers<void>();
    const { open, wish, store, ledger, limiter } = benchOf({
      store: (store) => ({
        ...store,
        async hold(hold) {
          if (slow === "hold") await gate.promise;
          return await store.hold(hold);
        },
      }),
      limiter: (limiter) => ({
        ...limiter,
        async take(request) {
          if (slow === "take") await gate.promise;
          return await limiter.take(request);
        },
      }),
    });
    const meter = open("a");
    const admitted = meter.admit(wish());
    await settle();
    const failed = meter.fail(499, DISCONNECTED);
    gate.resolve();
    await assertRejects(async () => await admitted, GatewayError);
    await failed;
    await ledger.flush();
    assertEquals((await store.find("a"))?.ending, "refused", slow);
    assertEquals(await store.holds(), [], slow);
    assertEquals((await remaining(limiter))[2], 2, slow);
  }
});

Deno.test("Meter releases everything after any failing call, and never charges incomplete answers", async () => {
  const CALLS = ["take", "end", "undo", "hold", "append", "find", "renew", "expire"];
  for (const name of CALLS) {
    for (const isEffective of name === "append" ? [false] : [false, true]) {
      for (const end of ["deliver", "fail", "refused"]) {
        const label = `${name} ${isEffective ? "after" : "before"} its effect, ${end}`;
        let isAway = true;
        const failing = <Parts extends object>(parts: Parts) => {
          const call = Reflect.get(parts, name);
          if (typeof call !== "function") return parts;
          const broken = async (...given: unknown[]) => {
            if (!isAway) return await call(...given);
            if (isEffective) await call(...given);
            throw new Error("Away");
          };
          return { ...parts, [name]: broken };
        };
        const { open, wish, store, ledger, limiter, clock } = benchOf({ store: failing, limiter: failing });
        const meter = open("a");
        let isWhole = false;
        const served = (async () => {
          try {
            await meter.admit(wish(end === "refused" ? { maxCost: 20_000n } : {}));
            meter.entry.beginAttempt("first");
            if (end === "fail") return await meter.fail(502, DISCONNECTED);
            await meter.deliver(ANSWER);
            isWhole = true;
          } catch {
            await meter.fail(500, DISCONNECTED);
          }
        })();
        await clock.pass(6_000);
        await served;
        isAway = false;
        await clock.pass(200_000);
        await ledger.flush();
        assertEquals(await store.holds(), [], label);
        assertEquals((await remaining(limiter))[2], 2, label);
        const entry = await store.find("a");
        assertEquals(entry?.cost, isWhole ? 320n : 0n, label);
        await ledger.close();
        assertEquals(clock.timers, 0, label);
      }
    }
  }
});

Deno.test("Meter does not complete an answer whose entry fails, and its hold expires when the ledger is back", async () => {
  let isAway = true;
  const { open, wish, store, ledger, limiter, clock } = benchOf({
    store: (store) => ({
      ...store,
      append: (entries) => isAway ? Promise.reject(new Error("Disk full")) : store.append(entries),
    }),
  });
  const meter = open("a");
  await meter.admit(wish());
  meter.entry.beginAttempt("first");
  const delivered = meter.deliver(ANSWER);
  delivered.catch(() => {});
  await clock.pass(6_500);
  const error = await assertRejects(() => delivered, GatewayError);
  assertEquals(error.kind, "overloaded");
  assertEquals((await remaining(limiter))[2], 2);

  const next = open("b");
  const refusal = await assertRejects(async () => await next.admit(wish()), GatewayError);
  assertEquals([refusal.kind, refusal.retryAfterMs], ["overloaded", 1_000]);
  assertEquals((await remaining(limiter))[2], 2);
  const free = open("c");
  await free.admit(wish({ maxCost: 0n, limitRequests: [] }));

  isAway = false;
  await clock.pass(2_000);
  assertEquals(await availableIn(ledger, BUDGET), 10_000n);
  const entry = await store.find("a");
  assertEquals([entry?.ending, entry?.status, entry?.held], ["failed", 503, 4_000n]);
  assertEquals(entry?.details?.reason, { code: "unavailable", outage: "ledger" });
  await open("d").admit(wish());
});

Deno.test("Meter charges nothing after the hold was voided", async () => {
  const { open, wish, store, clock } = benchOf();
  const meter = open("a");
  await meter.admit(wish({ forMs: 60_000 }));
  await clock.pass(140_000);
  assertEquals(await meter.deliver(ANSWER), 0n);
  assertEquals((await store.find("a"))?.ending, "lost");
});

Deno.test("Meter reports the charge if the second try finds the entry", async () => {
  let tries = 0;
  const { open, wish, store, clock } = benchOf({
    store: (store) => ({
      ...store,
      async append(entries) {
        const fresh = await store.append(entries);
        if (tries++ === 0) throw new Error("Connection lost");
        return fresh;
      },
    }),
  });
  const meter = open("a");
  await meter.admit(wish());
  const delivered = meter.deliver(ANSWER);
  await clock.pass(1_000);
  assertEquals(await delivered, 320n);
  assertEquals((await store.entries({ after: 0, limit: 10 })).length, 1);
});

Deno.test("Meter enters a request that was never admitted, and does not charge it", async () => {
  const { open, store } = benchOf();
  const meter = open("a");
  await assertRejects(() => meter.deliver(ANSWER), TypeError);
  await meter.fail(400, DISCONNECTED);
  const entry = await store.find("a");
  assertEquals([entry?.ending, entry?.model, entry?.upstream, entry?.attempts], ["refused", "", "", 0]);
  await assertRejects(async () => await meter.admit({} as AdmissionTerms), TypeError);
});

Deno.test("Meter charges nothing for invalid tokens, and releases everything", async () => {
  const { open, wish, store, ledger, limiter } = benchOf();
  const meter = open("a");
  await meter.admit(wish());
  await assertRejects(() => meter.deliver({ ...ANSWER, tokens: { ...NO_TOKENS, completion: -1 } }), RangeError);
  assert(meter.ended);
  await ledger.flush();
  assertEquals((await store.find("a"))?.cost, 0n);
  assertEquals(await store.holds(), []);
  assertEquals((await remaining(limiter))[2], 2);
});

const OTHER = modelSchema.parse(plainModel({
  id: "acme/other",
  pricing: { prompt: "0.000000000002", completion: "0.000000000020", input_cache_read: "0" },
  targets: [{ upstream: "second", model: "other" }],
}));

/** Limits of the other model. */
const OWN: readonly LimitRequest[] = [
  { name: "model:acme/other", unit: "concurrency", limit: 1, cost: 1, reportOnly: false },
];

/** The remaining amounts of these limits. */
async function leftOf({ limiter }: Bench, claims: readonly LimitRequest[]): Promise<number[]> {
  return (await limiter.statuses(claims)).map(({ remaining }) => remaining);
}

Deno.test("Meter.switchModel() reserves the other model's limits, charges its price, and releases both", async () => {
  const bench = benchOf();
  const sheet = pricesAt(OTHER, { factor: "1", now: 0 }).sheet;
  const meter = bench.open("r1");
  await meter.admit(bench.wish());
  await meter.switchModel({ model: OTHER, sheet, limitRequests: OWN });
  // After switching back and forth, each model's limits are reserved once.
  await meter.switchModel({ model: MODEL, sheet: bench.wish().sheet, limitRequests: [] });
  await meter.switchModel({ model: OTHER, sheet, limitRequests: OWN });
  assertEquals(await leftOf(bench, OWN), [0]);
  const full = bench.open("r2");
  await full.admit(bench.wish());
  const error = await assertRejects(
    async () => await full.switchModel({ model: OTHER, sheet, limitRequests: OWN }),
    GatewayError,
  );
  assertEquals(error.kind, "limited");
  meter.entry.beginAttempt("second");
  // 20 tokens at 2, and 30 at 20.
  assertEquals(await meter.deliver(ANSWER), 640n);
  await full.fail(429, DISCONNECTED);
  const [one, two] = await bench.store.entries({ after: 0, limit: 10 });
  assertEquals([one?.model, one?.sheet?.model, one?.cost], ["acme/other", "acme/other", 640n]);
  assertEquals(two?.model, "acme/one");
  assertEquals(await leftOf(bench, OWN), [1]);
  assertEquals((await leftOf(bench, CLAIMS)).at(-1), 2);
});

Deno.test("Meter releases reservations of a switch that completes after its end", async () => {
  const taking = Promise.withResolvers<void>();
  const bench = benchOf({
    limiter: (limiter) => ({
      ...limiter,
      take: async (request) => {
        if (request.id.includes("/")) await taking.promise;
        return await limiter.take(request);
      },
      end: (id, tokens) => limiter.end(id, tokens),
      undo: (id) => limiter.undo(id),
      statuses: (limitRequests) => limiter.statuses(limitRequests),
    }),
  });
  const meter = bench.open("r1");
  await meter.admit(bench.wish());
  const turning = assertRejects(async () =>
    await meter.switchModel({ model: OTHER, sheet: bench.wish().sheet, limitRequests: OWN })
  );
  const failing = meter.fail(499, DISCONNECTED);
  taking.resolve();
  await Promise.all([turning, failing]);
  assertEquals(await leftOf(bench, OWN), [1]);
  assertEquals((await leftOf(bench, CLAIMS)).at(-1), 2);
});

Deno.test("Meter.admit() may be repeated after a refusal, but not after an admission", async () => {
  const bench = benchOf();
  const holder = bench.open("r1");
  await holder.admit(bench.wish({ limitRequests: [...CLAIMS, ...OWN] }));
  const meter = bench.open("r2");
  await assertRejects(async () => await meter.admit(bench.wish({ limitRequests: [...CLAIMS, ...OWN] })), GatewayError);
  await meter.admit(bench.wish());
  await assertRejects(async () => await meter.admit(bench.wish()), TypeError);
  await meter.deliver(ANSWER);
  await holder.fail(500, DISCONNECTED);
  assertEquals((await leftOf(bench, [...CLAIMS, ...OWN])).slice(-2), [2, 1]);
});
