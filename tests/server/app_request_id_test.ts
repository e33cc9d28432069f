import { assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { createRequestIds } from "../../lib/server/app.ts";

Deno.test("createRequestIds() returns unique alphanumeric ids", () => {
  const [next, other] = [createRequestIds(), createRequestIds()];
  const ids = Array.from({ length: 100_000 }, next);
  assertEquals(new Set(ids).size, ids.length);
  for (const id of [ids[0], ids[99_999]]) assertMatch(id ?? "", /^[a-z0-9]{22,}$/);
  assertNotEquals(other().slice(0, 16), ids[0]?.slice(0, 16));
});
