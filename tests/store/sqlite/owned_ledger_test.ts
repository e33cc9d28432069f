/** Behaviour of the ledger in the SQLite file beyond that of every ledger. */
import { assert, assertEquals, assertLess, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { faultOf } from "../../../lib/causes.ts";
import type { EntryDetails } from "../../../lib/store/ledger.ts";
import { MIGRATIONS } from "../../../lib/store/sqlite/migrations.ts";
import { openSqliteStore } from "../../../lib/store/sqlite/store.ts";
import { StoreError } from "../../../lib/store/store.ts";
import { WalSync } from "../../../lib/store/sqlite/wal_sync.ts";
import { othersTurns } from "../../support/others_turns.ts";
import { until } from "../../support/soon.ts";
import { DAY, entry, hold, MIDNIGHT, ofKey, readChain } from "../behaviours_ledger.ts";
import { SHEET } from "../../billing/reports/entries.ts";
import { key } from "../behaviours_keys.ts";
import { inFolder } from "../in_folder.ts";
import { canRun, findProgram, skipIf } from "../../support/skip.ts";
import { availableIn } from "../../support/available.ts";

const FILE = "sluice.db";

/** Changes a file past its triggers and checks. */
function tamper(file: string, sql: string): void {
  const db = new DatabaseSync(file);
  const triggers = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").all();
  db.exec("PRAGMA ignore_check_constraints = 1");
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
  db.exec(sql);
  db.close();
}

function many(count: number, name = "r"): ReturnType<typeof entry>[] {
  return Array.from({ length: count }, (_, index) => entry({ id: `${name}${index}` }));
}

Deno.test("the SQLite ledger continues after a restart", () =>
  inFolder(async (folder) => {
    const path = `${folder}/${FILE}`;
    const first = openSqliteStore(path, { own: true });
    await first.ledger.append([entry({ id: "a" }), entry({ id: "b", sheet: { ...SHEET, factor: "2" } })]);
    const before = [await readChain(first.ledger), await first.ledger.days(0)];
    await first.close();
    const second = openSqliteStore(path, { own: true });
    assertEquals([await readChain(second.ledger), await second.ledger.days(0)], before);
    assertEquals(await availableIn(second.ledger, ofKey(1000n)), 800n);
    assertEquals(await second.ledger.append([entry({ id: "a" }), entry({ id: "c" })]), [false, true]);
    assertEquals((await readChain(second.ledger)).map(({ priceVersion }) => priceVersion), [1, 2, 1]);
    await second.close();
  }));

Deno.test("the SQLite ledger keeps the chain of entries from before details existed", () =>
  inFolder(async (folder) => {
    const path = `${folder}/${FILE}`;
    const db = new DatabaseSync(path);
    const shape = 5;
    db.exec(MIGRATIONS.slice(0, shape).join(""));
    db.exec(`PRAGMA user_version = ${shape}`);
    db.exec(`INSERT INTO price_sheets VALUES
      (1, 'acme/one', '0.8', '0.00000125', '0.00001', '0.000000125', '0.0000015625', '0.0000025')`);
    // The checksum is that of the release that wrote such entries.
    db.exec(
      `INSERT INTO entries VALUES (1, 'r1', ${MIDNIGHT + 3_600_000}, 'key_1', 'default', 'acme/one', 'acme', 'chat',
      200, 'end', 10, 20, 30, 40, 50, 6, 'upstream', 1, 100, 120, 5, 200, 900, 3, 2, 2239331075)`,
    );
    db.close();
    const { ledger, close } = openSqliteStore(path, { own: true });
    const details = { image_sizes: { asked: "1024x1024", delivered: ["1024x1024"] } };
    await ledger.append([entry({ id: "r2", details })]);
    const [one, two] = await readChain(ledger);
    assertEquals([one?.check, one?.details, two?.details], [2239331075, undefined, details]);
    await close();
  }));

Deno.test("the SQLite ledger records holds with the next entries, unless they ended before", () =>
  inFolder(async (folder) => {
    const { ledger, close } = openSqliteStore(`${folder}/${FILE}`, { own: true });
    const guest = openSqliteStore(`${folder}/${FILE}`);
    const noted = async () => (await guest.ledger.holds()).map(({ id, leaseUntil }) => [id, leaseUntil]);
    const { leaseUntil } = hold();
    await ledger.hold(hold({ id: "a", amount: 1n }));
    await ledger.hold(hold({ id: "b", amount: 2n }));
    assertEquals(await noted(), []);
    await ledger.append([entry({ id: "a" })]);
    assertEquals(await noted(), [["b", leaseUntil]]);
    assertEquals(await guest.ledger.holds(), await ledger.holds());
    await ledger.renew(["b"], leaseUntil + 5);
    assertEquals(await noted(), [["b", leaseUntil + 5]]);
    assertEquals(await availableIn(guest.ledger, ofKey(1000n)), await availableIn(ledger, ofKey(1000n)));
    await ledger.append([entry({ id: "b" })]);
    assertEquals(await noted(), []);
    for (const store of [guest, { close }]) await store.close();
  }));

Deno.test("the SQLite ledger can be read by others, but written only by its owner", () =>
  inFolder(async (folder) => {
    const owner = openSqliteStore(`${folder}/${FILE}`, { own: true });
    const guest = openSqliteStore(`${folder}/${FILE}`);
    await owner.ledger.append(many(3));
    assertEquals(await readChain(guest.ledger), await readChain(owner.ledger));
    assertEquals(await guest.ledger.find("r1"), await owner.ledger.find("r1"));
    const query = { since: 0, until: MIDNIGHT * 2, by: "key" } as const;
    assertEquals(await guest.ledger.usage(query), await owner.ledger.usage(query));
    const words = "does not own it";
    await assertRejects(() => guest.ledger.append([entry({ id: "x" })]), Error, words);
    await assertRejects(() => guest.ledger.hold(hold({ id: "x" })), Error, words);
    await assertRejects(() => guest.ledger.renew(["x"], 1), Error, words);
    await assertRejects(() => guest.ledger.expire(1), Error, words);
    assertEquals(await guest.keys.add(key()), true);
    assertEquals((await owner.keys.list()).length, 1);
    while (await guest.ledger.prune(DAY + 1, Infinity));
    await owner.ledger.append([entry({ id: "next" })]);
    assertEquals((await readChain(owner.ledger)).map(({ seq }) => seq), [4]);
    await guest.close();
    await owner.close();
  }));

Deno.test("the SQLite ledger sums a snapshot while old entries are pruned", () =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/${FILE}`, { own: true });
    const day = (number: number) =>
      Array.from({ length: 3000 }, (_, index) =>
        entry({
          id: `${number} ${index}`,
          at: MIDNIGHT + number * 86_400_000 + index + 1,
          keyId: `key_${index % 700}`,
        }));
    for (const number of [0, 1, 2]) await store.ledger.append(day(number));
    // The first and the last day by their entries.
    const query = { since: MIDNIGHT + 2, until: MIDNIGHT + 2 * 86_400_000 + 2000, by: "key" } as const;
    const before = await store.ledger.usage(query);
    assertEquals(before.reduce((sum, { requests }) => sum + requests, 0), 2999 + 3000 + 1999);
    const calls = [store.ledger.usage(query), store.ledger.usage({ ...query, by: "day" })];
    const pruned = (async () => {
      // From here on the pruning is in progress.
      await new Promise((resolve) => setTimeout(resolve, 0));
      while (await store.ledger.prune(DAY + 3, Infinity));
    })();
    const [first, second] = await Promise.all(calls);
    // A day whose entries are being pruned counts completely: no day yet, the first one, or also the last one.
    const whole = 9000;
    const requests = first?.reduce((sum, each) => sum + each.requests, 0);
    assert(requests === 7998 || requests === 7999 || requests === whole, String(requests));
    assertEquals(second?.length, 3);
    await pruned;
    assertEquals((await store.ledger.usage(query)).reduce((sum, each) => sum + each.requests, 0), whole);
    await store.close();
  }));

Deno.test("aborted SQLite sums end, waiting or running, and the next ones follow", () =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/${FILE}`, { own: true });
    await store.ledger.append(many(5));
    const query = { since: 0, until: MIDNIGHT * 2, by: "key" } as const;
    for (const looks of [0, 1, 2]) {
      const signal = abortedAt(looks);
      const [, given, last] = await Promise.allSettled([
        store.ledger.usage(query),
        store.ledger.usage(query, signal),
        store.ledger.usage(query),
      ]);
      assertEquals(given.status, looks < 2 ? "rejected" : "fulfilled");
      if (given.status === "rejected") assertEquals(given.reason, signal.reason);
      assert(last.status === "fulfilled" && last.value[0]?.requests === 5);
    }
    await store.close();
  }));

