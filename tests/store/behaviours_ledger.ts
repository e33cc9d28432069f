/** Behaviour of every store for the ledger. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { auditLedger } from "../../lib/billing/reports/audit.ts";
import { NO_TOKENS } from "../../lib/store/days.ts";
import { checkSum } from "../../lib/store/entry_row.ts";
import {
  type BudgetClaim,
  type Entry,
  type EntryDetails,
  type Hold,
  type HoldAnswer,
  type KeptEntry,
  type LedgerStore,
  readUserAccount,
  type UsageBy,
  userAccount,
  type UserSum,
} from "../../lib/store/ledger.ts";
import { SHEET } from "../billing/reports/entries.ts";
import { seeded } from "../support/random.ts";
import { availableIn } from "../support/available.ts";

/** 2026-11-21, in days since 1970-01-01, and its midnight. */
export const DAY = 20_778;
export const MIDNIGHT = DAY * 86_400_000;

export const HOUR = 3_600_000;

/** Largest amount that is kept. */
const LARGEST = 2n ** 63n - 1n;

/** Details with all members. */
export const DETAILS: EntryDetails = {
  image_sizes: { asked: "1024x1024", delivered: ["1536x1024", "unknown"] },
  extras: [{ item: "input_image", count: 510, price: "0.0000012" }, { item: '\u00e4 "x"', count: 0, price: "0" }],
};

/** The reason of a failure, and the end user of the request. */
export const WHY: EntryDetails = {
  reason: {
    code: "limit",
    error: "rate_limit_requests",
    limit: { scope: "key", id: "key_1", unit: "requests", limit: 5, needed: 1, remaining: 0, free_after_ms: 12_000 },
    set_by: "group",
  },
  attempts: [
    {
      upstream: "one",
      model: "acme/one",
      outcome: "limited",
      ms: 40,
      status: 429,
      code: "rate",
      message: '\u00e4 "x"',
    },
    { upstream: "two", model: "acme/one", outcome: "success", ms: 5, request_id: "req-1" },
  ],
  user: "\ud83d\ude00 anna",
  tags: ["team:a", "b"],
};

/** An entry with usual members. */
export function entry(change: Partial<Entry> = {}): Entry {
  return {
    id: "r1",
    at: MIDNIGHT + HOUR,
    keyId: "key_1",
    group: "default",
    model: "acme/one",
    upstream: "acme",
    endpoint: "chat",
    status: 200,
    ending: "end",
    tokens: {
      prompt: 10,
      input_cache_read: 20,
      input_cache_write_5m: 30,
      input_cache_write_1h: 40,
      completion: 50,
      reasoning: 6,
    },
    source: "upstream",
    sheet: SHEET,
    cost: 100n,
    held: 0n,
    overrun: 0n,
    firstMs: 200,
    totalMs: 900,
    attempts: 1,
    images: 0,
    ...change,
  };
}

/** An entry without charge. */
export function failed(change: Partial<Entry> = {}): Entry {
  const { sheet: _, firstMs: __, ...rest } = entry({ ending: "failed", status: 502, source: "none", cost: 0n });
  return { ...rest, tokens: NO_TOKENS, ...change };
}

/** A budget of an end user of the key. */
export function ofUser(user: string, change: Partial<BudgetClaim> = {}): BudgetClaim {
  return { scope: "user", id: userAccount("key_1", user), budget: 100n, since: DAY, ...change };
}

/** A budget of the key. */
export function ofKey(budget: bigint, change: Partial<BudgetClaim> = {}): BudgetClaim {
  return { scope: "key", id: "key_1", budget, since: DAY, ...change };
}

/** A budget of the group. */
function ofGroup(budget: bigint, change: Partial<BudgetClaim> = {}): BudgetClaim {
  return { scope: "group", id: "default", budget, since: DAY, ...change };
}

/** A hold with usual members. */
export function hold(change: Partial<Hold> = {}): Hold {
  return {
    id: "r1",
    at: MIDNIGHT + HOUR,
    keyId: "key_1",
    group: "default",
    model: "acme/one",
    endpoint: "chat",
    amount: 60n,
    claims: [ofKey(100n)],
    leaseUntil: MIDNIGHT + HOUR + 60_000,
    ...change,
  };
}

/** All entries, page by page, with their chain recomputed from the start. */
export async function readChain(ledger: LedgerStore, limit = 500): Promise<KeptEntry[]> {
  const start = await ledger.start();
  const all: KeptEntry[] = [];
  let { seq, check } = start;
  for (;;) {
    const page = await ledger.entries({ after: seq, limit });
    for (const kept of page) {
      const { check: entryCheck, ...rest } = kept;
      assertEquals([kept.seq, entryCheck], [seq + 1, checkSum(rest, check)]);
      all.push(kept);
      seq = kept.seq;
      check = entryCheck;
    }
    if (page.length < limit) return all;
  }
}

async function names(ledger: LedgerStore, query: { since: number; until: number; by: UsageBy }): Promise<unknown[]> {
  return (await ledger.usage(query)).map(({ name, requests, failed, cost }) => [name, requests, failed, cost]);
}

async function pruneAll(ledger: LedgerStore, beforeDay: number): Promise<number> {
  let calls = 1;
  while (await ledger.prune(beforeDay, Infinity)) assert(calls++ < 1000);
  return calls;
}

