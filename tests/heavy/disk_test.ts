/** A disk that is full, read-only, or holds damaged files: no false success, no corruption, and service recovers. */
import { assert, assertEquals, assertGreater, assertLess, assertMatch } from "@std/assert";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import type { KeptEntry } from "../../lib/store/ledger.ts";
import { auditLedger } from "../../lib/billing/reports/audit.ts";
import { inFolder, run, type Running, start } from "../support/program.ts";
import { HAS_POSTGRES, startPostgres } from "../support/databases.ts";
import { readEntries } from "../e2e/nodes/cluster.ts";
import { assertLedgerAgrees, createLoad, ENV, KEY, type Load, writeConfig } from "../e2e/program/load.ts";
import { seeded } from "../support/random.ts";
import { type Figure, publish } from "./figures.ts";
import { pause, until } from "../support/soon.ts";

const CLIENTS = 8;
/** Times that the disk is full. */
const FILLS = 4;
/** Time that it is full, in milliseconds: longer than any entry is tried that a client waits for. */
const FULL_MS = 8_000;
/** Time for service to be back after there is room, in milliseconds. */
const BACK_MS = 5_000;
const SEED = 5;

/** A file system that is mounted for a test. */
interface Disk {
  folder: string;
  /** Fills the disk, except for this many bytes. */
  fill(leave?: number): Promise<void>;
  free(): Promise<void>;
  remount(how: "ro" | "rw"): Promise<void>;
}

/** Kinds of file systems: in memory, and a real one in a file. */
const KINDS = ["tmpfs", "ext4"] as const;
const DISK_BYTES = 24 * 1024 * 1024;

async function succeeds(program: string, args: string[]): Promise<boolean> {
  try {
    return (await new Deno.Command(program, { args, stdout: "null", stderr: "null" }).output()).success;
  } catch {
    return false;
  }
}

/** Mounts a small file system; absent if this machine does not allow it. */
async function mount(kind: typeof KINDS[number], place: string): Promise<boolean> {
  const folder = `${place}/disk`;
  await Deno.mkdir(folder);
  if (kind === "tmpfs") return await succeeds("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES}`, "none", folder]);
  const file = `${place}/image`;
  using image = await Deno.open(file, { create: true, write: true });
  await image.truncate(DISK_BYTES);
  return await succeeds("mkfs.ext4", ["-q", "-F", "-m", "0", file]) &&
    await succeeds("mount", ["-o", "loop", file, folder]);
}

async function onDisk(kind: typeof KINDS[number], test: (disk: Disk) => Promise<void>): Promise<void> {
  await inFolder(async (place) => {
    if (!await mount(kind, place)) throw new Error(`Cannot mount ${kind} any more`);
    const folder = `${place}/disk`;
    try {
      await test({
        folder,
        async fill(leave = 0) {
          using file = await Deno.open(`${folder}/filler`, { create: true, append: true });
          const piece = new Uint8Array(64 * 1024);
          for (let size = piece.length; size >= 512;) {
            try {
              if (await file.write(piece.subarray(0, size)) < size) size >>= 1;
            } catch {
              size >>= 1;
            }
          }
          if (leave > 0) await file.truncate((await file.stat()).size - leave);
        },
        free: () => Deno.remove(`${folder}/filler`),
        async remount(how) {
          assert(await succeeds("mount", ["-o", `remount,${how}`, folder]));
        },
      });
    } finally {
      await until("the disk can be taken away", () => succeeds("umount", [folder]));
    }
  });
}

const CAN = new Map<string, boolean>();
for (const kind of KINDS) {
  const place = await Deno.makeTempDir();
  CAN.set(kind, Deno.build.os === "linux" && Deno.uid() === 0 && await mount(kind, place));
  if (CAN.get(kind) === true) await succeeds("umount", [`${place}/disk`]);
  await Deno.remove(place, { recursive: true });
}

/** Asks once, in a protocol. */
async function ask(gateway: Running, { native, stream, number }: { native: boolean; stream: boolean; number: number }) {
  const response = await fetch(gateway.origin + (native ? "/anthropic/v1/messages" : "/v1/chat/completions"), {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
      authorization: `Bearer ${KEY.secret}`,
    },
    body: JSON.stringify({
      model: "acme/one",
      max_tokens: 1_000,
      stream,
      messages: [{ role: "user", content: `Number ${number} of many` }],
    }),
  });
  const id = response.headers.get("x-request-id")?.replace("req_", "") ?? "";
  return { id, status: response.status, retryAfter: response.headers.get("retry-after"), text: await response.text() };
}

/** Observations while nothing could be entered. */
interface Sight {
  refused: number;
  /** Streams that began before the gateway knew, and ended with an error. */
  broken: number;
  /** Ids of requests that were answered whole all the same: there was room. */
  whole: string[];
}

