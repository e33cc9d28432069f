/** The configuration: one schema, strict objects, secrets only by the name of an environment variable. */
import { z } from "zod";
import type { Endpoint } from "./access/access_table.ts";
import { limitsSchema, modelSchema } from "./catalog/model.ts";
import { ALERT_TYPES } from "./alerts/event.ts";
import { extraNameSchema } from "./catalog/price_schema.ts";
import { timeoutsSchema } from "./catalog/timeouts.ts";
import { isNetwork } from "./access/networks.ts";
import {
  LIMITS_STORE_FORMS,
  LIMITS_STORE_PATTERN,
  type LimitsAddress,
  STORE_FORMS,
  STORE_PATTERN,
  type StoreAddress,
} from "./config/address.ts";
import type { Secret } from "./secret.ts";
import { forwardedHeaderSchema } from "./config/forwarded_header.ts";
import { type VendorName, VENDORS } from "./upstreams/vendors.ts";

/** The endpoints a group can be given. */
export const ENDPOINTS = [
  "models",
  "chat",
  "responses",
  "messages",
  "images",
  "embeddings",
  "rerank",
  "openapi",
  "usage",
] as const satisfies readonly Endpoint[];

/** Spans of time a budget is for. Those of the calendar begin at midnight UTC. */
const PERIODS = ["day", "week", "month", "total"] as const;

/** Names of groups, keys and upstreams. */
export const nameSchema = z.string().max(64).regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, {
  error: "Expected a name of letters, digits and . _ - that starts with a letter or digit",
});

/** A secret, by the name of the environment variable that holds it. */
export const secretSchema = z.strictObject({
  env: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: "Expected the name of an environment variable" })
    .describe("Name of the environment variable that holds the secret"),
});

/** The one upstream vendor that needs no network. */
const embeddedUpstreamSchema = z.strictObject({
  vendor: z.literal("embedded").describe("The models inside the gateway: no key, no network"),
});

const VENDOR_NAMES = Object.keys(VENDORS) as [VendorName, ...VendorName[]];

/** An upstream that is reached over the network. */
const httpUpstreamSchema = z.strictObject({
  vendor: z.enum(VENDOR_NAMES).describe("The vendor of the host; openai-compatible for any other"),
  base_url: z.string().regex(/^https?:\/\/[A-Za-z0-9.\-[\]:]+(\/[A-Za-z0-9._~\-/]*)?$/, {
    error: 'Expected an address such as "https://api.example.com/v1": no query, no user',
    abort: true,
  }).refine(URL.canParse, { error: "Expected an address: this one has no host, or an invalid port" }).optional()
    .describe("Address that the protocol's paths are appended to; absent: the vendor's own"),
  api_key: secretSchema.optional().describe("The upstream's key; vLLM, Ollama and compatible hosts may have none"),
  protocols: z.array(z.enum(["chat", "responses", "messages", "gemini"])).min(1).optional()
    .describe("Protocols it speaks, the preferred one first; absent: the vendor's usual ones"),
  transport: z.enum(["auto", "http1", "fetch"]).default("auto")
    .describe("Transport of requests: the gateway's own HTTP/1.1, the runtime's fetch, or whichever fits"),
  timeouts: timeoutsSchema.prefault({}).describe("How long its answers may take"),
  forward_headers: z.array(forwardedHeaderSchema).min(1).max(32).optional()
    .describe("Headers of its answers that clients get, by names in lower case or beginnings with *; absent: none"),
});

/** An upstream, by its vendor. */
export const upstreamSchema = z.discriminatedUnion("vendor", [embeddedUpstreamSchema, httpUpstreamSchema]);

/** An address to listen on. */
export const listenSchema = z.strictObject({
  hostname: z.string().min(1).default("127.0.0.1").describe("Address to listen on; 0.0.0.0 is every interface"),
  port: z.number().int().min(0).max(65_535).default(8790).describe("Port to listen on; 0 takes a free one"),
});

/** The address that clients connect to. */
const clientListenSchema = listenSchema.extend({
  reuse_port: z.boolean().default(false)
    .describe("Whether several processes of this machine listen on this port (Linux only), for more cores than one"),
});

