/** Reads public price lists: LiteLLM's `model_prices_and_context_window.json`, and models.dev's `api.json`. */
import { isObject, isRawNumber, type Json, type JsonObject } from "../json/mod.ts";
import type { CatalogSnapshot } from "./snapshot.ts";
import { isVendorName, type VendorName } from "../upstreams/vendors.ts";

/** The entry of one model in a price list. */
export interface ListedModel {
  vendor: VendorName;
  /** The vendor's model id. */
  model: string;
  context_length?: number;
  max_completion_tokens?: number;
  /** Members of `pricing`, in USD per token. */
  pricing: JsonObject;
  /** Other members of a catalog row, for models that are new to the catalog. */
  row: JsonObject;
}

/** Our vendor names by those of the lists, where they differ. */
const VENDOR_NAMES: Readonly<Record<string, VendorName>> = { google: "gemini", moonshotai: "kimi", zai: "glm" };

/**
 * Reads a list of either format. Models of unknown vendors and models without token prices are skipped.
 * @throws {RangeError} if the list has another format or no usable model
 */
export function readPriceList(list: Json): ListedModel[] {
  if (!isObject(list)) throw new RangeError("Cannot read the price list: expected a JSON object");
  const entries = Object.entries(list);
  const isModelsDev = entries.some(([, entry]) => isObject(entry) && isObject(entry.models));
  const models = entries.flatMap(([name, entry]): ListedModel[] => {
    if (!isObject(entry)) return [];
    return isModelsDev ? modelsDevModels(name, entry) : liteLlmModel(name, entry);
  });
  if (models.length > 0) return models;
  throw new RangeError(
    "Cannot read the price list: expected LiteLLM's model_prices_and_context_window.json or models.dev's api.json, " +
      "with models of the known vendors",
  );
}

/** Returns the models of a catalog as a price list. */
export function listSnapshot({ models }: CatalogSnapshot): ListedModel[] {
  return models.map(({ vendor, model, row }) => {
    const { context_length, top_provider, pricing } = row;
    return {
      vendor,
      model,
      ...countOf("context_length", context_length),
      ...countOf("max_completion_tokens", isObject(top_provider) ? top_provider.max_completion_tokens : undefined),
      pricing: isObject(pricing) ? pricing : {},
      row,
    };
  });
}

function vendorNamed(name: Json | undefined): VendorName | undefined {
  if (typeof name !== "string") return undefined;
  const known = Object.hasOwn(VENDOR_NAMES, name) ? VENDOR_NAMES[name] : name;
  return isVendorName(known) ? known : undefined;
}

function modelsDevModels(name: string, { models }: JsonObject): ListedModel[] {
  const vendor = vendorNamed(name);
  if (vendor === undefined || !isObject(models)) return [];
  return Object.entries(models).flatMap(([model, entry]) => {
    if (!isObject(entry) || !isObject(entry.cost)) return [];
    const { cost, limit = null } = entry;
    const pricing = pricesOfMillion(cost);
    if (pricing === undefined || !answersInText(entry, pricing)) return [];
    const legacyTier = cost.context_over_200k;
    const listedTiers = (Array.isArray(cost.tiers) ? cost.tiers : []).flatMap((tier) =>
      isObject(tier) && isObject(tier.tier) ? tierOf(tier.tier.size, tier) : []
    );
    const tiers = listedTiers.length === 0 && isObject(legacyTier) ? tierOf(200_000, legacyTier) : listedTiers;
    return [{
      vendor,
      model,
      ...countOf("context_length", isObject(limit) ? limit.context : undefined),
      ...countOf("max_completion_tokens", isObject(limit) ? limit.output : undefined),
      pricing: { ...pricing, ...(tiers.length > 0 && { context_tiers: tiers }) },
      row: modelsDevRow(entry),
    }];
  });
}

/**
 * Returns whether a model of models.dev answers in text. Embedding models are listed with text output, but their output
 * costs nothing.
 */
function answersInText({ modalities }: JsonObject, { prompt, completion }: JsonObject): boolean {
  const output = isObject(modalities) ? modalities.output : undefined;
  return (!Array.isArray(output) || output.includes("text")) && (completion !== "0" || prompt === "0");
}

function modelsDevRow(
  { name, release_date, modalities, reasoning, reasoning_options, temperature }: JsonObject,
): JsonObject {
  const inputs = (isObject(modalities) && Array.isArray(modalities.input) ? modalities.input : ["text"])
    .map((name) => name === "pdf" ? "file" : name);
  const created = typeof release_date === "string" ? Date.parse(release_date) / 1000 : NaN;
  const options = Array.isArray(reasoning_options) ? reasoning_options.filter(isObject) : [];
  const isManual = options.some(({ type }) => type === "budget_tokens");
  const isAdaptive = !isManual || options.some(({ type }) => type === "effort");
  return {
    ...(typeof name === "string" && { name }),
    ...(Number.isSafeInteger(created) && created >= 0 && { created }),
    architecture: { input_modalities: inputs },
    ...(reasoning === true && {
      reasoning: { modes: [...(isManual ? ["manual"] : []), ...(isAdaptive ? ["adaptive"] : [])] },
    }),
    ...(temperature === false && {
      supported_parameters: ["max_tokens", "stop", "tools", "tool_choice", "response_format"],
    }),
  };
}

