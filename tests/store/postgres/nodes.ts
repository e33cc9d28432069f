/** Nodes on one Postgres database: what each of them has cached of keys and configurations. */
import type { LogEntry } from "../../../lib/log_events.ts";
import { Secret } from "../../../lib/secret.ts";
import type { KeyStore } from "../../../lib/store/keys.ts";
import { Changes } from "../../../lib/store/postgres/changes.ts";
import { connect, migrate, openPool, type Sql } from "../../../lib/store/postgres/client.ts";
import { openPostgresConfigs } from "../../../lib/store/postgres/configs.ts";
import { cacheKeys } from "../../../lib/store/postgres/key_cache.ts";
import { findKey, openPostgresKeys, readUsedKeys } from "../../../lib/store/postgres/keys.ts";
import type { SharedConfigs } from "../../../lib/store/store.ts";

/** A node. */
export interface Node extends AsyncDisposable {
  keys: KeyStore;
  configs: SharedConfigs;
  changes: Changes;
  /** Connections that bypass the node. */
  sql: Sql;
  /** Keys that were read from the database. */
  readonly reads: number;
  /** Notifications that it has received. */
  readonly notifications: number;
  /** Moves its clock on, in milliseconds. */
  later(ms: number): void;
  lines: LogEntry[];
}

/** Options of a node. */
export interface NodeOptions {
  keyAgeMs?: number;
  maxKeys?: number;
  /** Notifications do not reach it. */
  isDeaf?: boolean;
  /** Intercepts reads between the cache and the database. */
  between?: <T>(read: () => Promise<T>) => Promise<T>;
}

/** Opens a node. */
export async function openNode(
  address: string,
  { keyAgeMs = 60_000, maxKeys, isDeaf = false, between = (read) => read() }: NodeOptions = {},
): Promise<Node> {
  const url = new Secret(address);
  const pool = openPool(() => connect(url, 2));
  await migrate(pool.sql);
  const lines: LogEntry[] = [];
  let ahead = 0;
  let reads = 0;
  let notifications = 0;
  const notified = () => {
    notifications++;
    changes.notified();
  };
  const listener = { notified: () => isDeaf || notified(), disconnected: () => changes.disconnected() };
  const feed = openPool(() => connect(url, 1, listener));
  const changes = new Changes({
    pool: feed,
    isPooled: false,
    stalled: () => pool.renew(),
    isLedgerUp: () => false,
    monotonic: () => performance.now() + ahead,
    log: (line) => lines.push(line),
  });
  const keys = cacheKeys({
    keys: openPostgresKeys(pool.sql),
    first: await readUsedKeys(pool.sql, 100),
    find(hash) {
      reads++;
      return between(() => findKey(pool.sql, hash));
    },
    changes,
    keyAgeMs,
    ...(maxKeys !== undefined && { maxKeys }),
  });
  const configs = openPostgresConfigs(pool.sql, changes);
  await changes.poll();
  return {
    keys,
    configs,
    changes,
    sql: pool.sql,
    get reads() {
      return reads;
    },
    get notifications() {
      return notifications;
    },
    later: (ms) => void (ahead += ms),
    lines,
    async [Symbol.asyncDispose]() {
      changes.close();
      await feed.close();
      await pool.close();
    },
  };
}
