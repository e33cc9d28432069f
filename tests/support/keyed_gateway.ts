/** A gateway with an admin side and a key in every state. */
import { issueKey } from "../../lib/access/keys.ts";
import type { KeyRules } from "../../lib/config.ts";
import type { GatewayParts } from "../../lib/gateway.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import type { Store } from "../../lib/store/store.ts";
import { startGateway, type TestGateway } from "./gateway.ts";

/**
 * States of a key. `poor`: its group may call no endpoint. `narrowed`: the key itself may not. `speechless`: its group
 * may use no protocol. `lost`: its group does not exist. `elsewhere`: it may be used only from other addresses.
 */
export const KEY_STATES = [
  ...["good", "poor", "narrowed", "speechless", "lost", "disabled", "revoked", "expired", "elsewhere"] as const,
];

/** The admin key of every gateway here, by the name of its variable: `ADMIN_KEY`. */
export const ADMIN_KEY = "admin-key-of-the-tests";

/** The key that may only read, by the name of its variable: `VIEWER_KEY`. */
export const VIEWER_KEY = "viewer-key-of-the-tests";

/** A running gateway. */
export interface KeyedGateway extends TestGateway {
  keys: Readonly<Record<typeof KEY_STATES[number], string>>;
}

/** Starts a gateway with this configuration and a key in every state. */
export function startKeyed(
  file: JsonObject = {},
  { adminKey = ADMIN_KEY, store = openMemoryStore(), ...more }:
    & { adminKey?: string; store?: Store }
    & Pick<GatewayParts, "health" | "reloader"> = {},
): KeyedGateway {
  const add = (name: string, group = "default", more: { rules?: KeyRules; expiresAt?: number } = {}) => {
    const { key, record } = issueKey({ name, group, now: 0, ...more });
    void store.keys.add(record);
    return { key, id: record.id };
  };
  const disabled = add("disabled");
  const revoked = add("revoked");
  void store.keys.change(disabled.id, { disabled: true });
  void store.keys.revoke(revoked.id, 1);
  const gateway = startGateway(
    { ...file, groups: { poor: { endpoints: [] }, speechless: { protocols: [] } } },
    {
      keyName: "good",
      adminKey,
      viewerKey: VIEWER_KEY,
      store,
      now: Date.now,
      random: Math.random,
      breakers: true,
      ...more,
    },
  );
  return {
    ...gateway,
    keys: {
      good: gateway.key.key,
      poor: add("poor", "poor").key,
      lost: add("lost", "gone").key,
      disabled: disabled.key,
      revoked: revoked.key,
      narrowed: add("narrowed", "default", { rules: { endpoints: [] } }).key,
      speechless: add("speechless", "speechless").key,
      expired: add("expired", "default", { expiresAt: 1 }).key,
      elsewhere: add("elsewhere", "default", { rules: { ips: ["192.0.2.1"] } }).key,
    },
  };
}
