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

Deno.test("all pages of a search have the period of the first, also if it is relative to the present", async () => {
  const { ledger, keys } = openMemoryStore();
  await ledger.append([1, 2, 3].map((id) => freeEntryOf({ id: `r${id}`, at: DAY_ONE + id })));
  const page = async (texts: RequestTexts, now: number) => {
    const { data, next } = await findRequests(
      { ledger, keys, config: parseConfig({}) },
      { since: "1h", limit: "1", ...texts },
      { now },
    );
    return { ids: data.map(({ id }) => id), cursor: next ?? "" };
  };
  const first = await page({}, DAY_ONE + 3_600_000);
  const second = await page({ cursor: first.cursor }, DAY_ONE + 3_600_010);
  const third = await page({ cursor: second.cursor }, DAY_ONE + 3_600_020);
  assertEquals([first.ids, second.ids, third.ids], [["req_r3"], ["req_r2"], ["req_r1"]]);
});
