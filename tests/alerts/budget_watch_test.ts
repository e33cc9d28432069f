import { assertEquals } from "@std/assert";
import { BudgetWatch } from "../../lib/alerts/budget_watch.ts";
import type { AlertDraft } from "../../lib/alerts/event.ts";
import { parseUsd } from "../../lib/billing/money.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { type Entry, SPENDERS_AT_ONCE } from "../../lib/store/ledger.ts";
import type { Store } from "../../lib/store/store.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import { DAY_MS } from "../../lib/store/days.ts";
import { issueKey } from "../../lib/access/keys.ts";
import { entryOf } from "../billing/reports/entries.ts";

/** A Wednesday, shortly before midnight. */
const EVENING = Date.UTC(2026, 10, 25, 23, 59);

const PER_USER = { team: { user_budget: { usd: "2", period: "day" } } };

const GROUPS = {
  team: { budget: { usd: "100", period: "month" }, key_budget: { usd: "10", period: "day" } },
  free: {},
};

/** A store with a key, a BudgetWatch of it, and the published alerts. */
class WatchedStore {
  readonly store: Store = openMemoryStore();
  readonly #watch = new BudgetWatch();
  readonly #published: [AlertDraft, boolean][] = [];
  readonly key = issueKey({ name: "ci", group: "team", now: 0 }).record;
  now = EVENING;
  #entries = 0;

  async charge(usd: string, group = "team", at = this.now): Promise<void> {
    const [id, keyId] = [`r${this.#entries++}`, group === "team" ? this.key.id : "key_other"];
    await this.store.ledger.append([entryOf({ id, at, keyId, group, cost: parseUsd(usd) })]);
  }

  /** Texts that one check publishes; unsent ones in brackets. */
  async check(groups: JsonObject = GROUPS, alerts: JsonObject = {}): Promise<string[]> {
    const file = {
      groups,
      alerts: { webhook: { env: "URL" }, format: "slack", ...alerts },
    };
    const config = parseConfig(file, () => "http://127.0.0.1:1/");
    this.#published.length = 0;
    await this.#watch.check({ config, store: this.store, now: () => this.now }, (draft, isSent) => {
      this.#published.push([draft, isSent]);
      return Promise.resolve();
    });
    return this.#published.map(([{ data }, isSent]) => {
      const text = `${data.name} ${data.percent}% ${data.spent_usd}`;
      return isSent ? text : `(${text})`;
    });
  }

  subjects(): string[] {
    return this.#published.map(([{ subject }]) => subject);
  }

  refuse(scope: "key" | "group", id: string): void {
    this.#watch.read({ level: "warn", event: "budget_exhausted", scope, id });
  }
}

async function watched(): Promise<WatchedStore> {
  const world = new WatchedStore();
  await world.store.keys.add(world.key);
  return world;
}

Deno.test("BudgetWatch reports the highest exceeded threshold once, for the key and the group", async () => {
  const world = await watched();
  assertEquals(await world.check(), []);
  await world.charge("4.99");
  assertEquals(await world.check(), []);
  await world.charge("0.01");
  assertEquals(await world.check(), ["ci 50% 5"]);
  await world.charge("1");
  assertEquals(await world.check(), []);
  await world.charge("44");
  assertEquals(await world.check(), ["ci 100% 50", "(ci 80% 50)", "team 50% 50"]);
  await world.charge("1000", "free");
  assertEquals(await world.check(), []);
});

Deno.test("BudgetWatch resets thresholds for a new period or amount, and checks the ended period", async () => {
  const world = await watched();
  await world.charge("5");
  assertEquals(await world.check(), ["ci 50% 5"]);
  await world.charge("3");
  world.now += 2 * 60_000;
  // Charged before midnight, seen after it.
  assertEquals(await world.check(), ["ci 80% 8"]);
  await world.charge("6");
  assertEquals(await world.check(), ["ci 50% 6"]);
  await world.charge("0.5");
  const raised = { team: { key_budget: { usd: "13", period: "day" } } };
  assertEquals(await world.check(raised), ["ci 50% 6.5"]);
  assertEquals(world.subjects(), [`budget of key ${world.key.id}, 13 USD from day ${EVENING / DAY_MS + 1 | 0}: 50%`]);
});

