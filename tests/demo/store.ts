/** Fills a store with the keys and the month of the demo. */
import { issueKey } from "../../lib/access/keys.ts";
import { type Amount, formatUsd } from "../../lib/billing/money.ts";
import { DAY_MS } from "../../lib/store/days.ts";
import type { Entry } from "../../lib/store/ledger.ts";
import type { Store } from "../../lib/store/store.ts";
import { CLIENTS, type DemoClient, GROUP_BUDGETS, keyIdOf } from "./clients.ts";
import { DEMO_DAYS, monthOfTraffic, type TrafficOptions } from "./traffic.ts";

/** Entries of one transaction. */
const BATCH = 2_000;

/** Facts about the demo's store. */
export interface FilledStore {
  /** Secrets of the keys by name. */
  secrets: ReadonlyMap<string, string>;
  /** Monthly budget of groups in USD. */
  budgets: Readonly<Record<string, string>>;
  entries: readonly Entry[];
}

/** Adds the keys and the month up to `now`, Unix time in milliseconds. */
export async function fillStore(
  { keys, ledger }: Pick<Store, "keys" | "ledger">,
  options: TrafficOptions,
): Promise<FilledStore> {
  const { now } = options;
  const entries = monthOfTraffic(options);
  for (let at = 0; at < entries.length; at += BATCH) await ledger.append(entries.slice(at, at + BATCH));
  const secrets = new Map<string, string>();
  for (const client of CLIENTS) secrets.set(client.name, await addKey(keys, { client, entries, now }));
  const date = new Date(now);
  const month = Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
  const budgets = Object.fromEntries(
    Object.entries(GROUP_BUDGETS).map(([group, used]) => {
      const spent = sumCosts(entries.filter((entry) => entry.group === group && entry.at >= month));
      return [group, budgetOf(spent, used)];
    }),
  );
  return { secrets, budgets, entries };
}

async function addKey(
  keys: Store["keys"],
  { client, entries, now }: { client: DemoClient; entries: readonly Entry[]; now: number },
): Promise<string> {
  const { name, group, state, budgetUsed } = client;
  const id = keyIdOf(client);
  const own = entries.filter(({ keyId }) => keyId === id);
  const { key, record } = issueKey({
    name,
    group,
    now: now - (DEMO_DAYS + 1) * DAY_MS,
    ...(budgetUsed !== undefined && {
      rules: { budget: { usd: budgetOf(sumCosts(own), budgetUsed), period: "total" as const } },
    }),
    ...(state === "expired" && { expiresAt: now - 14 * DAY_MS }),
  });
  await keys.add({ ...record, id });
  const last = own.at(-1);
  if (last !== undefined) await keys.touch(new Map([[id, last.at]]));
  if (state === "disabled") await keys.change(id, { disabled: true });
  if (state === "revoked") await keys.revoke(id, now - 19 * DAY_MS);
  return key;
}

function sumCosts(entries: readonly Entry[]): Amount {
  return entries.reduce((sum, { cost }) => sum + cost, 0n);
}

/** The budget of which `spent` is that many percent, with four decimals, rounded up: a budget is never overspent. */
function budgetOf(spent: Amount, usedPercent: number): string {
  const unit = 10n ** 8n;
  const units = (spent * 100n / BigInt(usedPercent) + unit - 1n) / unit;
  return formatUsd((units > 0n ? units : 1n) * unit);
}
