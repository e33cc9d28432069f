import { assertEquals, assertThrows } from "@std/assert";
import { costOf, formatUsd, parseUsd, roundUsd } from "../../lib/billing/money.ts";

Deno.test("parseUsd() reads decimal strings in 1e-12 USD", () => {
  const cases: [string, bigint][] = [
    ["0", 0n],
    ["0.000000000001", 1n],
    ["0.00000125", 1_250_000n],
    ["1", 1_000_000_000_000n],
    ["1.5", 1_500_000_000_000n],
    ["00.10", 100_000_000_000n],
    ["999999.999999999999", 999_999_999_999_999_999n],
  ];
  for (const [text, amount] of cases) assertEquals(parseUsd(text), amount, text);
});

Deno.test("parseUsd() rejects other texts and precisions", () => {
  for (const text of ["", ".", ".5", "1.", "-1", "+1", "1e3", "1,5", " 1", "0.0000000000001", "0x1", "NaN"]) {
    assertThrows(() => parseUsd(text), RangeError, "Cannot read an amount");
  }
});

Deno.test("formatUsd() writes the shortest exact text", () => {
  let digits = 1n;
  for (let round = 0; round < 2000; round++) {
    digits = (digits * 6_364_136_223_846_793_005n + 1_442_695_040_888_963_407n) % (1n << 64n);
    const amount = digits >> BigInt(round % 60);
    const text = formatUsd(amount);
    assertEquals(parseUsd(text), amount);
    assertEquals(/^(0|[1-9]\d*)(\.\d*[1-9])?$/.test(text), true, text);
  }
  assertEquals([0n, 1n, 10n ** 12n, -5n * 10n ** 11n].map(formatUsd), ["0", "0.000000000001", "1", "-0.5"]);
});

Deno.test("costOf() is exact where binary fractions are not", () => {
  assertEquals(formatUsd(costOf(3, "0.1")), "0.3");
  assertEquals(formatUsd(costOf(Number.MAX_SAFE_INTEGER, "0.000000000001")), "9007.199254740991");
  assertEquals(formatUsd(costOf(1_000_000, "0.0000045")), "4.5");
  for (const tokens of [-1, 0.5, NaN, 2 ** 53]) assertThrows(() => costOf(tokens, "1"), RangeError, "Cannot charge");
});

Deno.test("roundUsd() rounds half up to 4 decimals, and never shows an amount as zero", () => {
  const cases: [string, string][] = [
    ["0", "0"],
    ["0.000000000001", "<0.0001"],
    ["0.000049999999", "<0.0001"],
    ["0.00005", "0.0001"],
    ["0.00015", "0.0002"],
    ["0.000149999999", "0.0001"],
    ["0.99995", "1.0000"],
    ["2", "2.0000"],
    ["12.3456789", "12.3457"],
    ["-0.031608", "-0.0316"],
    ["-0.000000000001", ">-0.0001"],
  ];
  for (const [usd, rounded] of cases) assertEquals(roundUsd(usd), rounded, usd);
});
