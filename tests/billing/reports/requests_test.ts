import { assertEquals } from "@std/assert";
import { findRequests, type RequestTexts } from "../../../lib/billing/reports/requests.ts";
import { parseConfig } from "../../../lib/config/parse.ts";
import { DAY_MS } from "../../../lib/store/days.ts";
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

Deno.test("findRequests() finds an entry from a clock that is ahead, unless a period ends before it", async () => {
  const { ledger, keys } = openMemoryStore();
  const parts = { ledger, keys, config: parseConfig({}) };
  await ledger.append([freeEntryOf({ at: DAY_ONE + 3 * DAY_MS })]);
  const found = async (texts: RequestTexts) => (await findRequests(parts, texts, { now: DAY_ONE })).data.length;
  assertEquals([await found({}), await found({ since: "7d" }), await found({ until: "1h" })], [1, 1, 0]);
});