/** A model id in which `*` matches any text. */
const modelGlobSchema = z.string().max(256).regex(/^[A-Za-z0-9._:@+/*-]+$/, {
  error: 'Expected a model id in which * stands for any text, such as "acme/*"',
});

/** An endpoint by its name, or `*` for all. */
const endpointSchema = z.enum([...ENDPOINTS, "*"]);

/** Addresses of clients, such as `10.0.0.0/8` or `2001:db8::1`. */
const networkSchema = z.string().refine(isNetwork, {
  error: 'Expected an IP address or a network, such as "10.0.0.0/8" or "2001:db8::1"',
});

/** An amount of money that may be spent in each period. */
const budgetSchema = z.strictObject({
  usd: z.string().regex(/^\d{1,6}(\.\d{1,12})?$/, {
    error: 'Expected USD as a decimal string with at most 12 decimals, such as "50"',
  }).describe("Amount in USD, as a decimal string"),
  period: z.enum(PERIODS).default("month")
    .describe("day, week (from Monday) or month, by UTC; total never resets"),
});

/** Rules of one key that narrow those of its group; absent members do not narrow anything. */
export const keyRulesSchema = z.strictObject({
  models: z.array(modelGlobSchema).optional().describe("Only these of the group's models; * stands for any text"),
  endpoints: z.array(endpointSchema).optional().describe("Only these of the group's endpoints"),
  ips: z.array(networkSchema).optional().describe("Only clients at these of the group's addresses"),
  limits: limitsSchema.optional().describe("The key's own limits, in place of the group's `key_limits`"),
  budget: budgetSchema.optional().describe("The key's own budget, in place of the group's `key_budget`"),
});

/** Permissions, prices, limits and budgets of the keys of a group. */
export const groupSchema = z.strictObject({
  models: z.array(modelGlobSchema).default(["*"])
    .describe("Ids of the models its keys may use; * stands for any text"),
  endpoints: z.array(endpointSchema).default(["*"]).describe("Endpoints its keys may call; * is all"),
  protocols: z.array(z.enum(["chat", "responses", "messages", "*"])).default(["*"])
    .describe("Text protocols its keys may speak; * is all"),
  ips: z.array(networkSchema).optional().describe("Only clients at these addresses; absent: all"),
  price_factor: z.string().regex(/^\d{1,3}(\.\d{1,6})?$/, {
    error: 'Expected a factor as a decimal string with at most 6 decimals, such as "1.25"',
  }).default("1").describe("Its keys pay the catalog's prices times this"),
  hosted_tools: z.array(extraNameSchema).optional()
    .describe("Hosted tools of vendors that its keys may use, such as web_search; absent: none"),
  service_tiers: z.array(extraNameSchema).optional()
    .describe("Service tiers with a price of their own that its keys may ask for, such as priority; absent: none"),
  remote_mcp: z.boolean().optional().describe("Whether its keys may name remote MCP servers for the vendor to call"),
  vendor_state: z.boolean().optional()
    .describe("Whether its keys may refer to files, stores and containers in the operator's vendor account"),
  limits: limitsSchema.optional().describe("Limits of all its keys together"),
  budget: budgetSchema.optional().describe("Budget of all its keys together"),
  key_limits: limitsSchema.optional().describe("Limits of each of its keys that has none of its own"),
  key_budget: budgetSchema.optional().describe("Budget of each of its keys that has none of its own"),
});

const configuredKeySchema = keyRulesSchema.extend({
  name: nameSchema.describe("Name of the key in lists and logs; unique"),
  key: secretSchema.describe("The key itself: 16 to 256 visible ASCII characters"),
  group: z.string().default("default").describe("Name of a member of `groups`"),
});

const adminSchema = z.strictObject({
  key: secretSchema.describe("The admin key: 16 to 256 visible ASCII characters, different from every API key"),
  viewer_key: secretSchema.optional()
    .describe("A second admin key that reads everything and changes nothing; absent: none"),
  listen: listenSchema.optional()
    .describe("Address of the admin side; absent: the clients' address, under /admin"),
});

const ledgerSchema = z.strictObject({
  keep_days: z.number().int().min(1).max(36_500).default(90)
    .describe("Days after which rows of single requests are pruned; the sums per day are kept"),
});

const logSchema = z.strictObject({
  level: z.enum(["info", "warn", "error"]).default("info").describe("Lines below this level are not written"),
  requests: z.enum(["all", "errors", "none"]).default("all").describe("Which requests are logged when they end"),
  probes: z.boolean().default(true).describe("Whether successful health and metrics requests are logged"),
  client_address: z.boolean().default(false).describe("Whether the log has the client's address"),
});

const metricsSchema = z.strictObject({
  public: z.boolean().default(false).describe("Whether /metrics is open to everyone"),
});

const originSchema = z.string().refine(isOrigin, {
  error: 'Expected an exact origin, such as "https://app.example.com" (no path, no *)',
});

const requestLimitsSchema = z.strictObject({
  json_body_bytes: z.number().int().min(1024).default(33_554_432).describe("Largest JSON body, in bytes"),
  body_budget_bytes: z.number().int().min(1024).default(268_435_456)
    .describe("Memory for all request bodies at one time, in bytes; a JSON body takes four times its size"),
  image_request_pixels: z.number().int().min(1_048_576).default(50_331_648)
    .describe("Most pixels of one request to an embedded image model: its uploads and the images it asks for"),
  image_pixels: z.number().int().min(1_048_576).default(25_165_824)
    .describe("Pixels of all such requests that are in memory at one time, until their answers were read"),
  image_wait_ms: z.number().int().min(0).default(30_000)
    .describe("Longest wait of such a request for others to end, in milliseconds"),
  body_gap_ms: z.number().int().min(1).default(15_000).describe("Longest silence within a body, in milliseconds"),
  body_grace_ms: z.number().int().min(0).default(10_000)
    .describe("Time before the slowest rate applies to a body, in milliseconds"),
  body_min_bytes_per_second: z.number().int().min(1).default(1024)
    .describe("Slowest rate of a body after the grace time, in bytes per second"),
  body_total_ms: z.number().int().min(1).default(120_000).describe("Longest time for a whole body, in milliseconds"),
  answer_unread_ms: z.number().int().min(1).default(60_000)
    .describe(
      "How long a client may leave a streamed answer, or images, unread before it counts as gone, in milliseconds",
    ),
  drained_requests: z.number().int().min(0).default(1000)
    .describe(
      "Most requests at one time whose client has disconnected and whose answer is read to its end for billing",
    ),
  requests_per_client: z.number().int().min(1).optional()
    .describe("Most requests under way with one key from one address (of IPv6, one /64); absent: no limit"),
});

const imagesSchema = z.strictObject({
  default_quality: z.enum(["auto", "low", "medium", "high"]).optional()
    .describe("Quality of requests that name none; absent: they are refused. SDKs tend to leave it out"),
  total_ms: z.number().int().min(1).default(900_000)
    .describe("Longest time for a request for images, in milliseconds; large images take minutes"),
  uploads: z.strictObject({
    max_file_bytes: z.number().int().min(1024).default(52_428_800).describe("Largest uploaded file, in bytes"),
    max_upload_bytes: z.number().int().min(1024).default(67_108_864).describe("Largest form, files included, in bytes"),
    max_parts: z.number().int().min(1).default(32).describe("Most fields and files of one form"),
    concurrent_uploads: z.number().int().min(1).default(4).describe("Forms that are read at one time; others wait"),
  }).prefault({}).describe("Limits of uploaded images"),
  idempotency: z.strictObject({
    window_seconds: z.number().int().min(1).max(604_800).default(3600)
      .describe("Time within which a repeat with the same Idempotency-Key gets the same images, in seconds"),
    max_bytes: z.number().int().min(0).default(268_435_456)
      .describe("Finished images kept for repeats, in bytes; the oldest go first"),
  }).prefault({}).describe("Repeats of a request under the same Idempotency-Key"),
});

const routingSchema = z.strictObject({
  attempts: z.number().int().min(1).max(8).default(3)
    .describe("Most targets that one request is sent to, repeats included, before its client gets an error"),
  breaker: z.strictObject({
    window_ms: z.number().int().min(1000).max(600_000).default(30_000)
      .describe("Time for which requests count, in milliseconds"),
    least_requests: z.number().int().min(1).max(10_000).default(10)
      .describe("Fewest requests within that time that can open it"),
    failure_percent: z.number().int().min(1).max(100).default(50)
      .describe("Share of requests that fail, in percent, from which on it opens"),
    consecutive_failures: z.number().int().min(1).max(1000).default(5)
      .describe("Failures of any kind, one after another, that open it at once, however rare requests are"),
    connect_failures: z.number().int().min(1).max(1000).default(5)
      .describe("Failures to connect, one after another, that open it at once"),
    open_ms: z.number().int().min(1).max(600_000).default(5_000)
      .describe("How long it stays open, in milliseconds; up to three times as long if it soon opens again"),
  }).prefault({}).describe("Circuit breaker of each upstream and model"),
});

const alertsSchema = z.strictObject({
  webhook: secretSchema.describe("Address that alerts are sent to; it may hold a password of the receiver"),
  secret: secretSchema.optional().describe("Key of the signature: 16 to 256 visible ASCII characters"),
  format: z.enum(["sluice", "slack"]).default("sluice")
    .describe("Body of a webhook: all facts as JSON, or one sentence as Slack and similar services take it"),
  budget_percent: z.array(z.number().int().min(1).max(100)).max(10).default([50, 80, 100])
    .describe("Parts of a budget, in percent, that are reported when they are reached; empty: none"),
  events: z.array(z.enum(ALERT_TYPES)).optional().describe("Only these alerts; absent: all"),
});

const shutdownSchema = z.strictObject({
  ready_delay_ms: z.number().int().min(0).max(600_000).default(0)
    .describe("Time during which requests are still served but /readyz answers 503, in milliseconds"),
  drain_seconds: z.number().min(0).max(3600).default(30)
    .describe("Longest time for open requests to finish, in seconds"),
  images_drain_seconds: z.number().min(0).max(3600).default(900)
    .describe("The same for images, which take minutes and would cost as much again, in seconds"),
});

const nodesSchema = z.strictObject({
  config: z.enum(["own", "store"]).default("own")
    .describe("Source of a node's configuration: its own file, or the latest one in the store"),
  key_age_seconds: z.number().int().min(0).max(86_400).default(300)
    .describe("How long keys that a node has seen stay valid while the store is unreachable, in seconds"),
  journal: z.string().min(1).nullable().default("./data/journal")
    .describe(
      "File for ledger entries while the store is unreachable; null: none, requests that cost are refused",
    ),
  journal_entries: z.number().int().min(1).max(10_000_000).default(100_000)
    .describe("Most entries in the journal; beyond that, requests that cost are refused"),
  lease_seconds: z.number().int().min(1).max(600).default(30)
    .describe("How long budget holds and slots of a node outlive it, in seconds"),
  limits_outage: z.enum(["local", "closed"]).default("local")
    .describe(
      "While `limits_store` is unreachable: each node admits its share of every limit, or no request with limits",
    ),
  limits_timeout_ms: z.number().int().min(10).max(10_000).default(250)
    .describe("Timeout of `limits_store`, in milliseconds; then it counts as unreachable"),
});

const responsesSchema = z.strictObject({
  recall: z.strictObject({
    minutes: z.number().int().min(1).max(10_080).default(60)
      .describe("How long a response is kept after its last use, in minutes"),
    megabytes: z.number().int().min(1).max(65_536).default(64)
      .describe("Memory of each process for them, in MiB; the least recently used go first"),
  }).nullable().prefault({})
    .describe("Recent responses that requests may refer to by `previous_response_id` and `item_reference`; null: none"),
  websocket: z.strictObject({
    connections: z.number().int().min(1).max(100_000).default(1000)
      .describe("Most WebSockets of each process; clients beyond that are sent to plain requests"),
    connections_per_key: z.number().int().min(1).max(100_000).default(250)
      .describe("Most WebSockets of one API key in each process, so that no key takes all"),
    idle_seconds: z.number().int().min(1).max(86_400).default(600)
      .describe("How long a WebSocket may stay open without a request, in seconds"),
  }).nullable().prefault({})
    .describe("WebSockets on /v1/responses; null: clients are sent to plain requests, as without `recall`"),
});

/** The whole file. */
export const configSchema = z.strictObject({
  $schema: z.string().optional().describe("Address of the JSON Schema, for editors; ignored"),
  listen: clientListenSchema.prefault({}).describe("Where the gateway listens"),
  store: z.string().regex(STORE_PATTERN, { error: `Expected ${STORE_FORMS}` }).default("sqlite:./data/sluice.db")
    .describe(`Where keys and bills are kept: ${STORE_FORMS}; put an address with a password into SLUICE_STORE`),
  limits_store: z.string().regex(LIMITS_STORE_PATTERN, { error: `Expected ${LIMITS_STORE_FORMS}` }).default("memory:")
    .describe(`Where limits are counted: ${LIMITS_STORE_FORMS}; put one with a password into SLUICE_LIMITS_STORE`),
  nodes: nodesSchema.prefault({}).describe(
    "Several gateways on one store, and their behaviour while it is unreachable",
  ),
  upstreams: z.record(nameSchema, upstreamSchema).default({})
    .describe("Where models run, by name; `embedded` is always there"),
  models: z.array(modelSchema).default([]).describe("The catalog, in addition to the embedded models"),
  catalog: z.string().min(1).optional()
    .describe("File with newer facts about models than the release's, which `sluice models import` makes"),
  catalog_date: z.iso.date({ error: 'Expected a date, such as "2026-12-31"' }).optional()
    .describe("Day of the catalog that models without prices take theirs from; a release with another one is refused"),
  embedded_models: z.boolean().default(true).describe("Whether the embedded models are in the catalog"),
  groups: z.record(nameSchema, groupSchema).default({})
    .describe("Permissions by group; if there is no `default`, that group may do everything that costs only tokens"),
  keys: z.array(configuredKeySchema).default([]).describe("API keys that come from the environment"),
  admin: adminSchema.optional().describe("The admin side; absent: none"),
  ledger: ledgerSchema.prefault({}).describe("How long requests are kept for billing"),
  log: logSchema.prefault({}).describe("The log, on standard error"),
  metrics: metricsSchema.prefault({}).describe("The metrics under /metrics"),
  trusted_proxies: z.array(networkSchema).default([])
    .describe("Reverse proxies whose X-Forwarded-For is trusted"),
  private_networks: z.array(networkSchema).optional()
    .describe("The only private networks that upstreams may be in; absent: all, except metadata addresses"),
  cors: z.strictObject({
    origins: z.array(originSchema).default([]).describe("Origins whose pages may call the gateway; none by default"),
  }).prefault({}).describe("Access from web pages"),
  limits: requestLimitsSchema.prefault({}).describe("Limits of single requests and of their memory"),
  images: imagesSchema.prefault({}).describe("The image endpoints"),
  responses: responsesSchema.prefault({}).describe("The responses endpoint"),
  routing: routingSchema.prefault({}).describe("Attempts, and the handling of failing targets"),
  alerts: alertsSchema.optional().describe("Webhooks about budgets, upstreams, the store and the ledger; absent: none"),
  shutdown: shutdownSchema.prefault({}).describe("Shutdown of the gateway"),
  keep_alive_seconds: z.number().min(1).max(3600).default(15)
    .describe("Time without data on a stream after which a keep-alive is sent, in seconds"),
});

/** Permissions, prices, limits and budgets of the keys of a group. */
export type Group = z.output<typeof groupSchema>;

/** An upstream that is reached over the network. Its key is kept as a secret. */
export type HttpUpstreamConfig = Omit<z.output<typeof httpUpstreamSchema>, "api_key"> & { api_key?: Secret };

/** An upstream, inside the gateway or on the network. */
export type UpstreamConfig = z.output<typeof embeddedUpstreamSchema> | HttpUpstreamConfig;

/** Rules of one key that narrow those of its group. */
export type KeyRules = z.output<typeof keyRulesSchema>;

/** An amount of money that may be spent in each period. */
export type Budget = z.output<typeof budgetSchema>;

/** A key of the configuration, reduced to the hash of its secret. */
export interface ConfiguredKey {
  name: string;
  group: string;
  /** SHA-256 of the key, hexadecimal. */
  hash: string;
  rules: KeyRules;
}

/** The admin side: where it listens, and the hash of its key. */
export interface AdminConfig {
  /** SHA-256 of the admin key, hexadecimal. */
  hash: string;
  /** SHA-256 of the key that may only read, hexadecimal; absent: there is none. */
  viewerHash?: string;
  /** Absent: it is served with everything else. */
  listen?: { hostname: string; port: number };
}

/** Alerts: where they are sent, signed with which key, and which. */
export type AlertsConfig = Omit<z.output<typeof alertsSchema>, "webhook" | "secret"> & {
  webhook: Secret;
  secret?: Secret;
};

type Parsed = z.output<typeof configSchema>;

/** The configuration in force: every default filled in, `default` among the groups, `embedded` among the upstreams. */
export type Config = Readonly<
  Omit<Parsed, "$schema" | "keys" | "upstreams" | "admin" | "alerts" | "store" | "limits_store"> & {
    store: StoreAddress;
    limits_store: LimitsAddress;
    keys: readonly ConfiguredKey[];
    admin?: AdminConfig;
    alerts?: AlertsConfig;
    upstreams: Readonly<Record<string, UpstreamConfig>>;
  }
>;

/** A configuration that cannot be used. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** One line per mistake, each with the path of the member. */
  readonly problems: string[];

  constructor(problems: string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

/** The group of this name. Names come from outside, so inherited members do not count. */
export function groupOf(config: Pick<Config, "groups">, name: string): Group | undefined {
  return Object.hasOwn(config.groups, name) ? config.groups[name] : undefined;
}

function isOrigin(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.protocol === "https:" || url.protocol === "http:") && url.origin === text;
}
