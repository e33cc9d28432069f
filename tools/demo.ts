/**
 * Runs a demonstration gateway with two fake vendors, a month of recorded traffic, and clients that keep sending
 * requests. `deno task demo [--port=N]` runs it in a temporary folder until Ctrl-C. For tests, `--json` prints
 * addresses and keys as a line of JSON, and `--still` stops the clients after their first requests.
 */
import { parseArgs } from "node:util";
import { parseConfig } from "../lib/config/parse.ts";
import { openStore } from "../lib/store/open.ts";
import { demoConfiguration } from "../tests/demo/configuration.ts";
import { type LiveTraffic, sendBurst, sendOnAndOn } from "../tests/demo/live.ts";
import { type FilledStore, fillStore } from "../tests/demo/store.ts";
import { startVendors, type Vendors } from "../tests/demo/vendors.ts";
import { run, type Running, start } from "../tests/support/program.ts";
import { seeded } from "../tests/support/random.ts";

/** Port of the gateway without `--port`. */
const DEFAULT_PORT = "8790";

/** A running demo. */
export interface Demo extends AsyncDisposable {
  gateway: Running;
  /** Folder of its configuration and its store. */
  folder: string;
  adminKey: string;
  viewerKey: string;
  /** Address that signs in to the console, once and within ten minutes. */
  signInLink: string;
  /** The recorded traffic, and the secrets of the client keys. */
  filled: FilledStore;
}

/** Starts the gateway with its data. @param isStill whether clients stop after their first requests */
async function startDemo({ port, isStill }: { port: number; isStill: boolean }): Promise<Demo> {
  await using resources = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "sluice-demo-" });
  resources.defer(() => Deno.remove(folder, { recursive: true }));
  const vendors = resources.use(startVendors());
  const secretOf = (name: string) => `demo-${name.toLowerCase()}-${crypto.randomUUID()}`;
  const env = Object.fromEntries(["ADMIN_KEY", "VIEWER_KEY", "UPSTREAM_KEY"].map((name) => [name, secretOf(name)]));
  const filled = await fill(folder, { vendors, env, now: Date.now() });
  const gateway = await start(["serve"], { folder, env, port });
  resources.defer(async () => {
    gateway.kill("SIGTERM");
    await gateway.ended;
  });
  const { ADMIN_KEY: adminKey = "", VIEWER_KEY: viewerKey = "" } = env;
  const random = seeded(1);
  const traffic = { origin: gateway.origin, secrets: filled.secrets, random };
  await sendBurst(40, traffic);
  if (!isStill) resources.use(keepSending(traffic, vendors));
  const { out } = await run(["console", "--port", new URL(gateway.origin).port], { folder, env });
  const ownResources = resources.move();
  return {
    gateway,
    folder,
    adminKey,
    viewerKey,
    signInLink: out.trim(),
    filled,
    [Symbol.asyncDispose]: () => ownResources.disposeAsync(),
  };
}

/** Lets clients send requests until the result is disposed of. */
function keepSending(traffic: LiveTraffic, vendors: Vendors): AsyncDisposable {
  const end = new AbortController();
  const forgetTimer = setInterval(() => vendors.forget(), 60_000);
  const sending = sendOnAndOn(traffic, end.signal);
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(forgetTimer);
      end.abort();
      await sending;
    },
  };
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
  const { values: { port, still, json } } = parseArgs({
    options: {
      port: { type: "string", default: DEFAULT_PORT },
      still: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    },
  });
  const interrupted = Promise.withResolvers<void>();
  for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, interrupted.resolve);
  await using demo = await startDemo({ port: Number(port), isStill: still });
  const { gateway: { origin, ended }, folder, filled: { secrets, entries }, adminKey, viewerKey, signInLink } = demo;
  const text = json
    ? `${JSON.stringify({ origin, folder, adminKey, viewerKey, signInLink, secrets: Object.fromEntries(secrets) })}\n`
    : `
A gateway with ${entries.length} requests of a month${still ? "" : ", and more every second"}

  Sign in     ${signInLink}
              once, within ten minutes; later with the admin key
  Console     ${origin}/admin/console
  Admin key   ${adminKey}

Ctrl-C ends it and removes its data.
`;
  Deno.stdout.writeSync(new TextEncoder().encode(text));
  await Promise.race([interrupted.promise, ended]);
}

if (import.meta.main) await main();
