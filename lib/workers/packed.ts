/** The configuration, for another isolate: secrets are objects of a class, which no message carries. */
import type { Config } from "../config.ts";
import { rememberedSecrets, rememberSecret, Secret } from "../secret.ts";

/** A configuration without its secrets, and these, each with the path of its place. */
export interface PackedConfig {
  plain: unknown;
  secrets: { path: string[]; value: string }[];
  /** Other values that no text may hold. */
  remembered: string[];
}

/** Takes the secrets out. */
export function packConfig(config: Config): PackedConfig {
  const secrets: PackedConfig["secrets"] = [];
  return { plain: strip(config, { path: [], secrets }), secrets, remembered: [...rememberedSecrets().values] };
}

/** Puts the secrets in again. */
export function unpackConfig({ plain, secrets, remembered }: PackedConfig): Config {
  for (const value of remembered) rememberSecret(value);
  for (const { path, value } of secrets) {
    const name = path.at(-1) ?? "";
    const place = path.slice(0, -1).reduce<unknown>((at, step) => Reflect.get(Object(at), step), plain);
    Reflect.set(Object(place), name, new Secret(value));
  }
  return plain as Config;
}

function strip(value: unknown, { path, secrets }: Pick<PackedConfig, "secrets"> & { path: string[] }): unknown {
  if (value instanceof Secret) {
    secrets.push({ path, value: value.reveal() });
    return null;
  }
  if (Array.isArray(value)) {
    return value.map((each, index) => strip(each, { path: [...path, String(index)], secrets }));
  }
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, strip(each, { path: [...path, name], secrets })]),
  );
}
