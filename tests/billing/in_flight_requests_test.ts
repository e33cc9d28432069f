import { assertEquals } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { DrainedRequests, type InFlightKind, InFlightRequests } from "../../lib/billing/in_flight_requests.ts";

const WHY = new GatewayError("overloaded", "The end");

/** A request that ends when it is aborted, unless it ignores the abort. */
function request(kind: InFlightKind, listens = true) {
  const done = Promise.withResolvers<void>();
  const calls: string[] = [];
  return {
    calls,
    end: done.resolve,
    meter: {
      done: done.promise,
      fail(status: number) {
        calls.push(`failed ${status}`);
        done.resolve();
        return Promise.resolve();
      },
    },
    request: {
      kind,
      stop(reason: GatewayError) {
        calls.push(reason.kind);
        if (listens) done.resolve();
      },
    },
  };
}

function add(running: InFlightRequests, { meter, request: of }: ReturnType<typeof request>): void {
  running.add(meter, of);
}

Deno.test("InFlightRequests counts, awaits and stops requests by kind", async () => {
  const running = new InFlightRequests(5);
  const [text, deaf, image] = [request("text"), request("text", false), request("images")];
  for (const each of [text, deaf, image]) add(running, each);
  assertEquals([running.count(), running.count("text"), running.count("images")], [3, 2, 1]);
  await running.stop(WHY, "text");
  assertEquals([text.calls, deaf.calls, image.calls], [["overloaded"], ["overloaded", "failed 503"], []]);
  await running.whenDone("text");
  assertEquals([running.count(), running.count("images")], [1, 1]);
  const over = running.whenDone();
  image.end();
  await over;
  await running.stop(WHY);
  assertEquals([running.count(), image.calls], [0, []]);
});

Deno.test("InFlightRequests.over() also waits for requests added meanwhile", async () => {
  const running = new InFlightRequests();
  const [first, second] = [request("text"), request("text")];
  add(running, first);
  let over = false;
  const waited = running.whenDone().then(() => over = true);
  add(running, second);
  first.end();
  await new Promise((resolve) => setTimeout(resolve, 0));
  assertEquals(over, false);
  second.end();
  await waited;
});

Deno.test("DrainedRequests.begin() leaves a quarter of the drained answers to other keys", async () => {
  const drains = new DrainedRequests();
  const { promise, resolve } = Promise.withResolvers<void>();
  const begin = (keyId: string, max = 8) => drains.begin(promise.then(), { max, keyId });
  assertEquals(Array.from({ length: 7 }, () => begin("a")), [...Array(6).fill(true), false]);
  assertEquals([begin("b"), begin("b"), begin("b"), begin("a")], [true, true, false, false]);
  resolve();
  await promise.then();
  await Promise.resolve();
  assertEquals([begin("a"), begin("a", 1), begin("b", 0)], [true, false, false]);
});
