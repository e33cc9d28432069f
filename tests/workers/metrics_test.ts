import { assertEquals } from "@std/assert";
import { formatUsd } from "../../lib/billing/money.ts";
import { createRegistry } from "../../lib/observe/registry.ts";
import { countersOf, sumMetrics } from "../../lib/workers/metrics.ts";

/** The text of one isolate. */
function textOf(fill: {
  requests?: Record<string, number>;
  cost?: bigint;
  seconds?: number[];
  open?: number;
  version?: number;
  healthy?: number;
  state?: number;
}): string {
  const registry = createRegistry();
  const requests = registry.counter("requests_total", { help: "Requests.", labels: ["model", "ending"] });
  for (const [model, count] of Object.entries(fill.requests ?? {})) requests.add([model, "a b\\"], count);
  const cost = registry.amounts("cost_usd_total", { help: "Cost.", labels: ["model"], write: formatUsd });
  cost.add(["one"], fill.cost ?? 0n);
  const seconds = registry.histogram("took_seconds", { help: "Time.", labels: ["model"], buckets: [0.5, 2] });
  for (const value of fill.seconds ?? []) seconds.observe(["one"], value);
  const gauge = (name: string, value: number) =>
    registry.read(name, { help: "A gauge.", type: "gauge", from: () => [{ value }] });
  gauge("open", fill.open ?? 0);
  gauge("config_version", fill.version ?? 0);
  gauge("ledger_healthy", fill.healthy ?? 1);
  gauge("breaker_state", fill.state ?? 0);
  return registry.render();
}

Deno.test("the sum of one text is that text", () => {
  const text = textOf({ requests: { one: 3 }, cost: 5n, seconds: [0.25, 4], open: 2 });
  assertEquals(sumMetrics([text]), text);
  assertEquals(sumMetrics(["", text, ""]), text);
});

Deno.test("counters, amounts and histograms are added up, gauges by what they mean", () => {
  const texts = [
    textOf({ requests: { one: 3, two: 1 }, cost: 900_000_000_001n, seconds: [0.25, 4], open: 2, version: 2 }),
    textOf({ requests: { one: 4, three: 1 }, cost: 100_000_000_000n, seconds: [1], open: 1, version: 2, healthy: 0 }),
    textOf({ state: 3, version: 1 }),
  ];
  const sum = sumMetrics(texts);
  const expected = textOf({
    requests: { one: 7, two: 1, three: 1 },
    cost: 1_000_000_000_001n,
    seconds: [0.25, 4, 1],
    open: 3,
    version: 2,
    healthy: 0,
    state: 3,
  });
  assertEquals(sum, expected);
  assertEquals(sum.includes('cost_usd_total{model="one"} 1.000000000001\n'), true);
});

Deno.test("decimals are added exactly, other numbers as numbers", () => {
  const cases: [string, string, string][] = [
    ["0.1", "0.2", "0.3"],
    ["999999.999999999999", "0.000000000001", "1000000"],
    ["123456789012345.000000000001", "1", "123456789012346.000000000001"],
    ["-0.5", "0.25", "-0.25"],
    ["1e-7", "1", "1.0000001"],
  ];
  for (const [a, b, sum] of cases) {
    const text = (value: string) => `# TYPE t counter\nt ${value}\n`;
    const added = sumMetrics([text(a), text(b)]);
    assertEquals(added, text(sum), `${a} + ${b}`);
  }
});

Deno.test("countersOf() leaves out what does not only grow", () => {
  const text = textOf({ requests: { one: 3 }, seconds: [1], open: 2 });
  assertEquals([...countersOf(text).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name), [
    "requests_total",
    "cost_usd_total",
    "took_seconds",
  ]);
  assertEquals(sumMetrics([countersOf(text), textOf({})]), textOf({ requests: { one: 3 }, seconds: [1] }));
});
