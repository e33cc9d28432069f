/** The composition root: a configuration becomes a `Gateway`, a record of everything a request needs. */
import type { KeyRing } from "./access/keys.ts";
import type { Catalog } from "./catalog/catalog.ts";
import type { Config } from "./config.ts";
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
