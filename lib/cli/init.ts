/** `init`: writes a first configuration for one vendor, from flags or from answers to questions. */
import { mayUse } from "../access/permissions.ts";
import { type CatalogModel, loadSnapshot } from "../catalog/snapshot.ts";
import { ConfigError } from "../config.ts";
import { DEFAULT_FILE, readConfig } from "../config/load.ts";
import type { ReadEnvironment } from "../secret.ts";
import { shellWord } from "../text.ts";
import { isVendorName, type VendorName, vendorOf, VENDORS } from "../upstreams/vendors.ts";
import { type Invocation, UsageError } from "./arguments.ts";
import { programName } from "./banner.ts";
import { type InitAnswers, initText, type UnlistedModel } from "./init_text.ts";
import { counted, writeErr, writeOut } from "./output.ts";

/** Inputs other than the command line. */
export interface InitSources {
  /** Asks a question at the terminal; `null` at the end of the input. Absent: there is no terminal. */
  ask?: (question: string) => string | null;
  env: ReadEnvironment;
  /** Unix time in milliseconds. */
  now: () => number;
}

/**
 * An upper-case variable name. A vendor's key, typed by mistake, has lower-case letters or hyphens and does not match.
 */
const VARIABLE_NAME = /^[A-Z_][A-Z0-9_]{0,63}$/;

/** Largest number of models that a question lists. */
const MAX_LISTED_MODELS = 30;

/**
 * Asks for what the flags leave out, validates the configuration, and writes it. Returns 1 if the file exists or cannot
 * be written.
 * @throws {UsageError} for a wrong answer or flag
 * @throws {ConfigError} if the answers do not make a valid configuration
 */
export async function init(
  { values, switches }: Pick<Invocation, "values" | "switches">,
  { ask, env, now }: InitSources,
): Promise<number> {
  const path = values.config ?? DEFAULT_FILE;
  const isPrinted = switches.has("print");
  if (!isPrinted && !switches.has("force") && await exists(path)) {
    writeErr(`"${path}" exists: use --force to replace it, or --config FILE to write another file\n`);
    return 1;
  }
  const answers = await readAnswers(values, { env, ask });
  const text = initText(answers, Math.floor(now() / 1000));
  const { config } = await readConfig({ text, path }, {
    flags: {},
    // The variable with the key may not be set yet, which is no mistake here.
    env: (name) => name === answers.keyEnv ? env(name) || "placeholder" : undefined,
    readTextFile: (file) => Deno.readTextFile(file),
  });
  if (isPrinted) {
    writeOut(text);
    return 0;
  }
  try {
    await Deno.writeTextFile(path, text, switches.has("force") ? {} : { createNew: true });
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (!(error instanceof Deno.errors.NotCapable || error instanceof Deno.errors.PermissionDenied)) {
      writeErr(`Cannot write "${path}": ${error.message}\n`);
      return 1;
    }
    writeErr(`Cannot write "${path}" here. Print it instead: ${printCommand(answers)} > ${shellWord(path)}\n`);
    return 1;
  }
  const { models } = config;
  writeOut(`Wrote "${path}": vendor ${answers.vendor}, ${counted(models.length, "model")}.\n`);
  writeOut(`${nextStep(answers.keyEnv, { env, config: values.config })}\n`);
  return 0;
}

/** Returns the next step: to start the gateway and, if necessary, to set the variable with the key first. */
function nextStep(keyEnv: string | undefined, { env, config }: { env: ReadEnvironment; config: string | undefined }) {
  const program = programName(Deno.build.standalone, Deno.cwd());
  const start = `${program} serve${config === undefined ? "" : ` --config ${shellWord(config)}`}`;
  const isSet = keyEnv === undefined || (env(keyEnv) ?? "") !== "";
  return isSet ? `Next: run ${start}` : `Next: export ${keyEnv}=… and run ${start}`;
}

/** Returns the command that prints the same configuration instead of writing it. */
function printCommand({ vendor, baseUrl, keyEnv, models }: InitAnswers): string {
  const names = models.map((model) => typeof model === "string" ? model : model.name).join(",");
  return [
    `${programName(Deno.build.standalone, Deno.cwd())} init --print --vendor ${vendor} --models ${shellWord(names)}`,
    ...(baseUrl === undefined ? [] : [`--base-url ${shellWord(baseUrl)}`]),
    ...(keyEnv === undefined ? [] : [`--key-env ${keyEnv}`]),
  ].join(" ");
}

