/** Everything that can be looked at, in the order of the report. */
import type { Config } from "../config.ts";
import { lookAtClock } from "./clock.ts";
import { type Finding, withoutSecrets } from "./finding.ts";
import { lookAtStore } from "./store_files.ts";
import { lookAtJournal } from "./journal.ts";
import { lookAtPostgres } from "./postgres.ts";
import { lookAtProxies } from "./proxies.ts";
import { lookAtRedis } from "./redis.ts";
import { lookAtSettings } from "./settings.ts";
import { lookThrough, type Public } from "./public_url.ts";
import { rememberSecret } from "../secret.ts";
import { createAddressGuard } from "../upstreams/address_guard.ts";
import { baseUrlOf, type Host } from "./host.ts";
import { type Look, lookAtUpstream } from "./upstream.ts";

/** What is looked at. */
export interface Examination extends Look {
  config: Config;
  /** Path of the configuration's file; absent: it is built in. */
  path?: string;
  /** Absent: what is in front is not looked at. */
  public?: Omit<Public, "timeoutMs" | "trusted">;
  /** Whether a gateway answers where the configuration listens. */
  isServing: () => Promise<boolean>;
}

/** Looks at everything. No finding shows a key. */
export async function examine({ config, path, isServing, public: from, ...look }: Examination): Promise<Finding[]> {
  if (from?.key !== undefined) rememberSecret(from.key);
  const hosts = Object.entries(config.upstreams).flatMap(([name, host]): { name: string; host: Host }[] =>
    host.vendor === "embedded" ? [] : [{ name, host }]
  );
  const guard = createAddressGuard(config.private_networks);
  const [store, database, limits, through, looked] = await Promise.all([
    lookAtStore(config, isServing),
    lookAtPostgres(config, look),
    lookAtRedis(config, look),
    from === undefined ? [] : lookThrough({ ...from, trusted: config.trusted_proxies, timeoutMs: look.timeoutMs }),
    Promise.all(
      hosts.map(({ name, host }) =>
        lookAtUpstream(name, { host, models: modelsAt(name, config), look: { ...look, guard } })
      ),
    ),
  ]);
  const findings = [
    ...lookAtSettings(config, path),
    ...store,
    ...database,
    ...limits,
    ...lookAtJournal(config),
    ...lookAtProxies(hosts.map(({ name, host }) => ({ name, url: baseUrlOf(host) })), look.env),
    ...looked.flatMap(({ findings }) => findings),
    ...lookAtClock(looked.flatMap(({ aheadMs }) => aheadMs ?? [])),
    ...through,
  ];
  return withoutSecrets(findings);
}

/** What targets call their models at an upstream, each once. */
function modelsAt(upstream: string, { models }: Config): string[] {
  const targets = models.flatMap((model) => model.targets).filter((target) => target.upstream === upstream);
  return [...new Set(targets.map(({ model }) => model))];
}
