/** The whole gateway in this process: its own routes and access table, on a port of its own. */
import { issueKey } from "../../lib/access/keys.ts";
import type { KeyRules } from "../../lib/config.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { closeGateway, createGateway, type Gateway, type GatewayParts, type LogEntry } from "../../lib/gateway.ts";
import { listenersOf } from "../../lib/server/surface.ts";
import type { Json } from "../../lib/json/mod.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import type { Store } from "../../lib/store/store.ts";
import { routes } from "../../routes/manifest.ts";
import { createDescribedApp } from "./described_answers.ts";

/**
 * States a key can be in. `poor`: its group may call no endpoint. `narrowed`: it may not itself. `speechless`: its group
 * may speak no protocol. `lost`: its group does not exist. `elsewhere`: it is for other addresses.
 */
export const KEY_STATES = [
  ...["good", "poor", "narrowed", "speechless", "lost", "disabled", "revoked", "expired", "elsewhere"] as const,
];

/** The admin key of every gateway here, by the name of its variable: `ADMIN_KEY`. */
export const ADMIN_KEY = "admin-key-of-the-tests";

/** A running gateway. */
export interface WholeGateway extends AsyncDisposable {
  origin: string;
  port: number;
  /** Where the admin side is, if the configuration has one: the same origin, or one of its own. */
  adminOrigin: string;
  keys: Readonly<Record<typeof KEY_STATES[number], string>>;
  logs: LogEntry[];
  /** The lines of requests that are over. */
  requestLines: LogEntry[];
  gateway: Gateway;
  store: Store;
}

/** Starts a gateway with this configuration and a key in every state. */
export function startGateway(
  file: Record<string, Json> = {},
  { adminKey = ADMIN_KEY, store = openMemoryStore(), ...more }:
    & { adminKey?: string; store?: Store }
    & Pick<GatewayParts, "health" | "reloader"> = {},
): WholeGateway {
  const config = parseConfig(
    { ...file, groups: { poor: { endpoints: [] }, speechless: { protocols: [] } } },
    (name) => name === "ADMIN_KEY" ? adminKey : undefined,
  );
  const add = (name: string, group = "default", more: { rules?: KeyRules; expiresAt?: number } = {}) => {
    const { key, record } = issueKey({ name, group, now: 0, ...more });
    void store.keys.add(record);
    return { key, id: record.id };
  };
  const disabled = add("disabled");
  const revoked = add("revoked");
  void store.keys.change(disabled.id, { disabled: true });
  void store.keys.revoke(revoked.id, 1);
  const logs: LogEntry[] = [];
  const requestLines: LogEntry[] = [];
  const gateway = createGateway({
    config,
    store,
    now: Date.now,
    log: (entry) => (entry.event === "request" ? requestLines : logs).push(entry),
    ...more,
  });
  const apps = listenersOf(config).map(({ surface }) =>
    createDescribedApp({ routes, surface, gateway: () => gateway })
  );
  const [server, ...others] = apps.map(({ app }) => {
    return Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request, info) => app(request, info));
  });
  if (server === undefined) throw new RangeError("The gateway listens nowhere");
  const [adminServer = server] = others;
  return {
    origin: `http://127.0.0.1:${server.addr.port}`,
    port: server.addr.port,
    adminOrigin: `http://127.0.0.1:${adminServer.addr.port}`,
    keys: {
      good: add("good").key,
      poor: add("poor", "poor").key,
      lost: add("lost", "gone").key,
      disabled: disabled.key,
      revoked: revoked.key,
      narrowed: add("narrowed", "default", { rules: { endpoints: [] } }).key,
      speechless: add("speechless", "speechless").key,
      expired: add("expired", "default", { expiresAt: 1 }).key,
      elsewhere: add("elsewhere", "default", { rules: { ips: ["192.0.2.1"] } }).key,
    },
    logs,
    requestLines,
    gateway,
    store,
    async [Symbol.asyncDispose]() {
      await Promise.all([server, ...others].map((server) => server.shutdown()));
      await closeGateway(gateway);
      await store.close();
      for (const { assertDescribed } of apps) assertDescribed();
    },
  };
}
