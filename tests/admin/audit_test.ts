import { assert, assertEquals, assertRejects } from "@std/assert";
import { shareAudit } from "../../lib/admin/audit.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import { someEntries } from "../billing/reports/entries.ts";
import { ask, startAdmin } from "./admin_client.ts";
import { postChat } from "../support/post_chat.ts";
import { until } from "../support/soon.ts";

Deno.test("GET audit reports what was checked and that no differences were found", async () => {
  await using gateway = startAdmin();
  for (const content of ["one", "two", "three"]) {
    const response = await postChat(gateway.url, gateway.keys.good, { messages: [{ role: "user", content }] });
    assertEquals(response.status, 200);
    await response.body?.cancel();
  }
  const { status, headers, body } = await ask(gateway, "POST /audit");
  const { ok, difference_count, differences } = body;
  assertEquals([status, ok, difference_count, differences], [200, true, 0, []]);
  assertEquals((body.checked as JsonObject).entries, 3);
  assertEquals(headers.get("cache-control"), "no-store");
});

Deno.test("shareAudit() runs one audit at a time, and a new one after the previous has ended", async () => {
  const ledger = openMemoryStore().ledger;
  let reads = 0;
  const counted = Object.assign(Object.create(ledger), {
    entries(from: Parameters<typeof ledger.entries>[0]) {
      reads++;
      return ledger.entries(from);
    },
  });
  const how = { now: Date.now, signal: new AbortController().signal };
  const [report, other] = await Promise.all([shareAudit(counted, how), shareAudit(counted, how)]);
  assert(report === other);
  const once = reads;
  assert(report.ok && once > 0);
  assert(await shareAudit(counted, how) !== report);
  assertEquals(reads, 2 * once);
});

Deno.test("shareAudit() ends when the last waiting caller has left, and then starts a new audit for the next", async () => {
  const ledger = openMemoryStore().ledger;
  await ledger.append(someEntries(4_500));
  let reads = 0;
  let seen = Promise.withResolvers<void>();
  const counted = Object.assign(Object.create(ledger), {
    entries(from: Parameters<typeof ledger.entries>[0]) {
      reads++;
      seen.resolve();
      return ledger.entries(from);
    },
  });
  const client = () => {
    const control = new AbortController();
    return { control, report: shareAudit(counted, { now: Date.now, signal: control.signal }) };
  };
  const whole = (await client().report).checked.entries;
  const all = reads;

  const [leaves, stays] = [client(), client()];
  leaves.control.abort(new RangeError("gone"));
  await assertRejects(() => leaves.report, RangeError, "gone");
  assertEquals([(await stays.report).checked.entries, reads], [whole, 2 * all]);

  seen = Promise.withResolvers();
  const [one, last] = [client(), client()];
  await seen.promise;
  one.control.abort();
  last.control.abort();
  await Promise.all([one, last].map(({ report }) => assertRejects(() => report, DOMException)));
  const begun = reads;
  const next = client();
  // The aborted audit has noticed by then.
  await until("three reads", () => reads >= begun + 3);
  const beside = client();
  assertEquals((await next.report).checked.entries, whole);
  assert(await beside.report === await next.report);
  assertEquals(reads, begun + all);
  await assertRejects(() => shareAudit(counted, { now: Date.now, signal: last.control.signal }), DOMException);
});
