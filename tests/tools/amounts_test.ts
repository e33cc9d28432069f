import { assertEquals } from "@std/assert";
import plugin from "../../tools/lint_rules.ts";

/** Messages about a function with these statements. */
function lint(path: string, text: string): string[] {
  return Deno.lint.runPlugin(plugin, `/work/${path}`, `function a() {\n${text}\n}\n`).map(({ message }) => message);
}

/** Problems of a file, without their reasons. */
function check(path: string, text: string): string[] {
  return lint(path, text).map((line) => /"(.*)" is not allowed here/.exec(line)?.[1] ?? line);
}

const PRICE = "lib/billing/price.ts";
const LEDGER = "lib/store/sqlite/ledger.ts";

Deno.test("exact-amounts finds numbers derived from money", () => {
  const cases: [path: string, text: string, found: string][] = [
    ["lib/request/a.ts", "const usd = Number(entry.cost);", "Number(entry.cost)"],
    ["lib/server/a.ts", "report(Math.round(hold.overrun));", "Math.round(hold.overrun)"],
    ["lib/admin/a.ts", "sort((a, b) => parseFloat(a.price) - 1);", "parseFloat(a.price)"],
    ["lib/server/a.ts", "const usd = +sheet.price;", "+sheet.price"],
    ["lib/server/a.ts", "return + entry.cost;", "+ entry.cost"],
    ["lib/store/postgres/ledger_sums.ts", "const half = cost / 2;", "/"],
    ["lib/images/image_pricing.ts", "const tokens = 96 * 0.15;", "0.15"],
    [PRICE, "return Number(text);", "Number"],
    [PRICE, "const half = amount / 2n;", "/"],
    [PRICE, "const cost = tokens * 7.5e-7;", "7.5e-7"],
    [PRICE, "const cost = tokens * .5;", ".5"],
    [PRICE, "const tiny = 1e-12;", "1e-12"],
    [PRICE, "return Math.floor(x);", "Math.floor"],
    [PRICE, "return x.toFixed(4);", ".toFixed"],
    [PRICE, "total /= n;", "/="],
    [PRICE, "const text = `${a / b}`;", "/"],
    [PRICE, "const text = `it's ${a / b} isn't`;", "/"],
    [PRICE, "const text = `a ${{ b: `'${c / d}` }} \"`;", "/"],
    [PRICE, "const text = `${a}` + b / c + `}`;", "/"],
    [PRICE, 'const at = "//"; const half = total / 2;', "/"],
    [PRICE, "const short = (a + b)\n  / 2;", "/"],
    [LEDGER, "sum += cost * 0.8;", "0.8"],
    [LEDGER, "const mean = cost / count;", "/"],
    ["lib/billing/reports/invoice.ts", "cost.toFixed(2)", ".toFixed"],
  ];
  for (const [path, text, found] of cases) assertEquals(check(path, text), [found], `${path}: ${text}`);
});

Deno.test("exact-amounts ignores other numbers", () => {
  const cases: [path: string, text: string][] = [
    ["lib/server/a.ts", "const half = width / 2; const ratio = 0.5;"],
    ["lib/server/a.ts", "const count = Number(text); Math.max(costs(), 1);"],
    ["lib/server/a.ts", "const sum = left + entry.cost; told[i] + amount; `${a}${b}` + price; i++; sum += cost;"],
    [PRICE, "// a tenth is 0.1, and 1 / 10\nconst a = 1n;"],
    [PRICE, "/** `0.00000125` USD / token */\nconst a = 1n;"],
    [PRICE, 'const text = "0.5 / 2"; const path = `a/b 0.5 ${name}/c`;'],
    [PRICE, "const match = /^(\\d+)(?:\\.(\\d{1,12}))?$/.exec(text);"],
    [PRICE, "const slash = /[/]0.5/.test(`it's 1/2`) ? 1n : 2n; // 0.5"],
    [PRICE, "const text = `a\\`${{ b: `${c}/d` }}/0.5`;"],
    [LEDGER, "const count = Number(row.seq);"],
  ];
  for (const [path, text] of cases) assertEquals(check(path, text), [], `${path}: ${text}`);
});

Deno.test("exact-amounts allows listed exceptions, and reports unused ones", () => {
  const path = "lib/limits/sliding_window.ts";
  const line = "const removed = Math.min(amount, bucket.amount);";
  assertEquals(lint(path, `  ${line}`), []);
  assertEquals(lint(path, "const a = 1n;"), [`There is no line "${line}" any more, which tools/amounts.ts excepts`]);
});

Deno.test("exact-amounts does not read other code", () => {
  assertEquals(lint("tests/billing/a_test.ts", "const usd = Number(entry.cost);"), []);
});
