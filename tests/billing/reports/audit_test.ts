import { assertEquals, assertStringIncludes } from "@std/assert";
import { auditLedger } from "../../../lib/billing/reports/audit.ts";
import type { AuditReport } from "../../../lib/billing/reports/schemas.ts";
import { formatUsd } from "../../../lib/billing/money.ts";
import { dayOf } from "../../../lib/store/days.ts";
import {
  type BilledExtra,
  type DaySum,
  type Hold,
  type KeptEntry,
  type LedgerStart,
  type LedgerStore,
  userAccount,
} from "../../../lib/store/ledger.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { DAY_MS, DAY_ONE, entryOf, someEntries, tokensOf } from "./entries.ts";

/** A ledger with this many entries. */
async function ledgerOf(count: number): Promise<LedgerStore> {
  const ledger = openMemoryStore().ledger;
  await ledger.append(someEntries(count));
  return ledger;
}

/** The ledger with one of its entries read as another. */
function withEntry(ledger: LedgerStore, seq: number, change: (entry: KeptEntry) => KeptEntry[]): LedgerStore {
  return {
    ...ledger,
    entries: async (from) =>
      (await ledger.entries(from)).flatMap((entry) => entry.seq === seq ? change(entry) : [entry]),
  };
}

/** The ledger, but with changed values in the first sum of a day. */
function withFirstDay(ledger: LedgerStore, change: (sum: DaySum) => DaySum[]): LedgerStore {
  return {
    ...ledger,
    days: async (since, enough) => {
      const [first, ...rest] = await ledger.days(since, enough);
      return first === undefined || first.day !== dayOf(DAY_ONE)
        ? [...first === undefined ? [] : [first], ...rest]
        : [...change(first), ...rest];
    },
  };
}

function hold(change: Partial<Hold>): Hold {
  return {
    id: "h1",
    at: DAY_ONE,
    keyId: "key_1",
    group: "default",
    model: "acme/one",
    endpoint: "chat",
    amount: 1n,
    claims: [],
    leaseUntil: 0,
    ...change,
  };
}

function kinds({ differences }: AuditReport): string[] {
  return [...new Set(differences.map(({ kind }) => kind))].sort();
}

Deno.test("auditLedger() finds no differences in a correct ledger, and reports what it checked", async () => {
  const report = await auditLedger(await ledgerOf(1200));
  assertEquals([report.ok, report.difference_count, report.differences], [true, 0, []]);
  assertEquals(report.checked, {
    entries: 1200,
    first_seq: 1,
    last_seq: 1200,
    day_sums: (await (await ledgerOf(1200)).days(0)).length,
    day_sums_in_motion: 0,
    day_sums_alone: 0,
    user_sums: 0,
    user_sums_alone: 0,
    later_sums: 0,
    later_sums_alone: 0,
    holds: 0,
  });
  assertEquals((await auditLedger(openMemoryStore().ledger)).checked.first_seq, null);
});

Deno.test("auditLedger() finds a change of any member of an entry", async () => {
  const ledger = await ledgerOf(20);
  const [entry] = await ledger.entries({ after: 9, limit: 1 });
  if (entry?.sheet === undefined) throw new Error("Cannot test: entry 10 has no prices");
  const { sheet, tokens } = entry;
  const changes: [Partial<KeptEntry>, string[]][] = [
    [{ id: "other" }, ["check"]],
    [{ at: entry.at + 1 }, ["check"]],
    [{ at: entry.at + DAY_MS }, ["check", "day_sum"]],
    [{ keyId: "key_x" }, ["check", "day_sum"]],
    [{ group: "x" }, ["check", "day_sum"]],
    [{ model: "acme/x" }, ["check", "day_sum"]],
    [{ upstream: "x" }, ["check"]],
    [{ endpoint: "responses" }, ["check"]],
    [{ status: 201 }, ["check"]],
    [{ ending: "failed" }, ["check", "day_sum"]],
    [{ tokens: { ...tokens, prompt: tokens.prompt + 1 } }, ["check", "cost", "day_sum"]],
    [{ tokens: { ...tokens, input_cache_read: tokens.input_cache_read + 1 } }, ["check", "cost", "day_sum"]],
    [{ tokens: { ...tokens, input_cache_write_5m: 1 } }, ["check", "cost", "day_sum"]],
    [{ tokens: { ...tokens, input_cache_write_1h: 1 } }, ["check", "cost", "day_sum"]],
    [{ tokens: { ...tokens, completion: tokens.completion + 1 } }, ["check", "cost", "day_sum"]],
    [{ tokens: { ...tokens, reasoning: tokens.completion + 1 } }, ["check", "day_sum", "number"]],
    [{ tokens: { ...tokens, prompt: -1 } }, ["check", "cost", "day_sum", "number"]],
    [{ source: "counted" }, ["check"]],
    [{ priceVersion: 9 }, ["check"]],
    [{ sheet: { ...sheet, prompt: "0.00000126" } }, ["check", "cost"]],
    [{ sheet: { ...sheet, factor: "0.9" } }, ["check", "cost"]],
    [{ sheet: { ...sheet, input_cache_write_1h: "7" } }, ["check"]],
    [{ sheet: { ...sheet, completion: "a lot" } }, ["check", "cost"]],
    [{ cost: entry.cost + 1n }, ["check", "cost", "day_sum"]],
    [{ cost: -1n }, ["check", "cost", "day_sum"]],
    [{ held: entry.cost + 5n }, ["check"]],
    [{ held: -1n }, ["check", "cost", "day_sum", "number"].filter((kind) => kind !== "day_sum")],
    [{ overrun: 1n }, ["check", "cost", "day_sum"]],
    [{ firstMs: 1 }, ["check"]],
    [{ totalMs: entry.totalMs + 1 }, ["check"]],
    [{ totalMs: 0.5 }, ["check", "number"]],
    [{ attempts: 2 }, ["check"]],
    [{ images: 1 }, ["check", "day_sum"]],
    [{ check: entry.check + 1 }, ["check"]],
  ];
  for (const [change, expected] of changes) {
    const report = await auditLedger(withEntry(ledger, 10, (entry) => [{ ...entry, ...change }]));
    assertEquals([report.ok, kinds(report)], [false, expected], JSON.stringify(Object.keys(change)));
    assertEquals(report.differences[0]?.seq, 10);
  }
});