/** While nothing can be entered, every protocol reports it with its own error, and free requests work. */
async function look(gateway: Running, { load, sight }: { load: Load; sight: Sight }): Promise<void> {
  for (const native of [false, true]) {
    for (const stream of [false, true]) {
      const number = load.requests.length;
      // Numbers that no other request has.
      const tokens = { prompt: 251 + number % 500, completion: 100 + Math.floor(number / 500) };
      load.requests.push({ way: stream ? "streamed" : "whole", ...tokens, finished: false });
      const { id, status, retryAfter, text } = await ask(gateway, { native, stream, number });
      if (status !== 200) {
        assertEquals([status, Number(retryAfter) > 0], [native ? 529 : 503, true], text);
        const { type, error } = JSON.parse(text);
        assertEquals([type, error.type], native ? ["error", "overloaded_error"] : [undefined, error.type]);
        assert(error.message.length > 10);
        sight.refused++;
      } else if (stream && !text.includes("[DONE]") && !text.includes("message_stop")) {
        assertMatch(text, native ? /event: error\n/ : /data: \{"error"/);
        sight.broken++;
      } else sight.whole.push(id);
    }
  }
  const models = await fetch(`${gateway.origin}/v1/models`, { headers: { authorization: `Bearer ${KEY.secret}` } });
  await models.body?.cancel();
  assertEquals(models.status, 200);
}

/** Waits until an answer is whole again. Returns how long that took, in milliseconds. */
async function back(gateway: Running, load: Load): Promise<number> {
  const begun = performance.now();
  await until("service is back", async () => {
    const number = load.requests.length;
    await load.ask(gateway.origin, "whole");
    return load.requests[number]?.paid !== undefined;
  }, BACK_MS);
  return Math.round(performance.now() - begun);
}

async function examine(path: string, load: Load): Promise<{ complete: number; entries: number; ids: Set<string> }> {
  const store = openSqliteStore(path);
  try {
    const entries = await readEntries(store.ledger);
    const { complete } = assertLedgerAgrees(entries, load.requests);
    const { ok, differences } = await auditLedger(store.ledger);
    assertEquals([ok, differences], [true, []]);
    return { complete, entries: entries.length, ids: new Set(entries.map(({ id }) => id)) };
  } finally {
    await store.close();
  }
}

const figures: Record<string, Figure> = {};

for (const kind of KINDS) {
  Deno.test({
    name:
      `a full disk (${kind}): clear errors, no false success, no damage, and recovery without a restart (needs mount)`,
    ignore: CAN.get(kind) !== true,
    fn: () =>
      onDisk(kind, async (disk) => {
        await using load = createLoad(Math.random);
        const { folder } = disk;
        await writeConfig(folder, load, { budget: { usd: "100000", period: "total" } });
        const gateway = await start(["serve"], { folder, env: ENV });
        let isOver = false;
        const running = load.run(gateway.origin, CLIENTS);
        try {
          const sight: Sight = { refused: 0, broken: 0, whole: [] };
          const times: number[] = [];
          for (let round = 0; round < FILLS; round++) {
            await pause(1_500);
            const from = load.requests.length;
            await disk.fill();
            // One more write to the existing part of the log succeeds, then none does.
            await until("the disk is full", () => load.requests.slice(from).some(({ status }) => status === 503));
            const fullAt = performance.now();
            while (performance.now() - fullAt < FULL_MS) await look(gateway, { load, sight });
            await disk.free();
            times.push(await back(gateway, load));
          }
          await pause(500);
          await running.stop();
          assertGreater(sight.refused, FILLS);
          assertLess(sight.whole.length, sight.refused);
          gateway.kill("SIGTERM");
          isOver = true;
          const { code, err } = await gateway.ended;
          assertEquals([code, err.includes("ledger_recovered")], [0, true]);
          const { complete, entries, ids } = await examine(`${folder}/sluice.db`, load);
          for (const id of sight.whole) assert(ids.has(id), `req_${id} was answered and is not in the ledger`);
          const audit = await run(["audit"], { folder, env: ENV });
          assertEquals([audit.code, audit.err], [0, ""], audit.out);
          figures[`full_${kind}`] = {
            times_full: FILLS,
            requests: load.requests.length,
            refused: load.requests.filter(({ status }) => status === 503).length + sight.refused,
            streams_ended_with_an_error: sight.broken,
            answered_in_what_room_there_was: sight.whole.length,
            wrong_successes: 0,
            complete_answers: complete,
            complete_answers_missing: 0,
            entries,
            back_ms: times,
          };
          await publish("disk", figures);
        } finally {
          if (!isOver) gateway.kill("SIGKILL");
          await gateway.ended;
          await running.stop();
        }
      }),
  });
}

Deno.test({
  name:
    "a journal on a full disk during a Postgres outage: clear errors, and answered requests are entered afterwards (needs mount)",
  ignore: CAN.get("ext4") !== true || !HAS_POSTGRES,
  fn: () =>
    onDisk("ext4", async (disk) => {
      await using load = createLoad(Math.random);
      await using postgres = await startPostgres();
      const { folder } = disk;
      await writeConfig(folder, load, {});
      const file = `${folder}/sluice.jsonc`;
      const { store: _, ...config } = JSON.parse(await Deno.readTextFile(file));
      await Deno.writeTextFile(file, JSON.stringify(config));
      const place = { folder, env: { ...ENV, SLUICE_STORE: postgres.url } };
      const gateway = await start(["serve"], place);
      let isOver = false;
      try {
        await load.ask(gateway.origin, "whole");
        await postgres.stop();
        for (let count = 0; count < 20; count++) await load.ask(gateway.origin, "whole");
        const before = load.requests.filter(({ paid }) => paid !== undefined).length;
        assertGreater(before, 18);
        await disk.fill();
        await until("the journal cannot be written", async () => {
          await load.ask(gateway.origin, "whole");
          return load.requests.at(-1)?.status === 503;
        });
        const sight: Sight = { refused: 0, broken: 0, whole: [] };
        await look(gateway, { load, sight });
        assertEquals([sight.refused, sight.broken, sight.whole], [4, 0, []]);
        await disk.free();
        const ms = await back(gateway, load);
        await postgres.start();
        await until("the journal has settled", async () => {
          const text = await (await fetch(`${gateway.origin}/metrics`)).text();
          return text.includes("\nsluice_store_up 1") && text.includes("\nsluice_store_journal_entries 0");
        });
        gateway.kill("SIGTERM");
        isOver = true;
        assertEquals((await gateway.ended).code, 0);
        const { openStore } = await import("../../lib/store/open.ts");
        const { Secret } = await import("../../lib/secret.ts");
        const store = await openStore({ kind: "postgres", url: new Secret(postgres.url) });
        const { complete } = assertLedgerAgrees(await readEntries(store.ledger), load.requests);
        const { ok, differences } = await auditLedger(store.ledger);
        await store.close();
        assertEquals([ok, differences], [true, []]);
        figures.journal_full = { complete_answers: complete, complete_answers_missing: 0, back_ms: ms };
        await publish("disk", figures);
      } finally {
        if (!isOver) gateway.kill("SIGKILL");
        await gateway.ended;
      }
    }),
});

Deno.test({
  name: "an unwritable folder: the program reports it and does not start (needs mount)",
  ignore: CAN.get("tmpfs") !== true,
  fn: () =>
    onDisk("tmpfs", async (disk) => {
      const { folder } = disk;
      const place = { folder, env: ENV };
      for (const isNew of [true, false]) {
        if (!isNew) {
          const gateway = await start(["serve"], place);
          gateway.kill("SIGTERM");
          assertEquals((await gateway.ended).code, 0);
        }
        await disk.remount("ro");
        const { code, out, err } = await run(["serve", "--port", "0"], place);
        assertEquals([code === 0, out], [false, ""]);
        assertMatch(err, /Cannot open the store "[^"]*data\/sluice\.db": \S/);
        assert(!err.includes("    at "), err);
        await disk.remount("rw");
      }
      // As good as before.
      const gateway = await start(["serve"], place);
      gateway.kill("SIGTERM");
      assertEquals((await gateway.ended).code, 0);
      figures.read_only = { refused_with_a_word: 2 };
      await publish("disk", figures);
    }),
});

/** A store with entries, some of them only in the log, as after a crash. */
async function crashed(folder: string): Promise<string[]> {
  await using load = createLoad(Math.random);
  await writeConfig(folder, load, { budget: { usd: "100000", period: "total" } });
  const gateway = await start(["serve"], { folder, env: ENV });
  // Few enough that all of it is still in the log.
  for (let count = 0; count < 100; count++) await load.ask(gateway.origin, count % 2 === 0 ? "whole" : "streamed");
  const running = load.run(gateway.origin, CLIENTS);
  await pause(200);
  gateway.kill("SIGKILL");
  await gateway.ended;
  await running.stop();
  return load.requests.flatMap(({ id, paid }) => paid === undefined || id === undefined ? [] : [id]);
}

async function copyStore(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for (const name of ["sluice.db", "sluice.db-wal", "sluice.jsonc"]) {
    await Deno.copyFile(`${from}/${name}`, `${to}/${name}`).catch(() => {});
  }
}

/** Result of opening a damaged store: an error message, or a complete store. */
async function judge(folder: string, whole: readonly string[]): Promise<"refused" | "found" | "whole" | "shorter"> {
  let store;
  try {
    store = openSqliteStore(`${folder}/sluice.db`, { own: true });
  } catch (error) {
    assertMatch(
      String(error),
      /Cannot open the store ".*": (the file is damaged|.*malformed|file is not a database|.*)/,
    );
    return "refused";
  }
  try {
    const { ok } = await auditLedger(store.ledger);
    if (!ok) return "found";
    // Requests in progress at that moment were entered as lost when the store was opened.
    const ids = answered(await readEntries(store.ledger));
    assertEquals(ids, whole.slice(0, ids.length));
    return ids.length === whole.length ? "whole" : "shorter";
  } finally {
    await store.close();
  }
}

async function idsIn(folder: string): Promise<string[]> {
  const store = openSqliteStore(`${folder}/sluice.db`);
  const ids = answered(await readEntries(store.ledger));
  await store.close();
  return ids;
}

function answered(entries: readonly KeptEntry[]): string[] {
  return entries.filter(({ ending }) => ending !== "lost").map(({ id }) => id);
}

Deno.test("a truncated or changed log and damaged pages: rejected with a message, found by the audit, or a complete prefix of the ledger", () =>
  inFolder(async (root) => {
    const from = `${root}/crashed`;
    await Deno.mkdir(from);
    const paid = await crashed(from);
    // Everything is in the log, nothing in the file: as bad as it can be.
    const reference = `${root}/reference`;
    await copyStore(from, reference);
    const opened = openSqliteStore(`${reference}/sluice.db`, { own: true });
    await opened.close();
    const whole = await idsIn(reference);
    assert(paid.every((id) => whole.includes(id)), "what was answered is in the log");

    const { below } = seeded(SEED);
    const counts: Record<string, Record<string, number>> = {};
    const count = (what: string, how: string) => {
      const of = counts[what] ??= {};
      of[how] = (of[how] ?? 0) + 1;
    };
    const log = await Deno.readFile(`${from}/sluice.db-wal`);
    const file = await Deno.readFile(`${reference}/sluice.db`);
    for (let round = 0; round < 60; round++) {
      const folder = `${root}/${round}`;
      await copyStore(from, folder);
      await Deno.writeFile(`${folder}/sluice.db-wal`, log.subarray(0, below(log.length)));
      count("log_cut", await judge(folder, whole));
      const changed = log.slice();
      for (let bit = 0; bit < 8; bit++) changed[below(log.length)] = below(256);
      await Deno.writeFile(`${folder}/sluice.db-wal`, changed);
      await Deno.copyFile(`${from}/sluice.db`, `${folder}/sluice.db`);
      count("log_changed", await judge(folder, whole));
      await Deno.remove(`${folder}/sluice.db-wal`).catch(() => {});
      // A page of the file, the last one among them.
      const pages = file.length / 4096;
      const page = round % 4 === 0 ? pages - 1 : below(pages);
      const damaged = file.slice();
      for (let at = 0; at < 4096; at++) damaged[page * 4096 + at] = below(256);
      await Deno.writeFile(`${folder}/sluice.db`, damaged);
      count(round % 4 === 0 ? "last_page" : "any_page", await judge(folder, whole));
      await Deno.writeFile(`${folder}/sluice.db`, file.subarray(0, file.length - 1 - below(20_000)));
      count("file_cut", await judge(folder, whole));
      await Deno.remove(folder, { recursive: true });
    }
    // A damaged file never serves as if it were complete, unless the damaged place was empty.
    for (const how of [counts.last_page, counts.any_page, counts.file_cut]) assertEquals(how?.shorter, undefined);
    assertGreater((counts.any_page?.refused ?? 0) + (counts.any_page?.found ?? 0), 20);
    assertGreater(counts.log_cut?.shorter ?? 0, 40);
    // The program itself reports it in a line, and ends.
    const folder = `${root}/program`;
    await copyStore(reference, folder);
    await Deno.remove(`${folder}/sluice.db-wal`).catch(() => {});
    const damaged = file.slice();
    for (let at = 4096; at < file.length; at += 997) damaged[at] = below(256);
    await Deno.writeFile(`${folder}/sluice.db`, damaged);
    const { code, out, err } = await run(["serve", "--port", "0"], { folder, env: ENV });
    assertEquals([code === 0, out], [false, ""]);
    assertMatch(err, /Cannot open the store "[^"]*sluice\.db": \S/);
    assertLess(err.split("\n").length, 4, err);
    figures.damage = { ...counts };
    await publish("disk", figures);
  }));
