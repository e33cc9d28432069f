/** The composition root: a configuration becomes a `Gateway`, a record of everything a request needs. */
import { createKeyRing, type KeyRing } from "./access/keys.ts";
import { type Catalog, createCatalog } from "./catalog/catalog.ts";
import type { Config, UpstreamConfig } from "./config.ts";
import type { Store } from "./store/store.ts";
import { createEcho } from "./upstreams/embedded/echo.ts";
import type { Upstream } from "./upstreams/upstream.ts";

/** Everything a request needs. Immutable; a reload builds a new one. */
export interface Gateway {
  readonly config: Config;
  readonly catalog: Catalog;
  readonly keys: KeyRing;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  /** Unix time in milliseconds. */
  readonly now: () => number;
  readonly log: (entry: LogEntry) => void;
}

/** One line of the log: an event with its facts; never a key, a prompt or an answer. */
export interface LogEntry {
  level: "info" | "warn" | "error";
  event: string;
  [fact: string]: string | number | boolean | undefined;
}

/** What a gateway is made from. */
export interface Parts {
  config: Config;
  store: Store;
  /** Unix time in milliseconds. */
  now: () => number;
  log: (entry: LogEntry) => void;
}

/** Builds a gateway. Nothing is opened or read that was not handed in. */
export function createGateway({ config, store, now, log }: Parts): Gateway {
  return {
    config,
    catalog: createCatalog(config),
    keys: createKeyRing({ config, store }),
    upstreams: new Map(Object.entries(config.upstreams).map(([name, row]) => [name, createUpstream(row)])),
    now,
    log,
  };
}

function createUpstream({ vendor }: UpstreamConfig): Upstream {
  switch (vendor) {
    case "embedded":
      return createEcho();
  }
}