function tierOf(above: Json | undefined, cost: JsonObject): JsonObject[] {
  const prices = pricesOfMillion(cost);
  return typeof above === "number" && prices !== undefined ? [{ above, ...prices }] : [];
}

/** Converts prices in USD per million tokens; `undefined` if the input or the output has no price. */
function pricesOfMillion({ input, output, cache_read, cache_write }: JsonObject): JsonObject | undefined {
  const price = (value: Json | undefined) => decimalOf(value, 6);
  return tokenPrices({
    prompt: price(input),
    completion: price(output),
    input_cache_read: price(cache_read),
    input_cache_write_5m: price(cache_write),
  });
}

/** Names of LiteLLM's members with the price of prompts above a number of tokens. */
const TIER_MEMBER = /^input_cost_per_token(_above_(\d+)k_tokens)$/;

function liteLlmModel(key: string, entry: JsonObject): ListedModel[] {
  const vendor = vendorNamed(entry.litellm_provider);
  const vectors = entry.mode === "embedding" ? countOf("dimensions", entry.output_vector_size) : {};
  const isEmbedding = vectors.dimensions !== undefined;
  if (vendor === undefined || (entry.mode !== "chat" && entry.mode !== "responses" && !isEmbedding)) return [];
  const prices = (suffix: string): JsonObject | undefined => {
    const price = (name: string) => decimalOf(entry[`${name}${suffix}`], 0);
    return tokenPrices({
      prompt: price("input_cost_per_token"),
      completion: price("output_cost_per_token"),
      input_cache_read: price("cache_read_input_token_cost"),
      input_cache_write_5m: price("cache_creation_input_token_cost"),
      input_cache_write_1h: price("cache_creation_input_token_cost_above_1hr"),
    });
  };
  const pricing = prices("");
  if (pricing === undefined) return [];
  const tiers = Object.keys(entry).flatMap((name) => {
    const [, suffix, thousands] = TIER_MEMBER.exec(name) ?? [];
    const tier = suffix === undefined ? undefined : prices(suffix);
    return tier === undefined ? [] : [{ above: Number(thousands) * 1000, ...tier }];
  });
  const priority = prices("_priority");
  return [{
    vendor,
    model: key.startsWith(`${String(entry.litellm_provider)}/`) ? key.slice(key.indexOf("/") + 1) : key,
    ...countOf("max_completion_tokens", entry.max_output_tokens),
    pricing: {
      ...pricing,
      ...(tiers.length > 0 && { context_tiers: tiers }),
      ...(priority !== undefined && { service_tiers: { priority } }),
    },
    row: {
      // The list has no context length; the largest input is a lower bound of it.
      ...countOf("context_length", entry.max_input_tokens),
      architecture: {
        input_modalities: [
          "text",
          ...(entry.supports_vision === true ? ["image"] : []),
          ...(entry.supports_pdf_input === true ? ["file"] : []),
        ],
        ...(isEmbedding && { output_modalities: ["embeddings"] }),
      },
      ...(isEmbedding && { embedding: vectors }),
      ...(entry.supports_reasoning === true && { reasoning: { modes: ["adaptive"] } }),
    },
  }];
}

/** Returns the prices that are listed; `undefined` if the input or the output has none. */
function tokenPrices(prices: Record<string, string | undefined>): JsonObject | undefined {
  if (prices.prompt === undefined || prices.completion === undefined) return undefined;
  return Object.fromEntries(
    Object.entries(prices).flatMap(([name, price]): [string, string][] => price === undefined ? [] : [[name, price]]),
  );
}

function countOf(name: "context_length" | "max_completion_tokens" | "dimensions", value: Json | undefined): JsonObject {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? { [name]: value } : {};
}

const DECIMALS = 12;

/**
 * Returns a number times 10 to the power of -`shift`, as a decimal string; `undefined` if it is not a price. It is
 * rounded to 12 decimals, which removes floating-point noise as in 4.9999999999999996e-6.
 */
function decimalOf(value: Json | undefined, shift: number): string | undefined {
  let text = "";
  if (isRawNumber(value)) text = value.rawJSON;
  else if (typeof value === "number") text = String(value);
  const [, integer, fraction = "", exponent = "0"] = /^(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,3}))?$/i.exec(text) ?? [];
  if (integer === undefined) return undefined;
  // The result is the integer of all digits, times 10 to the power of -scale.
  const scale = fraction.length - Number(exponent) + shift;
  let scaled = BigInt(integer + fraction);
  if (scale <= DECIMALS) scaled *= 10n ** BigInt(DECIMALS - scale);
  else {
    const divisor = 10n ** BigInt(scale - DECIMALS);
    scaled = (scaled + divisor / 2n) / divisor;
  }
  const digits = scaled.toString().padStart(DECIMALS + 1, "0");
  const decimals = digits.slice(-DECIMALS).replace(/0+$/, "");
  return `${digits.slice(0, -DECIMALS)}${decimals === "" ? "" : `.${decimals}`}`;
}
