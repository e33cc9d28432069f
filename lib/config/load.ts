/** Loads the configuration from a file. Environment variables override the file, and flags override both. */
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
import { type ReadEnvironment, rememberEnvironment } from "../secret.ts";
import { expandModels, pathInFile } from "./expand_models.ts";
import { DEPLOY_VARIABLES, deployConfig, deployEnv, deployFile, deployProblems, isOnDeploy } from "./deno_deploy.ts";
import { lineAndColumnAt, memberPositions, parseJsonc } from "./jsonc.ts";
import { parseConfig } from "./parse.ts";

/** File that is read, if it exists, when neither a flag nor the environment names another. */
export const DEFAULT_FILE = "sluice.jsonc";

/** Variable with the text of the configuration, for platforms without files. */
const TEXT_VARIABLE = "SLUICE_CONFIG_TEXT";

/** Variables that are read in addition to those of flags and secrets. */
export const PLAIN_VARIABLES: ReadonlySet<string> = new Set(["SLUICE_EPHEMERAL", TEXT_VARIABLE, ...DEPLOY_VARIABLES]);

/** Largest configuration, in characters. */
const MAX_CHARACTERS = 8 * 1024 * 1024;

const OVERRIDES = ["hostname", "port", "admin-port", "store", "limits-store"] as const;

/** Command line flags as text. */
export type ConfigFlags = Partial<Record<"config" | typeof OVERRIDES[number], string>>;

/** Inputs of the loader. */
export interface ConfigInputs {
  flags: ConfigFlags;
  env: ReadEnvironment;
  readTextFile: (path: string) => Promise<string>;
}

/** The origin of a configuration; an empty object for the built-in one. */
export interface ConfigOrigin {
  /** Path of the file, if it came from one. */
  path?: string;
  /** Name of the variable that holds its text, if it came from one. */
  variable?: string;
  /** Its version in the shared store, if it came from there. */
  shared?: number;
}

/** A configuration and its origin. */
export interface LoadedConfig extends ConfigOrigin {
  config: Config;
  /** For each model its index in the file's list; absent: the lists are the same. */
  modelIndices?: readonly number[];
  /** The members that were read, because others have mistakes; absent: all. */
  members?: readonly ReadableMember[];
}

/** The text of a configuration and its origin. */
export interface ConfigText extends ConfigOrigin {
  /** Absent: no file is named and the default one does not exist, so the built-in configuration applies. */
  text?: string;
}

/**
 * Loads the configuration from the first of: `--config FILE`, `SLUICE_CONFIG`, the text in `SLUICE_CONFIG_TEXT`, an
 * `./sluice.jsonc` if it exists, the built-in one. An empty `SLUICE_*` variable counts as unset.
 * @throws {ConfigError} with every problem
 */
export async function loadConfig(sources: ConfigInputs): Promise<LoadedConfig> {
  rememberEnvironment(sources.env);
  return await readConfig(await findConfig(sources), sources);
}

/**
 * Parses and validates the text of a configuration, and applies the overrides of the environment and flags.
 * @param change transforms the file before it is overridden
 * @throws {ConfigError} with every problem
 */
