/** Warnings about groups and keys: what they may do. */
import { mayCall, mayUse } from "../../access/permissions.ts";
import { createCatalog } from "../../catalog/catalog.ts";
import { type Config, ENDPOINTS, type Group, groupOf, groupSchema, type KeyRules } from "../../config.ts";
import { pathText } from "../../config/problems.ts";
import type { Warning } from "./warning.ts";

/** Warnings about every group, and about the keys of the environment. */
export function groupWarnings(config: Config): Warning[] {
  const ids = createCatalog(config).models.map(({ id }) => id);
  return [
    ...Object.entries(config.groups).flatMap(([name, group]) =>
      oneGroupWarnings(group, { path: ["groups", name], ids })
    ),
    ...config.keys.flatMap((_, index) => oneKeyWarnings(config, { index, ids })),
  ];
}

function oneGroupWarnings(group: Group, { path, ids }: { path: string[]; ids: readonly string[] }): Warning[] {
  const warnings: Warning[] = [];
  const usable = ids.filter((id) => mayUse({ group, rules: {} }, id));
  if (usable.length === 0) {
    warnings.push({
      path: pathText([...path, "models"]),
      message: `None of the ${ids.length} models is allowed: list some`,
    });
  } else {
    warnings.push(...globWarnings(group.models, { path: [...path, "models"], ids }));
  }
  if (!ENDPOINTS.some((endpoint) => mayCall({ group, rules: {} }, endpoint))) {
    warnings.push({
      path: pathText([...path, "endpoints"]),
      message: "No endpoint is allowed: list endpoints and protocols",
    });
  }
  return warnings;
}

function globWarnings(
  globs: readonly string[],
  { path, ids }: { path: (string | number)[]; ids: readonly string[] },
): Warning[] {
  return globs.flatMap((glob, index) =>
    ids.some((id) => mayUse({ group: { models: [glob] }, rules: {} }, id)) ? [] : [{
      path: pathText([...path, index]),
      message: `"${glob}" matches no model: correct it, or remove it`,
    }]
  );
}

function oneKeyWarnings(config: Config, { index, ids }: { index: number; ids: readonly string[] }): Warning[] {
  const key = config.keys[index];
  const group = key === undefined ? undefined : groupOf(config, key.group);
  if (key === undefined || group === undefined) return [];
  const path = ["keys", index];
  const warnings = rulesWarnings(key, { group, path, ids });
  if (key.group !== "default" || Object.keys(config.groups).length < 2 || !isOpen(group)) return warnings;
  return [{
    path: pathText([...path, "group"]),
    message: 'It is in "default", which may do everything: choose another group, or restrict "default"',
  }, ...warnings];
}

/** Warnings about what a key of the store may do. */
export function keyWarnings(config: Config, key: Ruled): Warning[] {
  const group = groupOf(config, key.group);
  const ids = createCatalog(config).models.map(({ id }) => id);
  return group === undefined ? [] : rulesWarnings(key, { group, path: [], ids });
}

/** The part of a key that decides its permissions. */
interface Ruled {
  group: string;
  rules: KeyRules;
}

function rulesWarnings(
  { group: name, rules }: Ruled,
  { group, path, ids }: { group: Group; path: (string | number)[]; ids: readonly string[] },
): Warning[] {
  const warnings: Warning[] = [];
  if (rules.models !== undefined) {
    const allowed = ids.filter((id) => mayUse({ group, rules: {} }, id));
    if (!allowed.some((id) => mayUse({ group, rules }, id))) {
      warnings.push({
        path: pathText([...path, "models"]),
        message: `None of the models of group "${name}" is left: list some of them`,
      });
    } else warnings.push(...globWarnings(rules.models, { path: [...path, "models"], ids: allowed }));
  }
  if (rules.endpoints !== undefined && !ENDPOINTS.some((endpoint) => mayCall({ group, rules }, endpoint))) {
    warnings.push({
      path: pathText([...path, "endpoints"]),
      message: `None of the endpoints of group "${name}" is left: list some of them`,
    });
  }
  return warnings;
}

function isOpen(group: Group): boolean {
  return JSON.stringify(group) === JSON.stringify(groupSchema.parse({}));
}
