import { assertEquals, assertRejects } from "@std/assert";
import type { Config } from "../../../lib/config.ts";
import { parseConfig } from "../../../lib/config/parse.ts";
import { readUpstreamPrices } from "../../../lib/billing/reports/invoice.ts";
import { PrunedEntriesError, ReportQueryError } from "../../../lib/billing/reports/report_errors.ts";
import { sumUpstreams } from "../../../lib/billing/reports/upstreams.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import type { Entry } from "../../../lib/store/ledger.ts";
import { DAY_MS, DAY_ONE, entryOf, freeEntryOf, SHEET, tokensOf } from "./entries.ts";
import { plainModel } from "../../support/plain_model.ts";

const WHOLE = { since: DAY_ONE, until: DAY_ONE + 2 * DAY_MS };
const FIRST_DAY = DAY_ONE / DAY_MS;

function configOf(targets: Record<string, string[]>): Pick<Config, "models" | "upstreams"> {
  return parseConfig({
    upstreams: { acme: { vendor: "openai-compatible", base_url: "http://127.0.0.1:9/v1" } },
    models: Object.entries(targets).map(([id, models]) =>
      plainModel({ id, targets: models.map((model) => ({ upstream: "acme", model })) })
    ),
  }, () => undefined);
}

async function ledgerOf(entries: readonly Entry[]) {
  const ledger = openMemoryStore().ledger;
  await ledger.append(entries);
  return ledger;
}

Deno.test("sumUpstreams() sums by upstream, upstream model and day, at list price", async () => {
  const tokens = tokensOf({ prompt: 100, input_cache_read: 10, completion: 20, reasoning: 5 });
  const next = DAY_ONE + DAY_MS;
  const ledger = await ledgerOf([
    entryOf({ id: "a", tokens }),
    // Another public model on the same one of the upstream, and another factor of the group.
    entryOf({ id: "b", model: "acme/two", tokens, sheet: { ...SHEET, model: "acme/two", factor: "2" }, attempts: 3 }),
    entryOf({ id: "c", tokens, source: "counted", ending: "client_disconnected" }),
    freeEntryOf({ id: "d" }),
    entryOf({ id: "e", at: next, tokens }),
    entryOf({ id: "f", upstream: "other", tokens, images: 2 }),
    entryOf({ id: "k", upstream: "other", tokens, images: 3 }),
    // Two targets at that upstream: ambiguous.
    entryOf({ id: "g", model: "acme/either", tokens }),
    freeEntryOf({ id: "h", upstream: "", ending: "refused", attempts: 0 }),
    entryOf({ id: "i", at: WHOLE.until, tokens }),
    entryOf({ id: "j", at: WHOLE.since - 1, tokens }),
  ]);
  const config = configOf({ "acme/one": ["big-1"], "acme/two": ["big-1"], "acme/either": ["big-1", "big-2"] });
  const sums = await sumUpstreams({ ledger, config }, WHOLE);
  // 100 * 0.00000125 + 10 * 0.000000125 + 20 * 0.00001, in 1e-12 USD.
  const list = 326_250_000n;
  const reported = sums.map(({ tokens: { prompt, reasoning }, ...sum }) => ({ ...sum, tokens: [prompt, reasoning] }));
  const row = { upstream: "acme", model: "big-1", day: FIRST_DAY, images: 0, failed: 0, counted: 0, attempts: 1 };
  const one = { upstreamCost: list, unpriced: 1, cost: list * 4n / 5n };
  assertEquals(reported, [
    { ...row, model: "acme/either", requests: 1, tokens: [100, 5], ...one },
    {
      ...{ ...row, requests: 4, attempts: 6, failed: 1, counted: 1, tokens: [300, 15] },
      ...{ upstreamCost: 3n * list, unpriced: 3, cost: list * 2n * 4n / 5n + list * 2n },
    },
    { ...row, day: FIRST_DAY + 1, requests: 1, tokens: [100, 5], ...one },
    {
      ...row,
      upstream: "other",
      model: "acme/one",
      requests: 2,
      attempts: 2,
      tokens: [200, 10],
      images: 5,
      upstreamCost: 2n * list,
      unpriced: 2,
      cost: 2n * list * 4n / 5n,
    },
  ]);

  const prices = readUpstreamPrices('{"big-1": {"prompt": "0.000001", "completion": "0.000002"}}');
  const priced = await sumUpstreams({ ledger, config }, { ...WHOLE, upstream: "acme", prices });
  // Cached input costs as much as other input.
  assertEquals(priced.map(({ upstreamCost }) => upstreamCost), [list, 3n * 150_000_000n, 150_000_000n]);
});

