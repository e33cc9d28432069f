import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
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

Deno.test("wrong keys count together wherever they are tried, and the last one is told once", async () => {
  using world = open(3);
  const told: boolean[] = [];
  for (let index = 0; index < 20; index++) told.push(await world.workers[index % 3]?.failures.failed(ADDRESS) ?? false);
  assertEquals(told.filter(Boolean).length, 1);
  assertEquals(told.at(-1), true);
  await world.settled();
  for (const { failures } of [...world.workers, world.owner]) {
    assert(failures.watching);
    assertThrows(() => failures.admit(ADDRESS, "any"), GatewayError, "Too many wrong API keys");
    failures.admit("203.0.113.8", "any");
  }
  world.passes(60_000);
  for (const { failures } of world.workers) failures.admit(ADDRESS, "any");
});

Deno.test("a worker that has just told of a wrong key knows what came of it", async () => {
  using world = open(2);
  const [one] = world.workers;
  for (let index = 0; index < 20; index++) await one?.failures.failed(ADDRESS);
  assertThrows(() => one?.failures.admit(ADDRESS, "any"), GatewayError);
});

Deno.test("a key that worked at one isolate from an address that is watched passes at all", async () => {
  using world = open(2);
  const [one, two] = world.workers;
  assert(one !== undefined && two !== undefined);
  await one.failures.failed(ADDRESS);
  await world.settled();
  assertEquals([two.failures.worked(ADDRESS, "good"), two.failures.worked(ADDRESS, "good")], [true, false]);
  const before = two.wires.messages.length;
  await world.settled();
  for (let index = 0; index < 20; index++) await one.failures.failed(ADDRESS);
  await world.settled();
  for (const { failures } of [one, two, world.owner]) {
    failures.admit(ADDRESS, "good");
    assertThrows(() => failures.admit(ADDRESS, "other"), GatewayError);
  }
  assert(two.wires.messages.length > before);
});

Deno.test("a good key costs no message while nobody is watched", async () => {
  using world = open(2);
  const [one] = world.workers;
  one?.failures.admit(undefined, "good");
  one?.failures.worked(undefined, "good");
  assertEquals(one?.failures.watching, false);
  await one?.settled();
  // The answer to the last line alone, and the news of it to nobody's address.
  assertEquals(one?.wires.messages.length, 2);
});

Deno.test("places of an address are those at all isolates together, and free when a worker ends", async () => {
  using world = open(2);
  const [one, two] = world.workers;
  assert(one !== undefined && two !== undefined);
  const leave = [
    await one.crowd.enter(ADDRESS, 3),
    await two.crowd.enter(ADDRESS, 3),
    await one.crowd.enter(ADDRESS, 3),
  ];
  for (const { crowd } of [one, two]) {
    await assertRejects(async () => await crowd.enter(ADDRESS, 3), GatewayError, "3 from this address");
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
