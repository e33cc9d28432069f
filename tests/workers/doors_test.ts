import { assert, assertEquals, assertRejects } from "@std/assert";
import type { Failure } from "../../lib/access/failures.ts";
import { GatewayError } from "../../lib/errors.ts";
import { OWNER, WORKER } from "../../lib/workers/contract.ts";
import { createOwnerDoors, createWorkerDoors } from "../../lib/workers/doors.ts";
import { openWires } from "./wires.ts";

const ADDRESS = "203.0.113.7";

/** An owner and as many workers. */
function open(count: number) {
  let now = 0;
  const monotonic = () => now;
  const owner = createOwnerDoors({ monotonic });
  const workers = Array.from({ length: count }, () => {
    const wires = openWires();
    const door = owner.open(wires.one.told(WORKER.door));
    wires.one.offer(OWNER.door, door);
    const keeper = wires.other.remote(OWNER.door);
    const { senders, news } = createWorkerDoors({ keeper, told: wires.other.told(OWNER.door), monotonic });
    wires.other.offer(WORKER.door, news);
    // Whatever was sent before has arrived when an answer to this is there.
    const settled = () => keeper.failed(undefined);
    return { ...senders, wires, settled, close: door.close };
  });
  return {
    owner: owner.senders,
    workers,
    passes: (ms: number) => now += ms,
    settled: () => Promise.all(workers.map(({ settled }) => settled())),
    [Symbol.dispose]() {
      for (const { wires } of workers) wires[Symbol.dispose]();
    },
  };
}

Deno.test("wrong keys count together wherever they are tried, and the last one is reported once", async () => {
  using world = open(3);
  const failures: Failure[] = [];
  for (let index = 0; index < 20; index++) {
    failures.push(await world.workers[index % 3]?.failures.failed(ADDRESS) ?? {});
  }
  assertEquals(failures, [...Array(19).fill({}), { isLast: true }]);
  await world.settled();
  for (const { failures } of [...world.workers, world.owner]) {
    assertEquals(await failures.failed(ADDRESS), { retryAfterMs: 60_000 });
    assertEquals(await failures.failed("203.0.113.8"), {});
  }
  world.passes(60_000);
  for (const { failures } of world.workers) assertEquals(await failures.failed(ADDRESS), {});
});

Deno.test("a worker that has just reported a wrong key knows what came of it, and asks no more about the next", async () => {
  using world = open(2);
  const [one] = world.workers;
  for (let index = 0; index < 20; index++) await one?.failures.failed(ADDRESS);
  const before = one?.wires.messages.length;
  assertEquals(await one?.failures.failed(ADDRESS), { retryAfterMs: 60_000 });
  assertEquals(one?.wires.messages.length, before);
});

Deno.test("places of a client are those at all isolates together, and free when a worker ends", async () => {
  using world = open(2);
  const [one, two] = world.workers;
  assert(one !== undefined && two !== undefined);
  const leave = [
    await one.crowd.enter(ADDRESS, 3),
    await two.crowd.enter(ADDRESS, 3),
    await one.crowd.enter(ADDRESS, 3),
  ];
  for (const { crowd } of [one, two]) {
    await assertRejects(async () => await crowd.enter(ADDRESS, 3), GatewayError, "3 with this API key");
  }
  leave[1]?.();
  leave[1]?.();
  await world.settled();
  leave.push(await two.crowd.enter(ADDRESS, 3));
  await assertRejects(async () => await two.crowd.enter(ADDRESS, 3), GatewayError);
  one.close();
  leave.push(await two.crowd.enter(ADDRESS, 3), await two.crowd.enter(ADDRESS, 3));
  await assertRejects(async () => await two.crowd.enter(ADDRESS, 3), GatewayError);
});
