import { assertEquals, assertThrows } from "@std/assert";
import {
  compareInvoice,
  comparisonText,
  readInvoice,
  readTolerance,
  readUpstreamPrices,
} from "../../../lib/billing/reports/invoice.ts";
import type { UpstreamSum } from "../../../lib/billing/reports/upstreams.ts";
import { DAY_MS, DAY_ONE, tokensOf } from "./entries.ts";

function sumOf(change: Partial<UpstreamSum>): UpstreamSum {
  return {
    upstream: "acme",
    model: "big-1",
    day: DAY_ONE / DAY_MS,
    requests: 1,
    attempts: 1,
    failed: 0,
    counted: 0,
    tokens: tokensOf({ prompt: 1000, completion: 100 }),
    images: 0,
    upstreamCost: 12_500_000_000_000n,
    unpriced: 0,
    cost: 0n,
    ...change,
  };
}

Deno.test("readInvoice() reads quotes, other columns, empty cells and both line ends", () => {
  const { columns, byDay, rows } = readInvoice(
    '\uFEFFday,project,model,completion,upstream_usd\r\n2026-11-20,"a ""b"", c",big-1,7,12.50\n2026-11-21,,"big,2",,0.000000000001\r\n\r\n',
  );
  assertEquals([columns, byDay], [["completion", "upstream_usd"], true]);
  assertEquals(rows.map(({ day, model, values }) => [day, model, ...values.values()]), [
    ["2026-11-20", "big-1", 7n, 12_500_000_000_000n],
    ["2026-11-21", "big,2", 0n, 1n],
  ]);
});

Deno.test("readInvoice() names the invalid line", () => {
  const cases: [string, string][] = [
    ["", "its first line must name the column model"],
    ["day,prompt\n", "its first line must name the column model"],
    ["day,model\n2026-11-20,a\n", "one of prompt"],
    ["model,prompt\na,1\nb\n", "line 3 of the invoice: it has 1 of 2 cells"],
    ["day,model,prompt\n2026-02-30,a,1\n", 'line 2 of the invoice: "2026-02-30" is not a day'],
    ["model,prompt\na,1.5\n", 'line 2 of the invoice: prompt is "1.5", expected a whole number'],
    ["model,prompt\na,-1\n", "expected a whole number"],
    ["model,upstream_usd\na,1e3\n", 'upstream_usd is "1e3", expected USD'],
    ["model,upstream_usd\na,0.0000000000001\n", "expected USD with at most 12 decimals"],
    ['model,prompt\na,"1\n', "line 2 of the invoice: it has a misplaced quote"],
    ['model,prompt\na,"1"2\n', "it has a misplaced quote"],
    ["model,prompt\n\n\r\na,x\n", "line 4 of the invoice"],
    ["model,prompt\ra,1\rb,x\r", "line 3 of the invoice"],
    ['model,note,prompt\na,"1\n2\n3",4\nb,,x\n', "line 5 of the invoice"],
    ["model,prompt,other,prompt\na,1,2,3\n", "it has the column prompt twice"],
    ["model,model,prompt\na,b,3\n", "it has the column model twice"],
  ];
  for (const [text, message] of cases) assertThrows(() => readInvoice(text), RangeError, message, text);
});

Deno.test("readInvoice() reads cells of any length", () => {
  const { rows } = readInvoice(`model,note,prompt\na,"${"x".repeat(20_000_000)}",1\n`);
  assertEquals(rows.map(({ model, values }) => [model, ...values.values()]), [["a", 1n]]);
});

