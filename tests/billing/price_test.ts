import { assert, assertEquals, assertThrows } from "@std/assert";
import { EMBEDDED_MODELS } from "../../lib/catalog/embedded.ts";
import { modelSchema } from "../../lib/catalog/model.ts";
import { pricingAt } from "../../lib/catalog/catalog.ts";
import {
  computeCharge,
  costOfTokens,
  PRICE_CLASSES,
  pricesAt,
  readUsage,
  unitPrices,
} from "../../lib/billing/price.ts";
import { formatUsd, parseFactor, parseUsd, timesFactor } from "../../lib/billing/money.ts";
import { checkEntry } from "../../lib/billing/reports/audit_entry.ts";
import { NO_TOKENS } from "../../lib/store/days.ts";
import type { BilledTokens, Entry, KeptEntry, PriceSheet } from "../../lib/store/ledger.ts";
import { seeded } from "../support/random.ts";
import { entryOf, SHEET } from "./entries.ts";
import { QUICK, rounds } from "../support/skip.ts";
import { plainModel } from "../support/plain_model.ts";

/** Digits of a decimal string, and the number of decimals. */
function digitsOf(text: string): { digits: bigint; decimals: number } {
  const point = text.indexOf(".");
  const digits = BigInt(text.replace(".", ""));
  return { digits, decimals: point === -1 ? 0 : text.length - point - 1 };
}

/** The cost as a fraction, with nothing rounded anywhere: the sum of tokens times price times factor. */
function fractionOf(tokens: BilledTokens, sheet: PriceSheet): { numerator: bigint; decimals: number } {
  const most = 40;
  const factor = digitsOf(sheet.factor);
  let numerator = 0n;
  for (const name of PRICE_CLASSES) {
    const price = digitsOf(sheet[name]);
    const decimals = price.decimals + factor.decimals;
    numerator += BigInt(tokens[name]) * price.digits * factor.digits * 10n ** BigInt(most - decimals);
  }
  return { numerator, decimals: most };
}

Deno.test("costOfTokens() equals exact fractions for a million random bills", () => {
  const { below: whole } = seeded(7);
  const price = (decimals: number) => `${whole(50)}.${String(whole(10 ** decimals)).padStart(decimals, "0")}`;
  for (let round = 0; round < rounds(1000); round++) {
    const decimals = 1 + whole(8);
    const sheet: PriceSheet = Object.freeze({
      model: "m",
      factor: whole(2) === 0 ? String(whole(20)) : `${whole(3)}.${String(whole(9999)).padStart(4, "0")}`,
      prompt: price(decimals),
      completion: price(decimals),
      input_cache_read: price(decimals),
      input_cache_write_5m: price(decimals),
      input_cache_write_1h: price(decimals),
    });
    for (let bill = 0; bill < (QUICK ? 300 : 1000); bill++) {
      const tokens: BilledTokens = { ...NO_TOKENS, reasoning: whole(10) };
      for (const name of PRICE_CLASSES) tokens[name] = whole(2) === 0 ? 0 : whole(1_000_000_000);
      const { numerator, decimals: places } = fractionOf(tokens, sheet);
      const cost = costOfTokens(tokens, sheet);
      if (cost * 10n ** BigInt(places - 12) !== numerator) {
        assertEquals(formatUsd(cost), String(numerator), JSON.stringify({ tokens, sheet }));
      }
    }
  }
});

Deno.test("parseUsd(formatUsd()) is the identity for a million amounts", () => {
  const { below } = seeded(11);
  for (let round = 0; round < rounds(1_000_000); round++) {
    const amount = BigInt(below(9e15)) * (round % 3 === 0 ? 1n : 1_000n);
    if (parseUsd(formatUsd(amount)) !== amount) assertEquals(formatUsd(amount), "what is read back");
  }
});

