/** The whole gateway in this process: its own routes and access table, on a port of its own. */
import { issueKey } from "../lib/access/keys.ts";
import { parseConfig } from "../lib/config/parse.ts";
import { closeGateway, createGateway, type LogEntry } from "../lib/gateway.ts";
import { createApp } from "../lib/http/app.ts";
import type { Json } from "../lib/json.ts";
import { openMemoryStore } from "../lib/store/memory.ts";
import { routes } from "../routes/manifest.ts";

/** States a key can be in. `poor`: its group may call no endpoint. `lost`: its group does not exist. */
export const KEY_STATES = ["good", "poor", "lost", "disabled", "revoked"] as const;

/** A running gateway. */
export interface WholeGateway extends AsyncDisposable {
  origin: string;
  port: number;
  keys: Readonly<Record<typeof KEY_STATES[number], string>>;
  logs: LogEntry[];
}

/** Starts a gateway with this configuration and a key in every state. */
export function startGateway(file: Record<string, Json> = {}): WholeGateway {
  const config = parseConfig({ ...file, groups: { poor: { endpoints: [] } } });
  const store = openMemoryStore();
  const add = (name: string, group = "default") => {
    const { key, record } = issueKey({ name, group, now: 0 });
    void store.keys.add(record);
    return { key, id: record.id };
  };
  const disabled = add("disabled");
  const revoked = add("revoked");
  void store.keys.change(disabled.id, { disabled: true });
  void store.keys.revoke(revoked.id, 1);
  const logs: LogEntry[] = [];
  const gateway = createGateway({ config, store, now: Date.now, log: (entry) => logs.push(entry) });
  const app = createApp({ routes, gateway: () => gateway });
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => app(request));
  return {
    origin: `http://127.0.0.1:${server.addr.port}`,
    port: server.addr.port,
    keys: {
      good: add("good").key,
      poor: add("poor", "poor").key,
      lost: add("lost", "gone").key,
      disabled: disabled.key,
      revoked: revoked.key,
    },
    logs,
    async [Symbol.asyncDispose]() {
      await server.shutdown();
      closeGateway(gateway);
      await store.close();
    },
  };
}
