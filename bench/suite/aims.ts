/** Aims of the benchmark: bounds on figures of Sluice, most of them relative to the minimal proxy X. */
import type { Figures, Measured } from "./rounds.ts";

/** One aim, and whether it was reached. */
export interface AimResult {
  aim: string;
  /** Measured value; null if it was not measured. */
  value: number | null;
  bound: number;
  isMet: boolean | null;
}

/** All measured figures. */
export interface Results {
  /** By the name of the scenario. */
  scenarios: Record<string, Measured>;
  /** Bytes for each stream, by target: with as many streams open as the key says. */
  streams: Record<string, Record<string, number>>;
  /** Milliseconds to the first answer, by target. */
  starts: Record<string, number>;
}

type Column = "cpuUs" | "delayP50Us" | "firstP50Us" | "p50Us" | "p99Us";

interface Aim {
  aim: string;
  bound: number;
  value: (results: Results, target: string) => number;
}

/** CPU time relative to another target's. */
function ratio(scenario: string, other = "X"): Aim["value"] {
  return (results, target) => figure(results, { scenario, target }) / figure(results, { scenario, target: other });
}

/** Time that a target adds to the upstream's own, in microseconds. */
function added(results: Results, { scenario, target, column }: { scenario: string; target: string; column: Column }) {
  return figure(results, { scenario, target, column }) - figure(results, { scenario, target: "direct", column });
}

/** The highest of several ratios: an aim counts for every shape of request. */
function worst(...ratios: readonly Aim["value"][]): Aim["value"] {
  return (results, target) => Math.max(...ratios.map((value) => value(results, target)));
}

const AGENT_RELAYED = ["agent 60k", "agent 60k responses", "agent 60k messages"];

const AIMS: readonly Aim[] = [
  { aim: "1 KB relayed, CPU / X", bound: 1.3, value: ratio("json 1k") },
  {
    aim: "60 KB of an agent relayed, all protocols, CPU / X",
    bound: 0.7,
    value: worst(...AGENT_RELAYED.map((name) => ratio(name))),
  },
  { aim: "60 KB of text relayed, CPU / X", bound: 0.7, value: ratio("json 60k") },
  { aim: "60 KB of an agent translated, CPU / X", bound: 1.2, value: ratio("agent 60k cross") },
  { aim: "60 KB of text translated, CPU / X", bound: 1.2, value: ratio("json 60k cross") },
  { aim: "burst relayed, CPU per event / X", bound: 0.12, value: ratio("burst") },
  { aim: "burst translated, CPU per event / X", bound: 0.12, value: ratio("burst cross") },
  { aim: "200 paced streams, CPU per event / X", bound: 0.6, value: ratio("paced 200") },
  {
    aim: "200 paced streams, added delay of an event, ms",
    bound: 0.6,
    value: (results, target) => added(results, { scenario: "paced 200", target, column: "delayP50Us" }) / 1000,
  },
  {
    aim: "added p50 at 100 requests/s, ms above the floor",
    bound: 0.2,
    value: (results, target) =>
      (figure(results, { scenario: "calm 1k", target, column: "p50Us" }) -
        figure(results, { scenario: "calm 1k", target: "floor-both", column: "p50Us" })) / 1000,
  },
  {
    aim: "first event of few streams, added p50, ms",
    bound: 0.6,
    value: (results, target) => added(results, { scenario: "first event", target, column: "firstP50Us" }) / 1000,
  },
  {
    aim: "KB per slow translated stream",
    bound: 150,
    value: ({ streams }, target) => Math.max(...Object.values(streams).map((by) => by[target] ?? NaN)) / 1000,
  },
  {
    aim: "first answer after the start / X",
    bound: 2,
    value: ({ starts }, target) => (starts[target] ?? NaN) / (starts.X ?? NaN),
  },
];

/** Compares one target's figures with the aims. */
export function judge(results: Results, target: string): AimResult[] {
  return AIMS.map(({ aim, bound, value: valueOf }) => {
    const value = valueOf(results, target);
    // Nothing is measured by `Math.max()` of no streams.
    if (!Number.isFinite(value)) return { aim, value: null, bound, isMet: null };
    return { aim, value, bound, isMet: value <= bound };
  });
}

/** A figure; NaN if there is none. */
export function figure(
  { scenarios }: Pick<Results, "scenarios">,
  { scenario, target, column = "cpuUs" }: { scenario: string; target: string; column?: keyof Figures & Column },
): number {
  const measured = scenarios[scenario]?.[target];
  return measured === undefined || "failed" in measured ? NaN : measured[column];
}
