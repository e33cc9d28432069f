/** Formats the results of a run as text or JSON. */
import { SUITE_PARTS, type SuitePart } from "./check.ts";
import type { Result, SuiteRun } from "./run.ts";

/** Words for the outcomes, of equal length. */
const OUTCOME_WORDS = { pass: "ok  ", fail: "FAIL", skip: "skip" } as const;

/** Numbers of outcomes in a part, or in all. */
export interface Total {
  pass: number;
  fail: number;
  skip: number;
}

function totalOf(results: readonly Result[]): Total {
  const count = (outcome: Result["outcome"]) => results.filter((result) => result.outcome === outcome).length;
  return { pass: count("pass"), fail: count("fail"), skip: count("skip") };
}

/** Formats the report: a line for each check, details of those that failed, and totals. */
export function reportText({ results, requests }: SuiteRun, about: { origin: string; model: string }): string {
  const parts = SUITE_PARTS.map((part) => ({ part, results: results.filter((result) => result.part === part) }))
    .filter(({ results }) => results.length > 0);
  const lines = parts.flatMap(({ part, results }) => [part, ...shortened(results).flatMap(resultLines), ""]);
  const all = totalOf(results);
  return [
    `${about.origin} with ${about.model}: ${requests} requests`,
    "",
    ...lines,
    ...parts.map(({ part, results }) => totalLine(part, totalOf(results))),
    totalLine("all", all),
    ...(results.some(({ instructed }) => instructed)
      ? ["", "* needs a model that follows instructions; any instructed model does."]
      : []),
    "",
  ].join("\n");
}

/** Replaces the results of a part by one line if all were skipped for the same reason. */
function shortened(results: readonly Result[]): readonly Result[] | [{ all: number; reason: string }] {
  const reasons = new Set(results.map((result) => result.outcome === "skip" ? result.reason : undefined));
  const [reason] = reasons;
  return reasons.size === 1 && reason !== undefined ? [{ all: results.length, reason }] : results;
}

function resultLines(result: Result | { all: number; reason: string }): string[] {
  if ("all" in result) return [`  skip  all ${result.all} checks: ${result.reason}`];
  const star = result.instructed === true ? " *" : "";
  const line = `  ${OUTCOME_WORDS[result.outcome]}  ${result.id}${star}  ${result.title}`;
  switch (result.outcome) {
    case "pass":
      return [result.note === undefined ? line : `${line} (${result.note})`];
    case "skip":
      return [line, `          ${result.reason}`];
    case "fail":
      return [
        line,
        `          expected: ${result.expected}`,
        `          seen:     ${result.seen}`,
        `          matters:  ${result.why}`,
      ];
  }
}

function totalLine(name: SuitePart | "all", { pass, fail, skip }: Total): string {
  return `${`${name}:`.padEnd(11)}${String(pass).padStart(3)} ok, ${fail} failed, ${skip} skipped`;
}

/** Formats the report as JSON. */
export function reportJson({ results, requests }: SuiteRun, about: { origin: string; model: string }): string {
  const parts = SUITE_PARTS.filter((part) => results.some((result) => result.part === part));
  const totals = Object.fromEntries(parts.map((part) => [part, totalOf(results.filter((r) => r.part === part))]));
  return JSON.stringify({ ...about, requests, total: totalOf(results), totals, results }, null, 2);
}
