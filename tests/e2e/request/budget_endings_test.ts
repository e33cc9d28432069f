import { assert, assertEquals } from "@std/assert";
import { openSqliteStore } from "../../../lib/store/sqlite/store.ts";
import type { Store } from "../../../lib/store/store.ts";
import type { TestGateway } from "../../support/gateway.ts";
import { limitedTo, PROTOCOLS } from "../../upstream/replies.ts";
import { inFolder } from "../../store/in_folder.ts";
import { rounds } from "../../support/skip.ts";
import { answer, asking, COST, leftOf, startBudgeted, worth } from "./budgeted.ts";
import { frames } from "../../upstream/frames.ts";
import type { ScriptedAnswer, UpstreamRequest } from "../../upstream/mod.ts";
import { entriesOf } from "./world.ts";

/** Concurrent clients, and what their budget pays for. */
const CLIENTS = 64;
const PAID = 100;
const BUDGET = BigInt(PAID) * COST;
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

Deno.test(`requests that end in every way never exceed a budget, and leave its rest to others`, async () => {
  await inFolder(async (folder) => {
    await using budgeted = startBudgeted({ store: openStore(folder), says: mixed() });
    const { gateway } = budgeted;
    for (let round = 1; round <= ROUNDS; round++) {
      const key = await gateway.addKey(worth(BUDGET));
      const left = () => leftOf(gateway, { id: key.id, budget: BUDGET });
      await Promise.all(Array.from({ length: CLIENTS }, async (_, client) => {
        const protocol = PROTOCOLS[client % PROTOCOLS.length] ?? "chat";
        for (let times = 0; times < 4; times++) {
          const leave = new AbortController();
          // Most of the hold is released: the answer is shorter.
          const body = asking(protocol, { ...limitedTo(protocol, 40), stream: true });
          const response = await gateway.ask(protocol, body, { key, signal: leave.signal });
          if (client % 8 === 7) {
            await response.body?.getReader().read();
            leave.abort();
          } else await response.text();
          assert(await left() >= 0n);
        }
      }));
      const cost = await costOf(gateway, key.id);
      assert(cost > 0n && cost < BUDGET, `${cost}`);
      assertEquals([await gateway.store.ledger.holds(), await left()], [[], BUDGET - cost]);
    }
  });
});

/** All kinds of answers, in turn. */
function mixed(): (request: UpstreamRequest) => ScriptedAnswer {
  let count = 0;
  const { opening, pieces, ending } = frames("chat", ["Hello ", "there"], "reported");
  const ways: ScriptedAnswer[] = [
    { steps: [...opening, ...pieces, ...ending] },
    { status: 500, steps: ["{}"] },
    { steps: [...opening, ...pieces, ...ending] },
    { steps: [...opening, ...pieces] },
    { steps: [...opening, ...pieces, ...ending] },
    { steps: opening },
    { steps: [...opening, ...pieces, ...ending] },
  ];
  return () => ways[count++ % ways.length] ?? { steps: [] };
}
