import { assertEquals } from "@std/assert";
import { checkSum } from "../../lib/store/entry_row.ts";
import { DETAILS, entry } from "./behaviours_ledger.ts";

Deno.test("checkSum() matches existing ledgers", () => {
  const full = { ...entry({ cost: 2n ** 53n + 1n, overrun: 5n, images: 2 }), seq: 7, priceVersion: 3 };
  const { sheet: _, priceVersion: __, firstMs: ___, ...bare } = full;
  assertEquals(checkSum(full, 2 ** 32 - 1), 2888289708);
  assertEquals(checkSum(bare, 0), 1518391700);
  assertEquals(checkSum({ ...full, details: DETAILS }, 1), 8317409);
});
