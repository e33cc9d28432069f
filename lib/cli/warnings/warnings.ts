/** Every warning about a configuration that is free of mistakes. */
import type { Config } from "../../config.ts";
import { writtenPath } from "../../config/expand_models.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { catalogWarnings } from "./catalog.ts";
import { journalWarnings } from "./journal.ts";
import type { Warning } from "./warning.ts";
import { groupWarnings } from "./groups.ts";
import { limitWarnings } from "./limits.ts";
import { modelWarnings } from "./models.ts";
import { networkWarnings } from "./network.ts";
import { nodeWarnings } from "./nodes.ts";
import { upstreamWarnings } from "./upstreams.ts";

/** Every warning, with the paths of the file. @param now Unix time in milliseconds */
export async function allWarnings(
  { config, places }: Pick<LoadedConfig, "config" | "places">,
  now: number,
): Promise<Warning[]> {
  const found = [
    ...configWarnings(config, now),
    ...await catalogWarnings(config, { now, usesCatalog: places !== undefined }),
    ...journalWarnings(config),
  ];
  return found.map(({ path, message }) => ({
    path: writtenPath(path, places),
    message: `${ownerOf(path, config)}${message}`,
  }));
}

/** Warnings about a configuration, in the order of its members. `now` in Unix milliseconds. */
export function configWarnings(config: Config, now: number): Warning[] {
  return [
    ...networkWarnings(config),
    ...nodeWarnings(config),
    ...upstreamWarnings(config),
    ...modelWarnings(config, now),
    ...groupWarnings(config),
    ...limitWarnings(config, now),
  ];
}

/** Names the model of a path, which has its index only. */
function ownerOf(path: string, { models }: Config): string {
  const [, index] = /^models\[(\d+)\]/.exec(path) ?? [];
  const model = models[Number(index)];
  return model === undefined ? "" : `Model "${model.id}": `;
}