Deno.test("auditLedger() finds an input outside of its context tier, and an invalid upstream amount", async () => {
  const ledger = openMemoryStore().ledger;
  const tokens = tokensOf({ prompt: 600, input_cache_read: 400, completion: 5 });
  const details = (above: number, up_to?: number) => ({
    context_tier: { above, ...(up_to !== undefined && { up_to }) },
  });
  await ledger.append([entryOf({ tokens, details: { ...details(0, 1000), upstream_usd: "0.5" } })]);
  assertEquals((await auditLedger(ledger)).differences, []);
  const cases: [KeptEntry["details"], string[]][] = [
    [details(999, 1000), ["check"]],
    [details(0), ["check"]],
    [details(0, 999), ["check", "cost"]],
    [details(1000), ["check", "cost"]],
    [details(1000, 2000), ["check", "cost"]],
    [{ upstream_usd: "1e3" }, ["check", "cost"]],
  ];
  for (const [details = {}, expected] of cases) {
    const report = await auditLedger(withEntry(ledger, 1, (entry) => [{ ...entry, details }]));
    assertEquals(kinds(report), expected, JSON.stringify(details));
  }
});

Deno.test("auditLedger() recomputes the cost of images and extras", async () => {
  const ledger = openMemoryStore().ledger;
  const extras = [{ item: "input_image", count: 510, price: "0.0000015" }];
  const image_sizes = { asked: "1024x1024", delivered: ["1536x1024", "unknown"] };
  const entry = entryOf({
    endpoint: "images.edits",
    source: "formula",
    images: 2,
    tokens: tokensOf({ prompt: 9, completion: 5_488 + 7_024 }),
    details: { extras, image_sizes },
  });
  // 9 * 0.00000125 + 510 * 0.0000015 + 12,512 * 0.00001, times 0.8.
  assertEquals(entry.cost, 100_717_000_000n);
  await ledger.append([entry]);
  assertEquals((await auditLedger(ledger)).differences, []);
  const [extra] = extras;
  const changes: [Partial<KeptEntry>, string[]][] = [
    [{ details: { image_sizes } }, ["check", "cost"]],
    [{ details: { image_sizes, extras: [{ ...extra, count: 511 } as BilledExtra] } }, ["check", "cost"]],
    [{ details: { image_sizes, extras: [{ ...extra, count: -1 } as BilledExtra] } }, ["check", "cost", "number"]],
    [{ details: { image_sizes, extras: [{ ...extra, price: "1" } as BilledExtra] } }, ["check", "cost"]],
    [{ details: { extras, image_sizes: { ...image_sizes, asked: "1536x1024" } } }, ["check", "cost"]],
    [{ details: { extras, image_sizes: { ...image_sizes, delivered: ["1536x1024"] } } }, ["check", "cost", "number"]],
    [{ details: { extras } }, ["check"]],
  ];
  for (const [change, expected] of changes) {
    const report = await auditLedger(withEntry(ledger, 1, (entry) => [{ ...entry, ...change }]));
    assertEquals(kinds(report), expected, JSON.stringify(change));
  }
});

