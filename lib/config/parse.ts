/** Validates a parsed configuration file and builds the `Config` with all defaults and secrets. */
import { hashKey } from "../access/keys.ts";
import { EMBEDDED_UPSTREAM } from "../catalog/embedded.ts";
import {
  type AlertsConfig,
  type Config,
  ConfigError,
  configSchema,
  groupSchema,
  type UpstreamConfig,
  type upstreamSchema,
} from "../config.ts";
import type { z } from "zod";
import type { Json } from "../json/mod.ts";
import { type ReadEnvironment, rememberSecret, Secret } from "../secret.ts";
import { parseLimitsAddress, parseStoreAddress } from "./address.ts";
import { amountProblems } from "./validate_amounts.ts";
import { validateReferences } from "./validate_references.ts";
import { schemaProblems } from "./problems.ts";

/** Shortest webhook path that is redacted, in characters. Shorter ones may be ordinary words. */
const MIN_SECRET_PATH = 16;

type ParsedAlerts = NonNullable<z.output<typeof configSchema>["alerts"]>;

/** An environment without any variable. */
const NO_ENV: ReadEnvironment = () => undefined;

/**
 * Validates a configuration and fills in all defaults. Keys of clients and operators are reduced to their hashes.
 * @throws {ConfigError} with every problem
 */
export function parseConfig(file: Json, env: ReadEnvironment = NO_ENV): Config {
  const parsed = configSchema.safeParse(file);
  const problems = [
    ...(parsed.success ? [] : schemaProblems(configSchema, parsed.error, file)),
    ...validateReferences(file, env),
  ];
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  const { $schema: _, admin, alerts, ...config } = parsed.data;
  const groups = { ...config.groups, default: config.groups.default ?? groupSchema.parse({}) };
  // Costs can only be computed from valid prices and factors.
  const tooExpensive = amountProblems({ models: config.models, groups });
  if (tooExpensive.length > 0) throw new ConfigError(tooExpensive);
  const adminKey = admin === undefined ? "" : env(admin.key.env) ?? "";
  const viewerKey = admin?.viewer_key === undefined ? undefined : env(admin.viewer_key.env) ?? "";
  rememberSecret(adminKey);
  if (viewerKey !== undefined) rememberSecret(viewerKey);
  return {
    ...config,
    store: parseStoreAddress(config.store),
    limits_store: parseLimitsAddress(config.limits_store),
    upstreams: {
      [EMBEDDED_UPSTREAM]: { vendor: "embedded" },
      ...Object.fromEntries(Object.entries(config.upstreams).map(([name, row]) => [name, withSecret(row, env)])),
    },
    groups,
    // validateReferences() has checked that every variable is set.
    keys: config.keys.map(({ name, key, group, ...rules }) => ({
      name,
      group,
      hash: hashKey(env(key.env) ?? ""),
      rules,
    })),
    ...(alerts !== undefined && { alerts: withSecrets(alerts, env) }),
    ...(admin !== undefined && {
      admin: {
        hash: hashKey(adminKey),
        ...(viewerKey !== undefined && { viewerHash: hashKey(viewerKey) }),
        ...(admin.listen !== undefined && { listen: admin.listen }),
      },
    }),
  };
}

function withSecrets({ webhook, secret, ...others }: ParsedAlerts, env: ReadEnvironment): AlertsConfig {
  const address = env(webhook.env) ?? "";
  // The path of a webhook is a secret at Slack and other services.
  const { pathname = "", search = "" } = URL.parse(address) ?? {};
  if (pathname.length + search.length >= MIN_SECRET_PATH) rememberSecret(pathname + search);
  return {
    ...others,
    webhook: new Secret(address),
    ...(secret !== undefined && { secret: new Secret(env(secret.env) ?? "") }),
  };
}

function withSecret(row: z.output<typeof upstreamSchema>, env: ReadEnvironment): UpstreamConfig {
  if (row.vendor === "embedded") return row;
  const { api_key, ...others } = row;
  return api_key === undefined ? others : { ...others, api_key: new Secret(env(api_key.env) ?? "") };
}
