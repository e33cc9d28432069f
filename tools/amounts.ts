/**
 * Checks that no binary fraction gets into amounts of money. Amounts have the type `bigint`, which the compiler does
 * not mix with numbers. This check covers conversions between the two, and prices that are read as numbers.
 */
import type { SourceFile } from "./sources.ts";

/** Files that compute amounts: they may contain no fraction, and may not convert an amount to a number. */
const STRICT = ["money", "price", "charge", "token_bound", "budgets", "ledger_postings"].map((name) =>
  `lib/billing/${name}.ts`
);

/** Files that store or report amounts beside other numbers: they may not divide. */
const RELATED = [
  /^lib\/store\/(?:ledger|days|entry_\w+)\.ts$/,
  /^lib\/store\/(?:outage|postgres|sqlite)\/(?:\w*ledger\w*|accounts|day_sums|usage)\.ts$/,
  /^lib\/billing\/reports\//,
  /^lib\/images\/(?:image_pricing|image_usage)\.ts$/,
];

/** Allowed lines, each in full, by file. A listed line that no longer exists is a violation. */
const EXCEPTIONS: Readonly<Record<string, readonly string[]>> = {
  "lib/billing/money.ts": [
    // Of whole numbers, with no remainder.
    "return product / unit;",
    "return digits === 0n || scaled < 0n || scaled % digits !== 0n ? undefined : scaled / digits;",
  ],
  "lib/billing/token_bound.ts": [
    // Tokens, fewer than a thousand million.
    "const tokens = Number(remaining / price);",
  ],
  "lib/store/days.ts": [
    // Days and hours.
    "return Math.floor(at / stepMs);",
  ],
  "lib/store/postgres/ledger_clock.ts": [
    // Milliseconds.
    "const aheadMs = Number(row?.ms) + (measuredAt - startedAt) / 2 - now();",
  ],
  "lib/billing/image_tokens.ts": [
    // Pixels and tokens, rounded as the official formula says.
    "const tokensOfShorterSide = Math.floor((2 * TOKENS_OF_LONGER_SIDE * shorter + longer) / (2 * longer));",
    "return Math.ceil(TOKENS_OF_LONGER_SIDE * tokensOfShorterSide * (2_000_000 + width * height) / 4_000_000);",
  ],
  "lib/billing/reports/budget_report.ts": [
    // Percent, as a whole number.
    "return budget === 0n ? 100 : Number((parseUsd(spent_usd) + parseUsd(held_usd)) * 100n / budget);",
  ],
  "lib/billing/reports/latencies.ts": [
    // Milliseconds and requests.
    "const samplesPerStep = Math.max(1, Math.ceil(SAMPLES_PER_PERIOD / steps.length));",
    "const weight = requests / Math.max(1, count);",
    "const startOf = (sample: number) => since + Math.floor(sample * (until - since) / samples);",
  ],
  "lib/billing/reports/time_series.ts": [
    // Milliseconds.
    "const end = (Math.floor(now / ms) + 1) * ms;",
    'const step = Math.floor((momentOf(sum.thenName ?? "", unit) - since) / lengthMs);',
  ],
  "lib/billing/reports/usage.ts": [
    // Tokens.
    "return input === 0 ? null : Math.floor(100 * tokens.input_cache_read / input);",
  ],
  "lib/limits/sliding_window.ts": [
    // Requests, tokens or slots.
    "const removed = Math.min(amount, bucket.amount);",
  ],
};

/** Parts of names that mean an amount or a price. */
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

/** Rules for all files. */
const RULES_ANYWHERE: readonly Rule[] = [
  {
    pattern: new RegExp(
      String.raw`\b(?:Number(?:\.parse\w+)?|parseInt|parseFloat|Math\.\w+)\([^()]*${AMOUNT}\w*\b(?!\()[^()]*\)`,
      "gi",
    ),
    why: "an amount or a price does not become a number",
  },
  {
    // A unary plus converts a text to a number; a binary one follows an operand.
    pattern: new RegExp(String.raw`(?<=(?:[=(,?:[&|<>*/%-]|\breturn)\s*)\+\s*[\w.?]*${AMOUNT}\w*\b(?!\()`, "gi"),
    why: "an amount or a price does not become a number",
  },
];

