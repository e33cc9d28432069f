/**
 * Invariants of billing over long random histories, on every kind of store, and over the whole gateway, where clients
 * check their bill.
 */
import { assert } from "@std/assert";
import { Secret } from "../../lib/secret.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import { openPostgresStore } from "../../lib/store/postgres/store.ts";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import type { Store } from "../../lib/store/store.ts";
import { freshDatabase, HAS_POSTGRES } from "../support/databases.ts";
import { BUGS } from "../billing/simulator/bugs.ts";
import { openSqliteDisk, withPostgresDisks } from "../billing/simulator/disk.ts";
import { firstFailure, runAll, type Search, seedsFrom, shortest, type Tally } from "../billing/simulator/search.ts";
import { seeded } from "../support/random.ts";
import { inFolder } from "../store/in_folder.ts";
import { type Figure, publish } from "./figures.ts";
import { mix } from "../e2e/money/mix.ts";
import { simulateSeeds } from "../images/idempotency_histories.ts";

/** Steps of histories: in memory, over a file, over a database. */
const STEPS = { memory: 4_000_000, sqlite: 200_000, postgres: 40_000 };
/** Longest time for each of them, in milliseconds. */
const MAX_MS = 120_000;
/** Requests through a whole gateway: in memory, over a file, over a database. */
const REQUESTS = { memory: 6_000, sqlite: 3_000, postgres: 2_000 };
/** Random histories of idempotency keys. */
const IDEMPOTENCY_SEEDS = 1_800;
/** Runs within which a planted bug must be found. */
const BUG_SEEDS = 1_000;

/** `SEED=n` begins with that one; a single history is run again by the simulator's own test, with `HISTORY=…`. */
const SEED = Number(Deno.env.get("SEED") ?? crypto.getRandomValues(new Uint32Array(1))[0]);

const figures: Record<string, Figure> = { seed: SEED };

Deno.test(`money: histories in memory, SEED=${SEED}`, async () => {
  figures.memory = await run(STEPS.memory, {});
});

Deno.test(`money: histories over files, SEED=${SEED}`, () =>
  inFolder(async (folder) => {
    let disks = 0;
    figures.sqlite = await run(STEPS.sqlite, {
      async disk() {
        if (disks > 0) await Deno.remove(`${folder}/${disks}`, { recursive: true });
        await Deno.mkdir(`${folder}/${++disks}`);
        return openSqliteDisk(`${folder}/${disks}`);
      },
    });
  }));

Deno.test({
  name: `money: histories over Postgres, SEED=${SEED}`,
  ignore: !HAS_POSTGRES,
  fn: () => withPostgresDisks(async (disk) => void (figures.postgres = await run(STEPS.postgres, { disk }))),
});

Deno.test("money: planted bugs are found, and their histories minimized", async () => {
  const found: Record<string, Figure> = {};
  for (const { name, breaks, variant } of BUGS) {
    const failure = await firstFailure(seedsFrom(1, BUG_SEEDS), variant);
    assert(failure !== undefined && breaks.includes(failure.invariant ?? ""), `${name}: ${failure?.message}`);
    found[name] = (await shortest(failure, variant)).history.steps.length;
  }
  figures.steps_that_show_a_bug = found;
});

Deno.test(`money: clients of a whole gateway pay for what they received, SEED=${SEED}`, async (t) => {
  const random = seeded(SEED);
  const mixed: Record<string, Figure> = {};
  await t.step("in memory", async () => {
    mixed.memory = await mix(openMemoryStore(), { requests: REQUESTS.memory, random });
  });
  await t.step("over a file", () =>
    inFolder(async (folder) => {
      const store = openSqliteStore(`${folder}/sluice.db`, { own: true });
      mixed.sqlite = await mix(store, { requests: REQUESTS.sqlite, random });
    }));
  await t.step({
    name: "over Postgres",
    ignore: !HAS_POSTGRES,
    async fn() {
      await using database = await freshDatabase();
      mixed.postgres = await mix(await openServing(database.url), { requests: REQUESTS.postgres, random });
    },
  });
  figures.gateway = mixed;
});

Deno.test(`money: an image is charged once per idempotency key and window, SEED=${SEED}`, async () => {
  await simulateSeeds(SEED, IDEMPOTENCY_SEEDS);
  figures.idempotency_histories = IDEMPOTENCY_SEEDS;
});

Deno.test("money: report", () => publish("money", figures));

function openServing(url: string): Promise<Store> {
  return openPostgresStore(new Secret(url), { serving: { keyAgeMs: 60_000, journalEntries: 1, log: () => {} } });
}

async function run(steps: number, variant: Search): Promise<Figure> {
  const end = performance.now() + MAX_MS;
  const isEnough = (tally: Tally) => tally.steps >= steps || performance.now() > end;
  const { seen, ...counts } = await runAll(seedsFrom(SEED), { ...variant, isEnough });
  return { ...counts, ended: Object.fromEntries([...seen].sort()) };
}
