/** A whole gateway in front of upstreams that play by a script, over real sockets. */
import { issueKey } from "../../lib/access/keys.ts";
import type { KeyRules } from "../../lib/config.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { closeGateway, createGateway, type Gateway, type LogEntry } from "../../lib/gateway.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import type { Limiter } from "../../lib/limits/limiter.ts";
import type { Drain } from "../../lib/server/drain.ts";
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import type { Store } from "../../lib/store/store.ts";
import { routes } from "../../routes/manifest.ts";
import { createDescribedApp } from "./described_answers.ts";
import { forgivingHealth } from "./forgiving.ts";

/** The key that every upstream of these tests wants: it must never be seen by a client. */
export const UPSTREAM_KEY = "upstream-key-0123456789";

/** A running gateway. */
export interface TestGateway extends AsyncDisposable {
  /** Such as `http://127.0.0.1:40123`. */
  url: string;
  port: number;
  logs: LogEntry[];
  /** The lines of requests that are over. */
  requestLines: LogEntry[];
  gateway: Gateway;
  store: Store;
  /** The key that is used where a request names no other. */
  key: TestKey;
  /** Issues one more key. */
  addKey(wanted?: { group?: string; rules?: KeyRules }): Promise<TestKey>;
  /** Sends a request in a protocol, with its path and its credential. */
  ask(protocol: Protocol, body: string | JsonObject, more?: AskOptions): Promise<Response>;
  /** A request's head and body as bytes, for clients that are not polite. */
  raw(protocol: Protocol, body: string | JsonObject): string;
}

/** A client's key. */
export interface TestKey {
  id: string;
  key: string;
}

/** What a gateway is started with, beside its configuration. */
export interface GatewayOptions {
  /** Absent: one in memory. */
  store?: Store;
  /** Unix time in milliseconds; absent: always 0. */
  now?: () => number;
  /** Milliseconds that only grow; absent: those of the process. */
  monotonic?: () => number;
  /** True: targets that fail are taken out. */
  breakers?: boolean;
  /** Absent: one in memory. */
  limiter?: Limiter;
  /** Absent: `UPSTREAM_KEY`. */
  upstreamKey?: string;
  /** False: its upstreams answer what no protocol has, and the gateway relays it. */
  described?: boolean;
  /** Absent: it never shuts down. */
  drain?: Drain;
  /** Told of each request before the gateway gets it. */
  arriving?: (request: Request) => void;
}

/** What may accompany a request. */
export interface AskOptions {
  /** Absent: the gateway's first one. */
  key?: TestKey;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Path of each protocol. */
export const PATHS: Readonly<Record<Protocol, string>> = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/anthropic/v1/messages",
};

/** A row of the catalog that can do everything. */
export function model(id: string, targets: JsonObject[], more: JsonObject = {}): JsonObject {
  return {
    id,
    created: 1,
    context_length: 1_000_000,
    architecture: { input_modalities: ["text", "image", "file"] },
    pricing: { prompt: "0", completion: "0" },
    supported_parameters: [
      "temperature",
      "top_p",
      "top_k",
      "max_tokens",
      "stop",
      "seed",
      "tools",
      "tool_choice",
      "response_format",
      "structured_outputs",
      "reasoning",
    ],
    reasoning: { modes: ["manual", "adaptive"], efforts: ["low", "medium", "high"] },
    targets,
    ...more,
  };
}

/** An upstream of a vendor at an address. */
export function upstream(vendor: string, url: string, more: JsonObject = {}): JsonObject {
  const path = vendor === "anthropic" ? "" : "/v1";
  return { vendor, base_url: url + path, api_key: { env: "UPSTREAM_KEY" }, ...more };
}

/** One model, `acme/one`, with the vendor that is native to a protocol behind it. */
export function oneModel(protocol: Protocol | "gemini", url: string, more: JsonObject = {}): JsonObject {
  const vendor = { chat: "openai", responses: "openai", messages: "anthropic", gemini: "gemini" }[protocol];
  return {
    upstreams: { one: upstream(vendor, url, more) },
    models: [model("acme/one", [{ upstream: "one", model: "real-one", protocol }])],
  };
}

/** Starts a gateway in this process. */
export function startGateway(
  file: JsonObject,
  {
    store = openMemoryStore(),
    now = () => 0,
    monotonic,
    breakers = false,
    limiter,
    upstreamKey = UPSTREAM_KEY,
    described = true,
    drain,
    arriving,
  }: GatewayOptions = {},
): TestGateway {
  const config = parseConfig(file, (name) => name === "UPSTREAM_KEY" ? upstreamKey : undefined);
  const { key, record } = issueKey({ name: "test", group: "default", now: 0 });
  void store.keys.add(record);
  const own = { id: record.id, key };
  let keys = 0;
  const logs: LogEntry[] = [];
  const requestLines: LogEntry[] = [];
  const log = (entry: LogEntry) => void (entry.event === "request" ? requestLines : logs).push(entry);
  const gateway = createGateway({
    config,
    store,
    now,
    random: () => 0,
    log,
    ...(monotonic !== undefined && { monotonic }),
    ...(limiter !== undefined && { limiter }),
    ...(!breakers && { health: forgivingHealth() }),
  });
  const { app, assertDescribed } = createDescribedApp({
    routes,
    gateway: () => gateway,
    ...(drain !== undefined && { drain }),
  });
  const stop = new AbortController();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {}, signal: stop.signal }, (request, info) => {
    arriving?.(request);
    return app(request, info);
  });
  const url = `http://127.0.0.1:${server.addr.port}`;

  function headers(protocol: Protocol, { key }: TestKey = own): Record<string, string> {
    return {
      "content-type": "application/json",
      ...(protocol === "messages"
        ? { "x-api-key": key, "anthropic-version": "2023-06-01" }
        : { authorization: `Bearer ${key}` }),
    };
  }

  return {
    url,
    port: server.addr.port,
    logs,
    requestLines,
    gateway,
    store,
    key: own,
    async addKey({ group = "default", rules = {} } = {}) {
      const { key, record } = issueKey({ name: `more-${++keys}`, group, rules, now: 0 });
      await store.keys.add(record);
      return { id: record.id, key };
    },
    ask: (protocol, body, more = {}) =>
      fetch(url + PATHS[protocol], {
        method: "POST",
        headers: { ...headers(protocol, more.key), ...more.headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
        ...(more.signal !== undefined && { signal: more.signal }),
      }),
    raw(protocol, body) {
      const text = typeof body === "string" ? body : JSON.stringify(body);
      const lines = Object.entries(headers(protocol)).map(([name, value]) => `${name}: ${value}\r\n`).join("");
      const length = new TextEncoder().encode(text).length;
      return `POST ${PATHS[protocol]} HTTP/1.1\r\nhost: localhost\r\n${lines}content-length: ${length}\r\n\r\n${text}`;
    },
    async [Symbol.asyncDispose]() {
      await closeGateway(gateway);
      // Not `shutdown()`: a test that failed has left its streams open.
      stop.abort();
      await server.finished;
      await store.close();
      if (described) assertDescribed();
    },
  };
}
