/** The configuration of the demo: two vendors that do not exist, their models, and groups of keys. */
import type { JsonObject } from "../../lib/json/mod.ts";

/** Addresses of the two fake vendors. */
export interface VendorAddresses {
  borealis: string;
  meridian: string;
}

/** Unix time in seconds at which the demo's models came out. */
const CREATED = Date.UTC(2026, 2, 1) / 1000;

/** Prices in USD per million tokens. */
interface Rates {
  input: number;
  output: number;
  /** Absent: a tenth of `input`. */
  cacheRead?: number;
  cacheWrite?: number;
}

/** Prices per token of a target or a model. @param share part of the rates that is paid */
function pricing({ input, output, cacheRead = input / 10, cacheWrite = input }: Rates, share = 1): JsonObject {
  const perToken = (rate: number) => (rate * share / 1e6).toFixed(12).replace(/\.?0+$/, "");
  return {
    prompt: perToken(input),
    completion: perToken(output),
    input_cache_read: perToken(cacheRead),
    input_cache_write_5m: perToken(cacheWrite),
  };
}

/** Part of the catalog's prices that the vendors charge the operator. */
const VENDOR_SHARE = 0.8;

function textModel(
  id: string,
  rates: Rates,
  { upstreams, more = {} }: { upstreams: readonly string[]; more?: JsonObject },
): JsonObject {
  const [, name = ""] = id.split("/");
  return {
    id,
    created: CREATED,
    context_length: 400_000,
    architecture: { input_modalities: ["text", "image"] },
    pricing: { ...pricing(rates), ...(more.pricing as JsonObject | undefined) },
    supported_parameters: ["temperature", "max_tokens", "stop", "tools", "tool_choice", "response_format"],
    targets: upstreams.map((upstream, priority) => ({
      upstream,
      model: name,
      priority,
      pricing: pricing(rates, VENDOR_SHARE),
    })),
  };
}

/** The catalog. */
function models(): JsonObject[] {
  return [
    textModel("borealis/atlas-2", { input: 1.25, output: 10 }, { upstreams: ["borealis"] }),
    textModel("borealis/atlas-2-mini", { input: 0.25, output: 2 }, { upstreams: ["borealis"] }),
    textModel("meridian/lyra-3", { input: 3, output: 15, cacheWrite: 3.75 }, { upstreams: ["meridian"] }),
    textModel("meridian/lyra-3-small", { input: 0.8, output: 4, cacheWrite: 1 }, { upstreams: ["meridian"] }),
    textModel("open/kestrel-70b", { input: 0.4, output: 1.2, cacheRead: 0.4 }, { upstreams: ["borealis", "meridian"] }),
    {
      id: "borealis/embed-2",
      created: CREATED,
      context_length: 8192,
      architecture: { output_modalities: ["embeddings"] },
      embedding: { dimensions: 8 },
      pricing: { prompt: "0.00000002", completion: "0" },
      targets: [{ upstream: "borealis", model: "embed-2", pricing: { prompt: "0.000000016", completion: "0" } }],
    },
    {
      id: "borealis/paint-1",
      created: CREATED,
      context_length: 32_000,
      architecture: { input_modalities: ["text", "image"], output_modalities: ["image"] },
      pricing: { prompt: "0.000005", completion: "0.000008" },
      targets: [{ upstream: "borealis", model: "paint-1" }],
    },
  ];
}

/** The groups. */
const GROUPS: Readonly<Record<string, JsonObject>> = {
  default: { key_limits: { requests_per_minute: 60, concurrency: 10 } },
  engineering: { limits: { requests_per_minute: 600, tokens_per_minute: 20_000_000 } },
  support: { price_factor: "1.2", key_limits: { requests_per_minute: 300 } },
  research: { limits: { concurrency: 40 } },
  partners: { models: ["borealis/*", "open/*"], price_factor: "1.5", key_limits: { requests_per_minute: 30 } },
};

/**
 * The configuration file.
 * @param budgets budget of groups in USD per month, as decimal strings; absent: none
 */
export function demoConfiguration(
  { borealis, meridian }: VendorAddresses,
  budgets: Readonly<Record<string, string>> = {},
): JsonObject {
  return {
    admin: { key: { env: "ADMIN_KEY" }, viewer_key: { env: "VIEWER_KEY" } },
    upstreams: {
      borealis: { vendor: "openai", base_url: `${borealis}/v1`, api_key: { env: "UPSTREAM_KEY" } },
      meridian: { vendor: "anthropic", base_url: meridian, api_key: { env: "UPSTREAM_KEY" } },
    },
    models: models(),
    embedded_models: false,
    groups: Object.fromEntries(
      Object.entries(GROUPS).map(([name, group]) => {
        const usd = budgets[name];
        return [name, usd === undefined ? group : { ...group, budget: { usd, period: "month" } }];
      }),
    ),
    ledger: { keep_days: 400 },
    log: { requests: "none" },
  };
}