Deno.test("BudgetWatch.check() reads all entries since the last check", async () => {
  const world = await watched();
  assertEquals(await world.check(), []);
  const free = Array.from(
    { length: SPENDERS_AT_ONCE - 1 },
    (_, index) => entryOf({ id: `free${index}`, at: world.now, keyId: "key_other", group: "free", cost: 1n }),
  );
  await world.store.ledger.append(free);
  await world.charge("5");
  await world.charge("90");
  assertEquals(await world.check(), ["ci 100% 95", "(ci 80% 95)", "(ci 50% 95)", "team 80% 95", "(team 50% 95)"]);
});

Deno.test("BudgetWatch reports a budget that refuses a request as exhausted", async () => {
  const world = await watched();
  await world.charge("9");
  assertEquals(await world.check(), ["ci 80% 9", "(ci 50% 9)"]);
  world.refuse("key", world.key.id);
  assertEquals(await world.check(), ["ci 100% 9"]);
  world.refuse("key", world.key.id);
  assertEquals(await world.check(), []);
  world.refuse("group", "team");
  assertEquals(await world.check(GROUPS, { budget_percent: [90] }), ["team 90% 9"]);
  assertEquals(await world.check(GROUPS, { budget_percent: [] }), []);
});

Deno.test("BudgetWatch starts with the last hour, and repeats a failed check", async () => {
  const world = await watched();
  await world.charge("60", "team", EVENING - 30 * 60_000);
  const { ledger } = world.store;
  const broken = { ...world.store, ledger: { ...ledger, spending: () => Promise.reject(new Error("away")) } };
  Object.assign(world, { store: broken });
  await world.check().then(() => Promise.reject(new Error("It did not fail")), () => {});
  Object.assign(world, { store: { ...broken, ledger } });
  assertEquals(await world.check(), ["ci 100% 60", "(ci 80% 60)", "(ci 50% 60)", "team 50% 60"]);
});

Deno.test("BudgetWatch starts with the last entries, however long ago they arrived and in any order", async () => {
  const afterOutage = await watched();
  await afterOutage.charge("60", "team", EVENING - 5 * 60 * 60_000);
  assertEquals(await afterOutage.check(), ["ci 100% 60", "(ci 80% 60)", "(ci 50% 60)", "team 50% 60"]);
  const outOfOrder = await watched();
  await outOfOrder.charge("5", "team", EVENING - 20 * 60_000);
  await outOfOrder.charge("1", "free", EVENING - 30 * 60_000);
  assertEquals(await outOfOrder.check(), ["ci 50% 5"]);
});

Deno.test("end users have thresholds of their own, also where their budget refuses them; invented ones have none", async () => {
  const world = await watched();
  const keyId = world.key.id;
  const since = Math.floor(EVENING / DAY_MS);
  const at = { at: EVENING, keyId, group: "team" };
  await world.store.ledger.append([
    entryOf({ ...at, id: "a", cost: parseUsd("1.2"), details: { user: "anna", user_since: since } }),
    entryOf({ ...at, id: "b", cost: parseUsd("0.9"), details: { user: "ben", user_since: since } }),
    entryOf({ ...at, id: "c", cost: parseUsd("5") }),
  ]);
  assertEquals(await world.check(PER_USER), ["ci 50% 1.2"]);
  assertEquals(world.subjects(), [`budget of user ${keyId} "anna", 2 USD from day ${since}: 50%`]);
  const refused = (user: string): Partial<Entry> => ({
    ...at,
    ending: "refused",
    status: 429,
    cost: 0n,
    details: {
      user,
      reason: {
        code: "budget",
        budget: {
          ...{ scope: "user", id: user, period: "day", budget_usd: "2" } as const,
          ...{ left_usd: "0.8", held_usd: "0", needed_usd: "1" },
        },
      },
    },
  });
  await world.store.ledger.append([
    entryOf({ ...refused("anna"), id: "d" }),
    entryOf({ ...refused("invented"), id: "e" }),
  ]);
  assertEquals(await world.check(PER_USER), ["ci 100% 1.2", "(ci 80% 1.2)"]);
});
