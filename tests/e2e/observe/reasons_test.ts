/** The reasons of refused requests in the ledger: the rule that an invalid one breaks, and never a text of it. */
import { assertEquals } from "@std/assert";
import { notEntered } from "../../../lib/billing/entry_queue.ts";
import { reasonOf } from "../../../lib/request/request_meter.ts";

Deno.test("a request that the ledger could not take says so, and not that a target was missing", () => {
  assertEquals(reasonOf(notEntered(new Error("disk full"))), { code: "unavailable", outage: "ledger" });
});
