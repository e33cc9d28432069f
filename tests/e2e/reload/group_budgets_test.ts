import { assert, assertEquals } from "@std/assert";
import { startLiveGateway } from "../../../lib/cli/live_gateway.ts";
import { loadConfig } from "../../../lib/config/load.ts";
import { closeGateway } from "../../../lib/gateway.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";

Deno.test("a configuration is activated after its new group budgets were read", async () => {
  let groups = {};
  const load = () =>
    loadConfig({
      flags: { config: "sluice.jsonc" },
      env: () => undefined,
      readTextFile: () => Promise.resolve(JSON.stringify({ groups })),
    });
  const kept = openMemoryStore();
  const arrived = Promise.withResolvers<string | undefined>();
  const gate = Promise.withResolvers<void>();
  const ledger = {
    ...kept.ledger,
    async spending(spenders: Parameters<typeof kept.ledger.spending>[0]) {
      arrived.resolve(spenders[0]?.id);
      await gate.promise;
      return await kept.ledger.spending(spenders);
    },
  };
  const store = { ...kept, ledger };
  const gateway = startLiveGateway({ loaded: await load(), load, store, now: Date.now, log() {} });
  const before = gateway();
  groups = { team: { budget: { usd: "1", period: "month" } } };
  const reloaded = before.reloader.reload("file");
  assertEquals(await arrived.promise, "team");
  assert(gateway() === before);
  gate.resolve();
  assertEquals((await reloaded).outcome, "changed");
  assert(gateway().config.groups.team !== undefined);
  await closeGateway(gateway());
  await kept.close();
});
