/** The configuration in force, and the way to another one, over HTTP. */
import type { Config } from "../config.ts";
import { GatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { originOf } from "./changes.ts";
import { adminResponse } from "./response.ts";
import type { ConfigResponse, ReloadResponse } from "./schemas.ts";

/** The configuration in force, without secrets. */
export function showConfig(_request: Request, { gateway }: RouteContext): Response {
  const answer: ConfigResponse = {
    object: "config",
    ...gateway.reloader.status(),
    config: withoutSecrets(gateway.config),
  };
  return adminResponse(answer);
}

/**
 * Reloads the configuration, for all nodes where they share one.
 * @throws {GatewayError} `invalid` with every mistake, `overloaded` where the store that nodes share is out of reach; the
 * old one stays in force then
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

/** Returns a configuration without hashes of keys. Secrets of upstreams redact themselves. */
export function withoutSecrets({ keys, admin, ...config }: Config): Record<string, unknown> {
  return {
    ...config,
    keys: keys.map(({ name, group, rules }) => ({ name, group, ...rules })),
    ...(admin !== undefined && { admin: { ...(admin.listen !== undefined && { listen: admin.listen }) } }),
  };
}
