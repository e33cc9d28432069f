/** Keeps the settings that only a restart can change when the configuration is reloaded. */
import type { Config } from "../config.ts";
import { isSameAddress, type LimitsAddress, type StoreAddress } from "./address.ts";

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
 * parts were created with.
 */
export function keepRestartOnlySettings(first: Config, next: Config): KeptSettings {
  const ignored: RestartOnlyPath[] = [];
  const keep = <T>(path: RestartOnlyPath, [current, changed]: readonly [T, T]): T => {
    if (JSON.stringify(current) !== JSON.stringify(changed)) ignored.push(path);
    return current;
  };
  const keepAddress = <Address extends StoreAddress | LimitsAddress>(
    path: RestartOnlyPath,
    [current, changed]: readonly [Address, Address],
  ): Address => {
    if (!isSameAddress(current, changed)) ignored.push(path);
    return current;
  };
  const { admin, ...others } = next;
  const { images: { uploads, idempotency }, resource_limits: limits } = first;
  const config: Config = {
    ...others,
    listen: keep("listen", [first.listen, next.listen]),
    store: keepAddress("store", [first.store, next.store]),
    limits_store: keepAddress("limits_store", [first.limits_store, next.limits_store]),
    resource_limits: {
      ...next.resource_limits,
      image_pixels: keep("resource_limits.image_pixels", [limits.image_pixels, next.resource_limits.image_pixels]),
      image_wait_ms: keep("resource_limits.image_wait_ms", [limits.image_wait_ms, next.resource_limits.image_wait_ms]),
    },
    nodes: keep("nodes", [first.nodes, next.nodes]),
    images: {
      ...next.images,
      uploads: {
        ...next.images.uploads,
        concurrent_uploads: keep("images.uploads.concurrent_uploads", [
          uploads.concurrent_uploads,
          next.images.uploads.concurrent_uploads,
        ]),
      },
      idempotency: keep("images.idempotency", [idempotency, next.images.idempotency]),
    },
  };
  const keptAdmin = adminOf(first, { admin, ignored });
  return { config: keptAdmin === undefined ? config : { ...config, admin: keptAdmin }, ignored };
}

/**
 * Returns the admin settings after a reload. The admin keys may change, and the admin side may be removed, but it can
 * be added, and its listener changed, only by a restart.
 */
function adminOf(
  first: Config,
  { admin, ignored }: { admin: Config["admin"]; ignored: RestartOnlyPath[] },
): Config["admin"] {
  if (admin === undefined) return undefined;
  if (first.admin === undefined) {
    ignored.push("admin");
    return undefined;
  }
  const { listen } = first.admin;
  if (JSON.stringify(listen) !== JSON.stringify(admin.listen)) ignored.push("admin.listen");
  const { listen: _, ...keys } = admin;
  return { ...keys, ...(listen !== undefined && { listen }) };
}
