/** `/admin/v1/config` and `/admin/v1/reload`: shows the active configuration, and reloads it. */
import type { Config } from "../config.ts";
import { GatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { originOf } from "./changes.ts";
import { adminResponse } from "./response.ts";
import type { ConfigResponse, ReloadResponse } from "./schemas.ts";

/** Returns the active configuration, without secrets. */
export function showConfig(_request: Request, { gateway }: RouteContext): Response {
  const answer: ConfigResponse = {
    object: "config",
    ...gateway.reloader.status(),
    config: withoutSecrets(gateway.config),
  };
  return adminResponse(answer);
}

/**
 * Reloads the configuration, of all nodes if they share it. If it is refused, the old one stays active.
 * @throws {GatewayError} `invalid` with every mistake; `overloaded` if the store of a shared configuration is
 * unreachable
 */
export async function reload(_request: Request, context: RouteContext): Promise<Response> {
  const { reloader } = context.gateway;
  const reloaded = await reloader.reload("admin", originOf(context));
  if (reloaded.outcome === "refused") {
    const { problems, isAway = false } = reloaded;
    throw new GatewayError(isAway ? "overloaded" : "invalid", problems.join("\n"));
  }
  const answer: ReloadResponse = { object: "reload", ...reloaded, ...reloader.status() };
  return adminResponse(answer);
}

/** Returns a configuration without the hashes of keys. Secrets of upstreams need no treatment: JSON hides them. */
export function withoutSecrets({ keys, admin, ...config }: Config): Record<string, unknown> {
  return {
    ...config,
    keys: keys.map(({ name, group, rules }) => ({ name, group, ...rules })),
    ...(admin !== undefined && { admin: { ...(admin.listen !== undefined && { listen: admin.listen }) } }),
  };
}
