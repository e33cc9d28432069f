import { assertEquals, assertRejects } from "@std/assert";
import type { ReplyEvent } from "../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../lib/errors.ts";
import { measuredFeed } from "../../lib/request/measured_feed.ts";

const OPEN: ReplyEvent = { type: "open", index: 0, block: { type: "text" } };
const ERROR: ReplyEvent = { type: "error", error: new GatewayError("overloaded", "busy") };

function finish(completion?: number): ReplyEvent {
  return { type: "finish", reason: "end", usage: completion === undefined ? {} : { completion } };
}

/** What is told of a feed whose steps take half a second each. */
async function told(steps: (ReplyEvent[] | Error)[]): Promise<unknown[]> {
  let now = 0;
  const said: unknown[] = [];
  const feed = measuredFeed({
    read() {
      now += 500;
      const step = steps.shift();
      if (step instanceof Error) return Promise.reject(step);
      return Promise.resolve(step === undefined ? undefined : { frames: [], events: step });
    },
    fail: () => [],
    cancel() {},
  }, {
    monotonic: () => now,
    began: () => said.push(`began at ${now}`),
    ended: (speed) => said.push(speed),
    broke: (error) => said.push(error instanceof GatewayError ? error.kind : "broke"),
  });
  try {
    while (await feed.read() !== undefined);
  } catch {
    said.push("thrown");
  }
  return said;
}

Deno.test("a feed is measured from its first event, and only long answers tell a speed", async () => {
  const cases: [(ReplyEvent[] | Error)[], unknown[]][] = [
    [[[{ type: "start" }], [OPEN], [finish(100)]], ["began at 1000", 200]],
    [[[{ type: "start" }], [OPEN], [finish(15)]], ["began at 1000", undefined]],
    [[[{ type: "start" }], [OPEN], [finish()]], ["began at 1000", undefined]],
    // All at once: that is no speed.
    [[[{ type: "start" }, OPEN, finish(100)]], ["began at 500", undefined]],
    [[[{ type: "start" }], [ERROR]], []],
    [[[{ type: "start" }], [OPEN], [ERROR]], ["began at 1000", "overloaded"]],
    [[[OPEN], new Error("cut")], ["began at 500", "broke", "thrown"]],
    [[new Error("cut")], ["thrown"]],
  ];
  for (const [steps, expected] of cases) assertEquals(await told(steps), expected);
});

Deno.test("a measured feed tells and throws the error that names who is to blame", async () => {
  const told: unknown[] = [];
  const steps = [Promise.resolve({ frames: [], events: [OPEN] }), Promise.reject(new Error("overtime"))];
  const feed = measuredFeed({ read: () => steps.shift() ?? Promise.resolve(undefined), fail: () => [], cancel() {} }, {
    monotonic: () => 0,
    began() {},
    ended() {},
    broke: (error) => told.push(error),
    blame: () => "the client",
  });
  await feed.read();
  assertEquals([await feed.read().catch((error) => error), ...told], ["the client", "the client"]);
});

Deno.test("a measured feed passes on what it is asked", async () => {
  let cancelled = 0;
  const feed = measuredFeed({
    read: () => Promise.reject(new TypeError("x")),
    fail: (error) => [{ data: error.message }],
    cancel: () => void cancelled++,
  }, { monotonic: () => 0, began() {}, ended() {}, broke() {} });
  await assertRejects(() => feed.read(), TypeError);
  assertEquals(feed.fail(new GatewayError("upstream", "broken")), [{ data: "broken" }]);
  feed.cancel();
  assertEquals(cancelled, 1);
});
