import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import { DAY_MS, someEntries } from "../billing/reports/entries.ts";
import { startBilled } from "./billed_gateway.ts";
import { inFolder, reuseGateways, reuseProcess, run } from "../support/program.ts";

reuseProcess();
reuseGateways();

Deno.test("audit passes beside a gateway under load, and exits with 1 after a manipulated entry", () =>
  inFolder(async (folder) => {
    const gateway = await startBilled(folder);
    let isOver = false;
    const load = Promise.all([1, 2, 3].map(async () => {
      for (let count = 0; count < 5 || !isOver; count++) await gateway.ask();
    }));
    const passed = await run(["audit"], { folder });
    isOver = true;
    await load;
    assertEquals([passed.code, passed.err], [0, ""]);
    assertMatch(passed.out, /^Entries: +\d.*\nSums per day: .*\nOpen holds: +\d+\n\nNo differences found\n$/);
    await gateway.stop();

    const db = new DatabaseSync(`${folder}/data/sluice.db`);
    db.exec("DROP TRIGGER entries_stay; UPDATE entries SET cost = cost - 1 WHERE seq = 2");
    db.close();
    const failed = await run(["audit"], { folder });
    assertEquals(failed.code, 1);
    assertMatch(failed.out, /^check entry 2 req_\w+: the checksum does not match this entry and the previous one$/m);
    assertMatch(failed.out, /^cost entry 2 req_\w+: the cost is 0\.000068999999 USD, but .* give 0\.000069 USD$/m);
    assertMatch(
      failed.out,
      /^day_sum: \d{4}-\d\d-\d\d, key "key_[\w-]+", group "team", model "acme\/assistant": cost is /m,
    );
    assertStringIncludes(failed.out, "\n3 differences\n");
    const json = JSON.parse((await run(["audit", "--json"], { folder })).out);
    assertEquals([json.ok, json.difference_count, json.differences.length], [false, 3, 3]);
  }));

Deno.test("prune deletes entries older than the retention, and keeps the sums", () =>
  inFolder(async (folder) => {
    await Deno.mkdir(`${folder}/data`);
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, '{ "ledger": { "keep_days": 30 } }');
    const store = openSqliteStore(`${folder}/data/sluice.db`, { own: true });
    const now = Date.now();
    const old = someEntries(1200).map((entry, index) => ({ ...entry, at: now - 40 * DAY_MS + index }));
    const young = someEntries(300, { firstId: 5000 }).map((entry, index) => ({
      ...entry,
      at: now - 29 * DAY_MS + index,
    }));
    await store.ledger.append([...old, ...young]);
    await store.close();
    const usage = ["usage", "--since", new Date(now - 60 * DAY_MS).toISOString().slice(0, 10), "--by", "key", "--csv"];
    const bill = await run(usage, { folder });
    const pruned = await run(["prune"], { folder });
    assertEquals([pruned.code, pruned.out], [0, "Pruned 1200 entries older than 30 days; the sums per day are kept\n"]);
    assertEquals(
      (await run(["prune"], { folder })).out,
      "Pruned 0 entries older than 30 days; the sums per day are kept\n",
    );
    assertEquals((await run(usage, { folder })).out, bill.out);
    const { code, out } = await run(["audit"], { folder });
    assertEquals(code, 0, out);
    assertMatch(out, /^Entries: +300, from 1201 to 1500\nSums per day: \d+\n +\d+ more whose entries are pruned\n/);
  }));

Deno.test("a damaged store is reported in one line that says what to do", () =>
  inFolder(async (folder) => {
    await Deno.mkdir(`${folder}/data`);
    const path = `${folder}/data/sluice.db`;
    const store = openSqliteStore(path, { own: true });
    await store.ledger.append(someEntries(20));
    await store.close();
    const db = new DatabaseSync(path, { readOnly: true });
    const pages = db.prepare("SELECT rootpage FROM sqlite_master WHERE tbl_name IN ('entries', 'days')").all();
    const size = Number(db.prepare("PRAGMA page_size").get()?.page_size);
    db.close();
    using file = await Deno.open(path, { write: true });
    for (const { rootpage } of pages.filter(({ rootpage }) => Number(rootpage) > 0)) {
      await file.seek((Number(rootpage) - 1) * size, Deno.SeekMode.Start);
      await file.write(new Uint8Array(size).fill(7));
    }
    const { code, out, err } = await run(["usage", "--since", "1970-01-01"], { folder });
    assertEquals([code, out], [1, ""]);
    assertMatch(err, /^Cannot use the store "\.\/data\/sluice\.db": .*malformed; restore a backup\n$/);
  }));