Deno.test("sumUpstreams() prefers a given price over the entry's cost, and that over the catalog's price", async () => {
  const tokens = tokensOf({ prompt: 100, completion: 20 });
  const ledger = await ledgerOf([
    entryOf({ id: "a", tokens, details: { upstream_usd: "0.000123" } }),
    entryOf({ id: "b", tokens, details: { upstream_usd: "0" } }),
    entryOf({ id: "c", tokens }),
    freeEntryOf({ id: "d" }),
  ]);
  const config = configOf({ "acme/one": ["big-1"] });
  const [sum] = await sumUpstreams({ ledger, config }, WHOLE);
  // c: 100 * 0.00000125 + 20 * 0.00001.
  assertEquals([sum?.upstreamCost, sum?.unpriced], [123_000_000n + 325_000_000n, 1]);
  const prices = readUpstreamPrices('{"big-1": {"prompt": "0.000001", "completion": "0"}}');
  const [given] = await sumUpstreams({ ledger, config }, { ...WHOLE, prices });
  assertEquals([given?.upstreamCost, given?.unpriced], [3n * 100_000_000n, 0]);
});

Deno.test("sumUpstreams() includes the cost of uploaded images", async () => {
  const details = { extras: [{ item: "input_image", count: 1_000, price: "0.0000012" }] };
  const ledger = await ledgerOf([entryOf({ tokens: tokensOf({ prompt: 10 }), details })]);
  const config = configOf({ "acme/one": ["big-1"] });
  const costs = async (prices?: string) => {
    const sums = await sumUpstreams({ ledger, config }, {
      ...WHOLE,
      ...(prices !== undefined && { prices: readUpstreamPrices(prices) }),
    });
    return sums.map(({ upstreamCost }) => upstreamCost);
  };
  assertEquals(await costs(), [12_500_000n + 1_200_000_000n]);
  const priced = (rest: string) => `{"big-1": {"prompt": "0.000001", "completion": "0.000002"${rest}}}`;
  assertEquals(await costs(priced(', "input_image": "0.000008"')), [10_000_000n + 8_000_000_000n]);
  assertEquals(await costs(priced("")), [10_000_000n]);
});

Deno.test("sumUpstreams() includes the cost of hosted tools", async () => {
  const details = { extras: [{ item: "hosted_tools.web_search", count: 3, price: "0.02" }] };
  const ledger = await ledgerOf([entryOf({ tokens: tokensOf({}), details })]);
  const config = configOf({ "acme/one": ["big-1"] });
  const row = '{"big-1": {"prompt": "0.000001", "completion": "0.000002", "hosted_tools.web_search": "0.01"}}';
  for (const [prices, cost] of [[undefined, 60_000_000_000n], [readUpstreamPrices(row), 30_000_000_000n]] as const) {
    const sums = await sumUpstreams({ ledger, config }, { ...WHOLE, ...(prices !== undefined && { prices }) });
    assertEquals(sums.map(({ upstreamCost }) => upstreamCost), [cost]);
  }
});

Deno.test("sumUpstreams() rejects a period with pruned entries, and says from when they exist", async () => {
  const ledger = await ledgerOf([
    entryOf({ id: "a" }),
    entryOf({ id: "b", at: DAY_ONE + DAY_MS }),
  ]);
  while (await ledger.prune(FIRST_DAY + 1, Infinity));
  const config = configOf({});
  const { message, from } = await assertRejects(
    () => sumUpstreams({ ledger, config }, WHOLE),
    PrunedEntriesError,
  );
  assertEquals([message, from], [
    "Cannot sum up by upstream: single requests are kept from 2026-11-21 on",
    "2026-11-21",
  ]);
  const sums = await sumUpstreams({ ledger, config }, { ...WHOLE, since: DAY_ONE + DAY_MS });
  assertEquals(sums.map(({ requests, day }) => [requests, day]), [[1, FIRST_DAY + 1]]);
});

