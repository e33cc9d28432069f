import { assertEquals } from "@std/assert";
import { GatewayError } from "../../../lib/errors.ts";
import { painter, paintsAll, startPainted } from "./gateway.ts";

Deno.test("images name the upstream that made them", async () => {
  const broken = painter(() => new GatewayError("overloaded", "busy"));
  await using running = startPainted({ first: broken, second: painter(paintsAll) });
  for (const stream of [false, true]) {
    const response = await running.generate({ stream });
    await response.body?.cancel();
    assertEquals(
      ["upstream", "model", "attempts"].map((name) => response.headers.get(`x-sluice-${name}`)),
      ["second", "acme/paint", "2"],
    );
  }
});

Deno.test("another target is tried only if no image can be in progress", async () => {
  const cases: [GatewayError, status: number, upstream: string][] = [
    [new GatewayError("exhausted", "limit", { fault: "status" }), 200, "second"],
    [new GatewayError("upstream", "gone", { fault: "unreachable" }), 200, "second"],
    [new GatewayError("upstream", "who", { fault: "key" }), 200, "second"],
    [new GatewayError("exhausted", "pay", { fault: "credit", final: true }), 200, "second"],
    [new GatewayError("upstream", "broken", { fault: "status", final: true }), 502, "first"],
    [new GatewayError("timeout", "slow", { final: true }), 504, "first"],
    [new GatewayError("invalid", "wrong", { fault: "status" }), 400, "first"],
  ];
  for (const [error, status, upstream] of cases) {
    const [first, second] = [painter(() => error), painter(paintsAll)];
    await using running = startPainted({ first, second });
    const response = await running.generate();
    await response.body?.cancel();
    assertEquals([response.status, response.headers.get("x-sluice-upstream")], [status, upstream], error.message);
    // The same upstream is retried only if the request cannot have arrived.
    assertEquals([first.calls.length, second.calls.length], [
      error.fault === "unreachable" ? 2 : 1,
      status === 200 ? 1 : 0,
    ]);
  }
  const second = painter(paintsAll);
  await using started = startPainted({ first: painter(() => [new GatewayError("overloaded", "Full")]), second });
  const response = await started.generate();
  await response.body?.cancel();
  assertEquals([response.status, second.calls.length], [503, 0], "a failure after the start");
});
