/**
 * Compares bills, explanations and the audit with the entries of the ledger: sums are equal for any grouping and
 * period, and the parts of a bill add up exactly.
 */
import { formatUsd, parseUsd } from "../../../lib/billing/money.ts";
import { auditLedger } from "../../../lib/billing/reports/audit.ts";
import { explainEntry } from "../../../lib/billing/reports/explain.ts";
import { usageReport } from "../../../lib/billing/reports/usage.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import type { KeptEntry, LedgerStore } from "../../../lib/store/ledger.ts";
import type { Random } from "../../support/random.ts";
import { must } from "./checker.ts";
import type { Clock } from "./clock.ts";

/** The expected facts. */
export interface Known {
  /** All entries ever written. */
  entries: readonly KeptEntry[];
  clock: Pick<Clock, "now">;
  random: Random;
}

const DAY_MS = 86_400_000;

/** Periods of bills, in addition to the whole time. */
const SPANS = 2;

/** Groupings of sums per day. */
const GROUPINGS = ["key", "group", "model", "day"] as const;

/** Checks all reports. */
export async function checkReports(ledger: LedgerStore, { entries, clock, random }: Known): Promise<void> {
  const { ok, differences } = await auditLedger(ledger, { now: clock.now, pause: () => Promise.resolve() });
  must(ok, "I20", () => JSON.stringify(differences));
  const moments = entries.map(({ at }) => at);
  const first = Math.min(...moments, clock.now());
  const last = Math.max(...moments, clock.now());
  const goneDay = (await ledger.start()).day;
  await checkSpan(ledger, { entries, goneDay, since: first, until: last + 1 });
  for (let i = 0; i < SPANS && moments.length > 0; i++) {
    // Cut at entries, at midnights, and anywhere.
    const edge = () =>
      random.chance(0.4)
        ? random.pick(moments) + random.below(2)
        : random.chance(0.4)
        ? Math.floor(random.pick(moments) / DAY_MS + random.below(2)) * DAY_MS
        : first + random.below(last - first + 1);
    await checkSpan(ledger, { entries, goneDay, since: edge(), until: edge() });
  }
  for (const entry of entries) checkExplained(entry);
}

/** A period in Unix milliseconds; days up to `goneDay` may have only whole sums. */
interface Span {
  entries: readonly KeptEntry[];
  goneDay: number;
  since: number;
  until: number;
}

async function checkSpan(ledger: LedgerStore, { entries, goneDay, since, until }: Span): Promise<void> {
  const isWithin = ({ at }: KeptEntry) => {
    const day = Math.floor(at / DAY_MS);
    const isWhole = day <= goneDay && day * DAY_MS < until && (day + 1) * DAY_MS > since;
    return since < until && (isWhole || (at >= since && at < until));
  };
  const within = entries.filter(isWithin);
  const span = `from ${since} to ${until}`;
  for (const by of GROUPINGS) {
    const report = await usageReport({
      ledger,
      keys: openMemoryStore().keys,
      config: { keys: [], groups: {}, models: [] },
    }, {
      since,
      until,
      by,
    });
    const names = new Map<string, bigint>();
    for (const entry of within) names.set(nameBy(by, entry), (names.get(nameBy(by, entry)) ?? 0n) + entry.cost);
    must(report.lines.length === names.size, "sums", () => `${report.lines.length} lines by ${by} ${span}`);
    const reported = { cost: 0n, overrun: 0n, requests: 0, completion: 0 };
    for (const { name, cost_usd, overrun_usd, requests, tokens } of report.lines) {
      const expected = names.get(name);
      must(cost_usd === usd(expected), "sums", () => `${name} pays ${cost_usd} ${span}, and not ${usd(expected)}`);
      reported.cost += parseUsd(cost_usd);
      reported.overrun += parseUsd(overrun_usd);
      reported.requests += requests;
      reported.completion += tokens.completion;
    }
    const whole = { cost: 0n, overrun: 0n, requests: within.length, completion: 0 };
    for (const { cost, overrun, tokens } of within) {
      whole.cost += cost;
      whole.overrun += overrun;
      whole.completion += tokens.completion;
    }
    const { total } = report;
    const isWhole = reported.cost === whole.cost && reported.overrun === whole.overrun &&
      reported.requests === whole.requests && reported.completion === whole.completion;
    must(isWhole, "sums", () => `the parts by ${by} ${span} make ${reported.cost}, the whole is ${whole.cost}`);
    const isTotal = total.cost_usd === usd(whole.cost) && total.overrun_usd === usd(whole.overrun) &&
      total.requests === whole.requests && total.tokens.completion === whole.completion;
    must(isTotal, "sums", () => `the total by ${by} ${span} is ${total.cost_usd}`);
  }
}

/** Checks the explanation of one request. */
function checkExplained(entry: KeptEntry): void {
  const { lines, sum_usd, charged_usd, overrun_usd, held_usd, released_usd, adds_up } = explainEntry(entry);
  const sum = lines.reduce((sum, { amount_usd }) => sum + parseUsd(amount_usd), 0n);
  must(adds_up && formatUsd(sum) === sum_usd, "sums", () => `the lines of ${entry.id} make ${sum}`);
  must(sum === entry.cost + entry.overrun, "sums", () => `${entry.id} is explained with ${sum}`);
  const isSame = charged_usd === formatUsd(entry.cost) && overrun_usd === formatUsd(entry.overrun) &&
    held_usd === formatUsd(entry.held);
  must(isSame, "sums", () => `${entry.id} is explained with other amounts`);
  const free = entry.held === 0n ? 0n : entry.held - entry.cost;
  must(parseUsd(released_usd) === free, "sums", () => `${entry.id} releases ${released_usd}`);
}

function usd(amount: bigint | undefined): string {
  return amount === undefined ? "nothing" : formatUsd(amount);
}

function nameBy(by: typeof GROUPINGS[number], { at, keyId, group, model }: KeptEntry): string {
  switch (by) {
    case "key":
      return keyId;
    case "group":
      return group;
    case "model":
      return model;
    case "day":
      return new Date(at).toISOString().slice(0, 10);
  }
}
