import { assertEquals } from "@std/assert";
import type { ReplyEvent } from "../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../lib/errors.ts";
import { TargetMeasurement } from "../../lib/request/attempts.ts";
import type { Health } from "../../lib/routing/health.ts";
import type { Attempt } from "../../lib/routing/retry.ts";

const OPEN: ReplyEvent = { type: "open", index: 0, block: { type: "text" } };
const ERROR: ReplyEvent = { type: "error", error: new GatewayError("overloaded", "busy") };

function finish(completion?: number): ReplyEvent {
  return { type: "finish", reason: "end", usage: completion === undefined ? {} : { completion } };
}

/** Reports about a stream whose steps take half a second each. */
function reportsOf(steps: (ReplyEvent[] | Error)[], isAborted = false): unknown[] {
  let now = 0;
  const reports: unknown[] = [];
  const health = {
    recordSpeed: (_: unknown, measured: unknown) => reports.push(measured),
    report: (_: unknown, outcome: { type: string }) => reports.push(outcome.type),
  } as unknown as Health;
  const target = { upstream: "one", model: "m" };
  const measurement = new TargetMeasurement({
    attempt: { model: { id: "acme/one" }, target, permit: { target } } as Attempt,
    begunAt: 0,
    requestId: "r",
    entry: { recordBreak: ({ message }) => void reports.push(message) },
    gateway: { health, monotonic: () => now, now: () => 0, log: () => {} },
    signal: isAborted ? AbortSignal.abort() : new AbortController().signal,
    answered: () => reports.push("answered"),
  });
  for (const step of steps) {
    now += 500;
    if (step instanceof Error) measurement.broken(step);
    else measurement.take(step);
  }
  return reports;
}

Deno.test("a stream is measured from its first event, and only long answers have a speed", () => {
  const cut = new GatewayError("upstream", "cut");
  const cases: [(ReplyEvent[] | Error)[], unknown[]][] = [
    [[[{ type: "start" }], [OPEN], [finish(100)]], ["answered", { firstMs: 1000 }, { tokensPerSecond: 200 }]],
    [[[{ type: "start" }], [OPEN], [finish(15)]], ["answered", { firstMs: 1000 }]],
    [[[{ type: "start" }], [OPEN], [finish()]], ["answered", { firstMs: 1000 }]],
    // All events arrive at once, so no speed can be calculated.
    [[[{ type: "start" }, OPEN, finish(100)]], ["answered", { firstMs: 500 }]],
    [[[{ type: "start" }], [ERROR]], []],
    [[[{ type: "start" }], [OPEN], [ERROR]], ["answered", { firstMs: 1000 }, "busy", "busy"]],
    [[[OPEN], cut], ["answered", { firstMs: 500 }, "failure", "cut"]],
    [[[OPEN, ERROR]], ["answered", { firstMs: 500 }, "busy", "busy"]],
    [[cut], []],
  ];
  for (const [steps, expected] of cases) assertEquals(reportsOf(steps), expected);
});

Deno.test("a stream that ends because its request was aborted does not count for its target", () => {
  assertEquals(reportsOf([[OPEN], new GatewayError("upstream", "cut")], true), ["answered", { firstMs: 500 }]);
});
