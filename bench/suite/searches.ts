/** Measures the cost of adding entries, and the duration of searches, in a SQLite file. */
import { openStore } from "../../lib/store/open.ts";
import type { EntrySearch } from "../../lib/store/search.ts";
import { DAY_MS } from "../../lib/store/days.ts";
import { seedStore } from "./seed.ts";

/** Names of the searches, in the order of `measureSearches`. */
export const SEARCH_NAMES = ["newest", "of a key", "failed", "of a user", "dearest of a day", "a tag that none has"];

/** Seeds a new file. @returns CPU µs per entry to enter it and to sum it up, MB of the file, and the ms of each search */
export async function measureSearches(
  path: string,
  { count, now }: { count: number; now: number },
): Promise<{ enterUs: number; sumUs: number; fileMb: number; searchMs: number[] }> {
  const address = { kind: "sqlite", path } as const;
  const { enterMs, sumMs } = await seedStore(address, { count, now });
  const [enterUs, sumUs] = [enterMs * 1_000 / count, sumMs * 1_000 / count];
  const fileMb = (await Deno.stat(path)).size / 1e6;
  const all: EntrySearch = { since: 0, until: now + DAY_MS, order: "time", limit: 50 };
  const searches: EntrySearch[] = [
    all,
    { ...all, keyId: "key_seeded_7" },
    { ...all, failed: true },
    { ...all, user: "user-7777" },
    { ...all, order: "cost", since: now - DAY_MS },
    { ...all, tag: "none" },
  ];
  const store = await openStore(address, { own: true });
  try {
    // The first search opens the connection.
    await store.ledger.search(all);
    const searchMs: number[] = [];
    for (const search of searches) {
      const start = performance.now();
      await store.ledger.search(search);
      searchMs.push(performance.now() - start);
    }
    return { enterUs, sumUs, fileMb, searchMs };
  } finally {
    await store.close();
  }
}