/** Rules for the files that compute amounts. */
const STRICT_RULES: readonly Rule[] = [
  FRACTION,
  FORMAT,
  DIVISION,
  { pattern: /\b(?:Number(?:\.parse\w+)?|parseInt)\(/g, why: "an amount does not become a number" },
  { pattern: /\bMath\.\w+/g, why: "amounts are added, multiplied and compared" },
];

/** Lists the violations in the files, as `path:line: problem`. */
export function checkAmounts(files: readonly SourceFile[], exceptions = EXCEPTIONS): string[] {
  return files.flatMap((file) => [...checkFile(file, exceptions[file.path] ?? []), ...checkStale(file, exceptions)]);
}

function checkFile({ path, text }: SourceFile, exceptions: readonly string[]): string[] {
  const lines = text.split("\n");
  const code = blankTexts(text);
  return rulesOf(path).flatMap(({ pattern, why }) =>
    [...code.matchAll(pattern)].flatMap((match) => {
      const number = code.slice(0, match.index).split("\n").length;
      if (exceptions.includes(lines[number - 1]?.trim() ?? "")) return [];
      return [`${path}:${number}: "${match[0].trim()}" is not allowed here: ${why}`];
    })
  );
}

function rulesOf(path: string): readonly Rule[] {
  if (STRICT.includes(path)) return STRICT_RULES;
  return RELATED.some((pattern) => pattern.test(path))
    ? [...RULES_ANYWHERE, FRACTION, FORMAT, DIVISION]
    : RULES_ANYWHERE;
}

/** Lists the exceptions whose lines no longer exist. */
function checkStale({ path, text }: SourceFile, exceptions: Readonly<Record<string, readonly string[]>>): string[] {
  const lines = new Set(text.split("\n").map((line) => line.trim()));
  return (exceptions[path] ?? []).flatMap((line) =>
    lines.has(line) ? [] : [`${path}: has no line "${line}" any more, which tools/amounts.ts excepts`]
  );
}

const QUOTED = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/y;
const COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?\*\//y;
/** From a backtick, or from the end of code within a template, up to the next code or the end. */
const TEMPLATE = /[`}](?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)/y;
const EXPRESSION = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
/** Code after which a slash begins a regular expression. Elsewhere it divides. */
const BEFORE_EXPRESSION = /(?:^|[(,=:[!&|?{};+>]|\breturn)\s*$/;

/** Replaces comments, strings and regular expressions by spaces. Line ends stay, and so does code within templates. */
function blankTexts(text: string): string {
  let code = "";
  /** For each template whose code is open: how many braces are open in it. */
  const templates: number[] = [];
  for (let at = 0; at < text.length;) {
    const char = text.charAt(at);
    const braces = templates.at(-1);
    const isTemplate = char === "`" || (char === "}" && braces === 0);
    const literal = isTemplate ? matchAt(TEMPLATE, { text, at }) : literalAt(text, { at, code });
    if (char === "}" && braces === 0) templates.pop();
    else if (braces !== undefined && char === "{") templates[templates.length - 1] = braces + 1;
    else if (braces !== undefined && char === "}") templates[templates.length - 1] = braces - 1;
    if (isTemplate && literal?.endsWith("${") === true) templates.push(0);
    code += literal === undefined ? char : literal.replaceAll(/[^\n]/g, " ");
    at += literal?.length ?? 1;
  }
  return code;
}

/** Returns the comment, string or regular expression that begins at an offset; `undefined` if none does. */
function literalAt(text: string, { at, code }: { at: number; code: string }): string | undefined {
  switch (text.charAt(at)) {
    case '"':
    case "'":
      return matchAt(QUOTED, { text, at });
    case "/": {
      const comment = matchAt(COMMENT, { text, at });
      if (comment !== undefined) return comment;
      // The last line is enough; a search through all code before each slash would take too long.
      const line = code.slice(code.lastIndexOf("\n") + 1);
      return BEFORE_EXPRESSION.test(line) ? matchAt(EXPRESSION, { text, at }) : undefined;
    }
    default:
      return undefined;
  }
}

/** Returns the match of a sticky pattern at an offset. */
function matchAt(pattern: RegExp, { text, at }: { text: string; at: number }): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}