/** A signal that aborts after this many reads of its state. */
function abortedAt(looks: number): AbortSignal {
  const control = new AbortController();
  const { signal } = control;
  return Object.assign(signal, {
    throwIfAborted() {
      if (looks-- === 0) control.abort();
      AbortSignal.prototype.throwIfAborted.call(signal);
    },
  });
}

Deno.test("closing a SQLite store ends running sums", () =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/${FILE}`, { own: true });
    await store.ledger.append(many(5));
    const query = { since: 0, until: MIDNIGHT * 2, by: "key" } as const;
    assertEquals((await store.ledger.usage(query)).length, 1);
    const requested = store.ledger.usage(query);
    const waits = store.ledger.usage(query);
    await store.close();
    for (const each of [requested, waits, store.ledger.usage(query)]) await assertRejects(() => each, Error);
    const next = openSqliteStore(`${folder}/${FILE}`, { own: true });
    assertEquals((await next.ledger.usage(query))[0]?.requests, 5);
    await next.close();
  }));

Deno.test("a SQLite store has one owner at a time", () =>
  inFolder(async (folder) => {
    const path = `${folder}/${FILE}`;
    const first = openSqliteStore(path, { own: true });
    await Deno.symlink(`${folder}/${FILE}`, `${folder}/link.db`);
    for (const name of [FILE, "link.db"]) {
      const open = () => openSqliteStore(`${folder}/${name}`, { own: true });
      assertThrows(open, StoreError, `Cannot open the store "${folder}/${name}": another gateway is serving from it`);
    }
    await first.ledger.append([entry()]);
    await first.close();
    const second = openSqliteStore(path, { own: true });
    assertEquals((await readChain(second.ledger)).length, 1);
    await second.close();
  }));

Deno.test({
  name: "an entry is acknowledged after a sync of the log that began after its write",
  ignore: skipIf(!await canRun("strace", "-o", "/dev/null", "true"), "strace is not installed, or may not trace"),
  async fn() {
    await inFolder(async (folder) => {
      const trace = `${folder}/trace`;
      const deno = [Deno.execPath(), "run", "--no-prompt", "--allow-read", "--allow-write", writerPath()];
      const strace = ["-f", "-y", "-o", trace, "-e", "trace=pwrite64,fdatasync,fsync,write"];
      const run = new Deno.Command("strace", {
        args: [...strace, ...deno, folder, "20"],
        stdin: "null",
      });
      assert((await run.output()).success);
      let [written, begun, synced, acks] = [0, 0, 0, 0];
      // The runtime may write the logs of its own caches meanwhile.
      for (const line of (await Deno.readTextFile(trace)).split("\n")) {
        if (/pwrite64\(\d+<[^>]*sluice\.db-wal>/.test(line)) written++;
        if (/fdatasync\(\d+<[^>]*sluice\.db-wal>/.test(line)) begun = written;
        if (/fdatasync(?:\(\d+<[^>]*sluice\.db-wal>\)| resumed>\)).* = 0$/.test(line)) synced = begun;
        if (!/write\(1<.*"acked /.test(line)) continue;
        acks++;
        assert(synced === written && written >= acks, `${written} writes and ${synced} synced before: ${line}`);
      }
      assertEquals(acks, 20);
    });
  },
});

/** Runs the writer behind a shell command that limits its resources. Returns its output. */
async function writeBehind(shell: string, folder: string): Promise<string> {
  const deno = [Deno.execPath(), "run", "--no-prompt", "--allow-read", "--allow-write", writerPath(), folder, "5000"];
  const run = new Deno.Command("bash", { args: ["-c", `${shell} && exec "$@"`, "bash", ...deno], stdin: "null" });
  return new TextDecoder().decode((await run.output()).stdout);
}

Deno.test({
  name: "the SQLite ledger rejects entries while the disk is full, and recovers",
  ignore: skipIf(
    !await canRun("unshare", "-rm", "bash", "-c", "mount -t tmpfs tmpfs /mnt"),
    "unshare is not installed, or may not mount a disk",
  ),
  async fn() {
    await inFolder(async (folder) => {
      // A small disk of its own, which disappears with the process; only the process can read it.
      const disk = `mount -t tmpfs -o size=1500k tmpfs "${folder}" && head -c 400000 /dev/zero > "${folder}/ballast"`;
      const content = await writeBehind(`exec unshare -rm bash -c '${disk} && exec "$@"' bash "$@" && true`, folder);
      const lines = content.trim().split("\n");
      const [first = "", second = ""] = lines.filter((line) => line.startsWith("refused"));
      const at = lines.indexOf(first);
      assertStringIncludes(first, "database or disk is full");
      assertEquals([at > 5, lines[at + 1]], [true, "writable: false, true"]);
      assert(lines[at + 2]?.startsWith("acked"), lines.slice(at - 2, at + 3).join("; "));
      assertStringIncludes(second, "database or disk is full");
    });
  },
});

Deno.test({
  name: "the SQLite ledger stops after a disk failure, and keeps all acknowledged entries",
  ignore: skipIf(!await canRun("bash", "-c", "true"), "bash is not installed"),
  async fn() {
    await inFolder(async (folder) => {
      // Writes beyond a size fail, as those to a broken disk do.
      const content = await writeBehind("trap '' XFSZ && ulimit -f 600", folder);
      const all = content.trim().split("\n");
      const lines = all.filter((line) => !line.startsWith("writable: false, false"));
      assertEquals(all.length - lines.length, 3);
      const refused = lines.filter((line) => line.startsWith("refused"));
      assertStringIncludes(refused[0] ?? "", "disk I/O error");
      for (const line of refused.slice(1)) assertStringIncludes(line, "the disk or the file failed before");
      assertEquals(lines.slice(-3), refused);
      const store = openSqliteStore(`${folder}/${FILE}`, { own: true });
      const kept = (await readChain(store.ledger)).map(({ id }) => `acked ${id}`);
      assertEquals(kept.filter((line) => line !== "acked open"), lines.slice(0, -3));
      await store.close();
    });
  },
});

Deno.test({
  name: "a failed sync rejects all waiting and later callers",
  ignore: skipIf(findProgram("mkfifo") === undefined, "mkfifo is not installed"),
  async fn() {
    await inFolder(async (folder) => {
      // The system syncs no pipes.
      const { success } = await new Deno.Command("mkfifo", { args: [`${folder}/pipe`] }).output();
      assert(success);
      const sync = new WalSync(`${folder}/pipe`, `${folder}/pipe`);
      const waiting = [sync.durable(), sync.durable(), sync.durable()];
      for (const each of await Promise.allSettled(waiting)) assertEquals(each.status, "rejected");
      await assertRejects(() => sync.durable(), Error, "Cannot write the ledger: the disk failed");
      await sync.close();
    });
  },
});

for (const name of [FILE, `${FILE}-wal`]) {
  Deno.test(`the SQLite ledger takes no entries after ${name} was deleted or replaced`, () =>
    inFolder(async (folder) => {
      const store = openSqliteStore(`${folder}/${FILE}`, { own: true });
      await store.ledger.append(many(1));
      await Deno.rename(`${folder}/${name}`, `${folder}/elsewhere`);
      await Deno.writeTextFile(`${folder}/${name}`, "");
      const tried: string[] = [];
      const failed = await refusal(() => {
        tried.push(crypto.randomUUID());
        return store.ledger.append(tried.slice(-1).map((id) => entry({ id })));
      });
      assertEquals(faultOf(failed), "file deleted or replaced");
      await Deno.rename(`${folder}/elsewhere`, `${folder}/${name}`);
      await assertRejects(() => store.ledger.append([entry({ id: "after" })]), Error, "failed before");
      await store.close();
      // The file has all entries that were acknowledged, and no other.
      const restored = openSqliteStore(`${folder}/${FILE}`, { own: true });
      assertEquals((await readChain(restored.ledger)).slice(1).map(({ id }) => id), tried.slice(0, -1));
      await restored.close();
    }));
}

/** Repeats an action until it fails, and returns the error. */
async function refusal(act: () => Promise<unknown>): Promise<unknown> {
  for (;;) {
    try {
      await act();
      await new Promise((resolve) => setTimeout(resolve, 50));
    } catch (error) {
      return error;
    }
  }
}

Deno.test("the SQLite ledger rejects manual changes", () =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/${FILE}`, { own: true });
    await store.ledger.append(many(5));
    const db = new DatabaseSync(`${folder}/${FILE}`);
    const columns = db.prepare("PRAGMA table_info(entries)").all().map(({ name }) => String(name)).join(", ");
    const again = (seq: number, id: string) => copyOfSecond(columns, { seq, id });
    const refused: [string, string][] = [
      ["UPDATE entries SET cost = 0 WHERE seq = 2", "must not be changed"],
      ["UPDATE entries SET seq = 9 WHERE seq = 5", "must not be changed"],
      ["DELETE FROM entries WHERE seq = 5", "only the oldest"],
      ["DELETE FROM entries WHERE seq = 1", "only the oldest"],
      [`INSERT ${again(5, "new")}`, "UNIQUE"],
      [`INSERT ${again(6, "r2")}`, "UNIQUE"],
      ["UPDATE price_sheets SET prompt = '0'", "must not be changed"],
      ["DELETE FROM price_sheets", "must not be deleted"],
      [
        "INSERT OR REPLACE INTO price_sheets SELECT 1, 'm', factor, prompt, completion, '1', '2', '3' FROM price_sheets",
        "must follow",
      ],
      ["UPDATE ledger_start SET seq = 2, check_sum = 1", "with its checksum"],
      ["UPDATE ledger_start SET seq = 9, check_sum = 0", "with its checksum"],
      ["UPDATE ledger_start SET day = -2", "with its checksum"],
      ["DELETE FROM ledger_start", "one start"],
      ["INSERT OR REPLACE INTO ledger_start VALUES (1, 5, 5, 5, '[]')", "one start"],
      ["INSERT INTO days SELECT day, 'x', '', '', 9.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM days", "REAL"],
    ];
    for (const [sql, words] of refused) assertThrows(() => db.exec(sql), Error, words, sql);
    db.close();
    assertEquals((await readChain(store.ledger)).map(({ id }) => id), ["r0", "r1", "r2", "r3", "r4"]);
    await store.close();
  }));

