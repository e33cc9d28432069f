/**
 * The lint rule that keeps binary fractions out of amounts of money. Amounts have the type `bigint`, which the compiler
 * does not mix with numbers. The rule covers conversions between the two, and prices that are read as numbers.
 */

/** Files that compute amounts: they may contain no fraction, and may not convert an amount to a number. */
const STRICT = ["money", "price", "token_bound", "budgets"].map((name) => `lib/billing/${name}.ts`);

/** Files that store or report amounts beside other numbers: they may not divide. */
const RELATED = [
  /^lib\/store\/(?:ledger|days|entry_\w+)\.ts$/,
  /^lib\/store\/(?:outage|postgres|sqlite)\/(?:\w*ledger\w*|accounts|day_sums|usage)\.ts$/,
  /^lib\/billing\/reports\//,
  /^lib\/images\/(?:image_pricing|image_usage)\.ts$/,
];

/** Allowed lines, each in full, by file. A listed line that does not exist is a violation. */
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

/** A name of an amount or a price, and no call. */
const AMOUNT = /(?:cost|overrun|held|amount|budget|price|pricing|usd|charge|debit|credit)\w*\b(?!\()/i;

/** Functions that return a number, by their names. */
const TO_NUMBER = /^(?:Number(?:\.parse\w+)?|parseInt|parseFloat)$/;

const WHY = {
  fraction: "a fraction is not exact",
  format: "a decimal string is not a number",
  division: "a quotient is not exact",
  conversion: "an amount or a price does not become a number",
  computation: "amounts are added, multiplied and compared",
};

/** The rule. Only the files of `lib/` are checked. */
export const exactAmounts: Deno.lint.Rule = {
  create(context) {
    const path = /(?:^|\/)(lib\/(?!.*\/lib\/).*)$/.exec(context.filename)?.[1];
    if (path === undefined) return {};
    const { text } = context.sourceCode;
    const textOf = (node: Deno.lint.Node) => context.sourceCode.getText(node);
    const lines = text.split("\n").map((line) => line.trim());
    const exceptions = EXCEPTIONS[path] ?? [];
    const isStrict = STRICT.includes(path);
    const isExact = isStrict || RELATED.some((pattern) => pattern.test(path));
    const report = (node: Deno.lint.Node, found: string, why: string) => {
      const line = lines[text.slice(0, node.range[0]).split("\n").length - 1] ?? "";
      if (!exceptions.includes(line)) context.report({ node, message: `"${found}" is not allowed here: ${why}` });
    };
    return {
      "BinaryExpression[operator='/'], AssignmentExpression[operator='/=']"(
        node: Deno.lint.BinaryExpression | Deno.lint.AssignmentExpression,
      ) {
        if (isExact) report(node, node.operator, WHY.division);
      },
      Literal(node) {
        if (isExact && typeof node.value === "number" && /\.|e-/i.test(node.raw)) report(node, node.raw, WHY.fraction);
      },
      "UnaryExpression[operator='+']"(node: Deno.lint.UnaryExpression) {
        if (/^[\w.?]+$/.test(textOf(node.argument)) && AMOUNT.test(textOf(node.argument))) {
          report(node, textOf(node), WHY.conversion);
        }
      },
      MemberExpression(node) {
        const name = textOf(node);
        if (isStrict && /^Math\.\w+$/.test(name)) report(node, name, WHY.computation);
        const method = /\.to(?:Fixed|Precision)$/.exec(name)?.[0];
        if (isExact && method !== undefined) report(node, method, WHY.format);
      },
      CallExpression(node) {
        const name = textOf(node.callee);
        const values = node.arguments.map(textOf).join();
        const isConversion = TO_NUMBER.test(name);
        if (isStrict && isConversion || isExact && name === "parseFloat") report(node, name, WHY.conversion);
        else if ((isConversion || /^Math\.\w+$/.test(name)) && /^[^()]+$/.test(values) && AMOUNT.test(values)) {
          report(node, textOf(node), WHY.conversion);
        }
      },
      "Program:exit"(node) {
        for (const line of exceptions) {
          if (lines.includes(line)) continue;
          context.report({ node, message: `There is no line "${line}" any more, which tools/amounts.ts excepts` });
        }
      },
    };
  },
};
