import { assertEquals } from "@std/assert";
import { findRequests } from "../../../lib/billing/reports/requests.ts";
import { parseConfig } from "../../../lib/config/parse.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { DAY_ONE, freeEntryOf } from "./entries.ts";

Deno.test("findRequests() shows the status of a lost request as unknown", async () => {
  const { ledger, keys } = openMemoryStore();
  await ledger.append([freeEntryOf({ ending: "lost", status: 0 }), freeEntryOf({ id: "r2" })]);
  const { data } = await findRequests({ ledger, keys, config: parseConfig({}) }, {}, { now: DAY_ONE });
  assertEquals(data.map(({ id, status, reason }) => [id, status, reason]), [
    ["req_r2", 502, null],
    ["req_r1", null, "lost"],
  ]);
});
