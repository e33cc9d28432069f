/** `/admin/v1/config` and `/admin/v1/reload`: shows the active configuration, and reloads it. */
import type { Config } from "../config.ts";
import type { ReloadResult } from "../config/reloader.ts";
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

/** `POST /admin/v1/reload`. @throws the errors of `reloadConfiguration` */
export async function reload(_request: Request, context: RouteContext): Promise<Response> {
  const reloaded = await reloadConfiguration(context);
  const answer: ReloadResponse = { object: "reload", ...reloaded, ...context.gateway.reloader.status() };
  return adminResponse(answer);
}

/**
 * Reloads the configuration for an operator, of all nodes if they share it. If it is refused, the old one stays active.
 * @throws {GatewayError} `invalid` with every mistake; `overloaded` if the store of a shared configuration is
 * unreachable
 */
export async function reloadConfiguration(
  context: RouteContext,
): Promise<Exclude<ReloadResult, { outcome: "refused" }>> {
  const reloaded = await context.gateway.reloader.reload("admin", originOf(context));
  if (reloaded.outcome !== "refused") return reloaded;
  const { problems, isAway = false } = reloaded;
  throw new GatewayError(isAway ? "overloaded" : "invalid", problems.join("\n"));
}

/** Returns a configuration without the hashes of keys. Secrets of upstreams need no treatment: JSON hides them. */
export function withoutSecrets({ keys, admin, ...config }: Config): Record<string, unknown> {
  return {
    ...config,
    keys: keys.map(({ name, group, rules }) => ({ name, group, ...rules })),
    ...(admin !== undefined && { admin: { ...(admin.listen !== undefined && { listen: admin.listen }) } }),
  };
}
