/** `keys`: makes, lists, disables and ends the API keys of the store. */
import { issueKey } from "../access/keys.ts";
import { type Config, groupOf, nameSchema } from "../config.ts";
import { openStore } from "../store/open.ts";
import type { KeyRecord } from "../store/keys.ts";
import type { Store } from "../store/store.ts";
import { writeErr, writeOut } from "./output.ts";

/** Makes a key. The key alone goes to standard output, so that a script can take it. */
export async function addKey(
  { config, name, group }: { config: Config; name: string; group: string },
): Promise<number> {
  const checked = nameSchema.safeParse(name);
  if (!checked.success) return refuse(`Cannot add a key "${name}": ${checked.error.issues[0]?.message ?? "bad name"}`);
  if (groupOf(config, group) === undefined) {
    return refuse(`Cannot add a key: unknown group "${group}"; known: ${Object.keys(config.groups).join(", ")}`);
  }
  if (config.keys.some((key) => key.name === name)) {
    return refuse(`Cannot add a key "${name}": the configuration has a key of this name`);
  }
  return await withStore(config, async (store) => {
    const { key, record } = issueKey({ name, group, now: Date.now() });
    if (!await store.keys.add(record)) return refuse(`Cannot add a key "${name}": a key of this name is in use`);
    writeErr(`Added key "${name}" (${record.id}) to group "${group}". It is shown only now:\n`);
    writeOut(`${key}\n`);
    return 0;
  });
}

/** Lists every key of the store, as a table or as JSON. */
export function listKeys({ config, json }: { config: Config; json: boolean }): Promise<number> {
  return withStore(config, async (store) => {
    const keys = await store.keys.list();
    writeOut(json ? `${JSON.stringify(keys.map(publicKey), null, 2)}\n` : table(keys));
    return 0;
  });
}

/** Changes the key with this id, or the one in use with this name. */
export function changeKey(
  { config, wanted, change }: { config: Config; wanted: string; change: "disable" | "enable" | "revoke" },
): Promise<number> {
  return withStore(config, async (store) => {
    const keys = await store.keys.list();
    const key = keys.find((key) => key.id === wanted) ??
      keys.find((key) => key.name === wanted && key.revokedAt === undefined) ??
      keys.find((key) => key.name === wanted);
    if (key === undefined) return refuse(`Cannot ${change} key "${wanted}": there is no key of this name or id`);
    const done = change === "revoke"
      ? await store.keys.revoke(key.id, Date.now())
      : await store.keys.change(key.id, { disabled: change === "disable" });
    if (!done) return refuse(`Cannot ${change} key "${wanted}": it is revoked`);
    writeOut(`Key "${key.name}" (${key.id}) is ${change}d\n`);
    return 0;
  });
}

/** `active`, `disabled` or `revoked`. */
function stateOf(key: KeyRecord): string {
  return key.revokedAt !== undefined ? "revoked" : key.disabled ? "disabled" : "active";
}

function publicKey(key: KeyRecord): Record<string, string> {
  return {
    id: key.id,
    name: key.name,
    group: key.group,
    state: stateOf(key),
    created_at: new Date(key.createdAt).toISOString(),
    ...(key.revokedAt !== undefined && { revoked_at: new Date(key.revokedAt).toISOString() }),
  };
}

function table(keys: readonly KeyRecord[]): string {
  const rows = keys.map((key) => {
    const { id = "", name = "", group = "", state = "", created_at = "" } = publicKey(key);
    return [id, name, group, state, created_at];
  });
  const all = [["ID", "NAME", "GROUP", "STATE", "CREATED"], ...rows];
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? [];
  return all.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd() + "\n").join(
    "",
  );
}

async function withStore(config: Config, act: (store: Store) => Promise<number>): Promise<number> {
  if (config.store === "memory:") {
    return refuse('Cannot reach the keys: the store is "memory:", which only the running gateway can see');
  }
  const store = openStore(config.store);
  try {
    return await act(store);
  } finally {
    await store.close();
  }
}

function refuse(message: string): number {
  writeErr(`${message}\n`);
  return 1;
}
