/** Warnings about the permissions of groups and keys. */
import { mayCall, mayUse } from "../../access/permissions.ts";
import { createCatalog } from "../../catalog/catalog.ts";
import { ENDPOINTS } from "../../access/access_table.ts";
import { type Config, type Group, groupOf, groupSchema, type KeyRules } from "../../config.ts";
import { pathText } from "../../config/problems.ts";
import { type Warning, warning } from "./warning.ts";

/** Yields warnings about all groups, and about the keys of the configuration. */
export function* groupWarnings(config: Config): Generator<Warning> {
  const ids = createCatalog(config).models.map(({ id }) => id);
  for (const [name, group] of Object.entries(config.groups)) {
    yield* oneGroupWarnings(group, { path: ["groups", name], ids });
  }
  for (const [index, key] of config.keys.entries()) {
    const group = groupOf(config, key.group);
    if (group === undefined) continue;
    const path = ["keys", index];
    if (key.group === "default" && Object.keys(config.groups).length > 1 && isOpen(group)) {
      yield warning(
        pathText([...path, "group"]),
        'It is in "default", which may do everything: choose another group, or restrict "default"',
      );
    }
    yield* rulesWarnings(key, { group, path, ids });
  }
}

function* oneGroupWarnings(
  group: Group,
  { path, ids }: { path: string[]; ids: readonly string[] },
): Generator<Warning> {
  const usable = ids.filter((id) => mayUse({ group, rules: {} }, id));
  if (usable.length === 0) {
    yield warning(pathText([...path, "models"]), `None of the ${ids.length} models is allowed: list some`);
  } else {
    yield* globWarnings(group.models, { path: [...path, "models"], ids });
  }
  if (!ENDPOINTS.some((endpoint) => mayCall({ group, rules: {} }, endpoint))) {
    yield warning(pathText([...path, "endpoints"]), "No endpoint is allowed: list endpoints and protocols");
  }
}

function globWarnings(
  globs: readonly string[],
  { path, ids }: { path: (string | number)[]; ids: readonly string[] },
): Warning[] {
  return globs.flatMap((glob, index) =>
    ids.some((id) => mayUse({ group: { models: [glob] }, rules: {} }, id))
      ? []
      : [warning(pathText([...path, index]), `"${glob}" matches no model: correct it, or remove it`)]
  );
}

/** Returns warnings about the permissions of a key of the store. */
export function keyWarnings(config: Config, key: KeyPermissions): Warning[] {
  const group = groupOf(config, key.group);
  const ids = createCatalog(config).models.map(({ id }) => id);
  return group === undefined ? [] : [...rulesWarnings(key, { group, path: [], ids })];
}

/** The members of a key that decide its permissions. */
interface KeyPermissions {
  group: string;
  rules: KeyRules;
}

function* rulesWarnings(
  { group: name, rules }: KeyPermissions,
  { group, path, ids }: { group: Group; path: (string | number)[]; ids: readonly string[] },
): Generator<Warning> {
  if (rules.models !== undefined) {
    const allowed = ids.filter((id) => mayUse({ group, rules: {} }, id));
    if (!allowed.some((id) => mayUse({ group, rules }, id))) {
      yield warning(
        pathText([...path, "models"]),
        `It allows no model that group "${name}" may use: list some of them`,
      );
    } else yield* globWarnings(rules.models, { path: [...path, "models"], ids: allowed });
  }
  if (rules.endpoints !== undefined && !ENDPOINTS.some((endpoint) => mayCall({ group, rules }, endpoint))) {
    yield warning(
      pathText([...path, "endpoints"]),
      `It allows no endpoint that group "${name}" may call: list some of them`,
    );
  }
}

/** Returns whether a group has no restrictions. */
function isOpen(group: Group): boolean {
  return JSON.stringify(group) === JSON.stringify(groupSchema.parse({}));
}
