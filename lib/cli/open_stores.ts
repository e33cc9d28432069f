/** Opens the stores of a gateway with the options of the configuration. */
import type { Config } from "../config.ts";
import type { Gateway, GatewayParts } from "../gateway.ts";
import { type LimiterOptions, openLimiter } from "../limits/open_limiter.ts";
import { openSharedResponses } from "../recall/open_shared_responses.ts";
import { openStore } from "../store/open.ts";
import { lostEntry } from "../store/sqlite/accounts.ts";
import type { SharedStoreOptions } from "../store/store.ts";

/**
 * Opens the store of keys and ledger, the limiter, and the responses that nodes share.
 * @throws {StoreError} if one cannot be opened
 */
export async function openStores(
  config: Config,
  log: Gateway["log"],
): Promise<Pick<Gateway, "store" | "limiter"> & Pick<GatewayParts, "sharedResponses">> {
  const store = await openStore(config.store, {
    own: true,
    shared: sharedStoreOptions(config, log),
    migrating: (facts) => log({ level: "info", event: "store_migrating", ...facts }),
    migrated: (facts) => log({ level: "info", event: "store_migrated", ...facts }),
  });
  const limiter = await openLimiter(config.limits_store, limiterOptions(config, { store, log }));
  const sharedResponses = await openSharedResponses(config.limits_store, log);
  return { store, limiter, sharedResponses };
}

function sharedStoreOptions({ nodes }: Config, log: Gateway["log"]): SharedStoreOptions {
  return {
    keyAgeMs: nodes.key_age_seconds * 1000,
    ...(nodes.journal !== null && { journal: nodes.journal }),
    journalEntries: nodes.journal_entries,
    leaseMs: nodes.lease_seconds * 1000,
    log,
  };
}

function limiterOptions({ nodes }: Config, { store, log }: Pick<Gateway, "store" | "log">): LimiterOptions {
  const { shared } = store;
  return {
    monotonic: () => performance.now(),
    outage: nodes.limits_outage,
    timeoutMs: nodes.limits_timeout_ms,
    leaseMs: nodes.lease_seconds * 1000,
    ...(shared !== undefined && {
      msSinceStoreAnswered: () => shared.msSinceAnswer?.(),
      enterLost: (requests) => store.ledger.append(requests.map((request) => lostEntry(request, Date.now()))),
    }),
    log,
  };
}
