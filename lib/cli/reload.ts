/** The gateway of a process whose configuration may change while it serves. */
import { isOnDeploy } from "../config/deno_deploy.ts";
import type { ConfigFlags, LoadedConfig } from "../config/load.ts";
import { DEFAULT_FILE, loadConfig } from "../config/load.ts";
import { createReloader, type Reloader } from "../config/reloader.ts";
import { watchFile } from "../config/watch.ts";
import { createGateway, type Gateway, type LogEntry, renewGateway, retireGateway } from "../gateway.ts";
import { describeCause } from "../http/cause.ts";
import type { Limiter } from "../limits/limiter.ts";
import type { Store } from "../store/store.ts";

/** What it is made of. */
export interface LiveParts {
  /** What it starts with. */
  loaded: LoadedConfig;
  load: () => Promise<LoadedConfig>;
  store: Store;
  /** Absent: limits are counted in this process alone. */
  limiter?: Limiter;
  /** Unix time in milliseconds. */
  now: () => number;
  log: (entry: LogEntry) => void;
  /** Other isolates that serve by the same configuration; absent: there are none. */
  others?: Others;
}

/** The other isolates of a process. */
export interface Others extends Pick<Gateway, "isolates" | "whole"> {
  /** Has them obey the configuration in force, before whoever asked for it is told. */
  renew: () => Promise<void>;
}

/** Starts a gateway, and puts another one in its place at every reload. Gives the one of the moment. */
export function startLive({ loaded, load, store, limiter, now, log, others }: LiveParts): () => Gateway {
  const own = createReloader({ first: loaded, load, now, log, apply });
  const reloader = others === undefined ? own : followed(own, others);
  let gateway = createGateway({
    config: loaded.config,
    store,
    ...(limiter !== undefined && { limiter }),
    now,
    log,
    reloader,
    ...(others?.whole !== undefined && { isolates: others.isolates, whole: others.whole }),
  });
  function apply(config: Gateway["config"]): void {
    const old = gateway;
    gateway = renewGateway(old, config);
    void retireGateway(old);
  }
  return () => gateway;
}

/** A reloader that others follow, whatever came of it. */
function followed(reloader: Reloader, { renew }: Others): Reloader {
  return {
    status: reloader.status,
    async reload(trigger) {
      const reloaded = await reloader.reload(trigger);
      await renew();
      return reloaded;
    },
  };
}

/**
 * Reads the configuration anew, with the flags of the start and the environment of the moment. A file that was there must
 * be there: nothing else takes its place.
 */
export function loaderOf(flags: ConfigFlags, path: string | undefined): () => Promise<LoadedConfig> {
  return () =>
    loadConfig({
      flags: { ...flags, ...(path !== undefined && { config: path }) },
      env: (name) => Deno.env.get(name),
      readTextFile: (file) => Deno.readTextFile(file),
    });
}

/**
 * Reloads when the process is told to (SIGHUP), and when the file changes. Returns the function that ends it. On Deno Deploy
 * nobody can do either: another file is another deployment.
 */
export function startReloading({ reloader, log }: Pick<Gateway, "reloader" | "log">, path = DEFAULT_FILE): () => void {
  if (isOnDeploy((name) => Deno.env.get(name))) return () => {};
  const onSignal = () => void reloader.reload("signal");
  const hasSignal = Deno.build.os !== "windows";
  if (hasSignal) Deno.addSignalListener("SIGHUP", onSignal);
  const endWatch = watchFile({
    path,
    changed: () => void reloader.reload("file"),
    blind: (error) => log({ level: "info", event: "config_polled", path, ...describeCause(error) }),
  });
  return () => {
    endWatch();
    if (hasSignal) Deno.removeSignalListener("SIGHUP", onSignal);
  };
}
