/** Formats the prices of a model as text. */
import { parseUsd, perMillion } from "../billing/money.ts";
import type { Model } from "../catalog/model.ts";
import type { TieredPrices } from "../catalog/price_schema.ts";
import { pricingAt } from "../catalog/catalog.ts";

/** Formats the prices at `now` (Unix milliseconds): `USD per million tokens: prompt 1.25, completion 10`, or `free`. */
export function priceText(model: Model, now: number): string {
  const pricing = pricingAt(model, now);
  const {
    prompt,
    completion,
    input_image = "0",
    request = "0",
    hosted_tools = {},
    service_tiers,
    context_tiers,
    window,
  } = pricing;
  const names = ["input_cache_read", "input_cache_write_5m", "input_cache_write_1h"] as const;
  const simplePrices = [
    prompt,
    completion,
    input_image,
    request,
    ...names.map((name) => pricing[name]),
    ...Object.values(hosted_tools),
  ];
  const isFree = (service_tiers ?? context_tiers) === undefined &&
    simplePrices.every((price) => parseUsd(price) === 0n);
  if (isFree) return "free";
  const prices: [name: string, price: string][] = [
    ["prompt", prompt],
    ["completion", completion],
    ...names.map((name): [string, string] => [name, pricing[name]]).filter(([, price]) =>
      price !== prompt && price !== "0"
    ),
    ...(pricing.input_image === undefined ? [] : [["input_image", input_image] as [string, string]]),
  ];
  const texts = prices.map(([name, price]) => `${name} ${perMillion(price)}`);
  const tools = Object.entries(hosted_tools).map(([name, price]) => `; USD per call of ${name}: ${price}`);
  const tiers = Object.entries(service_tiers ?? {}).map(([name, tier]) => `; in tier ${name}: ${tierText(tier)}`);
  const at = window === undefined ? "" : ` (${window})`;
  if (pricing.request !== undefined) tools.push(`; USD per search: ${request}`);
  return `USD per million tokens${at}: ${texts.join(", ")}${contextText(pricing)}${tiers.join("")}${tools.join("")}`;
}

function tierText(tier: TieredPrices): string {
  return `prompt ${perMillion(tier.prompt)}, completion ${perMillion(tier.completion)}${contextText(tier)}`;
}

function contextText({ context_tiers = [] }: TieredPrices): string {
  return context_tiers.map((tier) => `; above ${tier.above} tokens of input: ${tierText(tier)}`).join("");
}