const BEHAVIOURS: Record<string, (ledger: LedgerStore) => Promise<void>> = {
  "enters a request with all its members": async (ledger) => {
    const all = [
      entry({ held: 120n, overrun: 5n, images: 2, attempts: 3 }),
      failed({ id: "r2", model: "", upstream: "", status: 499 }),
      entry({ id: "r3", details: DETAILS }),
      failed({ id: "r4", details: WHY }),
    ];
    assertEquals(await ledger.append(all), [true, true, true, true]);
    const [one, two, three, four] = await readChain(ledger);
    assertEquals(one, { ...all[0], seq: 1, priceVersion: 1, check: one?.check } as KeptEntry);
    assertEquals(two, { ...all[1], seq: 2, check: two?.check } as KeptEntry);
    assertEquals(three, { ...all[2], seq: 3, priceVersion: 1, check: three?.check } as KeptEntry);
    assertEquals(four, { ...all[3], seq: 4, check: four?.check } as KeptEntry);
    assertEquals([await ledger.find("r1"), await ledger.find("r2"), await ledger.find("r3")], [one, two, three]);
    assertEquals(await ledger.find("' OR 1=1 --"), undefined);
    assertEquals(await ledger.append([]), []);
  },
  "enters each id once; a second entry changes nothing": async (ledger) => {
    assertEquals(await ledger.append([entry(), entry({ cost: 7n }), entry({ id: "r2" })]), [true, false, true]);
    const before = [await readChain(ledger), await ledger.days(0)];
    const cheap = entry({ cost: 1n, sheet: { ...SHEET, factor: "2" } });
    assertEquals(await ledger.append([cheap, entry({ id: "r2", cost: 2n })]), [false, false]);
    assertEquals(await Promise.all([ledger.append([cheap]), ledger.append([cheap])]), [[false], [false]]);
    assertEquals([await readChain(ledger), await ledger.days(0)], before);
    assertEquals(await availableIn(ledger, ofKey(1000n)), 800n);
  },
  "enters what is new of entries that come with others, wherever they stand": async (ledger) => {
    const all = (...ids: string[]) => ids.map((id) => entry({ id }));
    await ledger.append(all("a", "b"));
    const given = all("c", "a", "d", "d", "b", "e", "c");
    assertEquals(await ledger.append(given), [true, false, true, false, false, true, false]);
    assertEquals(await ledger.append(all("a", "e")), [false, false]);
    assertEquals(await ledger.append(all("f")), [true]);
    assertEquals((await readChain(ledger)).map(({ id }) => id), ["a", "b", "c", "d", "e", "f"]);
    const [sum] = await ledger.usage({ since: 0, until: MIDNIGHT + 24 * HOUR, by: "key" });
    assertEquals([sum?.requests, sum?.cost], [6, 600n]);
  },
  "sums what a key costs in one group and in another apart, also where both come at once": async (ledger) => {
    await ledger.append([entry({ id: "a" }), entry({ id: "b", group: "other" }), entry({ id: "c" })]);
    const sums = await ledger.days(0);
    assertEquals(sums.map(({ group, requests }) => `${group} ${requests}`).toSorted(), ["default 2", "other 1"]);
  },
  "enters one of two entries of an id that come at once": async (ledger) => {
    const answers = await Promise.all([1n, 2n, 3n].map((cost) => ledger.append([entry({ cost })])));
    assertEquals(answers.flat().toSorted(), [false, false, true]);
    assertEquals((await readChain(ledger)).length, 1);
    assertEquals((await ledger.days(0)).map(({ requests }) => requests), [1]);
  },
  "numbers the versions of price sheets": async (ledger) => {
    const dearer = { ...SHEET, prompt: "0.000002" };
    await ledger.append([entry({ sheet: { ...SHEET } }), entry({ id: "r2", sheet: dearer })]);
    await ledger.append([entry({ id: "r3", sheet: { ...dearer } }), failed({ id: "r4" }), entry({ id: "r5" })]);
    await ledger.append([entry({ id: "r6", sheet: { ...SHEET, factor: "1" } })]);
    const versions = (await readChain(ledger)).map(({ priceVersion, sheet }) => [priceVersion, sheet?.prompt]);
    assertEquals(versions, [
      [1, SHEET.prompt],
      [2, dearer.prompt],
      [2, dearer.prompt],
      [undefined, undefined],
      [1, SHEET.prompt],
      [3, SHEET.prompt],
    ]);
  },
  "refuses what it cannot keep exactly, and all that came with it": async (ledger) => {
    const wrong: Partial<Entry>[] = [
      { cost: -1n },
      { held: -1n },
      { overrun: LARGEST + 1n },
      { cost: LARGEST + 1n },
      { at: 0.5 },
      { at: -1 },
      { totalMs: NaN },
      { firstMs: 2 ** 53 },
      { images: -1 },
      { tokens: { ...entry().tokens, prompt: 1.5 } },
      { tokens: { ...entry().tokens, reasoning: -1 } },
      { details: { extras: [{ item: "input_image", count: 0.5, price: "1" }] } },
    ];
    for (const change of wrong) {
      await assertRejects(() => ledger.append([entry(), entry({ id: "r2", ...change })]), RangeError, "Cannot enter");
    }
    await assertRejects(() => ledger.hold(hold({ amount: -1n })), RangeError, "Cannot hold");
    await assertRejects(() => ledger.hold(hold({ amount: LARGEST + 1n })), RangeError, "Cannot hold");
    assertEquals([await readChain(ledger), await ledger.days(0), await ledger.holds()], [[], [], []]);
  },
  "keeps amounts of any size exactly": async (ledger) => {
    const odd = 2n ** 53n + 1n;
    const days = [0, 1, 2, 3].map((day) => entry({ id: `r${day}`, at: MIDNIGHT + day * 24 * HOUR, cost: LARGEST }));
    await ledger.append([entry({ id: "odd", at: 0, cost: odd, held: odd, overrun: odd }), ...days]);
    assertEquals((await readChain(ledger)).map(({ cost }) => cost), [odd, LARGEST, LARGEST, LARGEST, LARGEST]);
    const [sum] = await ledger.usage({ since: 0, until: MIDNIGHT + 4 * 24 * HOUR, by: "group" });
    assertEquals([sum?.cost, sum?.overrun], [odd + 4n * LARGEST, odd]);
    assertEquals((await ledger.days(0)).map(({ cost }) => cost), [odd, LARGEST, LARGEST, LARGEST, LARGEST]);
    for (const claim of [ofKey(0n, { since: 0 }), ofGroup(0n, { since: 0 })]) {
      assertEquals(await availableIn(ledger, claim), -odd - 4n * LARGEST);
    }
    assertEquals(await availableIn(ledger, ofKey(0n, { since: DAY + 3 })), -LARGEST);
    const amount = LARGEST;
    assertEquals(await ledger.hold(hold({ id: "h", amount, claims: [ofKey(2n * LARGEST, { since: DAY + 9 })] })), {
      held: true,
    });
    assertEquals((await ledger.holds())[0]?.amount, LARGEST);
  },

  "gives the last of a budget to one of those who want it at once": async (ledger) => {
    const wishes = Array.from({ length: 50 }, (_, index) => ledger.hold(hold({ id: `r${index}`, amount: 3n })));
    assertEquals((await Promise.all(wishes)).filter(({ held }) => held).length, 33);
    assertEquals(await availableIn(ledger, ofKey(100n)), 1n);
  },
  "tells who was charged after an entry": async (ledger) => {
    assertEquals(await ledger.spenders(0), { seq: 0, keys: [], groups: [], users: [] });
    await ledger.append([
      entry({ id: "a", cost: 10n }),
      entry({ id: "b", keyId: "key_2", cost: 1n }),
      entry({ id: "c", keyId: "key_2", group: "other", cost: 1n }),
      failed({ id: "d", keyId: "key_3" }),
    ]);
    const sorted = async (after: number) => {
      const { seq, keys, groups } = await ledger.spenders(after);
      return [seq, keys.sort(), groups.sort()];
    };
    assertEquals(await sorted(0), [4, ["key_1", "key_2"], ["default", "other"]]);
    assertEquals(await sorted(2), [4, ["key_2"], ["other"]]);
    assertEquals(await sorted(3), [4, [], []]);
  },
  "keeps as many periods apart as it is asked for": async (ledger) => {
    await ledger.append([entry({ id: "a", cost: 10n })]);
    const since = Array.from({ length: 30 }, (_, day) => DAY - day);
    for (const day of since) assertEquals(await availableIn(ledger, ofKey(100n, { since: day })), 90n);
    await ledger.append([entry({ id: "b", cost: 5n })]);
    for (const day of since) assertEquals(await availableIn(ledger, ofKey(100n, { since: day })), 85n);
  },
  "holds once for a request, however often it is asked": async (ledger) => {
    assertEquals(await ledger.hold(hold()), { held: true });
    assertEquals(await ledger.hold(hold()), { held: true });
    assertEquals(await availableIn(ledger, ofKey(100n)), 40n);
    await ledger.append([failed()]);
    await assertRejects(() => ledger.hold(hold()), RangeError, "in the ledger already");
    assertEquals(await availableIn(ledger, ofKey(100n)), 100n);
  },

  "voids a hold whose lease is over, and enters its request as lost": async (ledger) => {
    const { leaseUntil, at } = hold();
    await ledger.hold(hold());
    await ledger.hold(hold({ id: "r2", amount: 10n, leaseUntil: leaseUntil + 1 }));
    assertEquals(await ledger.expire(leaseUntil - 1), []);
    assertEquals(await ledger.expire(leaseUntil), ["r1"]);
    assertEquals(await ledger.expire(leaseUntil), []);
    assertEquals((await ledger.holds()).map(({ id }) => id), ["r2"]);
    assertEquals(await availableIn(ledger, ofKey(100n)), 90n);
    const kept = await ledger.find("r1");
    const { tokens } = failed();
    const lost = {
      model: "acme/one",
      upstream: "",
      status: 0,
      held: 60n,
      totalMs: leaseUntil - at,
      attempts: 0,
      tokens,
    };
    assertEquals(kept, { ...failed({ ending: "lost", ...lost }), seq: 1, check: kept?.check } as KeptEntry);
  },
  "ends holds of refused requests without entries": async (ledger) => {
    await ledger.hold(hold());
    await ledger.renew(["r1"], hold().leaseUntil + 100);
    await ledger.release(["r1", "unknown"]);
    await ledger.hold(hold({ id: "r2" }));
    await ledger.release([]);
    assertEquals((await ledger.holds()).map(({ id }) => id), ["r2"]);
    assertEquals(await ledger.expire(hold().leaseUntil + 100), ["r2"]);
    assertEquals((await readChain(ledger)).map(({ id }) => id), ["r2"]);
    assertEquals(await availableIn(ledger, ofKey(100n)), 100n);
  },
  "never charges or renews a void hold": async (ledger) => {
    const { leaseUntil } = hold();
    await ledger.hold(hold());
    await ledger.expire(leaseUntil);
    await ledger.renew(["r1"], leaseUntil + 1000);
    assertEquals([await ledger.holds(), await availableIn(ledger, ofKey(100n))], [[], 100n]);
    assertEquals(await ledger.append([entry()]), [false]);
    assertEquals((await ledger.find("r1"))?.ending, "lost");
    assertEquals(await availableIn(ledger, ofKey(100n)), 100n);
    await assertRejects(() => ledger.hold(hold()), RangeError);
  },
  "gives an entry or a loss to a request, whichever is first, when both come at once": async (ledger) => {
    await ledger.hold(hold());
    const [entered, voided] = await Promise.all([ledger.append([entry()]), ledger.expire(hold().leaseUntil)]);
    assertEquals([entered[0] === true, voided.length], [true, 0]);
    await ledger.hold(hold({ id: "r2", amount: 0n }));
    const [lost, late] = await Promise.all([ledger.expire(hold().leaseUntil), ledger.append([entry({ id: "r2" })])]);
    assertEquals([lost, late], [["r2"], [false]]);
    assertEquals((await readChain(ledger)).map(({ ending }) => ending), ["end", "lost"]);
  },
  "voids many holds, some at a time, so that entries need not wait": async (ledger) => {
    const ids = Array.from({ length: 600 }, (_, index) => `r${index}`);
    for (const id of ids) await ledger.hold(hold({ id, amount: 0n }));
    await ledger.append([entry({ id: "other" })]);
    const voided: string[][] = [];
    do voided.push(await ledger.expire(Number.MAX_SAFE_INTEGER - 1)); while (voided.at(-1)?.length !== 0);
    assertEquals([voided[0]?.length, voided.flat()], [256, ids]);
    assertEquals((await readChain(ledger)).length, 601);
  },

  "gives its entries in pages": async (ledger) => {
    await ledger.append(Array.from({ length: 7 }, (_, index) => entry({ id: `r${index + 1}` })));
    const page = async (after: number, limit: number) => (await ledger.entries({ after, limit })).map(({ seq }) => seq);
    assertEquals(await page(0, 3), [1, 2, 3]);
    assertEquals(await page(3, 3), [4, 5, 6]);
    assertEquals(await page(6, 3), [7]);
    assertEquals(await page(7, 3), []);
    assertEquals(await page(100, 3), []);
    assertEquals((await readChain(ledger, 2)).length, 7);
  },
  "gives the entries of a span of time in pages, in the order in which they came in": async (ledger) => {
    const came = [5, 3, 4, 3, 3, 9, 2];
    await ledger.append(came.map((at, index) => entry({ id: `r${index + 1}`, at: MIDNIGHT + at })));
    const page = async (span: { since: number; after?: number; until: number; limit?: number }) => {
      const { since, after = 0, until, limit = 9 } = span;
      const found = await ledger.entriesWithin({ since: MIDNIGHT + since, after, until: MIDNIGHT + until, limit });
      return found.map(({ id, seq, at }) => `${id} ${seq} ${at - MIDNIGHT}`);
    };
    const all = ["r7 7 2", "r2 2 3", "r4 4 3", "r5 5 3", "r3 3 4", "r1 1 5", "r6 6 9"];
    assertEquals(await page({ since: 0, until: 10 }), all);
    // The entry at the end of the range is not included.
    assertEquals(await page({ since: 3, until: 9 }), all.slice(1, 6));
    assertEquals(await page({ since: 3, until: 9, limit: 2 }), all.slice(1, 3));
    // Of the first moment only the entries after a position, of later moments all.
    assertEquals(await page({ since: 3, after: 4, until: 9, limit: 2 }), all.slice(3, 5));
    assertEquals(await page({ since: 3, after: 5, until: 9 }), all.slice(4, 6));
    assertEquals(await page({ since: 10, until: 20 }), []);
    assertEquals(await page({ since: 6, until: 9 }), []);
    assertEquals(
      (await ledger.entriesWithin({ since: 0, after: 0, until: MIDNIGHT + 3, limit: 9 }))[0],
      await ledger.find("r7"),
    );
    await ledger.append([entry({ id: "late", at: MIDNIGHT + 4 })]);
    await ledger.append([entry({ id: "next", at: MIDNIGHT + 25 * HOUR })]);
    assertEquals(await page({ since: 4, until: 9 }), ["r3 3 4", "late 8 4", "r1 1 5"]);
    await pruneAll(ledger, DAY + 1);
    assertEquals(await page({ since: 0, until: 26 * HOUR }), [`next 9 ${25 * HOUR}`]);
  },
  "gives the durations of answered requests among the first of each period": async (ledger) => {
    await ledger.append([
      entry({ id: "r1", at: MIDNIGHT + 3, firstMs: 10, totalMs: 100 }),
      failed({ id: "r2", at: MIDNIGHT + 1, firstMs: 20, totalMs: 200 }),
      entry({ id: "r3", at: MIDNIGHT + 2, firstMs: 30, totalMs: 300 }),
      entry({ id: "r4", at: MIDNIGHT + 9, firstMs: 0, totalMs: 0 }),
    ]);
    const [one, three] = [{ firstMs: 10, totalMs: 100 }, { firstMs: 30, totalMs: 300 }];
    const span = (since: number, until: number, limit = 9) => ({
      since: MIDNIGHT + since,
      until: MIDNIGHT + until,
      limit,
    });
    assertEquals(await ledger.durations([span(0, 9), span(9, 10), span(10, 20), span(0, 9, 2), span(1, 3)]), [
      { read: 3, answered: [three, one] },
      { read: 1, answered: [{ firstMs: 0, totalMs: 0 }] },
      { read: 0, answered: [] },
      { read: 2, answered: [three] },
      { read: 2, answered: [three] },
    ]);
    assertEquals(await ledger.durations([]), []);
  },
  "chains entries by their checksums, from one call to the next": async (ledger) => {
    for (let index = 0; index < 5; index++) {
      await ledger.append([entry({ id: `a${index}` }), failed({ id: `b${index}` })]);
    }
    assertEquals((await readChain(ledger)).length, 10);
    assertEquals(await ledger.start(), { seq: 0, check: 0, day: -1 });
  },
  "sums by key, group, model and day": async (ledger) => {
    await ledger.append([
      entry({ id: "a" }),
      entry({ id: "b", keyId: "key_2", cost: 7n, images: 2, overrun: 3n }),
      entry({ id: "c", at: MIDNIGHT - 1, group: "ops", model: "acme/two", cost: 9n }),
      failed({ id: "d", ending: "refused", model: "" }),
      failed({ id: "e", ending: "lost" }),
      failed({ id: "f" }),
      entry({ id: "g", ending: "client_disconnected", cost: 1n }),
    ]);
    const all = { since: 0, until: MIDNIGHT + 48 * HOUR };
    assertEquals(await names(ledger, { ...all, by: "key" }), [["key_1", 6, 3, 110n], ["key_2", 1, 0, 7n]]);
    assertEquals(await names(ledger, { ...all, by: "group" }), [["default", 6, 3, 108n], ["ops", 1, 0, 9n]]);
    assertEquals(await names(ledger, { ...all, by: "model" }), [
      ["", 1, 1, 0n],
      ["acme/one", 5, 2, 108n],
      ["acme/two", 1, 0, 9n],
    ]);
    assertEquals(await names(ledger, { ...all, by: "day" }), [["2026-11-20", 1, 0, 9n], ["2026-11-21", 6, 3, 108n]]);
    const [, two] = await ledger.usage({ ...all, by: "key" });
    assertEquals(two, {
      name: "key_2",
      requests: 1,
      failed: 0,
      tokens: entry().tokens,
      images: 2,
      cost: 7n,
      overrun: 3n,
      // The writes cost more than reading saved.
      saved: 20n * 900_000n - 30n * 250_000n - 40n * 1_000_000n,
    });
    const [one] = await ledger.usage({ ...all, by: "key" });
    const { tokens } = entry();
    assertEquals(one?.tokens.prompt, tokens.prompt * 3);
    assertEquals(one?.tokens.reasoning, tokens.reasoning * 3);
  },
  "sums up one state of the ledger, whatever is entered meanwhile": async (ledger) => {
    const [days, keys] = [15, 400];
    for (let day = 0; day < days; day++) {
      await ledger.append(Array.from({ length: keys }, (_, number) =>
        entry({
          id: `${day} ${number}`,
          at: MIDNIGHT + day * 24 * HOUR + number + 1,
          keyId: `key_${String(number).padStart(3, "0")}`,
        })));
    }
    // Everything by the sums of days, and the first and the last day by their entries.
    const spans = [[0, days * 24 * HOUR], [1, (days - 1) * 24 * HOUR + keys]] as const;
    const ends = [MIDNIGHT + 1, MIDNIGHT + (days - 1) * 24 * HOUR + 1];
    let batches = 0;
    for (const [since, until] of spans) {
      for (const by of ["key", "day"] as const) {
        const before = batches;
        let isDone = false;
        const requested = ledger.usage({ since: MIDNIGHT + since, until: MIDNIGHT + until, by }).finally(() =>
          isDone = true
        );
        while (!isDone) {
          await new Promise((resolve) => setTimeout(resolve, 0));
          // In one transaction: both are visible at the same time.
          await ledger.append(ends.map((at, index) => {
            return entry({ id: `more ${batches} ${index}`, at, keyId: index === 0 ? "key_000" : "key_399" });
          }));
          batches++;
        }
        const sums = await requested;
        const grown = (sums[0]?.requests ?? 0) - (by === "key" ? days : keys);
        assert(before <= grown && grown <= batches, `${grown} of ${batches}, ${before} before`);
        assertEquals(sums.length, by === "key" ? keys : days);
        for (const [index, { name, requests, cost, tokens }] of sums.entries()) {
          const isEnd = index === 0 || index === sums.length - 1;
          const lost = by === "key" && since > 0 && index === keys - 1 ? 1 : 0;
          const own = by === "key" ? days - lost : keys - (since > 0 && index === days - 1 ? 1 : 0);
          const all = own + (isEnd ? grown : 0);
          assertEquals([requests, cost, tokens.prompt], [all, 100n * BigInt(all), 10 * all], name);
        }
      }
    }
  },
  "gives the sums per day as they are kept": async (ledger) => {
    await ledger.append([entry({ id: "a" }), entry({ id: "b", at: MIDNIGHT + 24 * HOUR }), failed({ id: "c" })]);
    await ledger.append([entry({ id: "d", keyId: "key_2" }), entry({ id: "e", cost: 3n })]);
    const days = await ledger.days(0);
    assertEquals(
      days.map(({ day, keyId, requests, failed, cost }) => [day - DAY, keyId, requests, failed, cost]).toSorted(),
      [[0, "key_1", 3, 1, 103n], [0, "key_2", 1, 0, 100n], [1, "key_1", 1, 0, 100n]],
    );
    assertEquals(days.map(({ day }) => day), [DAY, DAY, DAY + 1]);
    const second = await ledger.days(DAY + 1);
    assertEquals(second, [{
      day: DAY + 1,
      keyId: "key_1",
      group: "default",
      model: "acme/one",
      requests: 1,
      failed: 0,
      tokens: entry().tokens,
      images: 0,
      cost: 100n,
      overrun: 0n,
    }]);
    assertEquals((await ledger.days(0, 1)).length, 2);
    assertEquals((await ledger.days(0, 3)).length, 3);
    assertEquals((await ledger.days(0, 9)).length, 3);
    assertEquals(await ledger.days(DAY + 2, 9), []);
  },

  "forgets the entries of old days, and keeps their sums": async (ledger) => {
    const before = Array.from({ length: 1200 }, (_, index) => entry({ id: `old${index}`, at: MIDNIGHT - HOUR }));
    await ledger.append(before);
    await ledger.append([
      entry({ id: "new", at: MIDNIGHT }),
      // Received yesterday and ended today: it comes after an entry of today, so it waits for that one.
      entry({ id: "late", at: MIDNIGHT - 1 }),
    ]);
    const sums = await ledger.days(0);
    const last = (await ledger.entries({ after: 1199, limit: 1 }))[0];
    assertEquals(await pruneAll(ledger, DAY - 1), 1);
    assertEquals((await ledger.start()).seq, 0);
    assert(await pruneAll(ledger, DAY) > 2);
    assertEquals(await ledger.start(), { seq: 1200, check: last?.check, day: DAY - 1 } as unknown);
    assertEquals((await readChain(ledger)).map(({ id, seq }) => [id, seq]), [["new", 1201], ["late", 1202]]);
    assertEquals((await ledger.entries({ after: 0, limit: 9 })).length, 2);
    assertEquals(await ledger.find("old7"), undefined);
    assertEquals((await ledger.find("late"))?.seq, 1202);
    assertEquals(await ledger.days(0), sums);
    assertEquals(await availableIn(ledger, ofKey(0n, { since: 0 })), -120_200n);
  },
  "prunes entries from the future with the older ones that follow them": async (ledger) => {
    const at = (day: number) => MIDNIGHT + (day - DAY) * 24 * HOUR;
    const later = DAY + 4000;
    await ledger.append([
      ...Array.from({ length: 1100 }, (_, index) => entry({ id: `ahead${index}`, at: at(later + index % 2) })),
      entry({ id: "old", at: at(DAY) }),
      entry({ id: "ahead again", at: at(later + 5) }),
      entry({ id: "kept", at: at(DAY + 9) }),
    ]);
    const sums = await ledger.days(0);
    const prune = async (before: number, today: number) => {
      while (await ledger.prune(before, today));
      const { seq, day, ahead } = await ledger.start();
      return { seq, day, ahead: ahead?.toSorted() };
    };
    assertEquals(await prune(DAY, DAY + 10), { seq: 0, day: -1, ahead: undefined });
    assertEquals(await prune(DAY + 1, later), { seq: 0, day: -1, ahead: undefined });
    assertEquals(await prune(DAY + 1, DAY + 10), { seq: 1101, day: DAY, ahead: [later, later + 1] });
    assertEquals(await prune(DAY + 9, DAY + 10), { seq: 1101, day: DAY, ahead: [later, later + 1] });
    assertEquals((await readChain(ledger)).map(({ id }) => id), ["ahead again", "kept"]);
    assertEquals(await prune(DAY + 10, DAY + 10), { seq: 1103, day: DAY + 9, ahead: [later, later + 1, later + 5] });
    await ledger.append([entry({ id: "new", at: at(later + 1) })]);
    assertEquals((await auditLedger(ledger)).differences.filter(({ kind }) => kind !== "cost"), []);
    assertEquals(await prune(later + 2, later + 9), { seq: 1104, day: later + 1, ahead: [later + 5] });
    assertEquals((await auditLedger(ledger)).differences.filter(({ kind }) => kind !== "cost"), []);
    assertEquals((await ledger.days(0)).length, sums.length);
  },
  "goes on where pruning left it, even with nothing": async (ledger) => {
    await ledger.append([entry({ id: "a" }), entry({ id: "b" })]);
    const last = await ledger.find("b");
    await pruneAll(ledger, DAY + 1);
    assertEquals(await ledger.start(), { seq: 2, check: last?.check, day: DAY } as unknown);
    assertEquals(await readChain(ledger), []);
    await ledger.append([entry({ id: "c", at: MIDNIGHT + 24 * HOUR })]);
    assertEquals((await readChain(ledger)).map(({ id, seq }) => [id, seq]), [["c", 3]]);
    await pruneAll(ledger, DAY + 9);
    assertEquals((await ledger.start()).seq, 3);
    assertEquals((await ledger.start()).day, DAY + 1);
  },
  "sums days as a whole whose entries are gone": async (ledger) => {
    await ledger.append([
      entry({ id: "a", at: MIDNIGHT + HOUR, cost: 1n }),
      entry({ id: "b", at: MIDNIGHT + 2 * HOUR, cost: 10n }),
      entry({ id: "c", at: MIDNIGHT + 25 * HOUR, cost: 100n }),
      entry({ id: "d", at: MIDNIGHT + 26 * HOUR, cost: 1000n }),
    ]);
    const cost = async (since: number, until: number) =>
      (await ledger.usage({ since: MIDNIGHT + since * HOUR, until: MIDNIGHT + until * HOUR, by: "key" }))[0]?.cost;
    assertEquals(await cost(1.5, 25.5), 110n);
    await pruneAll(ledger, DAY + 1);
    assertEquals(await cost(1.5, 25.5), 111n);
    assertEquals(await cost(0.5, 0.6), 11n);
    assertEquals(await cost(25.5, 27), 1000n);
  },

  "hands out copies, and keeps one": async (ledger) => {
    const given = entry({ sheet: { ...SHEET } });
    const claims = [ofKey(100n)];
    await ledger.append([given]);
    await ledger.hold(hold({ id: "r2", amount: 0n, claims }));
    given.tokens.prompt = 999;
    if (given.sheet !== undefined) given.sheet.prompt = "9";
    claims.pop();
    for (
      const found of [
        await ledger.find("r1"),
        ...await ledger.entries({ after: 0, limit: 1 }),
        ...await ledger.entriesWithin({ since: 0, after: 0, until: MIDNIGHT * 2, limit: 1 }),
      ]
    ) {
      assertEquals([found?.tokens.prompt, found?.sheet?.prompt], [10, SHEET.prompt]);
      if (found !== undefined) found.tokens.prompt = 1;
    }
    for (const open of await ledger.holds()) open.amount = 5n;
    for (const sum of await ledger.days(0)) sum.cost = 5n;
    assertEquals((await ledger.holds()).map(({ amount, claims }) => [amount, claims.length]), [[0n, 1]]);
    assertEquals((await ledger.days(0)).map(({ cost }) => cost), [100n]);
    assertEquals((await readChain(ledger)).length, 1);
  },
  "holds for end users apart: by key, user and period, also those without a name": async (ledger) => {
    const claims = (user: string, change: Partial<BudgetClaim> = {}) => [ofUser(user, change)];
    const ask = (id: string, all: BudgetClaim[], change: Partial<Hold> = {}) =>
      ledger.hold(hold({ id, claims: all, ...change })).then((answer) =>
        answer.held || [answer.available, answer.onHold]
      );
    assertEquals(await ask("a", claims("u")), true);
    assertEquals(await ask("b", claims("u")), [40n, 60n]);
    assertEquals(await ask("c", claims("v")), true);
    assertEquals(await ask("d", claims("")), true);
    assertEquals(await ask("e", claims("u", { id: userAccount("key_2", "u") }), { keyId: "key_2" }), true);
    assertEquals(await ask("f", claims("u", { since: 0 })), true);
    assertEquals(await ask("g", [...claims("v"), ofKey(1000n)], { amount: 41n }), [40n, 60n]);
    assertEquals(await ask("h", [ofUser("w"), ofKey(270n)], { amount: 40n }), [30n, 240n]);
    await assertRejects(() => ledger.hold(hold({ id: "i", claims: [ofKey(1n), ofUser("u")] })), RangeError, "first");
    const details = (user: string): EntryDetails => ({ ...(user !== "" && { user }), user_since: DAY });
    await ledger.append([
      entry({ id: "a", cost: 50n, held: 60n, details: details("u") }),
      entry({ id: "d", cost: 7n, held: 60n, details: details("") }),
      // Without a budget of its end user.
      entry({ id: "x", cost: 9n, details: { user: "u" } }),
      failed({ id: "y", details: details("u") }),
    ]);
    assertEquals(await ledger.spending([...claims("u"), ...claims(""), ...claims("nobody")]), [
      { charged: 50n, held: 0n },
      { charged: 7n, held: 0n },
      { charged: 0n, held: 0n },
    ]);
    assertEquals(await ask("j", claims("u"), { amount: 51n }), [50n, 0n]);
    assertEquals(await availableIn(ledger, ofUser("u")), 50n);
    await ledger.expire(Number.MAX_SAFE_INTEGER);
    assertEquals(await ledger.spending(claims("v")), [{ charged: 0n, held: 0n }]);
    const { users } = await ledger.spenders(0);
    assertEquals(users.toSorted((a, b) => a.user < b.user ? -1 : 1), [
      { keyId: "key_1", user: "", refused: false },
      { keyId: "key_1", user: "u", refused: false },
    ]);
  },
  "finds the end users who spent most, lists all, and forgets those of old periods": async (ledger) => {
    const users = Array.from({ length: 1_200 }, (_, index) => `u${String(index).padStart(4, "0")}`);
    const of = (user: string, change: Partial<Entry>, user_since = DAY) =>
      entry({ details: { user, user_since }, ...change });
    await ledger.append(users.map((user, index) => of(user, { id: `a${index}`, cost: BigInt(index) })));
    await ledger.append([
      of("u0003", { id: "b", cost: 5_000n }),
      of("u0003", { id: "c", cost: 8_000n }, 0),
      of("z", { id: "d", cost: 9_000n, keyId: "key_2" }),
      of("z", { id: "e", cost: 1n }, DAY - 40),
    ]);
    const top = async (query: Parameters<LedgerStore["topUsers"]>[0]) =>
      (await ledger.topUsers(query)).map(({ keyId, user, charged }) => [keyId, user, charged]);
    assertEquals(await top({ since: DAY, limit: 3 }), [
      ["key_2", "z", 9_000n],
      ["key_1", "u0003", 5_003n],
      ["key_1", "u1199", 1_199n],
    ]);
    assertEquals(await top({ since: DAY, keyId: "key_1", limit: 2 }), [["key_1", "u0003", 5_003n], [
      "key_1",
      "u1199",
      1_199n,
    ]]);
    assertEquals(await top({ since: 0, limit: 9 }), [["key_1", "u0003", 8_000n]]);
    const all: UserSum[] = [];
    const nextPage = () => {
      const after = all.at(-1);
      return ledger.userSums({ ...(after && { after }), limit: 500 });
    };
    for (let page = await nextPage(); page.length > 0; page = await nextPage()) all.push(...page);
    // The first user has spent nothing.
    assertEquals(all.length, 1_199 + 3);
    assertEquals(all.map(({ since }) => since).toSorted((a, b) => a - b), all.map(({ since }) => since));
    await pruneAll(ledger, DAY);
    assertEquals((await ledger.userSums({ limit: 2 })).map(({ since }) => since), [0, DAY]);
    await pruneAll(ledger, DAY + 31);
    assertEquals((await ledger.userSums({ limit: 2 })).map(({ since }) => since), [0]);
  },
  "agrees with a plain reckoning over random steps": async (ledger) => {
    for (let seed = 1; seed <= 4; seed++) await wander(ledger, seed);
    await readChain(ledger);
  },
};