Deno.test("costOfTokens() grows with every class, is additive, and excludes reasoning", () => {
  const some: BilledTokens = { ...NO_TOKENS, prompt: 10, completion: 20, input_cache_read: 5 };
  for (const name of PRICE_CLASSES) {
    const more = { ...some, [name]: some[name] + 1 };
    assertEquals(costOfTokens(more, SHEET) - costOfTokens(some, SHEET), unitPrices(SHEET)[name], name);
  }
  assertEquals(costOfTokens({ ...some, reasoning: 20 }, SHEET), costOfTokens(some, SHEET));
  assertEquals(formatUsd(costOfTokens(some, SHEET)), "0.0003315");
});

Deno.test("image tokens match the official table", () => {
  const canvas = EMBEDDED_MODELS.find(({ id }) => id === "sluice/canvas");
  assert(canvas !== undefined);
  const sheet = pricesAt(canvas, { factor: "1", now: 0 }).sheet;
  const cases: [tokens: Partial<BilledTokens>, usd: string][] = [
    [{ completion: 7_024 }, "0.031608"],
    [{ completion: 1_000_000 }, "4.5"],
    [{ prompt: 1_000_000 }, "0.75"],
    [{ prompt: 9, completion: 3 * 7_024 }, "0.09483075"],
    [{}, "0"],
  ];
  for (const [tokens, usd] of cases) assertEquals(formatUsd(costOfTokens({ ...NO_TOKENS, ...tokens }, sheet)), usd);
});

Deno.test("costOfTokens() rereads a sheet that is not frozen", () => {
  const sheet = { ...SHEET };
  const one = { ...NO_TOKENS, prompt: 1 };
  assertEquals(costOfTokens(one, sheet), parseUsd("0.000003"));
  sheet.factor = "2";
  assertEquals(costOfTokens(one, sheet), parseUsd("0.000006"));
});

Deno.test("costOfTokens() throws for counts that are no safe integers", () => {
  for (const count of [-1, 0.5, NaN, Infinity, 2 ** 53]) {
    assertThrows(() => costOfTokens({ ...NO_TOKENS, prompt: count }, SHEET), RangeError, "Cannot charge");
  }
});

Deno.test("parseFactor() is exact or throws", () => {
  const times = (price: string, factor: string) => formatUsd(timesFactor(parseUsd(price), parseFactor(factor)));
  assertEquals(times("0.00000125", "0.8"), "0.000001");
  assertEquals(times("0.00000125", "1.15"), "0.0000014375");
  assertEquals(times("3", "0"), "0");
  assertEquals(times("0.000000000001", "2"), "0.000000000002");
  assertThrows(() => times("0.000000000001", "0.5"), RangeError, "more than 12 decimals");
  for (const text of ["", ".5", "1.", "-1", "1e3", "1000", "0.1234567"]) {
    assertThrows(() => parseFactor(text), RangeError, "Cannot read a factor", text);
  }
});

Deno.test("a request keeps the prices of its arrival across a price change", () => {
  const noon = Date.UTC(2026, 10, 21, 12);
  const model = modelSchema.parse(plainModel({
    pricing: { prompt: "1", completion: "1" },
    price_changes: [
      { from: "2026-11-21T14:00:00+01:00", prompt: "3", completion: "3" },
      { from: "2026-11-21T12:00:00Z", prompt: "2", completion: "2", input_cache_read: "0.1" },
    ],
  }));
  const promptAt = (now: number) => pricingAt(model, now).prompt;
  assertEquals([noon - 1, noon, noon + 3_599_999, noon + 3_600_000].map(promptAt), ["1", "2", "2", "3"]);
  assertEquals(pricingAt(model, noon).input_cache_read, "0.1");
  assertEquals(pricingAt(model, noon).input_cache_write_1h, "2");
  const begun = pricesAt(model, { factor: "1", now: noon }).sheet;
  assertEquals(costOfTokens({ ...NO_TOKENS, prompt: 1 }, begun), parseUsd("2"));
  assert(pricesAt(model, { factor: "1", now: noon + 1 }).sheet === begun, "the same prices are the same sheet");
  assert(pricesAt(model, { factor: "2", now: noon }).sheet !== begun);
  assertEquals(pricesAt({ ...model, id: "acme/two" }, { factor: "1", now: noon }).sheet, {
    ...begun,
    model: "acme/two",
  });
});

