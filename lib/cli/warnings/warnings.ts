/** Collects all warnings about a valid configuration. */
import type { Config } from "../../config.ts";
import { pathInFile } from "../../config/expand_models.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { catalogWarnings } from "./catalog.ts";
import type { Warning } from "./warning.ts";
import { groupWarnings } from "./groups.ts";
import { limitWarnings } from "./limits.ts";
import { modelWarnings } from "./models.ts";
import { networkWarnings } from "./network.ts";
import { journalWarnings, nodeWarnings } from "./nodes.ts";
import { upstreamWarnings } from "./upstreams.ts";

type Warned = Pick<LoadedConfig, "config" | "modelIndices">;

/** Returns all warnings, with paths as in the file. @param now Unix time in milliseconds */
export async function allWarnings(loaded: Warned, now: number): Promise<Warning[]> {
  const { config, modelIndices } = loaded;
  const others = [
    ...await catalogWarnings(config, { now, usesCatalog: modelIndices !== undefined }),
    ...journalWarnings(config),
  ];
  return [...configWarnings(loaded, now), ...asInFile(others, loaded)];
}

/** Returns the warnings that need neither the catalog nor the disk. @param now Unix time in milliseconds */
export function configWarnings(loaded: Warned, now: number): Warning[] {
  const { config } = loaded;
  const warnings = [
    ...networkWarnings(config),
    ...nodeWarnings(config),
    ...upstreamWarnings(config),
    ...modelWarnings(config, now),
    ...groupWarnings(config),
    ...limitWarnings(config, now),
  ];
  return asInFile(warnings, loaded);
}

function asInFile(warnings: readonly Warning[], { config, modelIndices }: Warned): Warning[] {
  return warnings.map(({ path, message }) => ({
    path: pathInFile(path, modelIndices),
    message: `${ownerOf(path, config)}${message}`,
  }));
}

/** Returns the id of the model that a path is about, as the beginning of a message: the path has only its index. */
function ownerOf(path: string, { models }: Config): string {
  const [, index] = /^models\[(\d+)\]/.exec(path) ?? [];
  const model = models[Number(index)];
  return model === undefined ? "" : `Model "${model.id}": `;
}
