/**
 * Lets the wall clock jump while the program works: limits, holds, bills and the ledger's order must not be affected.
 */
import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import type { JsonObject } from "../../lib/json/mod.ts";
import { Secret } from "../../lib/secret.ts";
import type { StoreAddress } from "../../lib/config/address.ts";
import { openStore } from "../../lib/store/open.ts";
import { auditLedger } from "../../lib/billing/reports/audit.ts";
import { inFolder, run, type Running, start } from "../support/program.ts";
import { HAS_POSTGRES, startPostgres } from "../support/databases.ts";
import { readEntries } from "../e2e/nodes/cluster.ts";
import { assertLedgerAgrees, createLoad, ENV as LOAD_ENV, KEY, type Load, modelConfigOf } from "../e2e/program/load.ts";
import { type Figure, publish } from "./figures.ts";
import { pause } from "../support/soon.ts";

/** Path of Debian's `libfaketime`, which makes programs see another time. */
const LIBRARY = ["x86_64", "aarch64"].map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`)
  .find(
    (path) => {
      try {
        return Deno.statSync(path).isFile;
      } catch {
        return false;
      }
    },
  );

/** Offsets of the clock in order, and how long each lasts, in milliseconds. */
const JUMPS = ["+0", "+1h", "+0", "-1h", "+0", "-1d", "+0", "+1d", "-1h", "+0"];
const JUMP_MS = 4_000;
const CLIENTS = 8;
const LEASE_SECONDS = 3;
const PER_MINUTE = 30;
/** A moment of no request: of the clock, off by the largest jump and then some. */
const MAX_OFF_MS = 2 * 86_400_000;
const SECRETS = { TIGHT_KEY: "key-of-one-with-limits" };

const OPTIONS = { ignore: LIBRARY === undefined };

function configFor(load: Load, more: JsonObject): string {
  const budget = { usd: "100000", period: "day" };
  return JSON.stringify({
    ...modelConfigOf(load),
    groups: { default: { budget, key_budget: budget } },
    keys: [
      { name: "load", key: { env: KEY.env } },
      { name: "tight", key: { env: "TIGHT_KEY" }, limits: { requests_per_minute: PER_MINUTE } },
    ],
    nodes: { lease_seconds: LEASE_SECONDS },
    log: { requests: "none" },
    ...more,
  });
}

/** Environment of a program whose wall clock follows the file; timers are unaffected. */
function clockOf(file: string): Record<string, string> {
  return {
    LD_PRELOAD: LIBRARY ?? "",
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: "1",
    DONT_FAKE_MONOTONIC: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
}

const ENV = { ...LOAD_ENV, ...SECRETS };

/** Audits the ledger. No entry may have an impossible time or duration. */
async function examine(address: StoreAddress, load: Load) {
  const store = await openStore(address);
  try {
    const entries = await readEntries(store.ledger);
    const findings = assertLedgerAgrees(entries.filter(({ keyId }) => keyId === "config:load"), load.requests);
    for (const { id, at, totalMs, firstMs = 0 } of entries) {
      assert(totalMs >= 0 && totalMs < 60_000 && firstMs >= 0 && firstMs <= totalMs, `${id}: ${firstMs}, ${totalMs}`);
      assertLess(Math.abs(at - Date.now()), MAX_OFF_MS, id);
    }
    assertEquals(entries.map(({ seq }) => seq), entries.map((_, index) => index + 1));
    const usage = await store.ledger.usage({ by: "key", since: 0, until: Date.now() + 3 * 86_400_000 });
    const billed = usage.reduce((sum, { cost }) => sum + cost, 0n);
    assertEquals(billed, entries.reduce((sum, { cost }) => sum + cost, 0n));
    const { ok, differences } = await auditLedger(store.ledger, { now: Date.now });
    assertEquals([ok, differences], [true, []]);
    return { ...findings, entries, holds: await store.ledger.holds() };
  } finally {
    await store.close();
  }
}

/** Number of admitted requests among some. */
async function admitted({ origin }: Running, requests: number): Promise<number> {
  let count = 0;
  for (let number = 0; number < requests; number++) {
    const response = await fetch(`${origin}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${SECRETS.TIGHT_KEY}` },
      body: JSON.stringify({ model: "sluice/echo", messages: [{ role: "user", content: "Hi" }] }),
    });
    const body = await response.json();
    if (response.status !== 200) {
      assertEquals([response.status, Number(response.headers.get("retry-after")) > 0], [429, true]);
      continue;
    }
    count++;
    assertLess(Math.abs(body.created * 1000 - Date.now()), MAX_OFF_MS);
  }
  return count;
}

/** Lets the clock jump repeatedly under load. Returns the number of admitted requests of the key with a tight limit. */
async function jump(file: string, gateway: Running): Promise<{ admitted: number; ms: number; created: number[] }> {
  const begun = performance.now();
  let count = 0;
  const created: number[] = [];
  for (const shown of JUMPS) {
    await Deno.writeTextFile(file, shown);
    await pause(JUMP_MS / 2);
    count += await admitted(gateway, 10);
    const response = await fetch(`${gateway.origin}/v1/models`, { headers: { authorization: `Bearer ${KEY.secret}` } });
    await response.body?.cancel();
    created.push(Math.round((Date.parse(response.headers.get("date") ?? "") - Date.now()) / 1000));
    await pause(JUMP_MS / 2);
  }
  return { admitted: count, ms: performance.now() - begun, created };
}

const figures: Record<string, Figure> = {};

async function live(
  { folder, env, address }: { folder: string; env: Record<string, string>; address: StoreAddress },
  load: Load,
): Promise<Record<string, Figure>> {
  const file = `${folder}/clock`;
  await Deno.writeTextFile(file, "+0");
  const place = { folder, env: { ...ENV, ...env, ...clockOf(file) } };
  const gateway = await start(["serve"], place);
  try {
    const shortKey = /sk-sluice-\S+/.exec(
      (await run(["keys", "add", "short", "--expires", "30m"], { folder, env: { ...ENV, ...env } })).out,
    )?.[0] ?? "";
    const models = async () => {
      const response = await fetch(`${gateway.origin}/v1/models`, { headers: { authorization: `Bearer ${shortKey}` } });
      await response.body?.cancel();
      return response.status;
    };
    assertEquals(await models(), 200);
    await Deno.writeTextFile(file, "+1h");
    assertEquals(await models(), 401, "after it has expired");
    await Deno.writeTextFile(file, "-1h");
    assertEquals(await models(), 200, "before it has expired");

    const running = load.run(gateway.origin, CLIENTS);
    const { admitted, ms, created } = await jump(file, gateway);
    await running.stop();
    // No more in any 60 seconds of the true time, whatever the clock shows.
    const most = PER_MINUTE * Math.ceil(ms / 60_000);
    assert(admitted <= most && admitted >= PER_MINUTE, `${admitted} of ${most} were admitted`);
    await pause(LEASE_SECONDS * 1_000);
    const statuses = new Set(load.requests.flatMap(({ status, way }) => way === "refused" ? [] : [status]));
    assertEquals([...statuses], [200]);
    gateway.kill("SIGTERM");
    const { code, err } = await gateway.ended;
    assertEquals([code, /hold_expired|"level":"error"/.test(err)], [0, false], err.slice(0, 3_000));
    const { entries, complete, holds } = await examine(address, load);
    assertEquals(holds, []);
    assertGreater(complete, 100);
    assertEquals(entries.filter(({ ending }) => ending === "lost"), []);
    // The clock did jump.
    const days = new Set(entries.map(({ at }) => Math.round((at - Date.now()) / 3_600_000)));
    assertGreater(days.size, 3);
    return {
      jumps: JUMPS,
      requests: load.requests.length,
      complete_answers: complete,
      complete_answers_missing: 0,
      wrong_bills: 0,
      holds_voided: 0,
      admitted_of_limit: { limit_per_minute: PER_MINUTE, seconds: Math.round(ms / 1000), admitted },
      date_header_off_seconds: created,
    };
  } finally {
    try {
      gateway.kill("SIGKILL");
    } catch {
      // It has ended.
    }
    await gateway.ended;
  }
}

Deno.test(
  "the clock jumps an hour and a day, there and back, under load: SQLite (needs libfaketime)",
  OPTIONS,
  () =>
    inFolder(async (folder) => {
      await using load = createLoad(Math.random);
      await Deno.writeTextFile(`${folder}/sluice.jsonc`, configFor(load, { store: "sqlite:./sluice.db" }));
      const address = { kind: "sqlite", path: `${folder}/sluice.db` } as const;
      figures.sqlite = await live({ folder, env: {}, address }, load);
      await publish("clock", figures);
    }),
);

Deno.test({
  name: "the clock jumps an hour and a day, there and back, under load: Postgres (needs libfaketime)",
  ignore: OPTIONS.ignore || !HAS_POSTGRES,
  fn: () =>
    inFolder(async (folder) => {
      await using load = createLoad(Math.random);
      await using postgres = await startPostgres();
      await Deno.writeTextFile(`${folder}/sluice.jsonc`, configFor(load, {}));
      const address = { kind: "postgres", url: new Secret(postgres.url) } as const;
      figures.postgres = await live({ folder, env: { SLUICE_STORE: postgres.url }, address }, load);
      await publish("clock", figures);
    }),
});

Deno.test({
  name: "two nodes on one Postgres with clocks an hour apart do not void each other's holds (needs libfaketime)",
  ignore: OPTIONS.ignore || !HAS_POSTGRES,
  fn: () =>
    inFolder(async (folder) => {
      await using load = createLoad(Math.random);
      await using postgres = await startPostgres();
      const nodes: Running[] = [];
      try {
        for (const shown of ["+0", "+1h"]) {
          const place = { folder: `${folder}/${nodes.length}`, env: { ...ENV, SLUICE_STORE: postgres.url } };
          await Deno.mkdir(place.folder);
          await Deno.writeTextFile(`${place.folder}/sluice.jsonc`, configFor(load, {}));
          await Deno.writeTextFile(`${place.folder}/clock`, shown);
          nodes.push(await start(["serve"], { ...place, env: { ...place.env, ...clockOf(`${place.folder}/clock`) } }));
        }
        const running = nodes.map(({ origin }) => load.run(origin, CLIENTS));
        // Longer than a hold lives without a renewal, several times.
        const endless = nodes.map(({ origin }) => load.ask(origin, "endless"));
        await pause(LEASE_SECONDS * 5_000);
        for (const each of running) await each.stop();
        const { entries } = await examine({ kind: "postgres", url: new Secret(postgres.url) }, load);
        assertEquals(entries.filter(({ ending }) => ending === "lost"), []);
        for (const node of nodes) node.kill("SIGTERM");
        await Promise.allSettled(endless);
        for (const node of nodes) {
          const { err } = await node.ended;
          assertEquals(/hold_expired/.test(err), false, err.slice(0, 3_000));
        }
      } finally {
        for (const node of nodes) {
          try {
            node.kill("SIGKILL");
          } catch {
            // It has ended.
          }
          await node.ended;
        }
      }
      figures.two_nodes = { hours_apart: 1, requests: load.requests.length, holds_voided: 0 };
      await publish("clock", figures);
    }),
});
