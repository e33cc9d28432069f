/** A gateway in this process with a reloadable configuration, and clients that keep sending requests. */
import { issueKey } from "../../../lib/access/keys.ts";
import { startLiveGateway } from "../../../lib/cli/live_gateway.ts";
import { loadConfig } from "../../../lib/config/load.ts";
import { closeGateway, type Gateway } from "../../../lib/gateway.ts";
import type { LogEntry } from "../../../lib/log_events.ts";
import { createApp } from "../../../lib/server/app.ts";
import type { Json, JsonObject } from "../../../lib/json/mod.ts";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { routes } from "../../../routes/manifest.ts";
import { addressed } from "../../support/gateway.ts";

/** A gateway whose configuration file is set by the test. */
export interface ReloadWorld extends AsyncDisposable {
  origin: string;
  gateway: () => Gateway;
  logs: LogEntry[];
  env: Map<string, string>;
  /** Puts this in the file. */
  write(text: string): void;
  /** Sends a request as a client. */
  ask(body: JsonObject, protocol?: Protocol): Promise<Response>;
}

/** Starts one with this file. */
export async function startReloadable(file: Json, secrets: Record<string, string> = {}): Promise<ReloadWorld> {
  let text = JSON.stringify(file);
  const env = new Map(Object.entries(secrets));
  const load = () =>
    loadConfig({
      flags: { config: "sluice.jsonc" },
      env: (name) => env.get(name),
      readTextFile: () => Promise.resolve(text),
    });
  const logs: LogEntry[] = [];
  const store = openMemoryStore();
  const { key, record } = issueKey({ name: "client", group: "default", now: 0 });
  await store.keys.add(record);
  const gateway = startLiveGateway({
    loaded: await load(),
    load,
    store,
    now: Date.now,
    log: (entry) => logs.push(entry),
  });
  const app = createApp({ routes, surface: "both", gateway });
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request, info) => app(request, info));
  const origin = `http://127.0.0.1:${server.addr.port}`;
  return {
    origin,
    gateway,
    logs,
    env,
    write: (other) => void (text = other),
    ask(body, protocol = "chat") {
      const { path, body: text } = addressed(protocol, body);
      const headers = { authorization: `Bearer ${key}`, "anthropic-version": "2023-06-01" };
      return fetch(origin + path, { method: "POST", headers, body: text });
    },
    async [Symbol.asyncDispose]() {
      await server.shutdown();
      await closeGateway(gateway());
      await store.close();
    },
  };
}
