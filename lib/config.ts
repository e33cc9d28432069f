/**
 * The schema and the types of the configuration. Unknown members are errors; secrets are names of environment
 * variables.
 */
import { z } from "zod";
import { ENDPOINTS } from "./access/access_table.ts";
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
import { PROTOCOLS } from "./protocols/canonical/types.ts";
import type { Secret } from "./secret.ts";
import { forwardedHeaderSchema } from "./config/forwarded_header.ts";
import { ledgerSchema, logSchema, metricsSchema, nodesSchema, shutdownSchema } from "./config/operation_schemas.ts";
import { imagesSchema, resourceLimitsSchema, responsesSchema, routingSchema } from "./config/serving_schemas.ts";
import { type VendorName, VENDORS } from "./upstreams/vendors.ts";

/** Periods of budgets. Days, weeks and months begin at midnight UTC. */
export const PERIODS = ["day", "week", "month", "total"] as const;

/** Names of groups, keys and upstreams. */
export const nameSchema = z.string().max(64).regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, {
  error: "Expected a name of letters, digits and . _ - that starts with a letter or digit",
});

/** A secret, by the name of the environment variable that holds it. */
export const secretSchema = z.strictObject({
  env: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: "Expected the name of an environment variable" })
    .describe("Name of the environment variable that holds the secret").meta({ examples: ["OPENAI_API_KEY"] }),
});

/** The embedded upstream, the only one that needs no network. */
const embeddedUpstreamSchema = z.strictObject({
  vendor: z.literal("embedded").describe("The models built into the gateway. They need no key and no network"),
});

const VENDOR_NAMES = Object.keys(VENDORS) as [VendorName, ...VendorName[]];

/** An upstream that is reached over the network. */
const httpUpstreamSchema = z.strictObject({
  vendor: z.enum(VENDOR_NAMES).describe(
    "Vendor that runs the host, or `openai-compatible` for any other host that speaks OpenAI's protocol",
  ),
  base_url: z.string().regex(/^https?:\/\/[A-Za-z0-9._\-[\]:]+(\/[A-Za-z0-9._~\-/]*)?$/, {
    error: 'Expected an address such as "https://api.example.com/v1": no query, no user',
    abort: true,
  }).refine(URL.canParse, { error: "Expected an address: this one has no host, or an invalid port" }).optional()
    .describe(
      "Base URL, to which the protocol's paths are appended. No query, no user. Default: the vendor's own URL",
    ).meta({ examples: ["http://10.0.0.7:8000/v1"] }),
  api_key: secretSchema.optional()
    .describe("API key of your account at the vendor. Optional only for `vllm`, `ollama` and `openai-compatible`"),
  protocols: z.array(z.enum(PROTOCOLS)).min(1).optional()
    .describe("Protocols that the upstream speaks, in order of preference. Default: the vendor's usual ones")
    .meta({ examples: [["chat", "responses"]] }),
  transport: z.enum(["auto", "http1", "fetch"]).default("auto")
    .describe(
      "HTTP client: the gateway's own (`http1`), the runtime's `fetch`, or `auto`, which chooses a suitable one",
    ),
  timeouts: timeoutsSchema.prefault({}).describe("Timeouts of requests to this upstream"),
  forward_headers: z.array(forwardedHeaderSchema).min(1).max(32).optional()
    .describe(
      "Upstream response headers to forward to clients of text requests: lower-case names, or a prefix and `*`. " +
        "Cookies and headers that the gateway sets itself cannot be listed. Default: none",
    ).meta({ examples: [["x-ratelimit-*", "x-request-id"]] }),
});

/** An upstream, by its vendor. */
export const upstreamSchema = z.discriminatedUnion("vendor", [embeddedUpstreamSchema, httpUpstreamSchema]);

/** An address to listen on. */
export const listenSchema = z.strictObject({
  hostname: z.string().min(1).default("127.0.0.1").describe(
    "Address to listen on. `0.0.0.0` listens on every interface",
  ),
  port: z.number().int().min(0).max(65_535).default(8790).describe(
    "Port to listen on. `0` chooses a free port and prints it",
  ),
});

/** The address that clients connect to. */
const clientListenSchema = listenSchema.extend({
  reuse_port: z.boolean().default(false)
    .describe("Whether several processes on this machine share the port, to use several cores (Linux only)"),
});

