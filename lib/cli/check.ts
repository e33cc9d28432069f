/** `check`: what the configuration would serve. Its mistakes were reported when it was loaded. */
import { mayUse } from "../access/permissions.ts";
import { createCatalog } from "../catalog/catalog.ts";
import type { Config } from "../config.ts";
import { listenersOf } from "../http/surface.ts";
import { writeOut } from "./output.ts";

/** Prints models, groups and keys. */
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
    ...Object.entries(config.groups).map(([name, group]) => {
      const usable = models.filter((model) => mayUse({ group, rules: {} }, model.id)).length;
      return `  ${name}: models ${group.models.join(", ")} (${usable} of ${models.length}); ` +
        `endpoints ${group.endpoints.join(", ")}`;
    }),
    ...(config.keys.length === 0 ? [] : ["", "Keys from the environment:"]),
    ...config.keys.map(({ name, group }) => `  ${name} (group ${group})`),
  ];
  writeOut(`${lines.join("\n")}\n`);
  return 0;
}

function adminSide(config: Config): string {
  const listener = listenersOf(config).find(({ surface }) => surface !== "public");
  if (listener === undefined) return 'none (there is no "admin" in the configuration)';
  return listener.surface === "both"
    ? "under /admin/v1, at the same address"
    : `${listener.hostname}:${listener.port}, under /admin/v1`;
}
