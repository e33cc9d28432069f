/** The prices of models: per million tokens, in every tier and time window, and of tools and searches. */
import type { VNode } from "preact";
import { pricingAt } from "../catalog/catalog.ts";
import type { Model, Target } from "../catalog/model.ts";
import type { Pricing, TieredPrices, TimeWindow, TokenPrices } from "../catalog/price_schema.ts";
import { readableRate } from "./format.tsx";

/** The three usual prices per million tokens: input, cached input and output. */
export function usualPrices(model: Model, now: number): string[] {
  const { prompt, input_cache_read, completion } = pricingAt(model, now);
  return [prompt, input_cache_read, completion].map(perMillion);
}

/** The other prices of a model, with those of later. */
export function OtherPrices({ model, now }: { model: Model; now: number }): VNode {
  const inForce = pricingAt(model, now);
  const lines = [
    ...(inForce.window === undefined ? [] : [`now: prices of the time window ${inForce.window}`]),
    ...pricesBeside(inForce),
    ...(basePricing(model, now).time_windows ?? []).map(windowText),
    ...model.price_changes.filter(({ from }) => from > now).map(({ from, ...pricing }) =>
      `from ${new Date(from).toISOString().slice(0, 16).replace("T", " ")} UTC: ${tokensText(pricing)}`
    ),
  ];
  if (lines.length === 0) return <>–</>;
  return <ul class="plain wrap">{lines.map((line) => <li>{line}</li>)}</ul>;
}

/** The targets of a model, with what the vendor charges where that is configured. */
export function TargetNames({ targets }: { targets: readonly Target[] }): VNode {
  return (
    <ul class="plain">
      {targets.map(({ upstream, model, pricing }) => (
        <li>{`${upstream}: ${model}${pricing === undefined ? "" : `, at ${rates(pricing)}`}`}</li>
      ))}
    </ul>
  );
}

/** The prices in force outside of time windows. */
function basePricing({ pricing, price_changes }: Model, now: number): Pricing {
  return price_changes.findLast(({ from }) => from <= now) ?? pricing;
}

function pricesBeside(pricing: Pricing): string[] {
  const { prompt, input_cache_write_5m, input_cache_write_1h, input_image, request } = pricing;
  const { hosted_tools = {}, service_tiers = {} } = pricing;
  const writes = ([["5 minutes", input_cache_write_5m], ["1 hour", input_cache_write_1h]] as const)
    .filter(([, price]) => price !== prompt && price !== "0");
  return [
    ...writes.map(([time, price]) => `cache writes for ${time}: ${perMillion(price)}`),
    ...(input_image === undefined ? [] : [`tokens of uploaded images: ${perMillion(input_image)}`]),
    ...contextTexts(pricing),
    ...Object.entries(service_tiers).flatMap(([name, tier]) => [
      `tier ${name}: ${rates(tier)}`,
      ...contextTexts(tier).map((text) => `tier ${name}, ${text}`),
    ]),
    ...(request === undefined ? [] : [`each search: ${readableRate(request)}`]),
    ...Object.entries(hosted_tools).map(([name, price]) => `each call of ${name}: ${readableRate(price)}`),
  ];
}

function contextTexts({ context_tiers = [] }: TieredPrices): string[] {
  return context_tiers.map((tier) => `above ${new Intl.NumberFormat("en").format(tier.above)} tokens: ${rates(tier)}`);
}

function windowText({ from, until, pricing }: TimeWindow): string {
  return `${timeOf(from)} to ${timeOf(until)} UTC (${pricing.window}): ${tokensText(pricing)}`;
}

function tokensText(pricing: TieredPrices): string {
  return [rates(pricing), ...contextTexts(pricing)].join(", ");
}

/** Input and output. */
function rates({ prompt, completion }: TokenPrices): string {
  return `${perMillion(prompt)} / ${perMillion(completion)}`;
}

/** Minutes since midnight as `16:30`. */
function timeOf(minutes: number): string {
  return `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
}

/** A price per million tokens. @param price USD per token, as a decimal string */
function perMillion(price: string): string {
  return readableRate(price, 6);
}
