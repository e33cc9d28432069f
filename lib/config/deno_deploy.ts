/**
 * Adapts the configuration to Deno Deploy, which runs several short-lived instances without flags and durable disks.
 * Variables of the platform replace the flags, and settings that would keep state in an instance are rejected.
 */
import type { Config } from "../config.ts";
import { isObject, type Json } from "../json/mod.ts";
import type { ReadEnvironment } from "../secret.ts";

/** Platform variables that are read in addition to Sluice's. */
export const DEPLOY_VARIABLES: readonly string[] = [
  "DENO_DEPLOY",
  "DATABASE_URL",
  ...["PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGSSLMODE"],
  "REDIS_URL",
];

/** The default address of `Deno.serve`, which the platform expects unless it sets another. */
const LISTEN = { hostname: "0.0.0.0", port: 8000 };

/**
 * Drain timeout. The platform kills an instance five seconds after the shutdown signal, and all entries must be written
 * by then.
 */
const DRAIN_SECONDS = 3;

/** Returns whether the program runs on Deno Deploy. */
export function isOnDeploy(env: ReadEnvironment): boolean {
  const value = env("DENO_DEPLOY") ?? "";
  return value !== "" && value !== "0" && value !== "false";
}

/**
 * Returns an environment with the attached database as the default store and `REDIS_URL` as the default limits store.
 */
export function deployEnv(env: ReadEnvironment): ReadEnvironment {
  return (name) => {
    const value = env(name);
    if (value !== undefined && value !== "") return value;
    if (name === "SLUICE_STORE") return attachedDatabase(env);
    return name === "SLUICE_LIMITS_STORE" ? env("REDIS_URL") : value;
  };
}

/** Returns the configuration file with the platform's address as the default of `listen`. */
export function deployFile(file: Json): Json {
  if (!isObject(file) || file.listen !== undefined && !isObject(file.listen)) return file;
  return { ...file, listen: { ...LISTEN, ...file.listen } };
}

/**
 * Returns the configuration without a journal, because the disk is not durable, and with a shutdown in the platform's
 * time.
 */
export function deployConfig(config: Config): Config {
  const { shutdown } = config;
  return {
    ...config,
    nodes: { ...config.nodes, journal: null },
    shutdown: {
      ready_delay_ms: 0,
      drain_seconds: Math.min(shutdown.drain_seconds, DRAIN_SECONDS),
      images_drain_seconds: Math.min(shutdown.images_drain_seconds, DRAIN_SECONDS),
    },
  };
}

/**
 * Returns the problems with settings that an instance does not support, or whose state it would not share with others.
 * `SLUICE_EPHEMERAL=yes` allows the latter.
 */
export function deployProblems(config: Config, env: ReadEnvironment): string[] {
  const problems: string[] = [];
  if (config.admin?.listen !== undefined) {
    problems.push("admin.listen: Deno Deploy has one listener: leave it out, and the admin side is under /admin");
  }
  if (env("SLUICE_EPHEMERAL") === "yes") return problems;
  if (config.store.kind !== "postgres") {
    problems.push(
      "store: On Deno Deploy keys and ledger would be lost with each instance: attach a Postgres database or set " +
        "SLUICE_STORE to its address (SLUICE_EPHEMERAL=yes allows it for a trial)",
    );
  }
  if (config.limits_store.kind !== "redis" && hasLimits(config)) {
    problems.push(
      "limits_store: On Deno Deploy each instance would count limits separately: set SLUICE_LIMITS_STORE or REDIS_URL " +
        "to the address of a Redis server (SLUICE_EPHEMERAL=yes allows it for a trial)",
    );
  }
  return problems;
}

/** Returns whether the configuration sets any limit. Limits of keys in the store are not considered. */
function hasLimits({ models, groups, keys }: Pick<Config, "models" | "groups" | "keys">): boolean {
  return models.some(({ limits }) => limits !== undefined) ||
    Object.values(groups).some(({ limits, key_limits }) => limits !== undefined || key_limits !== undefined) ||
    keys.some(({ rules }) => rules.limits !== undefined);
}

/** Returns the address of the attached database; `undefined` if there is none. */
function attachedDatabase(env: ReadEnvironment): string | undefined {
  const address = env("DATABASE_URL") ?? "";
  if (/^postgres(ql)?:/.test(address) && URL.canParse(address)) return withTls(address, env);
  const host = env("PGHOST") ?? "";
  if (host === "") return undefined;
  const url = new URL(`postgres://${host.includes(":") ? `[${host}]` : host}`);
  url.username = encodeURIComponent(env("PGUSER") ?? "");
  url.password = encodeURIComponent(env("PGPASSWORD") ?? "");
  url.port = env("PGPORT") ?? "";
  url.pathname = `/${env("PGDATABASE") ?? ""}`;
  return withTls(url.href, env);
}

/** Adds the platform's separate TLS mode to the address of the database. */
function withTls(address: string, env: ReadEnvironment): string {
  const mode = env("PGSSLMODE") ?? "";
  const url = URL.parse(address);
  if (url === null || mode === "" || url.searchParams.has("sslmode") || url.searchParams.has("ssl")) return address;
  url.searchParams.set("sslmode", mode);
  return url.href;
}
