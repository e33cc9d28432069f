/** What Sluice is held to, beside the yardstick X and Portkey. */
import type { Figures, Measured } from "./rounds.ts";

/** One aim, and whether it was reached. */
export interface Judged {
  aim: string;
  /** What was measured; null where it could not be. */
  value: number | null;
  bound: number;
  held: boolean | null;
}

/** All that was measured. */
export interface Results {
  /** By the name of the scenario. */
  scenarios: Record<string, Measured>;
  /** Bytes for each stream, by target: with as many streams open as the key says. */
  streams: Record<string, Record<string, number>>;
  /** Milliseconds to the first answer, by target. */
  starts: Record<string, number>;
}

type Column = "cpuUs" | "firstP50Us" | "p50Us" | "p99Us";

interface Aim {
  aim: string;
  bound: number;
  /** The value has to be the bound or more. */
  least?: boolean;
  value: (results: Results, target: string) => number;
}

/** CPU time beside another target's. */
function ratio(scenario: string, other = "X"): Aim["value"] {
  return (results, target) => figure(results, { scenario, target }) / figure(results, { scenario, target: other });
}

/** What a target adds to the upstream's own time, in microseconds. */
function added(results: Results, { scenario, target, column }: { scenario: string; target: string; column: Column }) {
  return figure(results, { scenario, target, column }) - figure(results, { scenario, target: "direct", column });
}

function addedRatio(scenario: string, column: Column): Aim["value"] {
  return (results, target) =>
    added(results, { scenario, target, column }) / added(results, { scenario, target: "X", column });
}

const AIMS: readonly Aim[] = [
  { aim: "JSON 1 KB, CPU / X", bound: 0.75, value: ratio("json 1k") },
  {
    aim: "JSON 1 KB, requests per second of a core / Portkey",
    bound: 8,
    least: true,
    value: (results, target) => 1 / ratio("json 1k", "portkey")(results, target),
  },
  { aim: "JSON 1 KB cross, CPU / X", bound: 0.85, value: ratio("json 1k cross") },
  { aim: "JSON 60 KB, CPU / X", bound: 0.6, value: ratio("json 60k") },
  { aim: "JSON 60 KB CJK, CPU / X", bound: 0.6, value: ratio("json 60k cjk") },
  { aim: "JSON 60 KB cross, CPU / X", bound: 1, value: ratio("json 60k cross") },
  { aim: "burst relayed, CPU per event / X", bound: 0.15, value: ratio("burst") },
  { aim: "burst translated, CPU per event / X", bound: 0.2, value: ratio("burst cross") },
  { aim: "paced relayed, CPU per event / X", bound: 0.65, value: ratio("paced") },
  { aim: "paced translated, CPU per event / X", bound: 0.65, value: ratio("paced cross") },
  { aim: "added p50 at 100 requests/s / X", bound: 0.75, value: addedRatio("calm 1k", "p50Us") },
  {
    aim: "p99 at 100 requests/s / X",
    bound: 1,
    value: (results, target) =>
      figure(results, { scenario: "calm 1k", target, column: "p99Us" }) /
      figure(results, { scenario: "calm 1k", target: "X", column: "p99Us" }),
  },
  {
    aim: "KB per slow translated stream",
    bound: 250,
    value: ({ streams }, target) => Math.max(...Object.values(streams).map((by) => by[target] ?? NaN)) / 1000,
  },
  { aim: "ms from the start to the first answer", bound: 400, value: ({ starts }, target) => starts[target] ?? NaN },
];

/** Holds one target's figures against the aims. */
export function judge(results: Results, target: string): Judged[] {
  return AIMS.map(({ aim, bound, least, value: valueOf }) => {
    const value = valueOf(results, target);
    // Nothing is measured by `Math.max()` of no streams.
    if (!Number.isFinite(value)) return { aim, value: null, bound, held: null };
    return { aim, value, bound, held: least === true ? value >= bound : value <= bound };
  });
}

/** A figure; NaN where there is none. */
export function figure(
  { scenarios }: Pick<Results, "scenarios">,
  { scenario, target, column = "cpuUs" }: { scenario: string; target: string; column?: keyof Figures & Column },
): number {
  const measured = scenarios[scenario]?.[target];
  return measured === undefined || "failed" in measured ? NaN : measured[column];
}
