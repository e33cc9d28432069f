/** Recommends the next step after a run of `doctor`, in one line. */
import { EMBEDDED_UPSTREAM } from "../catalog/embedded.ts";
import type { ConfigFlags, LoadedConfig } from "../config/load.ts";
import type { Finding } from "../doctor/finding.ts";
import { shellWord } from "../text.ts";
import { addCommand, originOf, programName } from "./banner.ts";

interface Installation {
  flags: ConfigFlags;
  /** True if a gateway answers at the address of the configuration. */
  isServing: boolean;
  /** The public URL that was checked with a key; absent: none was. */
  url?: string;
  /** The configuration; absent: it has mistakes. */
  loaded?: LoadedConfig;
}

/** Returns the next step. */
export function nextStep(findings: readonly Finding[], { flags, isServing, url, loaded }: Installation): string {
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
