import { assertEquals } from "@std/assert";
import type { AlertDraft } from "../../lib/alerts/event.ts";
import { publish } from "../../lib/alerts/publisher.ts";
import type { AlertStore } from "../../lib/store/alerts.ts";
import { openMemoryAlerts } from "../../lib/store/sqlite/memory.ts";

const AT = Date.UTC(2026, 10, 23, 12, 0, 30);

function draft(type: "store.down" | "store.up"): AlertDraft {
  return { type, subject: "store", begins: type === "store.down", text: type, data: {} };
}

/** A store that is unreachable. */
const AWAY: AlertStore = {
  ...openMemoryAlerts(),
  add: () => Promise.reject(new Error("The store is out of reach")),
};

async function idsOf(store: AlertStore): Promise<[id: string, type: string][]> {
  const ids: [string, string][] = [];
  for (let next = await store.claim(60_000); next !== undefined; next = await store.claim(60_000)) {
    ids.push([next.id, JSON.parse(next.body).type]);
  }
  return ids;
}

Deno.test("publish() stores alerts in memory during an outage, and ends there what started there", async () => {
  const [store, fallback] = [openMemoryAlerts(), openMemoryAlerts()];
  await publish(draft("store.down"), { store: AWAY, fallback, events: undefined, now: () => AT });
  await publish(draft("store.up"), { store, fallback, events: undefined, now: () => AT });
  assertEquals((await idsOf(fallback)).map(([, type]) => type), ["store.down", "store.up"]);
  assertEquals(await idsOf(store), []);
});

Deno.test("publish() gives one event within a minute the same id on all nodes, and a repetition another", async () => {
  const [one, two] = [openMemoryAlerts(), openMemoryAlerts()];
  for (const [fallback, at] of [[one, AT], [two, AT + 3_000]] as const) {
    await publish(draft("store.down"), { store: AWAY, fallback, events: undefined, now: () => at });
  }
  const [first] = await idsOf(one);
  assertEquals(await idsOf(two), [first]);
  for (const type of ["store.up", "store.down"] as const) {
    await publish(draft(type), { store: AWAY, fallback: one, events: undefined, now: () => AT + 5_000 });
  }
  const [up, again] = await idsOf(one);
  assertEquals([up?.[1], again?.[1]], ["store.up", "store.down"]);
  assertEquals(new Set([first?.[0], up?.[0], again?.[0]]).size, 3);
});

Deno.test("publish() updates subjects of unselected types without sending them", async () => {
  const [store, fallback] = [openMemoryAlerts(), openMemoryAlerts()];
  const parts = { store, fallback, events: ["store.down" as const], now: () => AT };
  for (const type of ["store.down", "store.up", "store.down"] as const) await publish(draft(type), parts);
  assertEquals((await idsOf(store)).map(([, type]) => type), ["store.down", "store.down"]);
  await publish({ ...draft("store.down"), subject: "other" }, parts, false);
  assertEquals(await idsOf(store), []);
});
