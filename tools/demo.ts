/**
 * A gateway to look at: two fake vendors, a month of traffic, and clients that go on asking. `deno task demo [--port=N]`
 * runs it in a temporary folder until Ctrl-C.
 */
import { parseArgs } from "node:util";
import { parseConfig } from "../lib/config/parse.ts";
import { openStore } from "../lib/store/open.ts";
import { demoConfiguration } from "../tests/demo/configuration.ts";
import { sendBurst, sendOnAndOn } from "../tests/demo/live.ts";
import { type FilledStore, fillStore } from "../tests/demo/store.ts";
import { startVendors, type Vendors } from "../tests/demo/vendors.ts";
import { type Running, start } from "../tests/support/program.ts";
import { seeded } from "../tests/support/random.ts";

/** Port of the gateway, unless `--port` names another. */
const PORT = "8790";

/** A running demo. */
export interface Demo extends AsyncDisposable {
  gateway: Running;
  adminKey: string;
  filled: FilledStore;
}

/**
 * Starts the gateway with its data.
 * @param now end of the month of traffic, Unix time in milliseconds
 */
export async function startDemo({ port, now = Date.now() }: { port: number; now?: number }): Promise<Demo> {
  await using resources = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "sluice-demo-" });
  resources.defer(() => Deno.remove(folder, { recursive: true }));
  const vendors = resources.use(startVendors());
  const secretOf = (name: string) => `demo-${name.toLowerCase()}-${crypto.randomUUID()}`;
  const env = Object.fromEntries(["ADMIN_KEY", "VIEWER_KEY", "UPSTREAM_KEY"].map((name) => [name, secretOf(name)]));
  const filled = await fill(folder, { vendors, env, now });
  const gateway = await start(["serve"], { folder, env, port });
  resources.defer(async () => {
    gateway.kill("SIGTERM");
    await gateway.ended;
  });
  const { ADMIN_KEY: adminKey = "" } = env;
  const random = seeded(1);
  const traffic = { origin: gateway.origin, secrets: filled.secrets, random };
  await sendBurst(40, traffic);
  const end = new AbortController();
  const forgetting = setInterval(() => vendors.forget(), 60_000);
  const sending = sendOnAndOn(traffic, end.signal);
  resources.defer(async () => {
    clearInterval(forgetting);
    end.abort();
    await sending;
  });
  const own = resources.move();
  return { gateway, adminKey, filled, [Symbol.asyncDispose]: () => own.disposeAsync() };
}

/** Writes the configuration and the store into a folder. */
async function fill(
  folder: string,
  { vendors, env, now }: { vendors: Vendors; env: Readonly<Record<string, string>>; now: number },
): Promise<FilledStore> {
  const config = parseConfig(demoConfiguration(vendors.urls), (name) => env[name]);
  const store = await openStore({ kind: "sqlite", path: `${folder}/data/sluice.db` }, { own: true });
  try {
    const filled = await fillStore(store, { config, now });
    const file = JSON.stringify(demoConfiguration(vendors.urls, filled.budgets), null, 2);
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, file);
    return filled;
  } finally {
    await store.close();
  }
}

async function main(): Promise<void> {
  const { values: { port } } = parseArgs({ options: { port: { type: "string", default: PORT } } });
  const interrupted = Promise.withResolvers<void>();
  for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, interrupted.resolve);
  await using demo = await startDemo({ port: Number(port) });
  const { gateway: { origin, ended }, adminKey, filled: { entries } } = demo;
  Deno.stdout.writeSync(
    new TextEncoder().encode(`
A gateway with ${entries.length} requests of a month, and more every second

  Console     ${origin}/admin/console
  Admin key   ${adminKey}

Ctrl-C ends it and removes its data.
`),
  );
  await Promise.race([interrupted.promise, ended]);
}

if (import.meta.main) await main();
