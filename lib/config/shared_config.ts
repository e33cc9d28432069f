/** A configuration shared by all nodes of a store: its latest text. */
import type { Log } from "../log_events.ts";
import { ConfigError } from "../config.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import type { SharedConfig, SharedConfigs } from "../store/store.ts";
import { parseJsonc } from "./jsonc.ts";
import type { ConfigText, LoadedConfig } from "./load.ts";
import { configDigest, ConfigStoreError, type ReloadTrigger } from "./reloader.ts";

/** Members that each node takes from its own file. */
const OWN = ["listen", "store", "limits_store", "nodes"] as const;

/** A line of the log. */

/** Parts of a node that uses the configuration of the store. */
export interface SharedConfigParts {
  configs: SharedConfigs;
  /** Finds the text of the node's own file. @throws {ConfigError} */
  find: () => Promise<ConfigText>;
  /** Parses a text with the node's flags and environment; `change` transforms it first. @throws {ConfigError} */
  read: (text: ConfigText, change?: (file: Json) => Json) => Promise<LoadedConfig>;
  log: Log;
}

/** The shared configuration, as used by one node. */
export interface SharedConfigSource {
  readonly loaded: LoadedConfig;
  /**
   * Loads the configuration to activate. A trigger by an operator on this node first validates the node's own file and
   * stores its text for all nodes.
   * @throws {ConfigError} if this node cannot use it
   * @throws {ConfigStoreError} if the store is unreachable
   */
  load(trigger: ReloadTrigger): Promise<LoadedConfig>;
  /** The latest known version in the store. */
  latest(): number;
}

/**
 * Starts with the store's text, or stores the node's own if there is none yet. A node that cannot use the store's text
 * starts with its own.
 * @throws {ConfigError} if the node's own file is invalid
 * @throws {ConfigStoreError} if the store is unreachable, so that the active configuration is unknown
 */
export async function openSharedConfig({ configs, find, read, log }: SharedConfigParts): Promise<SharedConfigSource> {
  const started = await find();
  const own = await read(started);
  const ownFile = parseJsonc(textOf(started));
  /** The text of this node's file that was last stored, or replaced by the store's text. */
  let ownText = textOf(started);
  let latest = 0;

  async function put(text: string): Promise<number> {
    try {
      latest = await configs.put(text);
    } catch (cause) {
      throw new ConfigStoreError("Cannot write the configuration to the store: it is unreachable", { cause });
    }
    ownText = text;
    return latest;
  }

  async function readLatest(): Promise<SharedConfig | undefined> {
    try {
      const found = await configs.latest();
      latest = found?.version ?? latest;
      return found;
    } catch (cause) {
      throw new ConfigStoreError("Cannot read the shared configuration: the store is unreachable", { cause });
    }
  }

  function readShared({ text, version }: SharedConfig): Promise<LoadedConfig> {
    return read({ text, shared: version }, (file) => withOwn(file, ownFile));
  }

  /** Loads the store's text; the node's own if there is none or it is unusable. */
  async function start(): Promise<LoadedConfig> {
    const found = await readLatest();
    if (found === undefined) {
      const version = await put(ownText);
      log({ level: "info", event: "shared_config_stored", version });
      return { ...own, shared: version };
    }
    let loaded: LoadedConfig;
    try {
      loaded = await readShared(found);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      // The first reload after the start reports its problems.
      log({ level: "error", event: "shared_config_rejected", version: latest });
      return own;
    }
    log({ level: "info", event: "shared_config_used", version: latest });
    if (configDigest(loaded.config) !== configDigest(own.config)) {
      const { path, variable } = own;
      log({ level: "warn", event: "shared_config_differs", version: latest, source: path ?? variable ?? "built in" });
    }
    return loaded;
  }

  let loaded = await start();
  return {
    loaded,
    latest: () => latest,
    async load(trigger) {
      const found = trigger === "store" ? undefined : await find();
      // A file that was touched but not changed must not replace what others stored since.
      if (found !== undefined && (trigger !== "file" || textOf(found) !== ownText)) {
        const own = await read(found);
        return loaded = { ...own, shared: await put(textOf(found)) };
      }
      const shared = await readLatest();
      // An emptied store changes nothing for running nodes.
      return loaded = shared === undefined ? loaded : await readShared(shared);
    },
  };
}

function textOf({ text = "{}" }: ConfigText): string {
  return text;
}

/** Takes the node's own members from its file, including those missing in the text. */
function withOwn(file: Json, own: Json): Json {
  if (!isObject(file) || !isObject(own)) return file;
  const isOwn: ReadonlySet<string> = new Set(OWN);
  const shared = Object.entries(file).filter(([name]) => !isOwn.has(name));
  const ownEntries = Object.entries(own).filter(([name]) => isOwn.has(name));
  return Object.fromEntries([...shared, ...ownEntries].map(([name, value]) => [
    name,
    name === "admin" && isObject(value) ? adminWithOwn(value, own.admin) : value,
  ]));
}

/** The address of the admin side is the node's own; its key is shared. */
function adminWithOwn({ listen: _, ...admin }: JsonObject, own: Json | undefined): JsonObject {
  return isObject(own) && own.listen !== undefined ? { ...admin, listen: own.listen } : admin;
}