Deno.test("the SQLite ledger enters nothing after foreign or replaced entries", async () => {
  for (const [seq, id] of [[6, "new"], [9, "new"], [2, "new"], [6, "r2"], [5, "r0"]] as const) {
    await inFolder(async (folder) => {
      const path = `${folder}/${FILE}`;
      const store = openSqliteStore(path, { own: true });
      await store.ledger.append(many(5));
      const db = new DatabaseSync(path);
      const columns = db.prepare("PRAGMA table_info(entries)").all().map(({ name }) => String(name)).join(", ");
      db.exec(`INSERT OR REPLACE ${copyOfSecond(columns, { seq, id })}`);
      db.close();
      const [before, days] = [await store.ledger.entries({ after: 0, limit: 9 }), await store.ledger.days(0)];
      if (seq > 5) {
        const words = `it ends with entry ${seq} instead of 5`;
        await assertRejects(() => store.ledger.append(many(2, "s")), Error, words);
        await assertRejects(() => store.ledger.append(many(2, "t")), Error, "the disk or the file failed before");
      }
      assertEquals([await store.ledger.entries({ after: 0, limit: 9 }), await store.ledger.days(0)], [before, days]);
      // The checksums reveal the replacement of an entry.
      await assertRejects(() => readChain(store.ledger), Error);
      await store.close();
      assertThrows(() => openSqliteStore(path, { own: true }), StoreError, "does not fit");
    });
  }
});

