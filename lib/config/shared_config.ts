/** Loads the configuration that all nodes of a store share, and stores the file of a node as its next version. */
import type { Log } from "../log_events.ts";
import { ConfigError } from "../config.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import type { SharedConfig, SharedConfigs } from "../store/store.ts";
import { configDigest } from "./digest.ts";
import { parseJsonc } from "./jsonc.ts";
import type { ConfigText, LoadedConfig } from "./load.ts";
import { ConfigStoreError, type ReloadTrigger } from "./reloader.ts";

/** Members that each node takes from its own file. */
const OWN_MEMBERS = ["listen", "store", "limits_store", "nodes"] as const;

/** Parts of a node that uses the configuration of the store. */
export interface SharedConfigParts {
  configs: SharedConfigs;
  /** Reads the text of the node's own file. @throws {ConfigError} if it cannot be read */
  find: () => Promise<ConfigText>;
  /**
   * Parses a text with the node's flags and environment. `change` transforms the file first.
   * @throws {ConfigError} if it is invalid
   */
  read: (text: ConfigText, change?: (file: Json) => Json) => Promise<LoadedConfig>;
  log: Log;
}

/** The shared configuration as one node uses it. */
export interface SharedConfigSource {
  readonly loaded: LoadedConfig;
  /**
   * Loads the configuration to activate. If an operator of this node triggered the reload, the node's own file is
   * validated and stored for all nodes first.
   * @throws {ConfigError} if this node cannot use it
   * @throws {ConfigStoreError} if the store is unreachable
   */
  load(trigger: ReloadTrigger): Promise<LoadedConfig>;
  /** Returns the latest known version in the store. */
  latest(): number;
}

/**
 * Loads the store's configuration, or stores the node's own if there is none yet. A node that cannot use the store's
 * starts with its own.
 * @throws {ConfigError} if the node's own file is invalid
 * @throws {ConfigStoreError} if the store is unreachable, so that the active configuration is unknown
 */
export async function openSharedConfig({ configs, find, read, log }: SharedConfigParts): Promise<SharedConfigSource> {
  const atStart = await find();
  const own = await read(atStart);
  const ownFile = parseJsonc(textOf(atStart));
  /** The text of this node's file at the start, or when it was last stored. */
  let ownText = textOf(atStart);
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
      const shared = await configs.latest();
      latest = shared?.version ?? latest;
      return shared;
    } catch (cause) {
      throw new ConfigStoreError("Cannot read the shared configuration: the store is unreachable", { cause });
    }
  }

  function readShared({ text, version }: SharedConfig): Promise<LoadedConfig> {
    return read({ text, shared: version }, (file) => withOwn(file, ownFile));
  }

  /** Loads the store's configuration; the node's own if there is none or it is unusable. */
  async function start(): Promise<LoadedConfig> {
    const shared = await readLatest();
    if (shared === undefined) {
      const version = await put(ownText);
      log({ level: "info", event: "shared_config_stored", version });
      return { ...own, shared: version };
    }
    let loaded: LoadedConfig;
    try {
      loaded = await readShared(shared);
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
      const ownFile = trigger === "store" ? undefined : await find();
      // A file that was written but not changed must not replace a configuration that another node has stored since.
      if (ownFile !== undefined && (trigger !== "file" || textOf(ownFile) !== ownText)) {
        const own = await read(ownFile);
        return loaded = { ...own, shared: await put(textOf(ownFile)) };
      }
      const shared = await readLatest();
      // If the store was emptied, running nodes keep their configuration.
      return loaded = shared === undefined ? loaded : await readShared(shared);
    },
  };
}

function textOf({ text = "{}" }: ConfigText): string {
  return text;
}

/** Replaces the members that each node has for itself by those of the node's own file. */
function withOwn(file: Json, own: Json): Json {
  if (!isObject(file) || !isObject(own)) return file;
  const ownNames: ReadonlySet<string> = new Set(OWN_MEMBERS);
  const sharedMembers = Object.entries(file).filter(([name]) => !ownNames.has(name));
  const ownMembers = Object.entries(own).filter(([name]) => ownNames.has(name));
  return Object.fromEntries([...sharedMembers, ...ownMembers].map(([name, value]) => [
    name,
    name === "admin" && isObject(value) ? adminWithOwn(value, own.admin) : value,
  ]));
}

/** Returns the shared admin settings with the node's own admin listener. */
function adminWithOwn({ listen: _, ...admin }: JsonObject, own: Json | undefined): JsonObject {
  return isObject(own) && own.listen !== undefined ? { ...admin, listen: own.listen } : admin;
}
