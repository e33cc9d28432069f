/** Runs all checks of `doctor`, and returns their findings in the order of the report. */
import type { Config, HttpUpstreamConfig } from "../config.ts";
import { checkClock } from "./clock.ts";
import { type Finding, withoutSecrets } from "./finding.ts";
import { checkGateway, type ServingState } from "./gateway.ts";
import { checkStoreFiles } from "./store_files.ts";
import { checkJournal } from "./journal.ts";
import { checkPostgres } from "./postgres.ts";
import { checkProxies } from "./proxies.ts";
import { checkRedis } from "./redis.ts";
import { checkPublicUrl, type PublicUrlOptions } from "./public_url.ts";
import { rememberSecret } from "../secret.ts";
import { createAddressGuard } from "../upstreams/address_guard.ts";
import { baseUrlOf } from "../upstreams/vendors.ts";
import { checkUpstream, type UpstreamCheckOptions } from "./upstream.ts";

/** Options of the checks. */
export interface DoctorOptions extends UpstreamCheckOptions {
  config: Config;
  /** Absent: the public URL is not checked. */
  public?: Omit<PublicUrlOptions, "timeoutMs" | "trusted">;
  /**
   * Returns the state of the gateway that answers at the address of the configuration; `undefined` if none does.
   * Absent: this process is that gateway.
   */
  serving?: () => Promise<ServingState | undefined>;
}

/** Runs all checks. The findings contain no secrets. */
export async function runChecks(
  { config, serving, public: publicOptions, ...options }: DoctorOptions,
): Promise<Finding[]> {
  if (publicOptions?.key !== undefined) rememberSecret(publicOptions.key);
  const hosts = Object.entries(config.upstreams).flatMap(([name, host]): { name: string; host: HttpUpstreamConfig }[] =>
    host.vendor === "embedded" ? [] : [{ name, host }]
  );
  const guard = createAddressGuard(config.private_networks);
  const [state, store, database, limits, publicUrl, upstreams] = await Promise.all([
    serving?.(),
    checkStoreFiles(config, serving),
    checkPostgres(config, options),
    checkRedis(config, options),
    publicOptions === undefined
      ? []
      : checkPublicUrl({ ...publicOptions, trusted: config.trusted_proxies, timeoutMs: options.timeoutMs }),
    Promise.all(
      hosts.map(({ name, host }) =>
        checkUpstream(name, { host, models: modelsAt(name, config), options: { ...options, guard } })
      ),
    ),
  ]);
  const findings = [
    ...checkGateway(state),
    ...store,
    ...database,
    ...limits,
    ...checkJournal(config),
    ...checkProxies(hosts.map(({ name, host }) => ({ name, url: baseUrlOf(host) })), options.env),
    ...upstreams.flatMap(({ findings }) => findings),
    ...checkClock(upstreams.flatMap(({ aheadMs }) => aheadMs ?? [])),
    ...publicUrl,
  ];
  return withoutSecrets(findings);
}

/** Returns the distinct model ids of targets at an upstream. */
function modelsAt(upstream: string, { models }: Config): string[] {
  const targets = models.flatMap((model) => model.targets).filter((target) => target.upstream === upstream);
  return [...new Set(targets.map(({ model }) => model))];
}
