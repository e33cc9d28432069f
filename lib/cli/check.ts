/** `check`: what the configuration would serve. Its mistakes were reported when it was loaded. */
import { mayUse } from "../access/permissions.ts";
import { createCatalog } from "../catalog/catalog.ts";
import type { Model } from "../catalog/model.ts";
import type { Config, Group } from "../config.ts";
import { listenersOf } from "../http/surface.ts";
import { budgetText, limitsText, listText } from "./key_text.ts";
import { writeOut } from "./output.ts";

/** Prints models, groups with what they may, pay and spend, and keys. */
export function check({ config, path }: { config: Config; path?: string }): number {
  const { models } = createCatalog(config);
  const lines = [
    `Configuration: ${path ?? "built in (there is no file)"}`,
    `Listens on:    ${config.listen.hostname}:${config.listen.port}`,
    `Admin side:    ${adminSide(config)}`,
    `Store:         ${config.store}`,
    "",
    `Models (${models.length}):`,
    ...models.map(({ id, targets }) => `  ${id} -> ${targets.map((t) => `${t.upstream}:${t.model}`).join(", ")}`),
    "",
    "Groups:",
    ...Object.entries(config.groups).flatMap(([name, group]) => groupLines(name, { group, models })),
    ...(config.keys.length === 0 ? [] : ["", "Keys from the environment:"]),
    ...config.keys.map(({ name, group }) => `  ${name} (group ${group})`),
  ];
  writeOut(`${lines.join("\n")}\n`);
  return 0;
}

/** What a group may do, and below it what narrows that. */
function groupLines(name: string, { group, models }: { group: Group; models: readonly Model[] }): string[] {
  const usable = models.filter((model) => mayUse({ group, rules: {} }, model.id)).length;
  const eachKey = [
    ...(group.key_limits === undefined ? [] : [limitsText(group.key_limits)]),
    ...(group.key_budget === undefined ? [] : [budgetText(group.key_budget)]),
  ];
  return [
    `  ${name}: models ${listText(group.models)} (${usable} of ${models.length}); ` +
    `endpoints ${listText(group.endpoints)}; protocols ${listText(group.protocols)}`,
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
