/** One configuration for all nodes of a store: the text that was put there last. */
import { ConfigError } from "../config.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import type { SharedConfig, SharedConfigs } from "../store/store.ts";
import { parseJsonc } from "./jsonc.ts";
import type { ConfigText, LoadedConfig } from "./load.ts";
import { configDigest, ConfigStoreError, type ReloadTrigger } from "./reloader.ts";

/** Members of a node's own: whatever the text of all nodes says there, each has its file's. */
const OWN = ["listen", "store", "limits_store", "nodes"] as const;

/** A line of the log. */
type Line = { level: "info" | "warn" | "error"; event: string; [fact: string]: string | number | undefined };

/** Parts of a node that uses the configuration of the store. */
export interface SharedConfigParts {
  configs: SharedConfigs;
  /** Finds the text of the node's own file. @throws {ConfigError} */
  find: () => Promise<ConfigText>;
  /** Parses a text after the change, with the node's flags and environment over it. @throws {ConfigError} */
  read: (text: ConfigText, change?: (file: Json) => Json) => Promise<LoadedConfig>;
  log: (line: Line) => void;
}

/** The configuration of all nodes, as one of them has it. */
export interface SharedConfigSource {
  /** The configuration at the start. */
  readonly loaded: LoadedConfig;
  /**
   * Gives what shall be in force. What an operator did here puts the text of the node's own file into the store first:
   * it is validated, and from then on all nodes use it.
   * @throws {ConfigError} where this node cannot use it
   * @throws {ConfigStoreError} where the store is out of reach
   */
  load(trigger: ReloadTrigger): Promise<LoadedConfig>;
  /** The version that was put into the store last, as far as is known here. */
  latest(): number;
}

/**
 * Starts with the store's text, or puts the node's own there where there is none yet. A node that cannot use the store's
 * text starts with its own.
 * @throws {ConfigError} where the node's own file has mistakes
 * @throws {ConfigStoreError} where the store is unreachable, so that the configuration in force is unknown
 */
export async function openSharedConfig({ configs, find, read, log }: SharedConfigParts): Promise<SharedConfigSource> {
  const started = await find();
  const own = await read(started);
  const ownFile = parseJsonc(textOf(started));
  /** The text of this node's file that was published last, or that the store's text replaced. */
  let ownText = textOf(started);
  let latest = 0;

  async function put(text: string): Promise<number> {
    try {
      latest = await configs.put(text);
    } catch (cause) {
      throw new ConfigStoreError("Cannot put the configuration into the store: it is out of reach", { cause });
    }
    ownText = text;
    return latest;
  }

  async function look(): Promise<SharedConfig | undefined> {
    try {
      const found = await configs.latest();
      latest = found?.version ?? latest;
      return found;
    } catch (cause) {
      throw new ConfigStoreError("Cannot read the configuration of all nodes: the store is out of reach", { cause });
    }
  }

  function readShared({ text, version }: SharedConfig): Promise<LoadedConfig> {
    return read({ text, shared: version }, (file) => withOwn(file, ownFile));
  }

  /** The store's text as this node has it; its own where there is none, or none that it can use. */
  async function start(): Promise<LoadedConfig> {
    const found = await look();
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
      // A file that is only touched is no wish to have its text back in place of what others put since.
      if (found !== undefined && (trigger !== "file" || textOf(found) !== ownText)) {
        const own = await read(found);
        return loaded = { ...own, shared: await put(textOf(found)) };
      }
      const shared = await look();
      // A store that was emptied under its nodes changes nothing for them.
      return loaded = shared === undefined ? loaded : await readShared(shared);
    },
  };
}

function textOf({ text = "{}" }: ConfigText): string {
  return text;
}

/** The members of a node's own are its file's, also those that this one does not name. */
function withOwn(file: Json, own: Json): Json {
  if (!isObject(file) || !isObject(own)) return file;
  const isOwn: ReadonlySet<string> = new Set(OWN);
  const shared = Object.entries(file).filter(([name]) => !isOwn.has(name));
  const kept = Object.entries(own).filter(([name]) => isOwn.has(name));
  return Object.fromEntries([...shared, ...kept].map(([name, value]) => [
    name,
    name === "admin" && isObject(value) ? adminWithOwn(value, own.admin) : value,
  ]));
}

/** The address of the admin side is the node's own; its key is shared. */
function adminWithOwn({ listen: _, ...admin }: JsonObject, own: Json | undefined): JsonObject {
  return isObject(own) && own.listen !== undefined ? { ...admin, listen: own.listen } : admin;
}
