/** Renders docs/reference/metrics.md from the declarations of the metrics. */
import { requestMetrics, vitalMetrics } from "../../lib/observe/metrics.ts";
import type { FamilyOptions, MetricDeclarations } from "../../lib/observe/registry.ts";
import type { AttemptOutcome } from "../../lib/routing/classify_failure.ts";
import { code, pageHead, table } from "./markdown.ts";

const INTRO = `
\`GET /metrics\` answers in the Prometheus text format 0.0.4, on the listener of the admin side. It needs the admin key or
the viewer key as a bearer. Without [\`admin\`](configuration.md#admin) it answers callers on this machine only;
[\`metrics.public\`](configuration.md#metrics) opens it to everyone.

A process has at most 1,200 series. Values beyond that are counted in the series whose labels are all \`other\`. Counters
start at 0 with the process. Histograms have the series \`_bucket\`, \`_sum\` and \`_count\`.
`;

/** Meanings of the values of `outcome`. */
const OUTCOMES: Readonly<Record<AttemptOutcome, string>> = {
  success: "The upstream answered. A stream that breaks off later still counts here",
  failure: "It failed, took too long, or sent an unreadable answer",
  unreachable: "No connection could be made",
  overloaded: "It is overloaded",
  limited: "Its rate limit or the credit of the account is used up",
  key_refused: "It refused the gateway's key (401)",
  rejected: "It rejected the request: invalid, unknown model, or missing permission",
  oversized: "Its answer exceeds the limits of the gateway",
  client_disconnected: "The client disconnected before the answer began",
};

/** A declared metric. */
interface Declared {
  name: string;
  type: string;
  options: FamilyOptions;
}

/** Renders the page. */
export function metricsPage(): string {
  const rows = declaredMetrics().map(({ name, type, options: { labels = [], help } }) => [
    code(name),
    type,
    labels.map(code).join(", "),
    help,
  ]);
  return [
    pageHead("Metrics", INTRO),
    "## Metrics\n",
    table(["Metric", "Type", "Labels", "Meaning"], rows),
    "## Values of `outcome`\n",
    "One request makes one attempt, and another one for each failover or repeat.\n",
    table(["Outcome", "Meaning"], Object.entries(OUTCOMES).map(([outcome, about]) => [code(outcome), `${about}.`])),
  ].join("\n");
}

/** Returns every metric that the gateway declares, in the order of the page. */
export function declaredMetrics(): Declared[] {
  const declared: Declared[] = [];
  const add = (type: string) => (name: string, options: FamilyOptions) => {
    declared.push({ name, type, options });
    return { add: () => {}, observe: () => {} };
  };
  const registry: MetricDeclarations = {
    counter: add("counter"),
    amounts: add("counter"),
    histogram: add("histogram"),
    read: (name, { type, ...options }) => void add(type)(name, options),
  };
  requestMetrics(registry);
  // Values are read only when metrics are rendered, which does not happen here.
  vitalMetrics(registry, () => {
    throw new RangeError("A declaration reads no value");
  });
  return declared;
}
