import { assert, assertEquals } from "@std/assert";
import { auditOnce } from "../../lib/admin/audit.ts";
import type { JsonObject } from "../../lib/json.ts";
import { openMemoryLedger } from "../../lib/store/memory_ledger.ts";
import { ask, startAdmin } from "./ask.ts";

Deno.test("the audit tells what it checked and that all is well", async () => {
  await using gateway = startAdmin();
  for (const content of ["one", "two", "three"]) {
    const response = await fetch(`${gateway.origin}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${gateway.keys.good}` },
      body: JSON.stringify({ model: "sluice/echo", messages: [{ role: "user", content }] }),
    });
    assertEquals(response.status, 200);
    await response.body?.cancel();
  }
  const { status, headers, body } = await ask(gateway, "POST /audit");
  const { ok, difference_count, differences } = body;
  assertEquals([status, ok, difference_count, differences], [200, true, 0, []]);
  assertEquals((body.checked as JsonObject).entries, 3);
  assertEquals(headers.get("cache-control"), "no-store");
});

Deno.test("auditOnce() runs one audit at a time, and a new one when that has ended", async () => {
  const ledger = openMemoryLedger();
  let reads = 0;
  const counted = Object.assign(Object.create(ledger), {
    entries(from: Parameters<typeof ledger.entries>[0]) {
      reads++;
      return ledger.entries(from);
    },
  });
  const [one, other] = [auditOnce(counted, Date.now), auditOnce(counted, Date.now)];
  assert(one === other);
  const report = await one;
  const once = reads;
  assert(report.ok && once > 0);
  assert(await auditOnce(counted, Date.now) !== report);
  assertEquals(reads, 2 * once);
});
