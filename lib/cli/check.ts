/**
 * `check`: shows what a valid configuration would serve, and all warnings about it. Mistakes are reported by loading
 * it.
 */
import { mayUse } from "../access/permissions.ts";
import { createCatalog, pricingAt } from "../catalog/catalog.ts";
import type { Model } from "../catalog/model.ts";
import type { Config, Group } from "../config.ts";
import { addressWithoutPassword } from "../config/address.ts";
import { listenersOf } from "../server/surface.ts";
import { type Warning, warningText } from "./warnings/warning.ts";
import { allWarnings } from "./warnings/warnings.ts";
import { budgetText, limitsText, listText, userBudgetText } from "./key_text.ts";
import { jsonText, writeOut } from "./output.ts";
import { parseUsd, perMillion } from "../billing/money.ts";
import { CACHE_PRICES, type TieredPrices } from "../catalog/price_schema.ts";

/** Input of `check` and its output format. */
export interface CheckOptions {
  config: Config;
  /** Path of the file; absent: the configuration is not from a file. */
  path?: string;
  /** Name of the variable that holds the text; absent: it is not from a variable. */
  variable?: string;
  /** For each model its index in the file's list; absent: the lists are the same. */
  modelIndices?: readonly number[];
  /** True to print JSON; absent: text. */
  json?: boolean;
  /** True if a warning is a failure; absent: it is not. */
  strict?: boolean;
  /** Unix time in milliseconds; absent: now. */
  now?: number;
}

/** Prints what would be served, and all warnings. Returns 1 if `strict` is set and there is a warning. */
export async function check(
  { config, path, variable, modelIndices, json = false, strict = false, now = Date.now() }: CheckOptions,
): Promise<number> {
  const warnings = await allWarnings({ config, modelIndices }, now);
  const { models } = createCatalog(config);
  const result: CheckResult = { config, source: path ?? variable, models, warnings, now };
  writeOut(json ? jsonText(checkObject(result)) : checkText(result));
  return strict && warnings.length > 0 ? 1 : 0;
}

interface CheckResult {
  config: Config;
  /** Path of the file or name of the variable; `undefined`: the configuration is built in. */
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

function usableBy(group: Group, models: readonly Model[]): number {
  return models.filter((model) => mayUse({ group, rules: {} }, model.id)).length;
}

/** Returns the lines about a group: its permissions, then everything else that differs from the default. */
function groupLines(name: string, { group, models }: { group: Group; models: readonly Model[] }): string[] {
  const eachKey = [
    ...(group.key_limits === undefined ? [] : [limitsText(group.key_limits)]),
    ...(group.key_budget === undefined ? [] : [budgetText(group.key_budget)]),
  ];
  const facts: [about: string, fact: string | false | undefined][] = [
    ["hosted tools", group.hosted_tools && listText(group.hosted_tools)],
    ["service tiers", group.service_tiers && listText(group.service_tiers)],
    ["remote MCP servers", group.remote_mcp === true && "allowed"],
    ["vendor state", group.vendor_state === true && "allowed"],
    ["addresses", group.ips && listText(group.ips)],
    ["prices", group.price_factor !== "1" && `times ${group.price_factor}`],
    ["limits", group.limits && limitsText(group.limits)],
    ["budget", group.budget && budgetText(group.budget)],
    ["each key", eachKey.length > 0 && eachKey.join("; ")],
    ["keys", group.user_budget && userBudgetText(group.user_budget)],
  ];
  return [
    `  ${name}: models ${listText(group.models)} (${usableBy(group, models)} of ${models.length}); ` +
    `endpoints ${listText(group.endpoints)}; protocols ${listText(group.protocols)}`,
    ...facts.flatMap(([about, fact]) => typeof fact === "string" ? [`    ${about}: ${fact}`] : []),
  ];
}

function adminSide(config: Config): string {
  const listener = listenersOf(config).find(({ surface }) => surface !== "public");
  if (listener === undefined) return 'none (there is no "admin" in the configuration)';
  return listener.surface === "both"
    ? "under /admin/v1, at the same address"
    : `${listener.hostname}:${listener.port}, under /admin/v1`;
}

/** Formats the prices at `now` (Unix milliseconds): `USD per million tokens: prompt 1.25, completion 10`, or `free`. */
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
  const simplePrices = [
    prompt,
    completion,
    input_image,
    request,
    ...CACHE_PRICES.map((name) => pricing[name]),
    ...Object.values(hosted_tools),
  ];
  const isFree = (service_tiers ?? context_tiers) === undefined &&
    simplePrices.every((price) => parseUsd(price) === 0n);
  if (isFree) return "free";
  const prices: [name: string, price: string][] = [
    ["prompt", prompt],
    ["completion", completion],
    ...CACHE_PRICES.map((name): [string, string] => [name, pricing[name]])
      .filter(([, price]) => price !== prompt && price !== "0"),
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