Deno.test("compareInvoice() accepts differences up to the tolerance, exactly", () => {
  const cases: [ours: bigint, theirs: string, tolerance: string, within: boolean][] = [
    [12_500_000_000_000n, "12.5", "0%", true],
    [12_500_000_000_001n, "12.5", "0%", false],
    // 0.1 % of 12.5 USD are 0.0125 USD.
    [12_512_500_000_000n, "12.5", "0.1%", true],
    [12_512_500_000_001n, "12.5", "0.1%", false],
    [12_487_500_000_000n, "12.5", "0.1%", true],
    [12_487_499_999_999n, "12.5", "0.1%", false],
    [1n, "0", "100%", false],
    [0n, "0", "0%", true],
  ];
  for (const [ours, theirs, typed, within] of cases) {
    const invoice = readInvoice(`model,upstream_usd\nbig-1,${theirs}\n`);
    const lines = compareInvoice([sumOf({ upstreamCost: ours })], { invoice, tolerance: readTolerance(typed) });
    assertEquals(lines.map((line) => line.within), [within], `${ours} ${theirs} ${typed}`);
  }
});

Deno.test("compareInvoice() adds up rows of one model and day, and lists those of one side only", () => {
  const tolerance = readTolerance("0%");
  const sums = [sumOf({}), sumOf({ day: DAY_ONE / DAY_MS + 1 }), sumOf({ model: "only-ours", tokens: tokensOf() })];
  const text =
    "day,model,prompt\n2026-11-20,big-1,600\n2026-11-20,big-1,400\n2026-11-21,big-1,990\n2026-11-20,theirs,5\n";
  const compare = (text: string) =>
    compareInvoice(sums, { invoice: readInvoice(text), tolerance })
      .map(({ day, model, ours, invoice, difference, within }) => [day, model, ours, invoice, difference, within]);
  assertEquals(compare(text), [
    ["2026-11-20", "big-1", "1000", "1000", "0", true],
    ["2026-11-21", "big-1", "1000", "990", "-10", false],
    ["2026-11-20", "only-ours", "0", "0", "0", true],
    ["2026-11-20", "theirs", "0", "5", "5", false],
  ]);
  assertEquals(compare("model,upstream_usd\nbig-1,25\nonly-ours,12.6\n"), [
    [null, "big-1", "25", "25", "0", true],
    [null, "only-ours", "12.5", "12.6", "0.1", false],
  ]);
});

Deno.test("readTolerance() and readUpstreamPrices() reject inexact input", () => {
  for (const text of ["", "0.1", "-1%", "1e3%", "0.0000001%"]) {
    assertThrows(() => readTolerance(text), RangeError, "Cannot read the tolerance");
  }
  const cases: [string, string][] = [
    ["no", "Cannot read the prices: Expected a value"],
    ['{"a": {"prompt": "1", "completion": "1"}, "a": {"prompt": "2", "completion": "1"}}', '"a" comes twice'],
    ["[]", "an object of models"],
    ['{"a": 1}', 'an object of prices for "a"'],
    ['{"a": {"prompt": 1, "completion": "1"}}', '"prompt" of "a" is not a string'],
    ['{"a": {"prompt": "1", "completion": "1", "input": "1"}}', '"input" of "a" is not a price class'],
    ['{"a": {"prompt": "1"}}', '"a" needs prompt and completion'],
    ['{"a": {"prompt": "1", "completion": "1e-3"}}', '"completion" of "a" is "1e-3", expected USD'],
  ];
  for (const [text, message] of cases) assertThrows(() => readUpstreamPrices(text), RangeError, message);
});

Deno.test("comparisonText() agrees in number", () => {
  const invoice = (prompts: string) => readInvoice(`model,prompt,completion\n${prompts}\n`);
  const text = (prompts: string) =>
    comparisonText(
      compareInvoice([sumOf({ tokens: { ...tokensOf({}), prompt: 5, completion: 7 } })], {
        invoice: invoice(prompts),
        tolerance: readTolerance("0%"),
      }),
    );
  assertEquals(text("big-1,5,7"), "No differences found");
  assertEquals(text("big-1,5,8"), "1 of 2 numbers differs by more than the tolerance");
  assertEquals(text("big-1,4,8"), "2 of 2 numbers differ by more than the tolerance");
});
