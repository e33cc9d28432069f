import { assert, assertEquals } from "@std/assert";
import { isValidSize } from "../../lib/images/size.ts";
import { billedTokens, tokensOfImage } from "../../lib/images/image_pricing.ts";
import { outputTokens } from "../../lib/billing/image_tokens.ts";
import { formatUsd, parseUsd } from "../../lib/billing/money.ts";
import { costOfTokens } from "../../lib/billing/price.ts";

/** Service prices in USD per token, and the official ones. */
const SERVICE = { prompt: "0.00000075", completion: "0.0000045" };
const OFFICIAL = { prompt: "0.000005", completion: "0.00003" };

function costOf(usage: { input: number; output: number }, { prompt, completion }: typeof SERVICE): bigint {
  const cached = { input_cache_read: "0", input_cache_write_5m: "0", input_cache_write_1h: "0" };
  return costOfTokens(billedTokens(usage), { model: "acme/painter", factor: "1", prompt, completion, ...cached });
}

const REFERENCE: readonly [width: number, height: number, tokens: number, usd: string, rounded: string][] = [
  [1024, 1024, 7_024, "0.031608", "0.0316"],
  [1536, 1024, 5_488, "0.024696", "0.0247"],
  [3840, 2160, 13_342, "0.060039", "0.0600"],
  [2880, 2880, 23_719, "0.1067355", "0.1067"],
];

for (const [width, height, tokens, usd, rounded] of REFERENCE) {
  Deno.test(`an image of ${width}x${height} is ${tokens} tokens and ${usd} USD`, () => {
    assertEquals(outputTokens({ width, height }), tokens);
    assertEquals(outputTokens({ width: height, height: width }), tokens);
    const cost = formatUsd(costOf({ input: 0, output: tokens }, SERVICE));
    assertEquals([cost, Number(cost).toFixed(4)], [usd, rounded]);
  });
}

Deno.test("the service price is 0.15 times the official one, for prompt and images", () => {
  for (
    const usage of [{ input: 1_000_000, output: 0 }, { input: 0, output: 1_000_000 }, { input: 17, output: 7_024 }]
  ) {
    assertEquals(costOf(usage, SERVICE) * 100n, costOf(usage, OFFICIAL) * 15n);
  }
  assertEquals(formatUsd(costOf({ input: 1_000_000, output: 0 }, SERVICE)), "0.75");
  assertEquals(formatUsd(costOf({ input: 0, output: 1_000_000 }, SERVICE)), "4.5");
});

Deno.test("prompt and images add up exactly", () => {
  assertEquals(formatUsd(costOf({ input: 9, output: 3 * 7_024 }, SERVICE)), "0.09483075");
  assertEquals(
    costOf({ input: 9, output: 21_072 }, SERVICE),
    9n * parseUsd("0.00000075") + 21_072n * parseUsd("0.0000045"),
  );
});

Deno.test("outputTokens() is the formula in exact rational arithmetic, for every valid size", () => {
  let sizes = 0;
  for (let width = 16; width <= 3840; width += 16) {
    for (let height = 16; height <= width; height += 16) {
      if (!isValidSize({ width, height })) continue;
      sizes++;
      const [w, h] = [BigInt(width), BigInt(height)];
      const short = (2n * 96n * h + w) / (2n * w);
      const product = 96n * short * (2_000_000n + w * h);
      const expected = Number((product + 3_999_999n) / 4_000_000n);
      if (outputTokens({ width, height }) !== expected) throw new Error(`Expected ${expected} for ${width}x${height}`);
    }
  }
  assert(sizes > 5_000);
});

Deno.test("an image is charged by its actual size, up to the most expensive valid one", () => {
  const requested = { width: 1536, height: 1024 };
  let dearest = 0;
  for (let width = 16; width <= 3840; width += 16) {
    for (let height = 16; height <= width; height += 16) {
      if (isValidSize({ width, height })) dearest = Math.max(dearest, outputTokens({ width, height }));
    }
  }
  assertEquals(dearest, 23_719);
  const cases: [width: number, height: number, tokens: number][] = [
    [1536, 1024, 5_488],
    [1024, 1024, 7_024],
    [2880, 2880, 23_719],
    // Sizes that no request can ask for.
    [512, 512, 5_212],
    [1000, 1000, 6_912],
    [4096, 4096, dearest],
    [60_000, 60_000, dearest],
    [2 ** 31 - 1, 2 ** 31 - 1, dearest],
  ];
  for (const [width, height, tokens] of cases) {
    assertEquals([width, height, tokensOfImage({ width, height }, requested)], [width, height, tokens]);
  }
  assertEquals(tokensOfImage(undefined, requested), 5_488);
});