/** SQL that inserts the second entry once more. */
function copyOfSecond(columns: string, { seq, id }: { seq: number; id: string }): string {
  return `INTO entries SELECT ${columns.replace(/^seq, id/, `${seq}, '${id}'`)} FROM entries WHERE seq = 2`;
}

Deno.test("a changed or missing value breaks the chain, and the SQLite ledger does not open", async () => {
  await inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/${FILE}`, { own: true });
    const details: EntryDetails = {
      image_sizes: { asked: "1024x1024", delivered: ["1024x1024"] },
      reason: { code: "invalid" },
      user: "anna",
      tags: ["a"],
    };
    const all = many(20).map((each) => ({ ...each, id: `${each.id}z`, held: 7n, overrun: 3n, images: 1, details }));
    await store.ledger.append(all);
    await store.close();
    const damages = [
      "UPDATE entries SET cost = (cost | 1024) - (cost & 1024) WHERE seq = 10",
      "UPDATE price_sheets SET prompt = '0.00000126'",
      "DELETE FROM entries WHERE seq = 10",
      "UPDATE entries SET price_version = NULL WHERE seq = 10",
      "UPDATE entries SET first_ms = NULL WHERE seq = 10",
      "UPDATE entries SET details = NULL WHERE seq = 10",
      "UPDATE entries SET seq = -seq WHERE seq IN (4, 5); UPDATE entries SET seq = 9 + seq WHERE seq < 0",
    ];
    for (const [index, damage] of damages.entries()) {
      const file = `${folder}/${index}.db`;
      await Deno.copyFile(`${folder}/${FILE}`, file);
      tamper(file, damage);
      const guest = openSqliteStore(`${file}`);
      await assertRejects(() => readChain(guest.ledger), Error, undefined, damage);
      await guest.close();
      const words = `Cannot open the store "${file}": `;
      assertThrows(() => openSqliteStore(`${file}`, { own: true }), StoreError, words, damage);
      await Deno.remove(file);
    }
  });
});

Deno.test("entries wait in the background while another process writes", () =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/${FILE}`, { own: true });
    const other = new DatabaseSync(`${folder}/${FILE}`);
    other.exec("BEGIN IMMEDIATE");
    let ticks = 0;
    const ticking = setInterval(() => ticks++, 1);
    const appending = [store.ledger.append([entry({ id: "a" })]), store.ledger.append([entry({ id: "b" })])];
    const pruning = store.ledger.prune(0, Infinity);
    await until("turns of the event loop", () => ticks > 3);
    assertEquals((await store.ledger.find("a")) ?? "not yet", "not yet");
    other.exec("ROLLBACK");
    assertEquals([await Promise.all(appending), await pruning], [[[true], [true]], false]);
    clearInterval(ticking);
    assertEquals((await readChain(store.ledger)).length, 2);
    other.close();
    await store.close();
  }));

