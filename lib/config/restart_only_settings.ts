/** Keeps the settings that only a restart can change when the configuration is reloaded. */
import type { Config } from "../config.ts";
import { configDigest } from "./digest.ts";

/** Paths of the members that a reload does not change. */
export const RESTART_ONLY = [
  "listen",
  "store",
  "limits_store",
  "resource_limits.image_pixels",
  "resource_limits.image_wait_ms",
  "nodes",
  "images.uploads.concurrent_uploads",
  "images.idempotency",
  "admin",
  "admin.listen",
] as const;

/** Path of a member that only a restart changes. */
type RestartOnlyPath = (typeof RESTART_ONLY)[number];

/** A new configuration with the restart-only settings of the first one, and the paths of the ignored changes. */
export interface KeptSettings {
  config: Config;
  ignored: RestartOnlyPath[];
}

/**
 * Returns the next configuration with the settings of the first that the store, the listeners and other process-wide
 * parts were created with. The admin keys may change, and the admin side may be removed, but it can be added, and its
 * listener changed, only by a restart.
 */
export function keepRestartOnlySettings(first: Config, next: Config): KeptSettings {
  const ignored: RestartOnlyPath[] = [];
  let config = next;
  for (const path of RESTART_ONLY) {
    if (path === "admin" ? first.admin !== undefined : path === "admin.listen" && config.admin === undefined) continue;
    const names = path.split(".");
    const [current, changed] = [first, next].map((root) => names.reduce(memberOf, root));
    if (configDigest(current) !== configDigest(changed)) ignored.push(path);
    config = withMember(config, names, current) as Config;
  }
  return { config, ignored };
}

function memberOf(value: unknown, name: string): unknown {
  return Object(value)[name];
}

/** Returns a copy with another value of the member at a path, in the same order; without it if that is undefined. */
function withMember(value: object, [name = "", ...rest]: readonly string[], member: unknown): object {
  const inner = rest.length === 0 ? member : withMember(Object(memberOf(value, name)), rest, member);
  const members = Object.entries({ ...value, [name]: inner });
  return Object.fromEntries(members.filter(([, each]) => each !== undefined));
}