Deno.test("the hold is the most that is charged, and the operator pays the rest", () => {
  const tokens = { ...NO_TOKENS, prompt: 10 };
  const cost = costOfTokens(tokens, SHEET);
  assertEquals(computeCharge({ tokens, sheet: SHEET, held: 0n }), { cost, overrun: 0n });
  assertEquals(computeCharge({ tokens, sheet: SHEET, held: cost }), { cost, overrun: 0n });
  assertEquals(computeCharge({ tokens, sheet: SHEET, held: cost - 1n }), { cost: cost - 1n, overrun: 1n });
});

Deno.test("checkEntry() accepts charges within their holds, and no impossible amounts", () => {
  const random = seeded(3);
  for (let round = 0; round < 2000; round++) {
    const tokens = { ...NO_TOKENS, prompt: random.below(1000), completion: random.below(1000) };
    const held = random.chance(0.3) ? 0n : BigInt(random.below(2e10));
    const { cost, overrun } = computeCharge({ tokens, sheet: SHEET, held });
    assert(held === 0n ? overrun === 0n : cost <= held && (overrun === 0n || cost === held));
    assertEquals(cost + overrun, costOfTokens(tokens, SHEET));
    assertEquals(checkEntry(keptOf({ tokens, sheet: SHEET, held, cost, overrun })), []);
  }
  const wrong = [{ cost: -1n }, { held: -1n }, { held: 1n, cost: 2n }, { held: 5n, cost: 4n, overrun: 1n }];
  for (const members of [...wrong, { overrun: -1n }]) {
    assert(checkEntry(keptOf(members)).length > 0);
    assert(checkEntry(keptOf({ tokens: { ...NO_TOKENS, prompt: 1 }, sheet: SHEET, ...members })).length > 0);
  }
});

function keptOf(members: Partial<Entry>): KeptEntry {
  return { ...entryOf("a", { cost: 0n, ...members }), seq: 1, check: 0 };
}

Deno.test("readUsage() treats impossible usage as missing", () => {
  const reported = { prompt: 5, completion: 7 };
  assertEquals(readUsage(reported).tokens, { ...NO_TOKENS, ...reported });
  assertEquals(readUsage(reported).missing, { input: false, output: false });
  const caches = { input_cache_read: 2, input_cache_write_5m: 3, input_cache_write_1h: 4 };
  const all = { ...caches, prompt: 1, completion: 7, reasoning: 7 };
  assertEquals(readUsage(all).tokens, all);
  assertEquals(readUsage({ ...all, prompt: -1 }).tokens, { ...NO_TOKENS, completion: 7, reasoning: 7 });
  const cases: [Parameters<typeof readUsage>[0], { input: boolean; output: boolean }][] = [
    [{}, { input: true, output: true }],
    [{ completion: 7 }, { input: true, output: false }],
    [{ prompt: -1, completion: 7 }, { input: true, output: false }],
    [{ prompt: 5, completion: 1e20 }, { input: false, output: true }],
    [{ prompt: 5, completion: 0.5 }, { input: false, output: true }],
    [{ ...reported, input_cache_read: NaN }, { input: true, output: false }],
    [{ ...reported, reasoning: 8 }, { input: false, output: false }],
    [{ prompt: 0, completion: 7 }, { input: true, output: false }],
    [{ prompt: 0, input_cache_read: 1, completion: 7 }, { input: false, output: false }],
    [{ prompt: 0, input_cache_write_5m: 1, completion: 7 }, { input: false, output: false }],
    [{ prompt: 0, input_cache_write_1h: 1, completion: 7 }, { input: false, output: false }],
    [{ prompt: 1e9, completion: 1e9 }, { input: false, output: false }],
    [{ prompt: 1e9 + 1, completion: 1e9 + 1 }, { input: true, output: true }],
  ];
  for (const [usage, missing] of cases) {
    const reading = readUsage(usage);
    assertEquals(reading.missing, missing, JSON.stringify(usage));
    for (const name of PRICE_CLASSES) assert(Number.isSafeInteger(reading.tokens[name]) && reading.tokens[name] >= 0);
  }
});
