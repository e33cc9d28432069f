/** A whole gateway in front of upstreams that play by a script, over real sockets. */
import type { LogEntry } from "../../lib/log_events.ts";
import { issueKey } from "../../lib/access/keys.ts";
import type { KeyRules } from "../../lib/config.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { closeGateway, createGateway, type Gateway, type GatewayParts } from "../../lib/gateway.ts";
import type { ImageUpstream } from "../../lib/images/types.ts";
import { isObject, type JsonObject } from "../../lib/json/mod.ts";
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import { describeCause } from "../../lib/causes.ts";
import type { Drain } from "../../lib/server/drain.ts";
import { listenersOf } from "../../lib/server/surface.ts";
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
  /** Address of the admin side, if the configuration has one: the same, or one of its own. */
  adminUrl: string;
  logs: LogEntry[];
  /** The lines of requests that are over. */
  requestLines: LogEntry[];
  gateway: Gateway;
  store: Store;
  /** The default key of requests. */
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

/** Parts of a gateway that a test can replace; absent: a store in memory, a clock that shows 0, and no chance. */
type ReplacedParts = Partial<Omit<GatewayParts, "config" | "log">>;

/** Options of a gateway besides its configuration. */
export interface GatewayOptions extends ReplacedParts {
  /** True: targets that fail become unavailable. */
  breakers?: boolean;
  /** Value of the variable `UPSTREAM_KEY`; absent: the one above. */
  upstreamKey?: string;
  /** Name of its first key; absent: `test`. */
  keyName?: string;
  /** Value of the variable `ADMIN_KEY`. */
  adminKey?: string;
  /** Value of the variable `VIEWER_KEY`. */
  viewerKey?: string;
  /** Image upstreams in place of those of the configuration, by name. */
  painters?: Readonly<Record<string, ImageUpstream>>;
  /** False: its upstreams send answers outside their protocol, and the gateway relays them. */
  described?: boolean;
  /** Absent: it never shuts down. */
  drain?: Drain;
  /** Called with each request before the gateway gets it. */
  arriving?: (request: Request) => void;
}

/** Options of a request. */
export interface AskOptions {
  /** Absent: the gateway's first one. */
  key?: TestKey;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Path of each protocol; Gemini's depends on the body. */
export const PATHS: Readonly<Record<Exclude<Protocol, "gemini">, string>> = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/anthropic/v1/messages",
};

/** Path and body of a request. Gemini's path has the members `model` and `stream` of the given body. */
export function addressed(protocol: Protocol, body: string | JsonObject): { path: string; body: string } {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  if (protocol !== "gemini") return { path: PATHS[protocol], body: text };
  const { model, stream, ...others } = typeof body === "string" ? JSON.parse(body) : body;
  const method = stream === true ? "streamGenerateContent?alt=sse" : "generateContent";
  return { path: `/v1beta/models/${model}:${method}`, body: JSON.stringify(others) };
}

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

/** An upstream of a vendor at an address. Its connections have a minute, unless `more.timeouts` says otherwise. */
export function upstream(vendor: string, url: string, { timeouts, ...more }: JsonObject = {}): JsonObject {
  const path = vendor === "anthropic" ? "" : "/v1";
  return {
    vendor,
    base_url: url + path,
    api_key: { env: "UPSTREAM_KEY" },
    timeouts: { connect_ms: 60_000, ...(isObject(timeouts) && timeouts) },
    ...more,
  };
}

/** The vendor that is native to a protocol. */
export const VENDORS: Readonly<Record<Protocol, string>> = {
  chat: "openai",
  responses: "openai",
  messages: "anthropic",
  gemini: "gemini",
};

/** One model, `acme/one`, with the vendor that is native to a protocol behind it. */
export function oneModel(protocol: Protocol, url: string, more: JsonObject = {}): JsonObject {
  return {
    upstreams: { one: upstream(VENDORS[protocol], url, more) },
    models: [model("acme/one", [{ upstream: "one", model: "real-one", protocol }])],
  };
}

/** Starts a gateway in this process. */
export function startGateway(
  file: JsonObject,
  {
    store = openMemoryStore(),
    breakers = false,
    upstreamKey = UPSTREAM_KEY,
    keyName = "test",
    adminKey,
    viewerKey,
    painters = {},
    described = true,
    drain,
    arriving,
    ...parts
  }: GatewayOptions = {},
): TestGateway {
  const env: Record<string, string | undefined> = {
    UPSTREAM_KEY: upstreamKey,
    ADMIN_KEY: adminKey,
    VIEWER_KEY: viewerKey,
  };
  const config = parseConfig(file, (name) => env[name]);
  const { key, record } = issueKey({ name: keyName, group: "default", now: 0 });
  void store.keys.add(record);
  const own = { id: record.id, key };
  let keys = 0;
  const logs: LogEntry[] = [];
  const requestLines: LogEntry[] = [];
  const log = (entry: LogEntry) => void (entry.event === "request" ? requestLines : logs).push(entry);
  const built = createGateway({
    config,
    store,
    now: () => 0,
    random: () => 0,
    log,
    ...(!breakers && { health: forgivingHealth() }),
    ...parts,
  });
  const imageUpstreams = new Map([...built.imageUpstreams, ...Object.entries(painters)]);
  const gateway: Gateway = { ...built, imageUpstreams };
  const apps = listenersOf(config, built).map(({ surface }) =>
    createDescribedApp({ routes, surface, gateway: () => gateway, ...(drain !== undefined && { drain }) })
  );
  const onError = (error: unknown) => {
    log({ level: "error", event: "response_failed", ...describeCause(error) });
    return new Response(null, { status: 500 });
  };
  const stop = new AbortController();
  const servers = apps.map(({ app }) =>
    Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {}, onError, signal: stop.signal }, (request, info) => {
      arriving?.(request);
      return app(request, info);
    })
  );
  const [url = "", adminUrl = url] = servers.map(({ addr }) => `http://127.0.0.1:${addr.port}`);

  function headers(protocol: Protocol, { key }: TestKey = own): Record<string, string> {
    return {
      "content-type": "application/json",
      ...(protocol === "messages"
        ? { "x-api-key": key, "anthropic-version": "2023-06-01" }
        : protocol === "gemini"
        ? { "x-goog-api-key": key }
        : { authorization: `Bearer ${key}` }),
    };
  }

  return {
    url,
    port: Number(new URL(url).port),
    adminUrl,
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
    ask(protocol, body, more = {}) {
      const request = addressed(protocol, body);
      return fetch(url + request.path, {
        method: "POST",
        headers: { ...headers(protocol, more.key), ...more.headers },
        body: request.body,
        ...(more.signal !== undefined && { signal: more.signal }),
      });
    },
    raw(protocol, body) {
      const { path, body: text } = addressed(protocol, body);
      const lines = Object.entries(headers(protocol)).map(([name, value]) => `${name}: ${value}\r\n`).join("");
      const length = new TextEncoder().encode(text).length;
      return `POST ${path} HTTP/1.1\r\nhost: localhost\r\n${lines}content-length: ${length}\r\n\r\n${text}`;
    },
    async [Symbol.asyncDispose]() {
      await closeGateway(built);
      // Not `shutdown()`: a failed test has left its streams open.
      stop.abort();
      await Promise.all(servers.map(({ finished }) => finished));
      await store.close();
      if (described) { for (const { assertDescribed } of apps) assertDescribed(); }
    },
  };
}
