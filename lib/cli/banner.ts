/** Texts that the operator sees when the gateway starts. */
import { containsPassword } from "../config/address.ts";
import type { ConfigFlags } from "../config/load.ts";
import type { KeySummary } from "../store/keys.ts";

/** Placeholder for the address of an app on Deno Deploy, which the program does not know. */
export const DEPLOYED_ORIGIN = "https://<YOUR_APP>";

/** The URL of a gateway on its own machine, such as `http://localhost:8790`. */
export function originOf({ hostname, port }: { hostname: string; port: number }): string {
  const isEverywhere = hostname === "0.0.0.0" || hostname === "::";
  const host = isEverywhere ? "localhost" : hostname.includes(":") ? `[${hostname}]` : hostname;
  return `http://${host}:${port}`;
}

/** URLs of the listeners. */
export interface Origins {
  origin: string;
  /** A link that signs in to a console without an admin key; absent: there is no such console. */
  link?: string;
  /** URL of the admin side; absent: there is none. */
  admin?: string;
}

/** Values of the text of the first start, at a terminal. */
export interface FirstStart extends Origins {
  /** The new key. Shown here and nowhere else. */
  key: string;
  /** A model that the key may use; absent: there is none. */
  model?: string;
}

/** The key, a command to try it, and the settings of the usual clients. */
export function firstStartText({ origin, admin, link, key, model = "<MODEL>" }: FirstStart): string {
  return `${listensText({ origin, admin, link })}

Your API key, shown only this once:

  ${key}

Try it:

  curl ${origin}/v1/chat/completions \\
    -H "Authorization: Bearer ${key}" \\
    -H "Content-Type: application/json" \\
    -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'

OpenAI SDK
  OPENAI_BASE_URL=${origin}/v1 OPENAI_API_KEY=${key}
Anthropic SDK
  ANTHROPIC_BASE_URL=${origin}/anthropic ANTHROPIC_API_KEY=${key}
Claude Code
  ANTHROPIC_BASE_URL=${origin}/anthropic ANTHROPIC_API_KEY=${key} claude --model ${model}
Codex, in ~/.codex/config.toml; the key goes into the variable SLUICE_API_KEY
  model = "${model}"
  model_provider = "sluice"
  [model_providers.sluice]
  name = "Sluice"
  base_url = "${origin}/v1"
  env_key = "SLUICE_API_KEY"
  wire_api = "responses"
Others
  base URL ${origin}/v1, API key as above, model ${model}

`;
}

/** Most keys that the text of a start lists. */
export const MAX_KEYS_REPORTED = 5;

/** Values of the text of a later start. */
export interface LaterStart extends Origins {
  /** Keys of the store, `MAX_KEYS_REPORTED` of them. */
  keys: Pick<KeySummary, "inUse" | "oldest">;
  /** Names of the keys that the configuration takes from the environment. */
  configured: readonly string[];
  /** The command that adds a key, or `MEMORY_KEYS`. */
  addCommand: string;
}

/** The command of this program: the executable, or the source under Deno. */
export function programName(isStandalone: boolean): string {
  return isStandalone ? "sluice" : "npx -y deno@2.9.6 task sluice";
}

/** The start of this program. */
export interface Program {
  isStandalone: boolean;
  isDeployed: boolean;
  /** Set if the output is not shown at a terminal. */
  background?: Background;
}

/** An environment in which the command that adds a key needs options to find the store. */
export interface Background {
  kind: "container" | "kubernetes" | "systemd" | "other";
  /** The working directory. */
  folder: string;
  /** Name of the user that the process runs as. */
  user: string;
  /** True if the address of the store comes from the environment. */
  hasStoreVariable: boolean;
}

/**
 * The command that adds a key, as this program was started: the executable, or the source under Deno. An address with a
 * password is left to the environment, where other users of the machine do not see it.
 */
export function addCommand(
  { config, store }: ConfigFlags,
  { isStandalone, isDeployed, background }: Program,
): string {
  const hasOwnEnvironment = background?.kind === "container" || background?.kind === "kubernetes";
  const isElsewhere = background?.hasStoreVariable === true && !hasOwnEnvironment && store === undefined;
  const isHidden = isDeployed || isElsewhere || store !== undefined && containsPassword(store) !== false;
  const command = [
    ...(isHidden ? ["SLUICE_STORE=ADDRESS"] : []),
    programName(isStandalone),
    "keys add NAME",
    ...(config === undefined ? [] : ["--config", config]),
    ...(store === undefined || isHidden ? [] : ["--store", store]),
  ].join(" ");
  switch (background?.kind) {
    case undefined:
      return command;
    case "container":
      return `docker exec CONTAINER ${command}`;
    case "kubernetes":
      return `kubectl exec POD -- ${command}`;
    case "systemd":
      return `runuser -u ${background.user} -- sh -c 'cd ${background.folder} && ${command}'`;
    case "other":
      return `cd ${background.folder} && ${command}`;
  }
}

/** The environment of a process without a terminal; `undefined` at a terminal. */
export function backgroundOf(
  { isTerminal, folder, env }: { isTerminal: boolean; folder: string; env: (name: string) => string | undefined },
): Background | undefined {
  if (isTerminal) return undefined;
  const has = (name: string) => (env(name) ?? "") !== "";
  // The image sets `container`, as systemd and Podman do; systemd sets JOURNAL_STREAM for services with a journal.
  const kind = has("KUBERNETES_SERVICE_HOST")
    ? "kubernetes"
    : has("container")
    ? "container"
    : has("JOURNAL_STREAM")
    ? "systemd"
    : "other";
  return { kind, folder, user: env("USER") || "sluice", hasStoreVariable: has("SLUICE_STORE") };
}

/** Shown instead of the command where no other process can add a key. */
export const MEMORY_KEYS = 'list it in "keys" of the configuration, as the store is in memory';

/** The keys in use, and the command that adds one. */
export function laterStartText({ origin, admin, link, keys, configured, addCommand }: LaterStart): string {
  const lines = keys.oldest.map(({ name, createdAt, disabled }) =>
    `API key "${name}" exists since ${new Date(createdAt).toISOString().slice(0, 10)}${disabled ? " (disabled)" : ""}`
  );
  if (keys.inUse > lines.length) lines.push(`and ${keys.inUse - lines.length} more`);
  lines.push(...configured.map((name) => `API key "${name}" comes from the environment`));
  if (lines.length === 0) lines.push("No API key is in use");
  return `${listensText({ origin, admin, link })}\n\n${lines.join("\n")}\nAdd a key: ${addCommand}\n\n`;
}

/** The note after a link. */
const LINK_NOTE = '  (this link works once, within ten minutes; "sluice console" prints another one)';

function listensText(
  { origin, admin, link }: Record<"admin" | "link", string | undefined> & { origin: string },
): string {
  return `Sluice listens on ${origin}` +
    (link === undefined ? "" : `\nConsole: ${link}\n${LINK_NOTE}`) +
    (admin === undefined ? "" : `\nAdmin side: ${admin}/admin/v1\nConsole: ${admin}/admin/console`);
}
