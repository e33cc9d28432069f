import { assertEquals, assertRejects } from "@std/assert";
import type { AlertDraft, AlertType } from "../../lib/alerts/event.ts";
import { Publisher, type PublisherParts } from "../../lib/alerts/publisher.ts";
import type { AlertStore } from "../../lib/store/alerts.ts";
import { DAY_MS } from "../../lib/store/days.ts";
import { openMemoryAlerts } from "../../lib/store/sqlite/memory.ts";

const AT = Date.UTC(2026, 10, 23, 12, 0, 30);

function draft(type: AlertType): AlertDraft {
  return { type, subject: "store", begins: type === "store.down", text: type, data: {} };
}

/** A store that is unreachable. */
const AWAY: AlertStore = {
  ...openMemoryAlerts(),
  add: () => Promise.reject(new Error("The store is out of reach")),
  prune: () => Promise.reject(new Error("The store is out of reach")),
};

async function idsOf(store: AlertStore): Promise<[id: string, type: string][]> {
  const ids: [string, string][] = [];
  for (let next = await store.claim(60_000); next !== undefined; next = await store.claim(60_000)) {
    ids.push([next.id, JSON.parse(next.body).type]);
    await store.finish(next, "delivered");
  }
  return ids;
}

/** A publisher whose store is reachable while `isUp`, and the ids and types that a webhook would get. */
class World {
  isUp = true;
  at = AT;
  readonly store = openMemoryAlerts();
  readonly fallback = openMemoryAlerts();
  readonly publisher = new Publisher(this.fallback);
  readonly #events: AlertType[] | undefined;

  constructor(events?: AlertType[]) {
    this.#events = events;
  }

  get parts(): PublisherParts {
    return { store: this.isUp ? this.store : AWAY, events: this.#events, now: () => this.at };
  }

  async publish(...types: AlertType[]): Promise<void> {
    for (const type of types) await this.publisher.publish(draft(type), this.parts);
  }

  async sent(): Promise<[id: string, type: string][]> {
    return [...await idsOf(this.store), ...await idsOf(this.fallback)];
  }
}

async function typesOf(world: World): Promise<string[]> {
  return (await world.sent()).map(([, type]) => type);
}

Deno.test("a publisher stores alerts in memory during an outage, with their ends", async () => {
  const world = new World();
  world.isUp = false;
  await world.publish("store.down");
  world.isUp = true;
  await world.publish("store.up");
  assertEquals((await idsOf(world.fallback)).map(([, type]) => type), ["store.down", "store.up"]);
  assertEquals(await idsOf(world.store), []);
});

Deno.test("an end that the store missed is sent later, and the next start is not treated as known", async () => {
  const world = new World();
  await world.publish("store.down");
  world.isUp = false;
  await world.publish("store.up");
  assertEquals(await typesOf(world), ["store.down"]);
  await world.publisher.retry(world.parts);
  world.isUp = true;
  await world.publisher.retry(world.parts);
  assertEquals(await typesOf(world), ["store.up"]);
  await world.publish("store.down", "store.up");
  world.isUp = false;
  await world.publish("store.down", "store.up");
  world.isUp = true;
  assertEquals(await typesOf(world), ["store.down", "store.up", "store.down", "store.up"]);
});

Deno.test("a missed end is not sent after a newer start", async () => {
  const world = new World();
  await world.publish("store.down");
  world.isUp = false;
  await world.publish("store.up", "store.down");
  world.isUp = true;
  await world.publisher.retry(world.parts);
  assertEquals(await typesOf(world), ["store.down", "store.down"]);
  await world.publish("store.up", "store.down");
  assertEquals((await typesOf(world)).toSorted(), ["store.down", "store.up"]);
});

Deno.test("one event within a minute has the same id on all nodes and in both stores, another event another", async () => {
  const [one, two] = [new World(), new World()];
  one.isUp = two.isUp = false;
  two.at += 3_000;
  for (const world of [one, two]) await world.publish("store.down");
  const [first] = await one.sent();
  assertEquals(await two.sent(), [first]);
  // The first outage was stored in the store, the second in memory.
  const three = new World();
  await three.publish("store.down", "store.up");
  three.isUp = false;
  await three.publish("store.down", "store.up");
  const ids = (await three.sent()).map(([id]) => id);
  assertEquals([ids[0], new Set(ids).size], [first?.[0], 4]);
});

Deno.test("a publisher deletes old alerts in memory, even while the store is unreachable", async () => {
  const world = new World();
  world.isUp = false;
  await world.publish("store.down", "store.up");
  const ids = (await world.sent()).map(([id]) => id);
  const addAgain = (id: string) =>
    world.fallback.add({ id, at: AT, body: "{}", subject: id, begins: true, rememberUntil: AT, isSent: false });
  world.at += 30 * DAY_MS;
  await assertRejects(() => world.publisher.prune(world.parts));
  assertEquals(await Promise.all(ids.map(addAgain)), ["taken", "taken"]);
  world.at += 1;
  await assertRejects(() => world.publisher.prune(world.parts));
  assertEquals(await Promise.all(ids.map(addAgain)), ["added", "added"]);
});

Deno.test("a publisher updates subjects of unselected types without sending them", async () => {
  const world = new World(["store.down"]);
  await world.publish("store.down", "store.up", "store.down");
  assertEquals(await typesOf(world), ["store.down", "store.down"]);
  await world.publisher.publish({ ...draft("store.down"), subject: "other" }, world.parts, false);
  assertEquals(await world.sent(), []);
});