/** A model id in which `*` matches any text. */
const modelGlobSchema = z.string().max(256).regex(/^[A-Za-z0-9._:@+/*-]+$/, {
  error: 'Expected a model id in which * matches any text, such as "acme/*"',
}).meta({ examples: ["acme/*"] });

/** The name of an endpoint, or `*` for all. */
const endpointSchema = z.enum([...ENDPOINTS, "*"]);

/** An IP address or a network, such as `10.0.0.0/8` or `2001:db8::1`. */
const networkSchema = z.string().refine(isNetwork, {
  error: 'Expected an IP address or a network, such as "10.0.0.0/8" or "2001:db8::1"',
}).meta({ examples: ["10.0.0.0/8"] });

/** An amount of money that may be spent in each period. */
const budgetSchema = z.strictObject({
  usd: z.string().regex(/^\d{1,6}(\.\d{1,12})?$/, {
    error: 'Expected USD as a decimal string with at most 12 decimals, such as "50"',
  }).describe("Amount in USD, as a decimal string").meta({ examples: ["50"] }),
  period: z.enum(PERIODS).default("month")
    .describe(
      "When the budget resets: every day, week (on Monday) or month, at midnight UTC. `total` never resets",
    ),
});

/** A budget of each end user of a key. */
const userBudgetSchema = budgetSchema.extend({
  require_user: z.boolean().default(false)
    .describe("Whether to refuse requests that name no end user. If false, all of them share one budget"),
});

/** Rules of one key that narrow those of its group. Where a member is absent, the group's rule applies unchanged. */
export const keyRulesSchema = z.strictObject({
  models: z.array(modelGlobSchema).optional()
    .describe("Models of the group that the key may use. `*` matches any text. Default: all of them"),
  endpoints: z.array(endpointSchema).optional().describe(
    "Endpoints of the group that the key may call. Default: all of them",
  ),
  ips: z.array(networkSchema).optional().describe(
    "Addresses and networks that the key may be used from. Default: the group's",
  ),
  limits: limitsSchema.optional().describe("Limits of this key. They replace the group's `key_limits` entirely"),
  budget: budgetSchema.optional().describe("Budget of this key. It replaces the group's `key_budget`"),
  user_budget: userBudgetSchema.optional()
    .describe("Budget of each end user of the key. It replaces the group's `user_budget`"),
});

/** Permissions, prices, limits and budgets of the keys of a group. */
export const groupSchema = z.strictObject({
  models: z.array(modelGlobSchema).default(["*"])
    .describe("Ids of the models that its keys may use. `*` matches any text"),
  endpoints: z.array(endpointSchema).default(["*"]).describe("Endpoints that its keys may call. `*` allows all"),
  protocols: z.array(z.enum([...PROTOCOLS, "*"])).default(["*"])
    .describe(
      "Text protocols that its keys may use. `*` allows all. Paths under /anthropic use `messages`, paths under " +
        "/v1beta use `gemini`",
    ),
  ips: z.array(networkSchema).optional().describe(
    "Addresses and networks that its keys may be used from. Requests from others get 403. Default: all",
  ),
  price_factor: z.string().regex(/^\d{1,3}(\.\d{1,6})?$/, {
    error: 'Expected a factor as a decimal string with at most 6 decimals, such as "1.25"',
  }).default("1").describe("Factor by which the catalog's prices are multiplied for its keys").meta({
    examples: ["1.25"],
  }),
  hosted_tools: z.array(extraNameSchema).optional()
    .describe("Vendor-hosted tools that its keys may use, named without dates. Default: none")
    .meta({ examples: [["web_search"]] }),
  service_tiers: z.array(extraNameSchema).optional()
    .describe("Separately priced service tiers that its keys may request. Default: none")
    .meta({ examples: [["priority"]] }),
  remote_mcp: z.boolean().optional()
    .describe("Whether its keys may specify remote MCP servers for the vendor to call. Default: false"),
  vendor_state: z.boolean().optional()
    .describe("Whether its keys may refer to files, stores and containers in your vendor account. Default: false"),
  limits: limitsSchema.optional().describe("Limits that all its keys share"),
  budget: budgetSchema.optional().describe("Budget that all its keys share"),
  key_limits: limitsSchema.optional().describe("Limits of each key that has no `limits`"),
  key_budget: budgetSchema.optional().describe("Budget of each key that has no `budget`"),
  user_budget: userBudgetSchema.optional()
    .describe("Budget of each end user of each key. A key's own `user_budget` replaces it"),
});

const configuredKeySchema = keyRulesSchema.extend({
  name: nameSchema.describe("Unique name of the key, shown in lists and logs").meta({ examples: ["ci"] }),
  key: secretSchema.describe("The key: 16 to 256 visible ASCII characters"),
  group: z.string().default("default").describe("Group of the key: a name from `groups`"),
});

const adminSchema = z.strictObject({
  key: secretSchema.describe("The admin key: 16 to 256 visible ASCII characters, not an API key"),
  viewer_key: secretSchema.optional()
    .describe("A second admin key with read-only access. Default: none"),
  listen: listenSchema.optional()
    .describe("Separate address for the admin API and console. Default: the clients' address, under /admin"),
});

const originSchema = z.string().refine(isOrigin, {
  error: 'Expected an exact origin, such as "https://app.example.com" (no path, no *)',
});

const alertsSchema = z.strictObject({
  webhook: secretSchema.describe("The http or https URL that alerts are sent to. Redirects are not followed"),
  secret: secretSchema.optional().describe(
    "Key that signs alerts: 16 to 256 visible ASCII characters. Only `slack` works without it",
  ),
  format: z.enum(["sluice", "slack"]).default("sluice")
    .describe(
      "Body of an alert: `sluice` sends all details as JSON, `slack` one sentence in the format of Slack and " +
        "Mattermost",
    ),
  budget_percent: z.array(z.number().int().min(1).max(100)).max(10).default([50, 80, 100])
    .describe("Percentages of a budget at which an alert is sent. An empty list sends none"),
  events: z.array(z.enum(ALERT_TYPES)).optional().describe("Alerts to send. Default: all")
    .meta({ examples: [["budget.threshold", "upstream.down"]] }),
});

/** The whole configuration file. */
export const configSchema = z.strictObject({
  $schema: z.string().optional().describe("Path or URL of the JSON Schema, for editors. The gateway ignores it")
    .meta({ examples: ["./schemas/config.schema.json"] }),
  listen: clientListenSchema.prefault({}).describe("Address that clients connect to"),
  store: z.string().regex(STORE_PATTERN, { error: `Expected ${STORE_FORMS}` }).default("sqlite:./data/sluice.db")
    .describe(
      `Store of keys and the ledger: ${STORE_FORMS}. SQLite serves one process at a time; any number of nodes can ` +
        "share Postgres 13 or later. If the address has a password, set it in `SLUICE_STORE` instead",
    ),
  limits_store: z.string().regex(LIMITS_STORE_PATTERN, { error: `Expected ${LIMITS_STORE_FORMS}` }).default("memory:")
    .describe(
      `Store of the counters for limits: ${LIMITS_STORE_FORMS}. In memory, each process counts separately; nodes can ` +
        "share Redis or Valkey 7 or later (`rediss:` for TLS). If the address has a password, set it in " +
        "`SLUICE_LIMITS_STORE` instead",
    ),
  nodes: nodesSchema.prefault({}).describe(
    "Gateways that share a store, and their behaviour while it is unreachable",
  ),
  upstreams: z.record(nameSchema, upstreamSchema).default({})
    .describe("Hosts that run models, by name. The upstream `embedded` always exists"),
  models: z.array(modelSchema).default([]).describe(
    "Models that clients can use, in addition to the embedded ones. An entry may be an id or glob from the release's " +
      "catalog. An entry without `created`, `context_length`, `pricing` or `targets` takes them from that catalog",
  ),
  catalog: z.string().min(1).optional()
    .describe("File with newer model data than the release contains, written by `sluice models import --catalog`")
    .meta({ examples: ["./catalog.json"] }),
  catalog_date: z.iso.date({ error: 'Expected a date, such as "2026-12-31"' }).optional()
    .describe(
      "Required date of the catalog that the prices come from. A release with another catalog refuses to start. " +
        "Default: any date",
    ).meta({ examples: ["2026-12-31"] }),
  embedded_models: z.boolean().default(true).describe("Whether clients can use the embedded models"),
  groups: z.record(nameSchema, groupSchema).default({})
    .describe(
      "Permissions, prices, limits and budgets of keys, by group. If no group `default` is defined, its keys may use " +
        "everything that costs only tokens",
    ),
  keys: z.array(configuredKeySchema).default([])
    .describe("API keys from environment variables, in addition to those of `sluice keys add`"),
  admin: adminSchema.optional().describe("Admin API and console, under /admin. If omitted, both are disabled"),
  ledger: ledgerSchema.prefault({}).describe("Retention of the requests in the ledger"),
  log: logSchema.prefault({}).describe("The log, on standard error"),
  metrics: metricsSchema.prefault({}).describe("The metrics, under /metrics"),
  trusted_proxies: z.array(networkSchema).default([])
    .describe("Addresses and networks of the reverse proxies whose `X-Forwarded-For` is trusted")
    .meta({ examples: [["127.0.0.1"]] }),
  private_networks: z.array(networkSchema).optional()
    .describe(
      "Private networks that upstreams may be in. Requests to others get 502. Default: all except metadata " +
        "addresses, which must be listed here to be reachable",
    ).meta({ examples: [["10.20.0.0/16", "127.0.0.1"]] }),
  cors: z.strictObject({
    origins: z.array(originSchema).default([]).describe(
      "Origins of the web pages that may call the gateway, exactly as browsers send them",
    )
      .meta({ examples: [["https://app.example.com"]] }),
  }).prefault({}).describe("Access from web pages (CORS)"),
  resource_limits: resourceLimitsSchema.prefault({}).describe(
    "Limits on the size, duration and memory of requests. For rates and concurrency, use the `limits` of groups, " +
      "keys and models",
  ),
  images: imagesSchema.prefault({}).describe("The image endpoints"),
  responses: responsesSchema.prefault({}).describe("The responses endpoint"),
  routing: routingSchema.prefault({}).describe("Attempts per request, prompt-cache affinity and circuit breakers"),
  alerts: alertsSchema.optional().describe(
    "Webhooks about budgets, upstreams, the store and the ledger. Default: none",
  ),
  shutdown: shutdownSchema.prefault({}).describe("How the gateway stops after SIGTERM or SIGINT"),
  keep_alive_seconds: z.number().min(1).max(3600).default(15)
    .describe("Time without output on a stream before the gateway sends a keep-alive, in seconds"),
});

/** Permissions, prices, limits and budgets of the keys of a group. */
export type Group = z.output<typeof groupSchema>;

/** An upstream that is reached over the network, with its key as a `Secret`. */
export type HttpUpstreamConfig = Omit<z.output<typeof httpUpstreamSchema>, "api_key"> & { api_key?: Secret };

/** An upstream, embedded in the gateway or reached over the network. */
export type UpstreamConfig = z.output<typeof embeddedUpstreamSchema> | HttpUpstreamConfig;

/** Rules of one key that narrow those of its group. */
export type KeyRules = z.output<typeof keyRulesSchema>;

/** An amount of money that may be spent in each period. */
export type Budget = z.output<typeof budgetSchema>;

/** An amount of money that each end user of a key may spend in each period. */
export type UserBudget = z.output<typeof userBudgetSchema>;

/** A key of the configuration, reduced to the hash of its secret. */
export interface ConfiguredKey {
  name: string;
  group: string;
  /** SHA-256 of the key, hexadecimal. */
  hash: string;
  rules: KeyRules;
}

/** The admin side: its listener and the hashes of its keys. */
export interface AdminConfig {
  /** SHA-256 of the admin key, hexadecimal. */
  hash: string;
  /** SHA-256 of the viewer key, which may only read, hexadecimal; absent: there is none. */
  viewerHash?: string;
  /** Address of its own listener; absent: it is served on the clients' address. */
  listen?: { hostname: string; port: number };
}

/** Settings of alerts, with the webhook's address and the signing key as `Secret`s. */
export type AlertsConfig = Omit<z.output<typeof alertsSchema>, "webhook" | "secret"> & {
  webhook: Secret;
  secret?: Secret;
};

type ParsedConfig = z.output<typeof configSchema>;

/** A usable configuration, with all defaults, the group `default` and the upstream `embedded`. */
export type Config = Readonly<
  Omit<ParsedConfig, "$schema" | "keys" | "upstreams" | "admin" | "alerts" | "store" | "limits_store"> & {
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
  /** One line per mistake, each with the path of the member it is about. */
  readonly problems: string[];

  constructor(problems: string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

/**
 * Returns the group with a name; `undefined` if there is none. Names come from outside, so a name such as `constructor`
 * must not find an inherited member.
 */
export function groupOf(config: Pick<Config, "groups">, name: string): Group | undefined {
  return Object.hasOwn(config.groups, name) ? config.groups[name] : undefined;
}

function isOrigin(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.protocol === "https:" || url.protocol === "http:") && url.origin === text;
}
