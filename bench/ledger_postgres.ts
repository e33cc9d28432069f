/**
 * Measures the ledger in Postgres: `deno run -A bench/ledger_postgres.ts [ENTRIES]`, with its own server on this
 * machine. ENTRIES is the final size of the ledger; 1,000,000 take some minutes.
 */
import { auditLedger } from "../lib/billing/reports/audit.ts";
import { Secret } from "../lib/secret.ts";
import type { Entry, LedgerStore } from "../lib/store/ledger.ts";
import { connect } from "../lib/store/postgres/client.ts";
import { openPostgresLedger } from "../lib/store/postgres/ledger.ts";
import { TABLES } from "../tests/store/postgres/ledgers.ts";
import { startPostgres } from "../tests/support/databases.ts";
import { entryOf, SHEET } from "../tests/billing/reports/entries.ts";

const DAY_MS = 86_400_000;
const NODES = 3;

/** Keys, groups and models that entries are of, and days that they are spread over. */
const [KEYS, GROUPS, SHEETS, DAYS] = [1000, 20, 30, 30];

const sheets = Array.from(
  { length: SHEETS },
  (_, index) => Object.freeze({ ...SHEET, model: `acme/model-${index}`, prompt: `0.0000${10 + index}` }),
);
const begin = Math.floor(Date.now() / DAY_MS - DAYS) * DAY_MS;
let madeEntries = 0;

/** Entries of requests that came one after the other, over some weeks. */
function batchOf(size: number, of: number): Entry[] {
  return Array.from({ length: size }, () => {
    const number = madeEntries++;
    const key = (number * 7919) % KEYS;
    const sheet = sheets[number % SHEETS] ?? SHEET;
    return entryOf({
      id: crypto.randomUUID(),
      at: begin + Math.floor((number % of) / of * DAYS * DAY_MS),
      keyId: `key_${String(key).padStart(20, "0")}`,
      group: `group_${key % GROUPS}`,
      model: sheet.model,
      sheet,
    });
  });
}

function print(what: string, value: string): void {
  // deno-lint-ignore no-console -- what a measurement is for
  console.log(`${what.padEnd(64)} ${value}`);
}

/** The time in the middle and near the end of many, in milliseconds. */
async function times(count: number, run: (index: number) => Promise<unknown>): Promise<string> {
  const all: number[] = [];
  for (let index = 0; index < count; index++) {
    const startedAt = performance.now();
    await run(index);
    all.push(performance.now() - startedAt);
  }
  all.sort((a, b) => a - b);
  const at = (share: number) => (all[Math.min(count - 1, Math.floor(count * share))] ?? 0).toFixed(2);
  return `${at(0.5)} ms, p95 ${at(0.95)} ms`;
}

/** Entries per second of nodes that enter batch after batch for a while. */
async function throughput(
  ledgers: readonly LedgerStore[],
  { size, of }: { size: number; of: number },
): Promise<string> {
  const startedAt = performance.now();
  let entries = 0;
  await Promise.all(ledgers.map(async (ledger) => {
    while (performance.now() - startedAt < 4_000) {
      await ledger.append(batchOf(size, of));
      entries += size;
    }
  }));
  return `${Math.round(entries / (performance.now() - startedAt) * 1000)} per second`;
}

function wish(id: string, keyId = "key_poor"): Parameters<LedgerStore["hold"]>[0] {
  const since = Math.floor(Date.now() / DAY_MS) - 20;
  const common = { at: Date.now(), keyId, group: "group_1", model: "acme/one", endpoint: "chat" as const, amount: 1n };
  const claims = [
    { scope: "key" as const, id: keyId, budget: 10n ** 18n, since },
    { scope: "group" as const, id: "group_1", budget: 10n ** 18n, since },
  ];
  return { ...common, id, claims, leaseUntil: Date.now() + 60_000 };
}

