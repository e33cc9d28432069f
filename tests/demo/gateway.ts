/** The demo as a gateway in this process, for tests. */
import { parseConfig } from "../../lib/config/parse.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ADMIN_KEY, VIEWER_KEY } from "../support/keyed_gateway.ts";
import { demoConfiguration } from "./configuration.ts";
import { type FilledStore, fillStore } from "./store.ts";
import { startVendors } from "./vendors.ts";

/** A gateway with the month of the demo. */
export interface DemoGateway extends TestGateway {
  filled: FilledStore;
}

/** Starts the gateway and its vendors, with a quarter of the month's requests. */
export async function startDemoGateway(): Promise<DemoGateway> {
  const vendors = startVendors({ pauseMs: 0 });
  const store = openMemoryStore();
  const config = parseConfig(demoConfiguration(vendors.urls), (name) => `secret-of-the-demo-${name}`);
  const filled = await fillStore(store, { config, now: Date.now(), volume: 0.25 });
  const gateway = startGateway(demoConfiguration(vendors.urls, filled.budgets), {
    store,
    adminKey: ADMIN_KEY,
    viewerKey: VIEWER_KEY,
    now: Date.now,
    random: Math.random,
    breakers: true,
  });
  return {
    ...gateway,
    filled,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await vendors[Symbol.asyncDispose]();
    },
  };
}