Deno.test("sumUpstreams() rejects a period with days that were pruned while the clock was ahead", async () => {
  const later = FIRST_DAY + 5;
  const ledger = await ledgerOf([
    entryOf({ id: "ahead", at: later * DAY_MS }),
    entryOf({ id: "old" }),
    entryOf({ id: "kept", at: DAY_ONE + DAY_MS }),
    entryOf({ id: "kept too", at: later * DAY_MS }),
  ]);
  while (await ledger.prune(FIRST_DAY + 1, FIRST_DAY + 1));
  const config = configOf({});
  const requests = async (days: { first: number; next: number }) => {
    const sums = await sumUpstreams({ ledger, config }, { since: days.first * DAY_MS, until: days.next * DAY_MS });
    return sums.map(({ requests }) => requests);
  };
  const { message, from } = await assertRejects(
    () => requests({ first: FIRST_DAY + 1, next: later + 1 }),
    PrunedEntriesError,
  );
  assertEquals([message, from], [
    "Cannot sum up by upstream: single requests of 2026-11-25 were pruned, because a clock was ahead",
    "2026-11-26",
  ]);
  assertEquals(await requests({ first: FIRST_DAY + 1, next: later }), [1]);
  assertEquals(await requests({ first: later + 1, next: later + 2 }), []);
});

Deno.test("sumUpstreams() rejects a period whose entries are pruned while it reads", async () => {
  const ledger = await ledgerOf([entryOf({ id: "a" }), entryOf({ id: "b", at: DAY_ONE + DAY_MS })]);
  const pruned = {
    start: ledger.start,
    entriesWithin: ledger.entriesWithin,
    async upstreamDays(query: Parameters<typeof ledger.upstreamDays>[0]) {
      while (await ledger.prune(FIRST_DAY + 1, Infinity));
      return await ledger.upstreamDays(query);
    },
  };
  await assertRejects(() => sumUpstreams({ ledger: pruned, config: configOf({}) }, WHOLE), PrunedEntriesError);
});

Deno.test("sumUpstreams() accepts configured upstreams and those in the ledger", async () => {
  const parts = { ledger: await ledgerOf([entryOf({ id: "a", upstream: "former" })]), config: configOf({}) };
  assertEquals((await sumUpstreams(parts, { ...WHOLE, upstream: "acme" })).length, 0);
  assertEquals((await sumUpstreams(parts, { ...WHOLE, upstream: "former" })).length, 1);
  for (const upstream of ["nobody", "", "constructor"]) {
    await assertRejects(() => sumUpstreams(parts, { ...WHOLE, upstream }), ReportQueryError);
  }
});

Deno.test("sumUpstreams() reads several pages and nothing outside of the period", async () => {
  // More entries than a page at one moment, and others before and after.
  const at = [DAY_ONE - 1, DAY_ONE, DAY_ONE + 5, WHOLE.until];
  const ledger = await ledgerOf(
    Array.from({ length: 6000 }, (_, index) => entryOf({ id: `r${index}`, at: at[index % 4] as number })),
  );
  const read: number[] = [];
  const watched = {
    start: ledger.start,
    upstreamDays: ledger.upstreamDays,
    async entriesWithin(span: Parameters<typeof ledger.entriesWithin>[0]) {
      const page = await ledger.entriesWithin(span);
      read.push(...page.map(({ at }) => at));
      return page;
    },
  };
  const prices = new Map([["acme/one", SHEET]]);
  const [sum] = await sumUpstreams({ ledger: watched, config: configOf({}) }, { ...WHOLE, prices });
  assertEquals([sum?.requests, sum?.tokens.prompt], [3000, 3000 * 1234]);
  assertEquals(read.map((at) => at - DAY_ONE), [...Array(1500).fill(0), ...Array(1500).fill(5)]);
});
