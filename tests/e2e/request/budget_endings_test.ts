import { assertEquals } from "@std/assert";
import { openSqliteStore } from "../../../lib/store/sqlite/store.ts";
import type { Store } from "../../../lib/store/store.ts";
import type { TestGateway } from "../../support/gateway.ts";
import { PROTOCOLS } from "../../upstream/replies.ts";
import { inFolder } from "../../store/in_folder.ts";
import { rounds } from "../../support/skip.ts";
import { answer, asking, COST, startBudgeted, worth } from "./budgeted.ts";
import type { ScriptedAnswer, UpstreamRequest } from "../../upstream/mod.ts";
import { entriesOf } from "./world.ts";

/** Concurrent clients. */
const CLIENTS = 64;
const ROUNDS = rounds(10);

function openStore(folder: string): Store {
  return openSqliteStore(`${folder}/sluice.db`, { own: true });
}

/** Cost of a key's requests in the ledger. */
async function costOf(gateway: TestGateway, keyId: string): Promise<bigint> {
  await gateway.gateway.backgroundTasks.done();
  await gateway.gateway.ledger.flush();
  const entries = await gateway.store.ledger.entries({ after: 0, limit: 100_000 });
  return entries.filter((entry) => entry.keyId === keyId).reduce((sum, { cost }) => sum + cost, 0n);
}

Deno.test(`of ${CLIENTS} concurrent requests exactly as many as can be held reach the upstream`, async () => {
  await inFolder(async (folder) => {
    let gate = Promise.withResolvers<void>();
    const says = (requested: UpstreamRequest): ScriptedAnswer => ({
      ...answer("chat")(requested),
      before: gate.promise,
    });
    await using budgeted = startBudgeted({ store: openStore(folder), says });
    const { gateway, upstream } = budgeted;
    for (let round = 1; round <= ROUNDS; round++) {
      gate = Promise.withResolvers();
      const key = await gateway.addKey(worth(20n * COST));
      const requested = Promise.all(Array.from({ length: CLIENTS }, async (_, index) => {
        const protocol = PROTOCOLS[index % PROTOCOLS.length] ?? "chat";
        const response = await gateway.ask(protocol, asking(protocol), { key });
        await response.text();
        return response.status;
      }));
      const refused = await entriesOf(gateway.store.ledger, CLIENTS * (round - 1) + CLIENTS - 20);
      assertEquals(refused.slice(-44).every(({ ending, held }) => ending === "refused" && held === 0n), true);
      assertEquals((await gateway.store.ledger.holds()).map(({ amount }) => amount), Array(20).fill(COST));
      gate.resolve();
      assertEquals((await requested).filter((status) => status === 200).length, 20);
      assertEquals([upstream.requests.length, await costOf(gateway, key.id)], [20 * round, 20n * COST]);
    }
  });
});
