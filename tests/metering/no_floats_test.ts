import { assertEquals } from "@std/assert";

/*
 * Amounts are `bigint`, and TypeScript mixes those with no number. So a binary fraction comes near money by one of few doors
 * alone: a conversion of an amount or of a price in digits, a number that is written with a fraction, or a column and a
 * function of SQL that has fractions. In all code that knows money, each door is on the list below with why it is none.
 */

const ROOT = new URL("../../", import.meta.url);

/** Where amounts are kept, reckoned and told. */
const PLACES = [
  "lib/metering",
  "lib/store",
  "lib/reports",
  "lib/images/tariff.ts",
  "lib/images/tally.ts",
  "lib/pipeline/admission.ts",
  "lib/pipeline/billed_tokens.ts",
  "lib/observe/metrics.ts",
  "lib/observe/registry.ts",
  "lib/workers/metrics.ts",
  "lib/config/prices.ts",
  "lib/cli/usage.ts",
];

/** Words of money: code without any of them cannot touch an amount, and may count as it likes. */
const MONEY = /amount|cost|price|sheet|usd|held|overrun|charge|budget/i;

/** Conversions, each of something that is no amount, or of one that is whole. */
const HARMLESS: Readonly<Record<string, string>> = {
  "Number(rest / price)": "whole numbers divided: how many tokens, at most a thousand million",
  ...Object.fromEntries(
    ["0.005", "0.025", "0.1", "0.25", "0.5", "2.5"].map((text) => [text, "seconds of a histogram"]),
  ),
};

/** What is converted may be one of these columns and texts: counts, times, places. */
const COUNTS = new RegExp(
  `^Number\\((?:row\\??\\.(?:requests|failed|images|prompt|input_cache_read|input_cache_write_5m|input_cache_write_1h|` +
    `completion|reasoning|day|at|lease_until|seq|check_sum|gone|summed|version|bytes|id)|` +
    `answer\\.(?:head_seq|head_check|sheet_count)|ahead|day|version)\\)$`,
);

const CONVERSIONS =
  /^(?:Number|parseFloat|parseInt|Number\.parse\w+|BigInt\.as\w+)$|\.to(?:Fixed|Precision|Exponential)$/;

/** Names of types and functions of SQL that have fractions. */
const SQL = /\b(?:real|double precision|float\d?|avg|round|total\s*\()\b/i;

/** Finds the doors of one source. */
function doorsOf(name: string, source: string): string[] {
  const found = Deno.lint.runPlugin(
    {
      name: "money",
      rules: {
        floats: {
          create(context) {
            const report = (node: Deno.lint.Node) =>
              context.report({ node, message: context.sourceCode.getText(node) });
            return {
              CallExpression(node) {
                if (CONVERSIONS.test(context.sourceCode.getText(node.callee))) report(node);
              },
              UnaryExpression(node) {
                if (node.operator === "+") report(node);
              },
              Literal(node) {
                if (/^[\d.]/.test(node.raw) && !isWhole(node.raw)) report(node);
                if (typeof node.value === "string" && isSql(node.value)) report(node);
              },
              TemplateElement(node) {
                if (isSql(node.cooked)) report(node);
              },
            };
          },
        },
      },
    },
    name,
    source,
  );
  return found.map(({ message }) => message);
}

/** Whether a number that is written so is whole. */
function isWhole(raw: string): boolean {
  return raw.endsWith("n") || Number.isInteger(Number(raw.replaceAll("_", "")));
}

function isSql(text: string): boolean {
  return /\b(?:select|create|insert|update)\b/i.test(text) && SQL.test(text);
}

function isHarmless(door: string): boolean {
  return door in HARMLESS || COUNTS.test(door);
}

function* sources(): Generator<{ path: string; source: string }> {
  for (const place of PLACES) {
    for (const path of place.endsWith(".ts") ? [place] : filesIn(place)) {
      yield { path, source: Deno.readTextFileSync(new URL(path, ROOT)) };
    }
  }
}

function filesIn(folder: string): string[] {
  return [...Deno.readDirSync(new URL(folder, ROOT))].flatMap(({ name, isDirectory }) =>
    isDirectory ? filesIn(`${folder}/${name}`) : name.endsWith(".ts") ? [`${folder}/${name}`] : []
  ).sort();
}

/** Code without its comments. */
function codeOf(source: string): string {
  return source.replace(/\/\*[^]*?\*\//g, "").replace(/(^|\s)\/\/.*/g, "");
}

Deno.test("no amount becomes a binary fraction: where money is reckoned there is no door to one", () => {
  const open: string[] = [];
  const used = new Set<string>();
  let looked = 0;
  for (const { path, source } of sources()) {
    if (!MONEY.test(codeOf(source))) continue;
    looked++;
    for (const door of doorsOf(path, source)) {
      used.add(door);
      if (!isHarmless(door)) open.push(`${path}: ${door}`);
    }
  }
  assertEquals(open, []);
  assertEquals(Object.keys(HARMLESS).filter((door) => !used.has(door)), [], "no longer there");
  assertEquals(looked > 30, true, `${looked} files know money`);
});

Deno.test("the doors are found", () => {
  const doors: [string, string][] = [
    ["const x = Number(entry.cost) / 1e12;", "Number(entry.cost)"],
    ["const x = parseFloat(sheet.prompt) * 3;", "parseFloat(sheet.prompt)"],
    ["const x = Number.parseFloat(price);", "Number.parseFloat(price)"],
    ["const x = +sheet.prompt;", "+sheet.prompt"],
    ["const x = usd.toFixed(2);", "usd.toFixed(2)"],
    ["const half = 0.75;", "0.75"],
    ["const tiny = 1e-12;", "1e-12"],
    ["const low = BigInt.asIntN(64, cost);", "BigInt.asIntN(64, cost)"],
    ['const sql = "SELECT avg(cost) FROM entries";', '"SELECT avg(cost) FROM entries"'],
    ["const sql = `CREATE TABLE x (cost REAL)`;", "CREATE TABLE x (cost REAL)"],
  ];
  for (const [source, door] of doors) {
    assertEquals(doorsOf("x.ts", source).map((found) => found.replaceAll("`", "")), [door], source);
    assertEquals(isHarmless(door), false, door);
  }
  assertEquals(doorsOf("x.ts", "const x = 3n * cost / 10n ** 12n; const ms = 1e3; const y = -x;"), []);
});
