/** Several gateways, each a process of its own, on one Postgres and one Redis, in front of one upstream. */
import { assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { Secret } from "../../../lib/secret.ts";
import { openStore } from "../../../lib/store/open.ts";
import type { KeptEntry, LedgerStore } from "../../../lib/store/ledger.ts";
import { auditLedger } from "../../../lib/billing/reports/audit.ts";
import { type Place, type Running, start } from "../../support/program.ts";
import { reservePort } from "../../support/ports.ts";
import { type Engine, freshDatabase, startRedis } from "../../support/databases.ts";

/** A gateway of the cluster. */
export interface Node extends Running {
  /** Folder and environment of the node, and its start arguments. */
  readonly place: Place;
}

/** Gateways that share their state. */
export interface Cluster extends AsyncDisposable {
  readonly nodes: Node[];
  readonly postgres: { readonly url: string };
  readonly redis: Engine;
  /** Starts another gateway, or restarts one in the folder of a gateway that has ended. */
  add(folder?: string): Promise<Node>;
  /** Starts a gateway again that has ended: in its folder, on its port, with this configuration. */
  again(node: Node, config: JsonObject): Promise<Node>;
  /** Reads the ledger beside the gateways. */
  withLedger<Result>(read: (ledger: LedgerStore) => Promise<Result>): Promise<Result>;
}

/** Parts of a cluster. */
export interface ClusterParts {
  /** The configuration of every node; an array gives each its own. */
  config: JsonObject | readonly JsonObject[];
  nodes?: number;
  env?: Record<string, string>;
  /** The port of all nodes; absent: each has its own. */
  port?: number;
  /** A server that the test stops; absent: a database of the server that tests share. */
  postgres?: Engine;
}

/** The operator's key of every cluster. */
export const ADMIN_KEY = "admin-key-of-the-cluster";

/** Starts Redis and gateways. At the end it does not wait for processes that are gone. */
export async function startCluster(parts: ClusterParts): Promise<Cluster> {
  const { config, nodes: count = 3, env = {}, port } = parts;
  const open = new AsyncDisposableStack();
  const root = await Deno.makeTempDir();
  open.defer(() => Deno.remove(root, { recursive: true }));
  const postgres = parts.postgres ?? open.use(await freshDatabase());
  const redis = open.use(await startRedis());
  const nodes: Node[] = [];
  const configs = [config].flat();
  open.defer(async () => {
    for (const node of nodes) end(node);
    await Promise.all(nodes.map(({ ended }) => ended));
  });

  async function launch(place: Place, own: JsonObject): Promise<Node> {
    await Deno.mkdir(place.folder, { recursive: true });
    const text = JSON.stringify({ admin: { key: { env: "ADMIN_KEY" } }, ...own });
    await Deno.writeTextFile(`${place.folder}/sluice.jsonc`, text);
    return { ...await start(["serve"], place), place };
  }

  async function add(folder = `${root}/${nodes.length}`): Promise<Node> {
    const place = {
      folder,
      env: { SLUICE_STORE: postgres.url, SLUICE_LIMITS_STORE: redis.url, ADMIN_KEY, ...env },
      port: port ?? open.use(reservePort()).port,
    };
    const node = await launch(place, configs[nodes.length % configs.length] ?? {});
    nodes.push(node);
    return node;
  }

  async function again(node: Node, own: JsonObject): Promise<Node> {
    const started = await launch(node.place, own);
    nodes[nodes.indexOf(node)] = started;
    return started;
  }

  try {
    // One after the other: the first creates the tables, and the first key where there is none.
    for (let number = 0; number < count; number++) await add();
  } catch (error) {
    await open.disposeAsync();
    throw error;
  }
  return {
    nodes,
    postgres,
    redis,
    add,
    again,
    async withLedger(read) {
      const store = await openStore({ kind: "postgres", url: new Secret(postgres.url) });
      try {
        return await read(store.ledger);
      } finally {
        await store.close();
      }
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

/** Ends a gateway at once, if it still runs. */
export function end(node: Running): void {
  try {
    node.kill("SIGKILL");
  } catch {
    // It has ended.
  }
}

/** All entries, in their order. */
export async function readEntries(ledger: LedgerStore): Promise<KeptEntry[]> {
  const entries: KeptEntry[] = [];
  for (;;) {
    const page = await ledger.entries({ after: entries.at(-1)?.seq ?? 0, limit: 1000 });
    if (page.length === 0) return entries;
    entries.push(...page);
  }
}

/** Asserts that the books fit. */
export async function assertSound(cluster: Cluster): Promise<void> {
  await cluster.withLedger(async (ledger) => {
    const { ok, differences } = await auditLedger(ledger);
    assertEquals([ok, differences], [true, []]);
  });
}

/** One value of a gateway's metrics; 0 if absent. */
export async function metric(node: Running, name: string): Promise<number> {
  const response = await fetch(`${node.origin}/metrics`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } });
  const text = await response.text();
  const line = text.split("\n").find((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
  return Number(line?.split(" ").at(-1) ?? 0);
}