/** Random steps, each compared with lists of entries and holds. */
async function wander(ledger: LedgerStore, seed: number): Promise<void> {
  const { below } = seeded(seed);
  const entered: Entry[] = [];
  let open: Hold[] = [];
  const keys = ["a", "b", "c"].map((name) => `${seed}-${name}`);
  const groupOf = (key: string) => `${seed}-${key.endsWith("a") ? "x" : "y"}`;
  let now = MIDNIGHT + 20 * HOUR;

  function leftOf({ scope, id, since, budget }: BudgetClaim): { left: bigint; onHold: bigint } {
    const counts = (each: Entry | Hold) => {
      if (scope !== "user") return (scope === "key" ? each.keyId : each.group) === id && each.at >= since * 24 * HOUR;
      if ("claims" in each) {
        return each.claims.some((own) => own.scope === scope && own.id === id && own.since === since);
      }
      const { user = "", user_since } = each.details ?? {};
      return user_since === since && userAccount(each.keyId, user) === id;
    };
    const charged = entered.filter(counts).reduce((sum, { cost }) => sum + cost, 0n);
    const onHold = open.filter(counts).reduce((sum, { amount }) => sum + amount, 0n);
    return { left: budget - charged - onHold, onHold };
  }

  function expected({ amount, claims }: Hold): HoldAnswer {
    for (const claim of claims) {
      const { left, onHold } = leftOf(claim);
      if (amount > left) return { held: false, claim, available: left, onHold };
    }
    return { held: true };
  }

  for (let step = 0; step < 150; step++) {
    now += below(600_000);
    const keyId = keys[below(3)] ?? "";
    const [group, since] = [groupOf(keyId), [0, DAY, DAY + 1][below(3)] ?? 0];
    const user = ["", "u", "v w"][below(3)] ?? "";
    const claims = [
      ...(below(3) > 0 ? [ofUser(user, { id: userAccount(keyId, user), since, budget: BigInt(below(300)) })] : []),
      ...(below(4) > 0 ? [ofKey(BigInt(below(300)), { id: keyId, since })] : []),
      ...(below(2) > 0 ? [ofGroup(BigInt(below(500)), { id: group, since })] : []),
    ];
    const wish = hold({
      id: `${seed}-${step}`,
      at: now,
      keyId,
      group,
      claims,
      amount: BigInt(below(60)),
      leaseUntil: now + below(3_000_000),
    });
    const action = below(10);
    if (action < 5) {
      const answer = expected(wish);
      assertEquals(await ledger.hold(wish), answer);
      if (answer.held) open.push(wish);
    } else if (action < 8) {
      const ends = open.filter(() => below(3) === 0).map(({ id, at, keyId, group, amount: held, claims: [claim] }) => {
        const details = claim?.scope === "user"
          ? { details: { user: readUserAccount(claim.id).user, user_since: claim.since } }
          : {};
        return entry({ id, at, keyId, group, held, cost: below(2) === 0 ? held : 0n, ...details });
      });
      assertEquals(await ledger.append(ends), ends.map(() => true));
      entered.push(...ends);
      open = open.filter(({ id }) => ends.every((end) => end.id !== id));
    } else if (action === 8) {
      const renewed = open.filter(() => below(2) === 0);
      await ledger.renew(renewed.map(({ id }) => id), now + 1_000_000);
      for (const each of renewed) each.leaseUntil = Math.max(each.leaseUntil, now + 1_000_000);
    } else {
      const over = open.filter(({ leaseUntil }) => leaseUntil <= now);
      assertEquals(await ledger.expire(now), over.map(({ id }) => id));
      entered.push(...over.map(({ id, at, keyId, group }) => failed({ id, at, keyId, group })));
      open = open.filter((each) => !over.includes(each));
    }
    for (const claim of claims) assertEquals(await availableIn(ledger, claim), leftOf(claim).left);
    const amounts = await ledger.spending(claims);
    for (const [index, { budget }] of claims.entries()) {
      const { charged = 0n, held = 0n } = amounts[index] ?? {};
      assertEquals(budget - charged - held, leftOf(claims[index] as BudgetClaim).left);
    }
    assertEquals((await ledger.holds()).map(({ id }) => id), open.map(({ id }) => id));
  }
  const sums = (await ledger.usage({ since: 0, until: now + 24 * HOUR, by: "key" }))
    .filter(({ name }) => keys.includes(name));
  for (const { name, requests, cost } of sums) {
    const mine = entered.filter(({ keyId }) => keyId === name);
    assertEquals([requests, cost], [mine.length, mine.reduce((sum, { cost }) => sum + cost, 0n)]);
  }
  await ledger.expire(Number.MAX_SAFE_INTEGER);
}

/** Tests a kind of store. `open` passes an empty one to the test and removes it afterwards. */
export function testLedger(name: string, open: (test: (ledger: LedgerStore) => Promise<void>) => Promise<void>): void {
  for (const [claim, behaviour] of Object.entries(BEHAVIOURS)) {
    Deno.test(`${name} ${claim}`, () => open(behaviour));
  }
}
