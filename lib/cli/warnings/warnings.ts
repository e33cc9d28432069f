/** Every warning about a configuration that is free of mistakes. */
import type { Config } from "../../config.ts";
import type { Warning } from "./warning.ts";
import { groupWarnings } from "./groups.ts";
import { limitWarnings } from "./limits.ts";
import { modelWarnings } from "./models.ts";
import { networkWarnings } from "./network.ts";
import { nodeWarnings } from "./nodes.ts";
import { upstreamWarnings } from "./upstreams.ts";

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