Deno.test("auditLedger() finds missing, duplicated and misplaced entries", async () => {
  const ledger = await ledgerOf(700);
  const missing = await auditLedger(withEntry(ledger, 300, () => []));
  assertEquals(kinds(missing), ["check", "day_sum", "gap"]);
  assertEquals(missing.differences[0], { kind: "gap", seq: 301, id: "r00008c", message: "follows entry 299" });
  assertEquals(kinds(await auditLedger(withEntry(ledger, 300, (entry) => [entry, entry]))), [
    "check",
    "day_sum",
    "gap",
  ]);
});

Deno.test("auditLedger() names an unreadable entry and continues after it", async () => {
  const ledger = await ledgerOf(1200);
  const torn: LedgerStore = {
    ...ledger,
    async entries(from) {
      const page = await ledger.entries(from);
      if (page.some(({ seq }) => seq === 777)) throw new Error("torn page");
      return page;
    },
  };
  const { checked, differences } = await auditLedger(torn);
  assertEquals(checked.entries, 1199);
  assertEquals(differences[0], { kind: "unreadable", seq: 777, message: "cannot be read: torn page" });
  const lost: LedgerStore = { ...ledger, entries: () => Promise.reject(new Error("disk")) };
  const report = await auditLedger(lost);
  assertEquals([report.ok, report.checked.entries, report.differences.length], [false, 0, 100]);
});

Deno.test("auditLedger() finds a change of any figure of a day", async () => {
  const ledger = await ledgerOf(100);
  const changes: ((sum: DaySum) => DaySum[])[] = [
    (sum) => [{ ...sum, requests: sum.requests + 1 }],
    (sum) => [{ ...sum, failed: sum.failed + 1 }],
    (sum) => [{ ...sum, tokens: { ...sum.tokens, reasoning: sum.tokens.reasoning - 1 } }],
    (sum) => [{ ...sum, images: 1 }],
    (sum) => [{ ...sum, cost: sum.cost - 1n }],
    (sum) => [{ ...sum, overrun: 1n }],
    (sum) => [{ ...sum, keyId: "key_x" }],
    (sum) => [{ ...sum, day: sum.day - 1 }],
    () => [],
    (sum) => [sum, { ...sum, model: "acme/never" }],
  ];
  for (const change of changes) {
    assertEquals(kinds(await auditLedger(withFirstDay(ledger, change))), ["day_sum"], String(change));
  }
  const { differences } = await auditLedger(
    withFirstDay(ledger, (sum) => [{ ...sum, cost: sum.cost + 1n, images: 3 }]),
  );
  assertStringIncludes(differences[0]?.message ?? "", "images is 3, the entries add up to 0; cost is ");
});

Deno.test("auditLedger() runs while the ledger grows", async () => {
  const ledger = await ledgerOf(1500);
  let round = 0;
  const busy: LedgerStore = {
    ...ledger,
    async days(since, enough) {
      round++;
      await ledger.append(someEntries(40, { seed: round, firstId: 10_000 + round * 100 }));
      return await ledger.days(since, enough);
    },
  };
  const report = await auditLedger(busy);
  assertEquals([report.ok, report.differences], [true, []]);
  assertEquals(report.checked.day_sums_in_motion > 0, true);
});

Deno.test("auditLedger() runs while entries are pruned, and reports sums without entries", async () => {
  const ledger = openMemoryStore().ledger;
  const entries = someEntries(3000).sort((a, b) => a.at - b.at);
  await ledger.append(entries);
  const sums = (await ledger.days(0)).length;
  const whole = await auditLedger(ledger, { pause: async () => void await ledger.prune(dayOf(DAY_ONE) + 1, Infinity) });
  assertEquals([whole.ok, whole.checked.day_sums], [true, sums]);
  while (await ledger.prune(dayOf(DAY_ONE) + 1, Infinity));
  const { ok, checked, differences } = await auditLedger(ledger);
  assertEquals([ok, differences], [true, []]);
  assertEquals(checked.day_sums + checked.day_sums_alone, sums);
  assertEquals(checked.first_seq, entries.findIndex(({ at }) => at >= DAY_ONE + DAY_MS) + 1);
});

Deno.test("auditLedger() restarts if pruning overtakes it", async () => {
  const ledger = openMemoryStore().ledger;
  await ledger.append(someEntries(3000).sort((a, b) => a.at - b.at));
  let isFirst = true;
  const pruned: LedgerStore = {
    ...ledger,
    async start() {
      const start = await ledger.start();
      if (isFirst) { while (await ledger.prune(dayOf(DAY_ONE) + 1, Infinity)); }
      isFirst = false;
      return start;
    },
  };
  const report = await auditLedger(pruned);
  assertEquals([report.ok, report.differences], [true, []]);
});

