import { assertEquals } from "@std/assert";
import { createMemoryLimiter } from "../../lib/limits/memory.ts";
import { openMemoryStore } from "../../lib/store/memory.ts";
import { createDues } from "../../lib/workers/dues.ts";
import { entryOf } from "../billing/reports/entries.ts";

const CLAIM = { name: "key:a", unit: "concurrency", limit: 3, cost: 1, reportOnly: false } as const;

function open() {
  const { ledger } = openMemoryStore();
  const limiter = createMemoryLimiter({ monotonic: () => 0 });
  const dues = createDues({ ledger, limiter, now: () => 5_000 });
  async function begin(id: string, leaseUntil = 60_000): Promise<void> {
    await dues.limiter.take({ id, claims: [CLAIM], forMs: 1000 });
    await dues.ledger.hold({
      id,
      at: 4_000,
      keyId: "key_a",
      group: "default",
      model: "acme/one",
      endpoint: "chat",
      amount: 10n,
      claims: [{ scope: "key", id: "key_a", budget: 25n, since: 0 }],
      leaseUntil,
    });
  }
  const remaining = async () => (await limiter.standings([CLAIM]))[0]?.remaining;
  return { ledger, dues, begin, remaining };
}

Deno.test("what is open is entered as lost, and its slots are free; what has ended is left alone", async () => {
  const { ledger, dues, begin, remaining } = open();
  await begin("a");
  await begin("b");
  // Refused by the budget, and undone.
  await begin("c");
  await dues.limiter.undo("c");
  await dues.ledger.append([{ ...entryOf({}), id: "a", cost: 3n, held: 10n }]);
  await dues.limiter.end("a", 5);
  assertEquals([(await ledger.holds()).map(({ id }) => id), await remaining()], [["b"], 2]);
  assertEquals(await dues.settle(), 1);
  assertEquals([await ledger.holds(), await remaining()], [[], 3]);
  const entries = await ledger.entries({ after: 0, limit: 10 });
  assertEquals(entries.map(({ id, ending, cost, totalMs }) => [id, ending, cost, ending === "lost" ? totalMs : 0]), [
    ["a", entryOf({}).ending, 3n, 0],
    ["b", "lost", 0n, 1_000],
  ]);
  assertEquals(await dues.settle(), 0);
});

Deno.test("a hold that has run out is nobody's due", async () => {
  const { ledger, dues, begin } = open();
  await begin("a", 4_500);
  assertEquals(await dues.ledger.expire(5_000), ["a"]);
  assertEquals(await dues.settle(), 0);
  assertEquals((await ledger.entries({ after: 0, limit: 10 })).length, 1);
});