Deno.test("renewals of holds do not wait while another process writes: their leases are in memory", () =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/${FILE}`, { own: true });
    const { leaseUntil } = hold();
    await store.ledger.hold(hold());
    const other = new DatabaseSync(`${folder}/${FILE}`);
    other.exec("BEGIN IMMEDIATE");
    let isRenewed = false;
    const renewal = store.ledger.renew(["r1"], leaseUntil + 100).then(() => isRenewed = true);
    await othersTurns();
    assertEquals(isRenewed, true);
    await renewal;
    assertEquals((await store.ledger.holds()).map((open) => open.leaseUntil), [leaseUntil + 100]);
    other.exec("ROLLBACK");
    await store.ledger.append([entry({ id: "a" })]);
    assertEquals(other.prepare("SELECT lease_until FROM holds").all().map((row) => row.lease_until), [
      leaseUntil + 100,
    ]);
    other.close();
    await store.close();
  }));

Deno.test("a failing transaction leaves the ledger unchanged and usable", () =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/${FILE}`, { own: true });
    await store.ledger.append([entry({ id: "a", cost: 2n ** 63n - 1n })]);
    await store.ledger.hold(hold({ id: "b", amount: 5n, claims: [] }));
    const before = await readChain(store.ledger);
    // The sum of the day would be more than an integer of SQLite.
    const sheet = { ...SHEET, factor: "3" };
    await assertRejects(() => store.ledger.append([entry({ id: "b", sheet }), entry({ id: "c" })]), Error, "REAL");
    assertEquals([await readChain(store.ledger), (await store.ledger.holds()).length], [before, 1]);
    const later = { at: MIDNIGHT + 86_400_000 };
    assertEquals(await store.ledger.append([entry({ id: "b", ...later }), entry({ id: "c", sheet, ...later })]), [
      true,
      true,
    ]);
    assertEquals((await readChain(store.ledger)).map(({ priceVersion }) => priceVersion), [1, 1, 2]);
    assertEquals(await store.ledger.holds(), []);
    await store.close();
  }));

