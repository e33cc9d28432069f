/** `doctor`: checks an installation and prints the findings. */
import { ConfigError } from "../config.ts";
import type { ConfigFlags, LoadedConfig } from "../config/load.ts";
import { runChecks } from "../doctor/run_checks.ts";
import type { Finding, Level } from "../doctor/finding.ts";
import { type Invocation, UsageError } from "./arguments.ts";
import { readinessAt } from "./health.ts";
import { addCommand, originOf, programName } from "./banner.ts";
import { parseOrigin } from "./conform.ts";
import { counted, jsonText, writeOut } from "./output.ts";
import { warningText } from "./warnings/warning.ts";
import { configWarnings } from "./warnings/warnings.ts";
import { EMBEDDED_UPSTREAM } from "../catalog/embedded.ts";
import { shellWord } from "../text.ts";

/** Longest duration of each step, in milliseconds. */
const TIMEOUT_MS = 10_000;
/** Duration of the silence that `--long` tests, in milliseconds. */
const LONG_SILENCE_MS = 90_000;
/** Default model of test streams. */
const ECHO_MODEL = "sluice/echo";

/** Inputs other than the command line. */
export interface DoctorSources {
  load: () => Promise<LoadedConfig>;
  env: (name: string) => string | undefined;
}

/** Runs all checks and prints the findings. Returns 1 if one is an error. @throws {UsageError} if a flag is wrong */
export async function doctor(
  { values, switches }: Pick<Invocation, "values" | "switches">,
  { load, env }: DoctorSources,
): Promise<number> {
  const url = values.url === undefined ? undefined : parseOrigin(values.url);
  const { key, model = ECHO_MODEL } = values;
  for (const flag of ["key", "model"] as const) {
    if (url === undefined && values[flag] !== undefined) throw new UsageError(`Cannot use --${flag} without --url`);
  }
  if (url === undefined && switches.has("long")) throw new UsageError("Cannot use --long without --url");
  if (key !== undefined && !/^[\x21-\x7e]+$/.test(key)) {
    throw new UsageError("Expected a key of visible ASCII characters");
  }
  let serving: ReturnType<typeof readinessAt> | undefined;
  let loaded: LoadedConfig | undefined;
  const findings = await findAll();
  const next = nextStep(findings, {
    flags: values,
    isServing: await serving !== undefined,
    ...(url !== undefined && key !== undefined && { url }),
    ...(loaded && { loaded }),
  });
  writeOut(
    switches.has("json") ? jsonText({ ...countOf(findings), findings, next }) : `${textOf(findings)}Next: ${next}\n`,
  );
  return findings.some(({ level }) => level === "error") ? 1 : 0;

  async function findAll(): Promise<Finding[]> {
    try {
      loaded = await load();
      const { config } = loaded;
      const long = switches.has("long") ? { longMs: LONG_SILENCE_MS } : {};
      const checks = await runChecks({
        config,
        now: Date.now,
        timeoutMs: TIMEOUT_MS,
        env,
        serving: () => serving ??= readinessAt(originOf(config.listen)),
        ...(url !== undefined && { public: { url, model, key, ...long } }),
      });
      return [...settingFindings(loaded), ...checks];
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return error.problems.map((what) => ({
        about: "configuration",
        level: "error",
        what,
        advice: "Correct it: the gateway does not start with it",
      }));
    }
  }
}

/** Returns the findings about a valid configuration: the warnings of `check`. */
function settingFindings(loaded: LoadedConfig): Finding[] {
  const { path, variable } = loaded;
  const source = path ?? variable;
  const what = source === undefined ? "There is no file; the built-in configuration is valid" : `"${source}" is valid`;
  const warnings = configWarnings(loaded, Date.now()).map(warningText);
  return [
    { about: "configuration", level: "ok", what },
    ...warnings.map((what): Finding => ({ about: "configuration", level: "warning", what })),
  ];
}

function countOf(findings: readonly Finding[]): Record<Level, number> {
  const count = (level: Level) => findings.filter((finding) => finding.level === level).length;
  return { ok: count("ok"), warning: count("warning"), error: count("error") };
}

/** Returns a line for each finding and one for its advice, then the counts. */
function textOf(findings: readonly Finding[]): string {
  const lines = findings.flatMap(({ about, level, what, advice }) => [
    `${level.padEnd(7)}  ${about}: ${what}`,
    ...(advice === undefined ? [] : [`         -> ${advice}`]),
  ]);
  const { ok, warning, error } = countOf(findings);
  return [...lines, "", `${ok} ok, ${counted(warning, "warning")}, ${counted(error, "error")}`, ""].join("\n");
}

interface Installation {
  flags: ConfigFlags;
  /** True if a gateway answers at the address of the configuration. */
  isServing: boolean;
  /** The public URL that was checked with a key; absent: none was. */
  url?: string;
  /** The configuration; absent: it has mistakes. */
  loaded?: LoadedConfig;
}

function nextStep(findings: readonly Finding[], { flags, isServing, url, loaded }: Installation): string {
  const program = programName(Deno.build.standalone, Deno.cwd());
  const config = flags.config === undefined ? "" : ` --config ${shellWord(flags.config)}`;
  const errors = findings.filter(({ level }) => level === "error");
  const unset = errors.map(({ what }) => /The environment variable "([^"]+)" is not set$/.exec(what)?.[1]);
  if (unset.length > 0 && unset.every((name) => name !== undefined)) {
    return `export ${[...new Set(unset)].map((name) => `${name}=…`).join(" ")} and run ${program} serve${config}`;
  }
  if (errors.length > 0 || loaded === undefined) return `correct the errors above, then run ${program} doctor${config}`;
  if (url !== undefined) return `send requests to ${url}/v1`;
  if (isServing) {
    const command = addCommand(flags, { isStandalone: Deno.build.standalone, folder: Deno.cwd() });
    return `make a key with ${command}, and send requests to ${originOf(loaded.config.listen)}/v1`;
  }
  const hasUpstream = Object.keys(loaded.config.upstreams).some((name) => name !== EMBEDDED_UPSTREAM);
  if (hasUpstream || loaded.path !== undefined) return `run ${program} serve${config}`;
  return `run ${program} init to add a vendor, or ${program} serve to try the embedded models`;
}
