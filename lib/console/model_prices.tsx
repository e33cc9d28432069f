/**
 * Formats the prices of models for the console: per million tokens, by tier and time window, of tools and of searches.
 */
import type { VNode } from "preact";
import { pricingAt } from "../catalog/catalog.ts";
import type { Model, Target } from "../catalog/model.ts";
import type { Pricing, TieredPrices, TimeWindow, TokenPrices } from "../catalog/price_schema.ts";
import { readableRate } from "./format.tsx";

/** Returns the main prices per million tokens at `now` (Unix milliseconds): input, cached input and output. */
export function usualPrices(model: Model, now: number): string[] {
  const { prompt, input_cache_read, completion } = pricingAt(model, now);
  return [prompt, input_cache_read, completion].map(perMillion);
}

/** Shows the other prices of a model, and its future price changes. */
export function OtherPrices({ model, now }: { model: Model; now: number }): VNode {
  const current = pricingAt(model, now);
  const lines = [
    ...(current.window === undefined ? [] : [`now: prices of the time window ${current.window}`]),
    ...otherPriceTexts(current),
    ...(basePricing(model, now).time_windows ?? []).map(windowText),
    ...model.price_changes.filter(({ from }) => from > now).map(({ from, ...pricing }) =>
      `from ${new Date(from).toISOString().slice(0, 16).replace("T", " ")} UTC: ${tokensText(pricing)}`
    ),
  ];
  if (lines.length === 0) return <>–</>;
  return <ul class="plain wrap">{lines.map((line) => <li>{line}</li>)}</ul>;
}

/** Shows the targets of a model, with the prices that the vendor charges if they are configured. */
export function TargetNames({ targets }: { targets: readonly Target[] }): VNode {
  return (
    <ul class="plain">
      {targets.map(({ upstream, model, pricing }) => (
        <li>{`${upstream}: ${model}${pricing === undefined ? "" : `, at ${rates(pricing)}`}`}</li>
      ))}
    </ul>
  );
}

/** Returns the present prices outside of time windows. */
function basePricing({ pricing, price_changes }: Model, now: number): Pricing {
  return price_changes.findLast(({ from }) => from <= now) ?? pricing;
}

function otherPriceTexts(pricing: Pricing): string[] {
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

/** Formats the prices of input and output. */
function rates({ prompt, completion }: TokenPrices): string {
  return `${perMillion(prompt)} / ${perMillion(completion)}`;
}

/** Formats minutes since midnight as `16:30`. */
function timeOf(minutes: number): string {
  return `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
}

/** Formats a price per million tokens. @param price USD per token, as a decimal string */
function perMillion(price: string): string {
  return readableRate(price, 6);
}
