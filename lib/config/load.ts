/** Finds the configuration: a file, and over it the environment, and over that the flags. */
import { type Config, ConfigError } from "../config.ts";
import { messageOf } from "../errors.ts";
import { isObject, type Json, JsonError } from "../json/mod.ts";
import {
  containsPassword,
  INVALID_ADDRESS,
  LIMITS_STORE_FORMS,
  LIMITS_STORE_PATTERN,
  STORE_FORMS,
  STORE_PATTERN,
} from "./address.ts";
import type { ReadEnvironment } from "../secret.ts";
import { expandModels, writtenPath } from "./expand_models.ts";
import { DEPLOY_VARIABLES, deployConfig, deployEnv, deployFile, deployProblems, isOnDeploy } from "./deno_deploy.ts";
import { lineAndColumnAt, parseJsonc } from "./jsonc.ts";
import { parseConfig } from "./parse.ts";
import { rememberEnvironment } from "../secret.ts";

/** Read when neither a flag nor the environment names a file, and it exists. */
export const DEFAULT_FILE = "sluice.jsonc";

/** The variable that holds the text of the configuration where there is no place for a file. */
const TEXT_VARIABLE = "SLUICE_CONFIG_TEXT";

/** Variables that are read beside those of flags and secrets: they mean something when they are not set, too. */
export const PLAIN_VARIABLES: ReadonlySet<string> = new Set(["SLUICE_EPHEMERAL", TEXT_VARIABLE, ...DEPLOY_VARIABLES]);

/** Largest configuration, in characters. */
const MOST_CHARACTERS = 8 * 1024 * 1024;

/** Flags of the command line, as they were typed. */
export interface ConfigFlags {
  config?: string;
  hostname?: string;
  port?: string;
  "admin-port"?: string;
  store?: string;
  "limits-store"?: string;
}

/** Sources of the loader. */
export interface ConfigInputs {
  flags: ConfigFlags;
  env: ReadEnvironment;
  readTextFile: (path: string) => Promise<string>;
}

/** The origin of a configuration; empty: it is built in. */
export interface ConfigOrigin {
  /** Path of the file; absent: it came from elsewhere. */
  path?: string;
  /** Name of the variable that holds its text; absent where none does. */
  variable?: string;
  /** Its version in the store that nodes share; absent where it is not from there. */
  shared?: number;
}

/** A configuration and where it came from. */
export interface LoadedConfig extends ConfigOrigin {
  config: Config;
  /** For each model its index in the file; absent: they are the same. */
  places?: readonly number[];
}

/** The text of a configuration and its origin; no text: no file is named, and the default one does not exist. */
export interface ConfigText extends ConfigOrigin {
  text?: string;
}

/**
 * Loads the configuration: `--config FILE`, else `SLUICE_CONFIG`, else the text in `SLUICE_CONFIG_TEXT`, else
 * `./sluice.jsonc` where it exists, else built in. An empty `SLUICE_*` variable counts as unset.
 *
 * @throws {ConfigError} with every mistake
 */
export async function loadConfig(sources: ConfigInputs): Promise<LoadedConfig> {
  rememberEnvironment(sources.env);
  return await readConfig(await findConfig(sources), sources);
}

/**
 * Checks the text of a configuration, with the flags and the environment over it.
 *
 * @param change transforms the file before flags and environment override it
 * @throws {ConfigError} with every mistake
 */