async function holdTimes(ledgers: readonly LedgerStore[], round: string): Promise<void> {
  const [ledger] = ledgers as [LedgerStore];
  print("one hold", await times(200, (index) => ledger.hold(wish(`${round}-one-${index}`))));
  const atOnce = (index: number) =>
    Promise.all(Array.from({ length: 64 }, (_, each) => {
      const node = ledgers[each % ledgers.length] ?? ledger;
      return node.hold(wish(`${round}-many-${index}-${each}`));
    }));
  print(`64 holds of one key at once, ${ledgers.length} nodes`, await times(20, atOnce));
  const open = await ledger.holds();
  const one = open.slice(0, 1).map(({ id }) => id);
  print(
    `renewal of ${open.length} holds`,
    await times(5, () => ledger.renew(open.map(({ id }) => id), Date.now() + 90_000)),
  );
  print(
    `one hold while ${open.length} are open`,
    await times(100, (index) => ledger.hold(wish(`${round}-late-${index}`))),
  );
  const claim = wish("x").claims[1];
  if (claim !== undefined) {
    print(
      "what is left of a group's budget",
      await times(100, () => ledger.readAvailable(claim)),
    );
  }
  print("a look for holds to void", await times(20, () => ledger.expire(one.length)));
}

const entries = Number(Deno.args[0] ?? 100_000);
await using server = await startPostgres();
const pools = Array.from({ length: NODES }, () => connect(new Secret(server.url), 6));
const [sql] = pools;
if (sql === undefined) throw new Error("Cannot measure: there are no nodes");
await sql.unsafe(TABLES);
const ledgers = pools.map((pool) => openPostgresLedger(pool));
const [ledger] = ledgers as [LedgerStore];

await ledger.append(batchOf(1, entries));
print("one entry", await times(300, () => ledger.append(batchOf(1, entries))));
for (const size of [100, 256]) {
  print(`entries in batches of ${size}, one node`, await throughput([ledger], { size, of: entries }));
  print(`entries in batches of ${size}, ${NODES} nodes`, await throughput(ledgers, { size, of: entries }));
}
await holdTimes(ledgers, "small");
await ledger.append((await ledger.holds()).map(({ id, at, keyId, group }) => entryOf({ id, at, keyId, group })));

const prunedAt = performance.now();
const missing = entries - madeEntries;
while (madeEntries < entries) await ledger.append(batchOf(256, entries));
if (missing > 0) print(`${missing} entries more`, `${((performance.now() - prunedAt) / 1000).toFixed(0)} s`);
await sql`VACUUM ANALYZE`;
for (const table of ["entries", "days", "spent"]) {
  const [size] = await sql<{ rows: bigint; heap: bigint; whole: bigint }[]>`
    SELECT (SELECT count(*) FROM ${sql(table)}) AS rows, pg_table_size(${table}) AS heap,
      pg_total_relation_size(${table}) AS whole`;
  const mib = (bytes: bigint = 0n) => `${(Number(bytes) / 2 ** 20).toFixed(0)} MiB`;
  print(`size of ${table}, ${size?.rows} rows`, `${mib(size?.heap)}, with indexes ${mib(size?.whole)}`);
}
print("one entry", await times(300, () => ledger.append(batchOf(1, entries))));
await holdTimes(ledgers, "large");
const until = Date.now();
for (const by of ["key", "model", "day"] as const) {
  print(`report by ${by}, 30 days`, await times(3, () => ledger.usage({ since: begin, until, by })));
  print(
    `report by ${by}, 10 hours`,
    await times(3, () => ledger.usage({ since: begin + 3.6e7, until: begin + 7.2e7, by })),
  );
}
const audited = performance.now();
const { ok, checked } = await auditLedger(ledger);
print(
  `audit of ${checked.entries} entries: ${ok ? "sound" : "NOT SOUND"}`,
  `${((performance.now() - audited) / 1000).toFixed(1)} s`,
);
await Promise.all(pools.map((pool) => pool.end({ timeout: 1 })));
