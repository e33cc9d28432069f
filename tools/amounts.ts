/**
 * Keeps binary fractions away from money. Amounts are of the type `bigint`, which the compiler lets nobody mix with
 * numbers; what is left are the ways from one to the other, and prices that are read as numbers. One line per violation.
 */
import { blankComments, type SourceFile } from "./sources.ts";

/** Files that work with amounts: nothing here makes a fraction, or a number of an amount. */
const STRICT = ["money", "price", "billed", "bound", "budgets", "postings"].map((name) => `lib/metering/${name}.ts`);

/** Files that keep amounts or write them beside other numbers: here nothing divides. */
const NEAR = [/^lib\/store\/(?:\w*ledger\w*|accounts|days|entry_\w+)\.ts$/, /^lib\/reports\//];

/** Lines that are right, whole, by file. A line that is not there any more is told. */
const EXCEPTIONS: Readonly<Record<string, readonly string[]>> = {
  "lib/metering/money.ts": [
    // Of whole numbers, with no remainder.
    "return product / unit;",
  ],
  "lib/metering/bound.ts": [
    // Tokens, fewer than a thousand million.
    "const tokens = Number(rest / price);",
  ],
  "lib/store/days.ts": [
    // Days.
    "return Math.floor(at / DAY_MS);",
  ],
  "lib/limits/window.ts": [
    // Requests, tokens or slots.
    "const given = Math.min(amount, bucket.amount);",
  ],
  "lib/metering/budgets.ts": [
    // Days.
    "return Math.floor(now / MS_PER_DAY);",
  ],
};

/** Names of amounts and prices, as the last name or within one. */
const AMOUNT = String.raw`(?:cost|overrun|held|amount|budget|price|pricing|usd|charge|debit|credit)`;

interface Rule {
  pattern: RegExp;
  why: string;
}

const FRACTION: Rule = {
  pattern: /(?<![\w.])(?:\d[\d_]*\.\d[\d_]*(?:e[+-]?\d+)?|\.\d[\d_]*|\d[\d_]*e-\d+)/gi,
  why: "a fraction is not exact",
};
const FORMAT: Rule = {
  pattern: /\.(?:toFixed|toPrecision)\(|\bparseFloat\(/g,
  why: "a decimal string is not a number",
};
const DIVISION: Rule = { pattern: /\/=?/g, why: "a quotient is not exact" };

/** Everywhere: an amount or a price that becomes a number. */
const ANYWHERE: readonly Rule[] = [
  {
    pattern: new RegExp(
      String.raw`\b(?:Number(?:\.parse\w+)?|parseInt|parseFloat|Math\.\w+)\([^()]*${AMOUNT}\w*\b(?!\()[^()]*\)`,
      "gi",
    ),
    why: "an amount or a price does not become a number",
  },
];

/** Where amounts are at work. */
const IN_STRICT: readonly Rule[] = [
  FRACTION,
  FORMAT,
  DIVISION,
  { pattern: /\b(?:Number(?:\.parse\w+)?|parseInt)\(/g, why: "an amount does not become a number" },
  { pattern: /\bMath\.\w+/g, why: "amounts are added, multiplied and compared" },
];

/** Every violation in the files, as `path:line: what is wrong`. */
export function checkAmounts(files: readonly SourceFile[], exceptions = EXCEPTIONS): string[] {
  return files.flatMap((file) => [...checkFile(file, exceptions[file.path] ?? []), ...checkStale(file, exceptions)]);
}

function checkFile({ path, text }: SourceFile, exceptions: readonly string[]): string[] {
  const lines = text.split("\n");
  const code = blankTexts(blankComments(text));
  return rulesOf(path).flatMap(({ pattern, why }) =>
    [...code.matchAll(pattern)].flatMap((match) => {
      const number = code.slice(0, match.index).split("\n").length;
      if (exceptions.includes(lines[number - 1]?.trim() ?? "")) return [];
      return [`${path}:${number}: "${match[0].trim()}" is not allowed here: ${why}`];
    })
  );
}

function rulesOf(path: string): readonly Rule[] {
  if (STRICT.includes(path)) return IN_STRICT;
  return NEAR.some((pattern) => pattern.test(path)) ? [...ANYWHERE, FRACTION, FORMAT, DIVISION] : ANYWHERE;
}

function checkStale({ path, text }: SourceFile, exceptions: Readonly<Record<string, readonly string[]>>): string[] {
  const lines = new Set(text.split("\n").map((line) => line.trim()));
  return (exceptions[path] ?? []).flatMap((line) =>
    lines.has(line) ? [] : [`${path}: has no line "${line}" any more, which tools/amounts.ts excepts`]
  );
}

/** Blanks what stands in quotes and regular expressions; code within template strings stays. */
function blankTexts(code: string): string {
  const quoted = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/;
  // A slash after an operator or an opening bracket begins an expression, any other divides.
  const expression =
    /(?<=(?:^|[(,=:[!&|?{};\n]|=>|return)\s*)\/(?![/*])(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/;
  const plain = code.replaceAll(
    new RegExp(`${quoted.source}|${expression.source}`, "g"),
    (text) => text.replaceAll(/[^\n]/g, " "),
  );
  return blankTemplates(plain);
}

/** Blanks the texts of template strings, however deep they are nested. */
function blankTemplates(code: string): string {
  let blanked = "";
  /** For each template that is open: how many braces are open in its code; -1 in its text. */
  const templates: number[] = [];
  for (let at = 0; at < code.length; at++) {
    const char = code.charAt(at);
    const depth = templates.at(-1);
    const isText = depth === -1;
    if (char === "`") {
      if (isText) templates.pop();
      else templates.push(-1);
    } else if (isText && char === "\\") {
      blanked += "  ";
      at++;
      continue;
    } else if (isText && char === "$" && code.charAt(at + 1) === "{") templates[templates.length - 1] = 0;
    else if (depth !== undefined && !isText && char === "{" && code.charAt(at - 1) !== "$") {
      templates[templates.length - 1] = depth + 1;
    } else if (depth !== undefined && !isText && char === "}") templates[templates.length - 1] = depth - 1;
    blanked += isText && char !== "\n" ? " " : char;
  }
  return blanked;
}
