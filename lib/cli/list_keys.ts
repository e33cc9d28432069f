/** `keys list` and `keys show`: show keys of the store with their budgets. */
import { findKey, keyPages } from "../access/key_admin.ts";
import { keysWithBudgets, type KeyWithBudget, keyWithBudget } from "../billing/reports/budget_report.ts";
import { type Config, groupOf } from "../config.ts";
import type { Store } from "../store/store.ts";
import type { Invocation } from "./arguments.ts";
import { keysTable, keyText } from "./key_text.ts";
import { jsonText, writeErr, writeOut } from "./output.ts";

/** The command line, and the store to read. */
export interface KeyReport extends Pick<Invocation, "operand" | "switches"> {
  admin: { config: Config; store: Store; now: () => number };
}

/** Prints all keys of the store, the oldest first. */
export async function listKeys({ admin: { config, store, now }, switches }: KeyReport): Promise<void> {
  const keys: KeyWithBudget[] = [];
  for await (const page of keyPages(store.keys)) {
    keys.push(...await keysWithBudgets({ ledger: store.ledger, config }, page, now()));
  }
  writeOut(switches.has("json") ? jsonText(keys) : keysTable(keys));
  warnOfGroups(config, keys);
}

/** Prints the key with a name or id. @throws {GatewayError} `not_found` if there is none */
export async function showKey({ admin, operand, switches }: KeyReport): Promise<void> {
  const { config, store: { ledger }, now } = admin;
  const key = await keyWithBudget({ ledger, config }, await findKey(admin, operand), now());
  writeOut(switches.has("json") ? jsonText(key) : keyText(key));
  warnOfGroups(config, [key]);
}

/** Warns of groups that the configuration no longer has: the gateway refuses their keys. */
function warnOfGroups(config: Config, keys: readonly KeyWithBudget[]): void {
  const active = keys.filter(({ state }) => state === "active");
  for (const name of new Set(active.map(({ group }) => group))) {
    if (groupOf(config, name) !== undefined) continue;
    writeErr(`Warning: The configuration has no group "${name}": requests with its keys get 403\n`);
  }
}