Deno.test("entries are small, and pruning returns their space", async () => {
  await inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/${FILE}`, { own: true });
    const [count, size] = [14_000, 500];
    for (let from = 0; from < count; from += size) {
      const ids = Array.from(
        { length: size },
        (_, index) => `a1b2c3d4e5f60718${(from + index).toString(36).padStart(6, "0")}`,
      );
      const added = await store.ledger.append(ids.map((id, index) => typical(id, from + index)));
      assertEquals(added.every(Boolean), true);
    }
    const db = new DatabaseSync(`${folder}/${FILE}`);
    const bytes = (name: string) =>
      Number(db.prepare("SELECT sum(pgsize) AS sum FROM dbstat WHERE name = ?").get(name)?.sum);
    assertLess(bytes("entries") / count, 200);
    assertLess((await Deno.stat(`${folder}/${FILE}`)).size / count, 300);
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    db.close();

    const before = (await Deno.stat(`${folder}/${FILE}`)).size;
    let calls = 0;
    while (await store.ledger.prune(DAY + 1, Infinity)) assert(calls++ < 2000);
    await store.close();
    assertLess((await Deno.stat(`${folder}/${FILE}`)).size, before * 0.4);
    const next = openSqliteStore(`${folder}/${FILE}`, { own: true });
    assertEquals((await next.ledger.start()).seq, count);
    assertEquals((await next.ledger.days(0)).reduce((sum, { requests }) => sum + requests, 0), count);
    await next.close();
  });
});

/** An entry with numbers as large as usual. */
function typical(id: string, index: number): ReturnType<typeof entry> {
  return entry({
    id,
    at: MIDNIGHT + index * 800,
    keyId: `key_${String(index % 50).padStart(16, "0")}`,
    model: "acme/model-large-2026",
    upstream: "acme-eu",
    endpoint: "messages",
    tokens: {
      prompt: 1000 + index % 700,
      input_cache_read: index % 3000,
      input_cache_write_5m: 0,
      input_cache_write_1h: 0,
      completion: 300 + index % 500,
      reasoning: index % 100,
    },
    cost: 4_000_000_000n + BigInt(index) * 1_250_000n,
    held: 80_000_000_000n,
    firstMs: 400 + index % 500,
    totalMs: 3000 + index % 9000,
  });
}

function writerPath(): string {
  return new URL("ledger_writer.ts", import.meta.url).pathname;
}

Deno.test("a store that is in use and cannot be opened names the reason", () =>
  inFolder(async (folder) => {
    const path = `${folder}/none/${FILE}`;
    await Deno.writeTextFile(`${folder}/none`, "");
    const error = assertThrows(() => openSqliteStore(`${path}`, { own: true }), StoreError);
    assertStringIncludes(error.message, `Cannot open the store "${path}": `);
  }));
