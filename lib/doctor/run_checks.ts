/** Runs all checks, in the order of the report. */
import type { Config, HttpUpstreamConfig } from "../config.ts";
import { checkClock } from "./clock.ts";
import { type Finding, withoutSecrets } from "./finding.ts";
import { checkStoreFiles } from "./store_files.ts";
import { checkJournal } from "./journal.ts";
import { checkPostgres } from "./postgres.ts";
import { checkProxies } from "./proxies.ts";
import { checkRedis } from "./redis.ts";
import { checkSettings } from "./settings.ts";
import { checkPublicUrl, type PublicUrlOptions } from "./public_url.ts";
import { rememberSecret } from "../secret.ts";
import { createAddressGuard } from "../upstreams/address_guard.ts";
import { baseUrlOf } from "../upstreams/vendors.ts";
import { checkUpstream, type UpstreamCheckOptions } from "./upstream.ts";

/** Options of the doctor. */
export interface DoctorOptions extends UpstreamCheckOptions {
  config: Config;
  /** Path of the configuration's file; absent: it is built in. */
  path?: string;
  /** Absent: the public URL is not checked. */
  public?: Omit<PublicUrlOptions, "timeoutMs" | "trusted">;
  /** True if a gateway answers at the address of the configuration. Absent: this process serves it. */
  isServing?: () => Promise<boolean>;
}

/** Runs all checks. No finding shows a secret. */
export async function runChecks(
  { config, path, isServing, public: from, ...options }: DoctorOptions,
): Promise<Finding[]> {
  if (from?.key !== undefined) rememberSecret(from.key);
  const hosts = Object.entries(config.upstreams).flatMap(([name, host]): { name: string; host: HttpUpstreamConfig }[] =>
    host.vendor === "embedded" ? [] : [{ name, host }]
  );
  const guard = createAddressGuard(config.private_networks);
  const [store, database, limits, publicUrl, upstreams] = await Promise.all([
    checkStoreFiles(config, isServing),
    checkPostgres(config, options),
    checkRedis(config, options),
    from === undefined
      ? []
      : checkPublicUrl({ ...from, trusted: config.trusted_proxies, timeoutMs: options.timeoutMs }),
    Promise.all(
      hosts.map(({ name, host }) =>
        checkUpstream(name, { host, models: modelsAt(name, config), options: { ...options, guard } })
      ),
    ),
  ]);
  const findings = [
    ...checkSettings(config, path),
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

/** The distinct model names of targets at an upstream. */
function modelsAt(upstream: string, { models }: Config): string[] {
  const targets = models.flatMap((model) => model.targets).filter((target) => target.upstream === upstream);
  return [...new Set(targets.map(({ model }) => model))];
}