export async function readConfig(
  { text, ...origin }: ConfigText,
  { flags, env: own, readTextFile, change = (file) => file }: ConfigInputs & {
    change?: (file: Json) => Json;
  },
): Promise<LoadedConfig> {
  const isDeployed = isOnDeploy(own);
  const env = isDeployed ? deployEnv(own) : own;
  const file = change(text === undefined ? {} : parseFile(text, originName(origin)));
  const problems: string[] = passwordProblems(file);
  const merged = override(file, { flags, env, problems });
  const { file: expanded, problems: modelProblems, modelIndices } = await expandModels(merged, readTextFile);
  problems.push(...modelProblems);
  try {
    const parsed = parseConfig(isDeployed ? deployFile(expanded) : expanded, env);
    const config = isDeployed ? deployConfig(parsed) : parsed;
    if (isDeployed) problems.push(...deployProblems(config, env));
    if (problems.length === 0) return { config, ...origin, ...(modelIndices !== undefined && { modelIndices }) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    problems.push(...error.problems.map((problem) => pathInFile(problem, modelIndices)));
  }
  // A misspelled member comes first, because it is often the cause of others.
  const isUnknown = (problem: string) => Number(problem.includes(": Unknown member;"));
  const ordered = problems.toSorted((one, other) => isUnknown(other) - isUnknown(one));
  throw new ConfigError(text === undefined ? ordered : withPlaces(ordered, text, originName(origin)));
}

/** The path with which a problem begins, in parts. */
const PATH = /^(?:[A-Za-z_$][\w$-]*|\["(?:[^"\\]|\\.)*"\])(?:\.[A-Za-z_$][\w$-]*|\[\d+\]|\["(?:[^"\\]|\\.)*"\])*(?=: )/;

/**
 * Puts the file, the line and the column of its member before each problem. A member that is missing has those of the
 * object that lacks it; a problem with the environment or a flag has none.
 */
function withPlaces(problems: readonly string[], text: string, name: string): string[] {
  const positions = memberPositions(text);
  return problems.map((problem) => {
    let path = PATH.exec(problem)?.[0] ?? "";
    while (path !== "" && !positions.has(path)) path = path.replace(/(?:^|\.|\[)[^.[]*$/, "");
    const position = positions.get(path);
    if (position === undefined) return problem;
    const { line, column } = lineAndColumnAt(text, position);
    return `${name}:${line}:${column}: ${problem}`;
  });
}

/** Members that commands read from a configuration with mistakes in others, with the flags that set them. */
const MEMBER_FLAGS = { store: ["store"], listen: ["hostname", "port"], groups: [], keys: [] } as const;

/** A member that commands read from a configuration with mistakes in others. */
export type ReadableMember = keyof typeof MEMBER_FLAGS;

/**
 * Loads some members of a configuration that may have mistakes in others. These have their defaults. If only `listen`
 * or a store that a flag or the environment names is needed, the text need not be readable, and no member is read.
 * @throws {ConfigError} if a member has a mistake, or if nothing names the store
 */
export async function loadMembers(
  members: readonly ReadableMember[],
  { flags, env: own, readTextFile }: ConfigInputs,
): Promise<LoadedConfig> {
  const kept: ReadonlySet<string> = new Set(members.flatMap((member) => MEMBER_FLAGS[member]));
  const others = OVERRIDES.filter((flag) => !kept.has(flag));
  const hidden = new Set(others.map(variableOf));
  const sources = {
    flags: Object.fromEntries(Object.entries(flags).filter(([name]) => !others.some((flag) => flag === name))),
    env: (name: string) => hidden.has(name) ? undefined : own(name),
    readTextFile,
    change: (file: Json) => {
      if (!isObject(file)) return file;
      return Object.fromEntries(
        members.flatMap((member) => file[member] === undefined ? [] : [[member, file[member]]]),
      );
    },
  };
  try {
    return { ...await readConfig(await findConfig(sources), sources), members };
  } catch (error) {
    const isStoreNamed = flags.store !== undefined || Boolean(own("SLUICE_STORE"));
    // A command must not change or report on another store; at another address it only finds no gateway.
    const hasDefault = members.every((member) => member === "listen" || member === "store" && isStoreNamed);
    if (!(error instanceof ConfigError) || !hasDefault) throw error;
    return { ...await readConfig({}, sources), members: [] };
  }
}

/** Returns the name of the environment variable that overrides the same as a flag. */
function variableOf(flag: string): string {
  return `SLUICE_${flag.toUpperCase().replaceAll("-", "_")}`;
}

/** Finds the text that `loadConfig` reads. @throws {ConfigError} if it cannot be read */
export async function findConfig({ flags, env: own, readTextFile }: ConfigInputs): Promise<ConfigText> {
  const env = isOnDeploy(own) ? deployEnv(own) : own;
  const path = flags.config ?? (env("SLUICE_CONFIG") || undefined);
  const inVariable = path === undefined ? env(TEXT_VARIABLE) || undefined : undefined;
  if (inVariable !== undefined) return { text: inVariable, variable: TEXT_VARIABLE };
  const text = await read(path, readTextFile);
  return text === undefined ? {} : { text, path: path ?? DEFAULT_FILE };
}

/** Returns the name of a text's origin, with which the lines about syntax errors begin. */
function originName({ path, variable, shared }: ConfigOrigin): string {
  if (shared !== undefined) return `store, version ${shared}`;
  return path ?? variable ?? DEFAULT_FILE;
}

async function read(path: string | undefined, readTextFile: ConfigInputs["readTextFile"]): Promise<string | undefined> {
  try {
    return await readTextFile(path ?? DEFAULT_FILE);
  } catch (error) {
    const missing = error instanceof Deno.errors.NotFound;
    if (path === undefined && missing) return undefined;
    const why = missing ? "there is no such file" : messageOf(error);
    throw new ConfigError([`Cannot read the configuration "${path ?? DEFAULT_FILE}": ${why}`]);
  }
}

function parseFile(text: string, path: string): Json {
  if (text.length > MAX_CHARACTERS) {
    throw new ConfigError([`${path}: Expected at most ${MAX_CHARACTERS} characters, not ${text.length}`]);
  }
  try {
    return parseJsonc(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const { line, column } = lineAndColumnAt(text, error.position);
    throw new ConfigError([`${path}:${line}:${column}: ${error.message}`]);
  }
}

/** Rejects passwords in the file: unlike the environment, files get copied, committed and mailed. */
function passwordProblems(file: Json): string[] {
  if (!isObject(file)) return [];
  return (["store", "limits_store"] as const).flatMap((member) => {
    const address = file[member];
    const hasPassword = typeof address === "string" && containsPassword(address);
    if (hasPassword === false) return [];
    if (hasPassword === undefined) return [`${member}: ${INVALID_ADDRESS}`];
    return [`${member}: A password does not belong in the file: put the address into SLUICE_${member.toUpperCase()}`];
  });
}

interface Overrides {
  flags: ConfigFlags;
  env: ReadEnvironment;
  /** Receives the problems found. */
  problems: string[];
}

/**
 * Applies the overrides of environment and flags to the file. An invalid one is reported, and the file's value stays.
 */
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
    if (!isObject(file.admin)) problems.push(`${name}: The admin listener is not configured: set \`admin\``);
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

  /** Returns whether an address is valid. The problem does not quote it, since it may contain a password. */
  function isUsable(pattern: RegExp, { value, name, forms }: { value: string; name: string; forms: string }): boolean {
    if (!pattern.test(value)) problems.push(`${name}: Expected ${forms}`);
    else if (containsPassword(value) === undefined) problems.push(`${name}: ${INVALID_ADDRESS}`);
    else return true;
    return false;
  }

  /** Calls `set` with the value of a flag or, if it is absent, of its environment variable, if that is set. */
  function pick(flag: typeof OVERRIDES[number], set: (value: string, name: string) => void): void {
    const flagValue = flags[flag];
    const variable = variableOf(flag);
    if (flagValue !== undefined) return set(flagValue, `--${flag}`);
    const value = env(variable);
    if (value !== undefined && value !== "") set(value, variable);
  }
}
