import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import { auditLedger } from "../../../lib/billing/reports/audit.ts";
import { Secret } from "../../../lib/secret.ts";
import { openPostgresStore } from "../../../lib/store/postgres/store.ts";
import { type Engine, postgresTest, startPostgres } from "../../support/databases.ts";
import { entry, readChain } from "../behaviours_ledger.ts";
import { inFolder } from "../in_folder.ts";
import { until } from "../../support/soon.ts";

/** Cost of the entries by their prices, in 1e-12 USD. */
const COST = 529_500_000n;

/** Ways in which a server fails and recovers. */
const WAYS: Record<
  string,
  { leave(server: Engine): void | Promise<void>; back(server: Engine): void | Promise<void> }
> = {
  "crashes": { leave: (server) => server.stop("crash"), back: (server) => server.start() },
  "is stopped": { leave: (server) => server.stop("orderly"), back: (server) => server.start() },
  "stands still": { leave: (server) => server.signal("SIGSTOP"), back: (server) => server.signal("SIGCONT") },
};

postgresTest(
  "entries under load reach Postgres once each, across outages of the server",
  (t) =>
    inFolder(async (folder) => {
      await using server = await startPostgres();
      let replayed = 0;
      const nodes = await Promise.all(["a", "b"].map((name) =>
        openPostgresStore(new Secret(server.url), {
          serving: {
            keyAgeMs: 60_000,
            leaseMs: 5_000,
            journal: `${folder}/${name}`,
            journalEntries: 100_000,
            log: ({ event, entries }) => replayed += event === "journal_replayed" ? Number(entries) : 0,
          },
        })
      ));
      const acked: string[] = [];
      let longest = 0;
      let running = true;
      const load = nodes.map(async ({ ledger }, node) => {
        for (let count = 0; running; count++) {
          const batch = Array.from({ length: 8 }, (_, index) => entry({ id: `${node}-${count}-${index}`, cost: COST }));
          const begun = performance.now();
          await ledger.append(batch);
          longest = Math.max(longest, performance.now() - begun);
          acked.push(...batch.map(({ id }) => id));
          await new Promise((resolve) => setTimeout(resolve, 2));
        }
      });
      const reaches = () => nodes.map(({ shared }) => shared?.reach());
      for (const [how, { leave, back }] of Object.entries(WAYS)) {
        await t.step(how, async () => {
          const before = acked.length;
          await until("100 more entries", () => acked.length > before + 100);
          await leave(server);
          await until("entries wait", () => reaches().every((reach) => reach?.up === false && reach.waiting > 200));
          await back(server);
          await until("none waits", () => reaches().every((reach) => reach?.up === true && reach.waiting === 0));
        });
      }
      running = false;
      await Promise.all(load);
      const [first] = nodes;
      assert(first !== undefined);
      const found = (await readChain(first.ledger)).map(({ id }) => id);
      assertEquals(new Set(found).size, found.length);
      const kept = new Set(found);
      assertEquals(acked.filter((id) => !kept.has(id)), []);
      assertEquals((await auditLedger(first.ledger)).differences, []);
      // A caller behind the first failing one waits for 2 seconds, and on a busy machine for more; none waits for the
      // whole outage.
      assertLess(longest, 30_000);
      await Promise.all(nodes.map((store) => store.close()));
      // At least so many waited, on both nodes, each time.
      assertGreater(replayed, 6 * 200);
    }),
);