async function readAnswers(
  values: Invocation["values"],
  { ask, env }: Pick<InitSources, "ask" | "env">,
): Promise<InitAnswers> {
  const names = Object.keys(VENDORS);
  // A vendor whose key is in the environment is the most likely one.
  const likely = names.find((name) => (env(defaultVariable(name)) ?? "") !== "") ?? "openai";
  const vendor = values.vendor ?? answer(ask, `Vendor (${names.join(", ")})`, likely) ??
    missing("vendor", `one of ${names.join(", ")}`);
  if (!isVendorName(vendor)) throw new UsageError(`Unknown vendor "${vendor}"; known: ${names.join(", ")}`);
  const { baseUrl: vendorUrl, keyless = false } = vendorOf(vendor);
  const baseUrl = values["base-url"] ??
    (vendorUrl === undefined ? answer(ask, "Address, such as http://10.0.0.7:8000/v1", "") : undefined);
  if (vendorUrl === undefined && (baseUrl ?? "") === "") missing("base-url", `the address of the ${vendor} host`);
  const variable = values["key-env"] ??
    answer(
      ask,
      "Environment variable that holds the key, not the key itself",
      keyless ? "" : defaultVariable(vendor),
    ) ??
    (keyless ? "" : defaultVariable(vendor));
  if (variable !== "" && !VARIABLE_NAME.test(variable)) {
    throw new UsageError(
      "Expected the name of an environment variable in upper case, such as OPENAI_API_KEY, not the key itself",
    );
  }
  return {
    vendor,
    models: await readModels(vendor, { flag: values.models, ask }),
    ...(baseUrl !== undefined && baseUrl !== "" && { baseUrl }),
    ...(variable !== "" && { keyEnv: variable }),
  };
}

async function readModels(
  vendor: VendorName,
  { flag, ask }: { flag: string | undefined; ask?: InitSources["ask"] },
): Promise<InitAnswers["models"]> {
  const listed = (await loadSnapshot()).models.filter((model) => model.vendor === vendor);
  const ids = listed.map(({ row }) => row.id);
  const all = ids[0] === undefined ? "" : `${ids[0].slice(0, ids[0].indexOf("/"))}/*`;
  if (flag === undefined && ask !== undefined && ids.length > 0) {
    writeErr(`Models of the catalog: ${ids.slice(-MAX_LISTED_MODELS).join(", ")}\n`);
  }
  const text = flag ?? answer(ask, 'Models, separated by commas; "*" matches any text', all) ?? all;
  const names = text.split(",").map((name) => name.trim()).filter((name) => name !== "");
  if (names.length === 0) missing("models", `the models of ${vendor}, separated by commas`);
  return names.map((name) => listed.length === 0 ? unlisted(vendor, name) : listedName(name, { vendor, listed }));
}

/**
 * Returns the id of a catalog model with this id or name, or the glob itself if it matches one.
 * @throws {UsageError}
 */
function listedName(name: string, { vendor, listed }: { vendor: string; listed: readonly CatalogModel[] }): string {
  const id = listed.find(({ row, model }) => row.id === name || model === name)?.row.id;
  if (id !== undefined) return id;
  const matches = listed.some(({ row }) => mayUse({ group: { models: [name] }, rules: {} }, row.id));
  if (name.includes("*") && matches) return name;
  throw new UsageError(`"${name}" is not in the catalog's models of ${vendor}, which "sluice models list" shows`);
}

/** Returns a model of a vendor that the catalog does not have. A name without a vendor gets that of the upstream. */
function unlisted(vendor: VendorName, name: string): UnlistedModel {
  return { id: name.includes("/") ? name : `${vendor}/${name}`, name };
}

/**
 * Asks a question. Returns the default if the answer is empty; `undefined` without a terminal.
 * @throws {UsageError} at the end of the input
 */
function answer(ask: InitSources["ask"], question: string, byDefault: string): string | undefined {
  if (ask === undefined) return undefined;
  const text = ask(`${question}${byDefault === "" ? "" : ` [${byDefault}]`}: `);
  if (text === null) throw new UsageError("The input ended before the last question");
  return text.trim() === "" ? byDefault : text.trim();
}

function missing(flag: string, what: string): never {
  throw new UsageError(`Expected --${flag}: ${what}`);
}

function defaultVariable(vendor: string): string {
  return `${vendor.toUpperCase().replaceAll("-", "_")}_API_KEY`;
}

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.lstat(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw new ConfigError([`Cannot look for "${path}": ${error instanceof Error ? error.message : error}`]);
  }
}

/**
 * Asks a question at the terminal and returns the line that is typed; `null` at the end of the input. The question goes
 * to standard error, because standard output may be a file.
 */
export function askAtTerminal(question: string): string | null {
  writeErr(question);
  const bytes: number[] = [];
  const byte = new Uint8Array(1);
  while (Deno.stdin.readSync(byte) === 1) {
    if (byte[0] === 10) return new TextDecoder().decode(new Uint8Array(bytes));
    bytes.push(byte[0] ?? 0);
  }
  return bytes.length === 0 ? null : new TextDecoder().decode(new Uint8Array(bytes));
}
