/** Fills a store with keys, and with entries of the ledger, as if they were used for a month. */
import process from "node:process";
import { DatabaseSync } from "node:sqlite";
import { openStore } from "../../lib/store/open.ts";
import type { StoreAddress } from "../../lib/config/address.ts";
import type { Entry, EntryDetails } from "../../lib/store/ledger.ts";
import { DAY_MS } from "../../lib/store/days.ts";

/** Days, keys and models that the entries are spread over. */
const DAYS = 30;
const KEYS = 100;
const MODELS = 20;
/** Entries of one transaction. */
const BATCH = 5_000;

/** Adds keys with unknown secrets to an existing store that no gateway serves from. */
export function seedKeys(path: string, count: number): void {
  using db = new DatabaseSync(path);
  const add = db.prepare("INSERT INTO keys (id, name, hash, group_name, created_at) VALUES (?, ?, ?, 'default', ?)");
  db.exec("BEGIN");
  for (let number = 0; number < count; number++) {
    // Spread over the index as real hashes are.
    const hash = (BigInt(number) * 0x9E3779B97F4A7C15n % (1n << 64n)).toString(16).padStart(16, "0").repeat(4);
    add.run(`key_seeded_${number}`, `seeded-${number}`, hash, 1_760_000_000_000 + number);
  }
  db.exec("COMMIT");
}

/** Options of the entries. */
export interface Seeding {
  count: number;
  /** Of the last one, in Unix milliseconds. */
  now: number;
  /** Days that they are spread over; absent: 30. */
  days?: number;
  /** Keys that they are of, in turns; absent: 100. */
  keys?: number;
}

/** Adds entries up to a moment to a SQLite file that no gateway serves from. */
export async function seedEntries(path: string, seeding: Seeding): Promise<void> {
  await seedStore({ kind: "sqlite", path }, seeding);
}

/**
 * The same for any store, with the sums that a gateway would have made meanwhile.
 * @returns the CPU time of entering and of summing up, in milliseconds
 */
export async function seedStore(
  address: StoreAddress,
  { count, now, days = DAYS, keys = KEYS }: Seeding,
): Promise<{ enterMs: number; sumMs: number }> {
  const store = await openStore(address, { own: true });
  const at = now - days * DAY_MS;
  const cpuBefore = process.cpuUsage();
  try {
    for (let from = 0; from < count; from += BATCH) {
      const length = Math.min(BATCH, count - from);
      await store.ledger.append(
        Array.from({ length }, (_, index) => entryOf(from + index, { at, step: days * DAY_MS / count, keys })),
      );
    }
    const enterMs = cpuMs(cpuBefore);
    const entered = process.cpuUsage();
    while (await store.ledger.sumUp());
    return { enterMs, sumMs: cpuMs(entered) };
  } finally {
    await store.close();
  }
}

function cpuMs(since: ReturnType<typeof process.cpuUsage>): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1_000;
}

function entryOf(number: number, { at, step, keys }: { at: number; step: number; keys: number }): Entry {
  const model = `seeded/model-${number % MODELS}`;
  const prompt = 100 + number % 1000;
  const completion = 50 + number % 300;
  const details: EntryDetails = {};
  if (number % 100 === 7) details.reason = { code: "upstream_failed" };
  if (number % 10 === 7) details.user = `user-${number % 10_000}`;
  return {
    id: `seeded-${at}-${number}`,
    at: Math.floor(at + number * step),
    keyId: `key_seeded_${number % keys}`,
    group: "default",
    model,
    upstream: "seeded",
    endpoint: "chat",
    status: details.reason === undefined ? 200 : 502,
    ending: details.reason === undefined ? "done" : "failed",
    ...(details.user !== undefined && { details }),
    tokens: {
      prompt,
      completion,
      input_cache_read: 0,
      input_cache_write_5m: 0,
      input_cache_write_1h: 0,
      reasoning: 0,
    },
    source: "upstream",
    sheet: {
      model,
      factor: "1",
      prompt: "0.000001",
      completion: "0.000002",
      input_cache_read: "0.000001",
      input_cache_write_5m: "0.000001",
      input_cache_write_1h: "0.000001",
    },
    // In 1e-12 USD.
    cost: BigInt(prompt) * 1_000_000n + BigInt(completion) * 2_000_000n,
    held: 0n,
    overrun: 0n,
    firstMs: 300,
    totalMs: 2_000,
    attempts: 1,
    images: 0,
  };
}
