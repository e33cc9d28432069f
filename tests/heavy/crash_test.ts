/** The gateway is killed at random moments under load, and started again: the books, budgets and keys are right each time. */
import { assert, assertEquals, assertLess } from "@std/assert";
import type { JsonObject } from "../../lib/json/mod.ts";
import { Secret } from "../../lib/secret.ts";
import type { StoreAddress } from "../../lib/config/address.ts";
import { openStore } from "../../lib/store/open.ts";
import { auditLedger } from "../../lib/billing/reports/audit.ts";
import { inFolder, run, type Running, start } from "../support/program.ts";
import { HAS_POSTGRES, startPostgres } from "../support/databases.ts";
import { readEntries, until } from "../e2e/nodes/cluster.ts";
import { assertTold, createLoad, ENV as LOAD_ENV, KEY, type Load, served } from "../e2e/program/load.ts";
import { ADMIN, KeyWorker } from "./crash/key_worker.ts";
import { type Figure, publish } from "./figures.ts";

const KILLS = Number(Deno.env.get("HEAVY_KILLS") ?? 30);
const CLIENTS = 16;
/** Shortest and longest time from ready to the kill, in milliseconds. */
const LIFE_MS = { least: 60, most: 1_500 };
/** Longest time from a start after a kill until the gateway is ready, in milliseconds; most starts take less. */
const READY_MS = 3_000;
/** Longest time until a node that has nothing else to do voids what the dead held: it looks every minute. */
const SWEPT_MS = 75_000;
/** How long what a node holds outlives it, with Postgres, in seconds. */
const LEASE_SECONDS = 2;
const BUDGET = 10n ** 17n;
const ENV = { ...LOAD_ENV, [ADMIN.env]: ADMIN.secret };

function configFor(load: Load, more: JsonObject): string {
  const budget = { usd: "100000", period: "total" };
  return JSON.stringify({
    ...served(load),
    groups: { default: { budget, key_budget: budget, limits: { concurrency: 1_000 } } },
    keys: [{ name: "load", key: { env: KEY.env } }],
    admin: { key: { env: ADMIN.env } },
    nodes: { lease_seconds: LEASE_SECONDS },
    log: { requests: "none" },
    ...more,
  });
}

/** Starts the gateway, and waits until it is ready. */
async function startReady(place: { folder: string; env: Record<string, string> }) {
  const begun = performance.now();
  const gateway = await start(["serve"], place);
  for (;;) {
    const response = await fetch(`${gateway.origin}/readyz`);
    await response.body?.cancel();
    if (response.status === 200) return { gateway, ms: performance.now() - begun };
    assertLess(performance.now() - begun, 30_000, "it was never ready");
  }
}

/** Looks at the books beside whoever serves. */
async function examine(address: StoreAddress, load: Load) {
  const store = await openStore(address);
  try {
    const entries = await readEntries(store.ledger);
    const findings = assertTold(entries, load.tried);
    const holds = await store.ledger.holds();
    const left = await store.ledger.left({ scope: "group", id: "default", budget: BUDGET, since: 0 });
    const { ok, differences } = await auditLedger(store.ledger);
    assertEquals([ok, differences], [true, []]);
    return { ...findings, entries, holds, left };
  } finally {
    await store.close();
  }
}

/** Kills and starts again. Gives the figures. */
async function crash(
  place: { folder: string; env: Record<string, string> },
  { address, load, isShared }: { address: StoreAddress; load: Load; isShared: boolean },
): Promise<Record<string, Figure>> {
  const keys = new KeyWorker();
  const starts: number[] = [];
  let gateway: Running | undefined;
  try {
    for (let kill = 0; kill < KILLS; kill++) {
      const started = await startReady(place);
      gateway = started.gateway;
      starts.push(Math.round(started.ms));
      await keys.compare(gateway.origin);
      // Alone on its store a gateway voids what it finds; beside others it must wait until a lease is over.
      if (!isShared) {
        const { holds, left, spent } = await examine(address, load);
        assertEquals([holds, left], [[], BUDGET - spent], `after kill ${kill}`);
      }
      keys.start(gateway.origin);
      const running = load.run(gateway.origin, CLIENTS);
      const life = LIFE_MS.least + Math.random() * (LIFE_MS.most - LIFE_MS.least);
      await new Promise((resolve) => setTimeout(resolve, life));
      gateway.kill("SIGKILL");
      await gateway.ended;
      await Promise.all([running.stop(), keys.stop()]);
      if (isShared) await examine(address, load);
    }
    gateway = (await startReady(place)).gateway;
    await keys.compare(gateway.origin);
    if (isShared) {
      await until(async () => (await examine(address, load)).holds.length === 0, {
        within: SWEPT_MS,
        what: "what the dead held is void",
      });
    }
    const { entries, complete, unseen, spent, holds, left } = await examine(address, load);
    assertEquals([holds, left], [[], BUDGET - spent]);
    gateway.kill("SIGTERM");
    assertEquals((await gateway.ended).code, 0);
    const audit = await run(["audit"], place);
    assertEquals([audit.code, audit.err], [0, ""], audit.out);
    const lost = entries.filter(({ ending }) => ending === "lost").length;
    assert(lost > 0, "no kill met a request that held something");
    assert(complete > KILLS, `only ${complete} complete answers`);
    const ids = new Set(entries.map(({ id }) => id));
    starts.sort((a, b) => a - b);
    assertLess(starts[starts.length >> 1] ?? 0, READY_MS);
    return {
      kills: KILLS,
      requests: load.tried.length,
      complete_answers: complete,
      complete_answers_missing: 0,
      entered_twice: entries.length - ids.size,
      charged_but_unseen: unseen,
      lost_uncharged: lost,
      /** Answers of errors that cost nothing, whose entries were on their way. */
      free_answers_missing: load.tried.filter(({ id = "", paid }) =>
        id !== "" && paid === undefined && !ids.has(id)
      ).length,
      entries: entries.length,
      keys_acknowledged: keys.count,
      keys_missing: 0,
      ready_ms: { median: starts[starts.length >> 1] ?? 0, max: starts.at(-1) ?? 0 },
    };
  } finally {
    try {
      gateway?.kill("SIGKILL");
    } catch {
      // It has ended.
    }
    await gateway?.ended;
  }
}

const figures: Record<string, Figure> = {};

Deno.test(`${KILLS} kills with the ledger in SQLite: nothing answered is lost, nothing is entered twice, keys and budgets agree`, () =>
  inFolder(async (folder) => {
    await using load = createLoad(Math.random);
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, configFor(load, { store: "sqlite:./sluice.db" }));
    const address = { kind: "sqlite", path: `${folder}/sluice.db` } as const;
    figures.sqlite = await crash({ folder, env: ENV }, { address, load, isShared: false });
    await publish("crash", figures);
  }));

Deno.test({
  name: `${KILLS} kills with the ledger in Postgres: the same, and what the dead held is free after its lease`,
  ignore: !HAS_POSTGRES,
  fn: () =>
    inFolder(async (folder) => {
      await using load = createLoad(Math.random);
      await using postgres = await startPostgres();
      await Deno.writeTextFile(`${folder}/sluice.jsonc`, configFor(load, {}));
      const address = { kind: "postgres", url: new Secret(postgres.url) } as const;
      const place = { folder, env: { ...ENV, SLUICE_STORE: postgres.url } };
      figures.postgres = await crash(place, { address, load, isShared: true });
      await publish("crash", figures);
    }),
});