export async function readConfig(
  { text, ...place }: ConfigText,
  { flags, env: own, readTextFile, change = (file) => file }: ConfigInputs & {
    change?: (file: Json) => Json;
  },
): Promise<LoadedConfig> {
  const isDeployed = isOnDeploy(own);
  const env = isDeployed ? deployEnv(own) : own;
  const file = change(text === undefined ? {} : parseFile(text, placeName(place)));
  const problems: string[] = passwordProblems(file);
  const merged = override(file, { flags, env, problems });
  const { file: expanded, problems: unknown, places } = await expandModels(merged, readTextFile);
  problems.push(...unknown);
  try {
    const parsed = parseConfig(isDeployed ? deployFile(expanded) : expanded, env);
    const config = isDeployed ? deployConfig(parsed) : parsed;
    if (isDeployed) problems.push(...deployProblems(config, env));
    if (problems.length === 0) return { config, ...place, ...(places !== undefined && { places }) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    problems.push(...error.problems.map((problem) => writtenPath(problem, places)));
  }
  throw new ConfigError(problems);
}

/** Finds the text that `loadConfig` reads. @throws {ConfigError} where it cannot be read */
export async function findConfig({ flags, env: own, readTextFile }: ConfigInputs): Promise<ConfigText> {
  const env = isOnDeploy(own) ? deployEnv(own) : own;
  const named = flags.config ?? (env("SLUICE_CONFIG") || undefined);
  const given = named === undefined ? env(TEXT_VARIABLE) || undefined : undefined;
  if (given !== undefined) return { text: given, variable: TEXT_VARIABLE };
  const text = await read(named, readTextFile);
  return text === undefined ? {} : { text, path: named ?? DEFAULT_FILE };
}

/** The prefix of problems with a text. */
function placeName({ path, variable, shared }: ConfigOrigin): string {
  if (shared !== undefined) return `store, version ${shared}`;
  return path ?? variable ?? DEFAULT_FILE;
}

async function read(
  named: string | undefined,
  readTextFile: ConfigInputs["readTextFile"],
): Promise<string | undefined> {
  try {
    return await readTextFile(named ?? DEFAULT_FILE);
  } catch (error) {
    const missing = error instanceof Deno.errors.NotFound;
    if (named === undefined && missing) return undefined;
    const why = missing ? "there is no such file" : messageOf(error);
    throw new ConfigError([`Cannot read the configuration "${named ?? DEFAULT_FILE}": ${why}`]);
  }
}

function parseFile(text: string, path: string): Json {
  if (text.length > MOST_CHARACTERS) {
    throw new ConfigError([`${path}: Expected at most ${MOST_CHARACTERS} characters, not ${text.length}`]);
  }
  try {
    return parseJsonc(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const { line, column } = lineAndColumnAt(text, error.position);
    throw new ConfigError([`${path}:${line}:${column}: ${error.message}`]);
  }
}

/** Files get copied, committed and mailed. The environment does not. */
function passwordProblems(file: Json): string[] {
  if (!isObject(file)) return [];
  return (["store", "limits_store"] as const).flatMap((member) => {
    const address = file[member];
    if (typeof address !== "string" || containsPassword(address) === false) return [];
    if (containsPassword(address) === undefined) {
      return [`${member}: ${INVALID_ADDRESS}`];
    }
    return [`${member}: A password does not belong in the file: put the address into SLUICE_${member.toUpperCase()}`];
  });
}

interface Overrides {
  flags: ConfigFlags;
  env: ReadEnvironment;
  /** Takes the mistakes that were found. */
  problems: string[];
}

/** Puts flags and environment over the file. A wrong one is a mistake of its own and leaves the file's value. */
function override(file: Json, { flags, env, problems }: Overrides): Json {
  if (!isObject(file)) return file;
  const listen = isObject(file.listen) ? { ...file.listen } : {};
  const merged = { ...file };
  pick("hostname", (value) => void (listen.hostname = value));
  pick("port", (value, name) => {
    const port = readPort(value, name);
    if (port !== undefined) listen.port = port;
  });
  pick("admin-port", (value, name) => {
    const port = readPort(value, name);
    if (port === undefined) return;
    if (!isObject(file.admin)) problems.push(`${name}: There is no admin side to give a port: set \`admin\``);
    else merged.admin = { ...file.admin, listen: { ...(isObject(file.admin.listen) && file.admin.listen), port } };
  });
  pick("store", (value, name) => {
    if (isUsable(STORE_PATTERN, { value, name, forms: STORE_FORMS })) merged.store = value;
  });
  pick("limits-store", (value, name) => {
    if (isUsable(LIMITS_STORE_PATTERN, { value, name, forms: LIMITS_STORE_FORMS })) merged.limits_store = value;
  });
  if (isObject(file.listen) || Object.keys(listen).length > 0 && file.listen === undefined) merged.listen = listen;
  return merged;

  function readPort(value: string, name: string): number | undefined {
    const port = /^\d{1,5}$/.test(value) ? Number(value) : NaN;
    if (port <= 65_535) return port;
    problems.push(`${name}: Expected a port from 0 to 65535, not "${value}"`);
  }

  /** The problem does not quote the value, which may hold a password. */
  function isUsable(pattern: RegExp, { value, name, forms }: { value: string; name: string; forms: string }): boolean {
    if (!pattern.test(value)) problems.push(`${name}: Expected ${forms}`);
    else if (containsPassword(value) === undefined) problems.push(`${name}: ${INVALID_ADDRESS}`);
    else return true;
    return false;
  }

  function pick(
    flag: Exclude<keyof ConfigFlags, "config">,
    set: (value: string, name: string) => void,
  ): void {
    const typed = flags[flag];
    const variable = `SLUICE_${flag.toUpperCase().replaceAll("-", "_")}`;
    if (typed !== undefined) return set(typed, `--${flag}`);
    const value = env(variable);
    if (value !== undefined && value !== "") set(value, variable);
  }
}