Deno.test("auditLedger() finds holds that were never released", async () => {
  const ledger = openMemoryStore().ledger;
  await ledger.hold(hold({ id: "h1", leaseUntil: 1_000_000 }));
  await ledger.hold(hold({ id: "h2", leaseUntil: 2_000_000 }));
  const fresh = await auditLedger(ledger, { now: () => 1_200_000 });
  assertEquals([fresh.ok, fresh.checked.holds], [true, 2]);
  const { differences } = await auditLedger(ledger, { now: () => 1_400_000 });
  assertEquals(differences.map(({ kind, id }) => [kind, id]), [["hold", "h1"]]);
  const negative: LedgerStore = {
    ...ledger,
    holds: async () => (await ledger.holds()).map((hold) => ({ ...hold, amount: -1n })),
  };
  assertEquals((await auditLedger(negative, { now: () => 0 })).difference_count, 2);
});

Deno.test("auditLedger() reports an invalid start of the ledger", async () => {
  const ledger = await ledgerOf(700);
  const starts: LedgerStart[] = [
    { seq: 0, check: 0, day: dayOf(DAY_ONE) },
    { seq: 0, check: 5, day: -1 },
    { seq: NaN, check: NaN, day: NaN },
    { seq: -1, check: 0, day: -1 },
  ];
  for (const start of starts) {
    const report = await auditLedger({ ...ledger, start: () => Promise.resolve(start) });
    assertEquals([kinds(report), report.checked.entries], [["start"], 700], JSON.stringify(start));
  }
  const pruned = await ledgerOf(3000);
  while (await pruned.prune(dayOf(DAY_ONE) + 1, Infinity));
  const later = { ...await pruned.start(), day: dayOf(DAY_ONE) + 2 };
  assertEquals(kinds(await auditLedger({ ...pruned, start: () => Promise.resolve(later) })), ["start"]);
});

Deno.test("auditLedger() reports other unreadable parts", async () => {
  const ledger = await ledgerOf(10);
  const fail = () => Promise.reject(new Error("disk"));
  const { ok, differences } = await auditLedger({ ...ledger, days: fail, holds: fail, start: fail }, {
    damage: ["torn"],
  });
  assertEquals([ok, differences.map(({ kind, message }) => [kind, message])], [false, [
    ["unreadable", "the start cannot be read: disk"],
    ["file", "torn"],
    ["unreadable", "the sums per day cannot be read: disk"],
    ["unreadable", "the holds cannot be read: disk"],
  ]]);
});

Deno.test("auditLedger() yields to connections while it runs", async () => {
  const ledger = await ledgerOf(5000);
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { hostname, port } = listener.addr;
  let isOver = false;
  async function connect(): Promise<boolean> {
    const [served, client] = await Promise.all([listener.accept(), Deno.connect({ hostname, port })]);
    served.close();
    client.close();
    return isOver;
  }
  const connected = connect();
  await auditLedger(ledger);
  isOver = true;
  assertEquals(await connected, false);
});

Deno.test("auditLedger() recomputes what end users spent of their budgets", async () => {
  const ledger = await ledgerOf(0);
  const day = dayOf(DAY_ONE);
  const users = Array.from({ length: 700 }, (_, index) => `u${index}`);
  await ledger.append(
    users.map((user, index) =>
      entryOf({ id: `user${index}`, details: { user, user_since: index % 3 === 0 ? 0 : day } })
    ),
  );
  const whole = await auditLedger(ledger);
  assertEquals([whole.ok, whole.checked.user_sums, whole.checked.user_sums_alone], [true, 700, 0]);
  const { cost } = entryOf();
  const { userSums, spending } = ledger;
  const account = userAccount("key_1", "u1");
  const more = await auditLedger({
    ...ledger,
    userSums: async (from) =>
      (await userSums(from)).map((sum) => sum.user === "u1" ? { ...sum, charged: sum.charged + 1n } : sum),
  });
  const less = await auditLedger({
    ...ledger,
    spending: async (spenders) =>
      (await spending(spenders)).map((sum, at) => spenders[at]?.id === account ? { ...sum, charged: cost - 1n } : sum),
  });
  const lost = await auditLedger({
    ...ledger,
    userSums: async (from) => (await userSums(from)).filter(({ user }) => user !== "u1"),
    spending: async (spenders) =>
      (await spending(spenders)).map((sum, at) => spenders[at]?.id === account ? { ...sum, charged: 0n } : sum),
  });
  assertEquals([more, less, lost].map(kinds), [["user_sum"], ["user_sum"], ["user_sum"]]);
  assertEquals(
    lost.differences[0]?.message,
    `period from 2026-11-20, key "key_1", end user "u1": the sum is 0 USD, the entries add up to ${
      formatUsd(cost)
    } USD`,
  );
});
