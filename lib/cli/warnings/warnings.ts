/** Every doubt about a configuration that is free of mistakes. */
import type { Config } from "../../config.ts";
import type { Doubt } from "./warning.ts";
import { groupDoubts } from "./groups.ts";
import { limitDoubts } from "./limits.ts";
import { modelDoubts } from "./models.ts";
import { networkDoubts } from "./network.ts";
import { nodeDoubts } from "./nodes.ts";
import { upstreamDoubts } from "./upstreams.ts";

/** Doubts about a configuration, in the order of its members. `now` in Unix milliseconds. */
export function doubtsOf(config: Config, now: number): Doubt[] {
  return [
    ...networkDoubts(config),
    ...nodeDoubts(config),
    ...upstreamDoubts(config),
    ...modelDoubts(config, now),
    ...groupDoubts(config),
    ...limitDoubts(config, now),
  ];
}
