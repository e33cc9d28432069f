/** `check`: what the configuration would serve, and every warning. Its mistakes were reported when it was loaded. */
import { mayUse } from "../access/permissions.ts";
import { createCatalog } from "../catalog/catalog.ts";
import type { Model } from "../catalog/model.ts";
import type { TieredPrices } from "../catalog/price_schema.ts";
import { pricingAt } from "../catalog/pricing.ts";
import type { Config, Group } from "../config.ts";
import { addressWithoutPassword } from "../config/address.ts";
import { listenersOf } from "../server/surface.ts";
import { formatUsd, parseUsd } from "../billing/money.ts";
import { type Warning, warningText } from "./warnings/warning.ts";
import { configWarnings } from "./warnings/warnings.ts";
import { journalWarnings } from "./warnings/journal.ts";
import { budgetText, limitsText, listText } from "./key_text.ts";
import { writeOut } from "./output.ts";

/** Input of `check` and its output format. */
export interface CheckOptions {
  config: Config;
  /** The file; absent: there is none. */
  path?: string;
  /** Name of the variable that holds the text; absent: none does. */
  variable?: string;
  /** True: as JSON. */
  json?: boolean;
  /** True: a warning is a failure. */
  strict?: boolean;
  /** Unix time in milliseconds; absent: the present. */
  now?: number;
}

/** Prints what would be served, and every warning. Returns 1 if there is one and `strict` is set. */
export function check(
  { config, path, variable, json = false, strict = false, now = Date.now() }: CheckOptions,
): number {
  const warnings = [...configWarnings(config, now), ...journalWarnings(config)];
  const { models } = createCatalog(config);
  const all: CheckResult = { config, source: path ?? variable, models, warnings, now };
  writeOut(json ? `${JSON.stringify(checkObject(all), null, 2)}\n` : checkText(all));
  return strict && warnings.length > 0 ? 1 : 0;
}

interface CheckResult {
  config: Config;
  /** Absent: the configuration is built in. */
  source: string | undefined;
  models: readonly Model[];
  warnings: readonly Warning[];
  now: number;
}

function checkText({ config, source, models, warnings, now }: CheckResult): string {
  const lines = [
    `Configuration: ${source ?? "built in (there is no file)"}`,
    `Listens on:    ${config.listen.hostname}:${config.listen.port}`,
    `Admin side:    ${adminSide(config)}`,
    `Store:         ${addressWithoutPassword(config.store)}`,
    ...(config.limits_store.kind === "memory" ? [] : [`Limits:        ${addressWithoutPassword(config.limits_store)}`]),
    "",
    `Models (${models.length}):`,
    ...models.flatMap((model) => [`  ${model.id} -> ${targetsOf(model).join(", ")}`, `    ${priceText(model, now)}`]),
    "",
    "Groups:",
    ...Object.entries(config.groups).flatMap(([name, group]) => groupLines(name, { group, models })),
    ...(config.keys.length === 0 ? [] : ["", "Keys from the environment:"]),
    ...config.keys.map(({ name, group }) => `  ${name} (group ${group})`),
    ...(warnings.length === 0 ? [] : ["", `Warnings (${warnings.length}):`]),
    ...warnings.map((warning) => `  ${warningText(warning)}`),
  ];
  return `${lines.join("\n")}\n`;
}

function checkObject({ config, source, models, warnings, now }: CheckResult): Record<string, unknown> {
  return {
    path: source ?? null,
    listen: config.listen,
    admin: listenersOf(config).find(({ surface }) => surface !== "public") ?? null,
    store: addressWithoutPassword(config.store),
    limits_store: addressWithoutPassword(config.limits_store),
    models: models.map((model) => ({ id: model.id, targets: targetsOf(model), pricing: pricingAt(model, now) })),
    groups: Object.fromEntries(
      Object.entries(config.groups).map(([name, group]) => [name, { ...group, usable: usableBy(group, models) }]),
    ),
    keys: config.keys.map(({ name, group, rules }) => ({ name, group, ...rules })),
    warnings,
  };
}

function targetsOf({ targets }: Model): string[] {
  return targets.map(({ upstream, model }) => `${upstream}:${model}`);
}

/** Prices in force, per million tokens: `USD per million tokens: prompt 1.25, completion 10`. */
function priceText(model: Model, now: number): string {
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
  const plain = [
    prompt,
    completion,
    input_image,
    request,
    ...names.map((name) => pricing[name]),
    ...Object.values(hosted_tools),
  ];
  const isFree = (service_tiers ?? context_tiers) === undefined && plain.every((price) => parseUsd(price) === 0n);
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

function perMillion(price: string): string {
  return formatUsd(parseUsd(price) * 1_000_000n);
}

function usableBy(group: Group, models: readonly Model[]): number {
  return models.filter((model) => mayUse({ group, rules: {} }, model.id)).length;
}

/** Lines about a group: its permissions, then its restrictions. */
function groupLines(name: string, { group, models }: { group: Group; models: readonly Model[] }): string[] {
  const eachKey = [
    ...(group.key_limits === undefined ? [] : [limitsText(group.key_limits)]),
    ...(group.key_budget === undefined ? [] : [budgetText(group.key_budget)]),
  ];
  return [
    `  ${name}: models ${listText(group.models)} (${usableBy(group, models)} of ${models.length}); ` +
    `endpoints ${listText(group.endpoints)}; protocols ${listText(group.protocols)}`,
    ...(group.hosted_tools === undefined ? [] : [`    hosted tools: ${listText(group.hosted_tools)}`]),
    ...(group.service_tiers === undefined ? [] : [`    service tiers: ${listText(group.service_tiers)}`]),
    ...(group.remote_mcp === true ? ["    remote MCP servers: allowed"] : []),
    ...(group.vendor_state === true ? ["    vendor state: allowed"] : []),
    ...(group.ips === undefined ? [] : [`    addresses: ${listText(group.ips)}`]),
    ...(group.price_factor === "1" ? [] : [`    prices: times ${group.price_factor}`]),
    ...(group.limits === undefined ? [] : [`    limits: ${limitsText(group.limits)}`]),
    ...(group.budget === undefined ? [] : [`    budget: ${budgetText(group.budget)}`]),
    ...(eachKey.length === 0 ? [] : [`    each key: ${eachKey.join("; ")}`]),
  ];
}

function adminSide(config: Config): string {
  const listener = listenersOf(config).find(({ surface }) => surface !== "public");
  if (listener === undefined) return 'none (there is no "admin" in the configuration)';
  return listener.surface === "both"
    ? "under /admin/v1, at the same address"
    : `${listener.hostname}:${listener.port}, under /admin/v1`;
}
