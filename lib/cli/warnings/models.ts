/** Warnings about the targets, prices and dates of models. */
import { isExpired, kindOf, pricingAt } from "../../catalog/catalog.ts";
import type { Model } from "../../catalog/model.ts";
import { CACHE_PRICES } from "../../catalog/price_schema.ts";
import type { Config } from "../../config.ts";
import { type Warning, warning } from "./warning.ts";
import { httpUpstreams, lacksKey, sendsBills } from "./upstreams.ts";
import { parseUsd, perMillion } from "../../billing/money.ts";

/** Yields warnings about all configured models. @param now Unix time in milliseconds */
export function* modelWarnings(config: Config, now: number): Generator<Warning> {
  const hosts = new Map(httpUpstreams(config));
  for (const [index, model] of config.models.entries()) {
    const path = `models[${index}]`;
    const targetHosts = model.targets.flatMap(({ upstream }) => hosts.get(upstream) ?? []);
    if (targetHosts.length === model.targets.length && targetHosts.every(lacksKey)) {
      yield warning(`${path}.targets`, "No target is usable: their upstreams have no key");
    }
    yield* targetWarnings(model, path);
    yield* priceWarnings(model, { path, now, billed: targetHosts.some(sendsBills) });
    yield* unitWarnings(model, { path, now });
    const anthropic = targetHosts.some(({ vendor }) => vendor === "anthropic");
    yield* cachePriceWarnings(model, { path, now, anthropic });
    yield* dateWarnings(model, { path, now });
  }
}

/** Warns about targets that appear twice. */
function targetWarnings({ targets }: Model, path: string): Warning[] {
  const seen = new Map<string, number>();
  return targets.flatMap(({ upstream, model, protocol }, index) => {
    const key = JSON.stringify([upstream, model, protocol]);
    const first = seen.get(key);
    if (first === undefined) seen.set(key, index);
    return first === undefined
      ? []
      : [warning(`${path}.targets[${index}]`, `The same as targets[${first}]: failing over to it has no effect`)];
  });
}

function isFree(price: string): boolean {
  return parseUsd(price) === 0n;
}

/** Warns about free models whose upstream sends bills. */
function priceWarnings(model: Model, { path, now, billed }: { path: string; now: number; billed: boolean }): Warning[] {
  if (!billed) return [];
  const { prompt, completion, request } = pricingAt(model, now);
  const kind = kindOf(model);
  // Embedding and rerank models produce no output tokens, and a price per search may be their only price.
  const hasOutput = kind !== "embedding" && kind !== "rerank";
  const isPaid = request !== undefined && !isFree(request);
  const free = [
    ...(isFree(prompt) && !isPaid ? ["prompt"] : []),
    ...(isFree(completion) && hasOutput ? ["completion"] : []),
  ];
  if (free.length === 0) return [];
  return [
    warning(
      `${path}.pricing`,
      `${free.map((name) => `\`${name}\``).join(" and ")} cost nothing, but an upstream bills you: set the price`,
    ),
  ];
}

/** Highest price of a token without a warning: ten times the highest one of any vendor in 2026. */
const HIGHEST_PRICE = parseUsd("0.01");

const TOKEN_PRICES = ["prompt", "completion", ...CACHE_PRICES] as const;

/** Warns about prices that were probably meant per million tokens. Cache prices that are left out are the prompt's. */
function unitWarnings(model: Model, { path, now }: { path: string; now: number }): Warning[] {
  const pricing = pricingAt(model, now);
  const wrong = TOKEN_PRICES.filter((name) =>
    parseUsd(pricing[name]) > HIGHEST_PRICE && (name === "prompt" || pricing[name] !== pricing.prompt)
  );
  return wrong.map((name) =>
    warning(
      `${path}.pricing`,
      `\`${name}\` is ${pricing[name]} USD per token, which is ${perMillion(pricing[name])} USD per million tokens: ` +
        "write USD per token",
    )
  );
}

/**
 * Warns about cache prices that equal the prompt's, which is the default of prices that are left out: Anthropic has
 * separate prices for cache reads and writes.
 */
function cachePriceWarnings(
  model: Model,
  { path, now, anthropic }: { path: string; now: number; anthropic: boolean },
): Warning[] {
  const { prompt, ...pricing } = pricingAt(model, now);
  if (!anthropic || isFree(prompt)) return [];
  const same = CACHE_PRICES.filter((name) => parseUsd(pricing[name]) === parseUsd(prompt));
  if (same.length === 0) return [];
  return [
    warning(
      `${path}.pricing`,
      `The price of ${same.map((name) => `\`${name}\``).join(", ")} is that of \`prompt\`. Anthropic charges a tenth ` +
        "of it for cache reads, 1.25 times as much for writes of 5 minutes, and twice as much for writes of 1 hour: " +
        "set the prices",
    ),
  ];
}

/** Warns about past price changes and past expiration dates. */
function* dateWarnings(
  { price_changes, expiration_date }: Model,
  { path, now }: { path: string; now: number },
): Generator<Warning> {
  const past = price_changes.filter(({ from }) => from <= now);
  const latest = past.at(-1);
  if (latest !== undefined) {
    const since = new Date(latest.from).toISOString();
    yield warning(
      `${path}.price_changes`,
      `${past.length} of them ${past.length === 1 ? "is" : "are"} past: write the prices of ${since} as ` +
        "`pricing` and remove those changes",
    );
  }
  if (isExpired({ expiration_date }, now)) {
    yield warning(`${path}.expiration_date`, `${expiration_date} is past: clients cannot use the model; remove it`);
  }
}
