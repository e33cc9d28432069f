/** Texts that the operator sees when the gateway starts: addresses, the first key, and how to add keys. */
import { containsPassword } from "../config/address.ts";
import type { ConfigFlags } from "../config/load.ts";
import type { KeySummary } from "../store/keys.ts";
import { shellWord } from "../text.ts";

/** Placeholder for the address of an app on Deno Deploy, which the program does not know. */
export const DEPLOYED_ORIGIN = "https://<YOUR_APP>";

/** Returns the URL at which the machine itself reaches a listener, such as `http://localhost:8790`. */
export function originOf({ hostname, port }: { hostname: string; port: number }): string {
  if (hostname === "0.0.0.0" || hostname === "::") return `http://localhost:${port}`;
  const host = hostname.includes(":") ? `[${hostname}]` : hostname;
  return `http://${host}:${port}`;
}

/** URLs of the listeners. */
export interface Origins {
  /** URL of the clients' listener. */
  origin: string;
  /** Link that signs in to a console without an admin key; absent: there is no such console. */
  link?: string;
  /** URL of the listener with the admin side; absent: there is no admin side. */
  admin?: string;
}

/** Values in the text of the first start at a terminal. */
export interface FirstStart extends Origins {
  /** The new API key, which is shown only here. */
  key: string;
  /** A model that the key may use; absent: there is none. */
  model?: string;
}

/** Returns the text of the first start: the key, a command to try it, and settings of common clients. */
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

/** Largest number of keys that the text of a start lists. */
export const MAX_LISTED_KEYS = 5;

/** Values in the text of a later start. */
export interface LaterStart extends Origins {
  /** Number of keys in the store, and at most `MAX_LISTED_KEYS` of them; absent: the store does not answer. */
  keys?: Pick<KeySummary, "inUse" | "oldest">;
  /** Names of the keys that the configuration takes from the environment. */
  configured: readonly string[];
  /** The command that adds a key, or `MEMORY_KEYS`. */
  addCommand: string;
}

/**
 * Returns the command that starts this program: the executable, or Deno with the source.
 * @param folder the folder that the command is run in; `undefined`: that of the source
 */
export function programName(isStandalone: boolean, folder: string | undefined): string {
  if (isStandalone) return "sluice";
  const { protocol, pathname, href } = new URL("../../main.ts", import.meta.url);
  const main = protocol === "file:" ? decodeURIComponent(pathname) : href;
  // A task runs in the folder of the source, so it would not find the files of another one.
  const isSource = folder === undefined || main === `${folder}/main.ts`;
  return `npx -y deno@2.9.6 ${isSource ? "task sluice" : `run -A ${shellWord(main)}`}`;
}

/** This program, and the way in which it was started. */
export interface Program {
  /** True if it is a compiled executable. */
  isStandalone: boolean;
  /** Working directory of the process; absent: it runs on Deno Deploy. */
  folder?: string | undefined;
  /** Absent: it was started at a terminal. */
  background?: Background | undefined;
}

/** A process without a terminal. The command that adds a key must be run in its environment. */
export interface Background {
  kind: "container" | "kubernetes" | "systemd" | "other";
  /** Name of the user that the process runs as. */
  user: string;
  /** True if the address of the store comes from an environment variable. */
  hasStoreVariable: boolean;
}

/**
 * Returns the command that adds a key to the store of this process. A store's address with a password is replaced by a
 * placeholder for an environment variable, which other users of the machine cannot see.
 */
export function addCommand(
  { config, store }: ConfigFlags,
  { isStandalone, folder, background }: Program,
): string {
  const hasOwnEnvironment = background?.kind === "container" || background?.kind === "kubernetes";
  const isElsewhere = background?.hasStoreVariable === true && !hasOwnEnvironment && store === undefined;
  const isHidden = folder === undefined || isElsewhere || store !== undefined && containsPassword(store) !== false;
  const command = [
    ...(isHidden ? ["SLUICE_STORE=ADDRESS"] : []),
    programName(isStandalone, folder),
    "keys add NAME",
    ...(config === undefined ? [] : ["--config", shellWord(config)]),
    ...(store === undefined || isHidden ? [] : ["--store", shellWord(store)]),
  ].join(" ");
  const there = `cd ${shellWord(folder ?? ".")} && ${command}`;
  switch (background?.kind) {
    case undefined:
      return command;
    case "container":
      return `docker exec CONTAINER ${command}`;
    case "kubernetes":
      return `kubectl exec POD -- ${command}`;
    case "systemd":
      return `runuser -u ${background.user} -- sh -c ${shellWord(there)}`;
    case "other":
      return there;
  }
}

/** Finds out where a process without a terminal runs; `undefined` at a terminal. */
export function backgroundOf(
  { isTerminal, env }: { isTerminal: boolean; env: (name: string) => string | undefined },
): Background | undefined {
  if (isTerminal) return undefined;
  const has = (name: string) => (env(name) ?? "") !== "";
  let kind: Background["kind"] = "other";
  if (has("KUBERNETES_SERVICE_HOST")) kind = "kubernetes";
  // Sluice's image sets `container`, and so do systemd and Podman.
  else if (has("container")) kind = "container";
  // systemd sets it for services that log to its journal.
  else if (has("JOURNAL_STREAM")) kind = "systemd";
  return { kind, user: env("USER") || "sluice", hasStoreVariable: has("SLUICE_STORE") };
}

/** Text instead of the command if the store is in memory, so that no other process can add a key. */
export const MEMORY_KEYS = 'list it in "keys" of the configuration, as the store is in memory';

/** Returns the text of a later start: the keys in use, and the command that adds one. */
export function laterStartText({ origin, admin, link, keys, configured, addCommand }: LaterStart): string {
  const { inUse, oldest } = keys ?? { inUse: 0, oldest: [] };
  const lines = oldest.map(({ name, createdAt, disabled }) =>
    `API key "${name}" exists since ${new Date(createdAt).toISOString().slice(0, 10)}${disabled ? " (disabled)" : ""}`
  );
  if (inUse > lines.length) lines.push(`and ${inUse - lines.length} more`);
  if (keys === undefined) lines.push("The API keys of the store are unknown: it does not answer at the moment");
  lines.push(...configured.map((name) => `API key "${name}" comes from the environment`));
  if (lines.length === 0) lines.push("No API key is in use");
  return `${listensText({ origin, admin, link })}\n\n${lines.join("\n")}\nAdd a key: ${addCommand}\n\n`;
}

const LINK_NOTE = '  (this link works once, within ten minutes; "sluice console" prints another one)';

function listensText(
  { origin, admin, link }: Record<"admin" | "link", string | undefined> & { origin: string },
): string {
  return `Sluice listens on ${origin}` +
    (link === undefined ? "" : `\nConsole: ${link}\n${LINK_NOTE}`) +
    (admin === undefined ? "" : `\nAdmin side: ${admin}/admin/v1\nConsole: ${admin}/admin/console`);
}
