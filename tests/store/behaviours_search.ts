/** Behaviour of every store for searches: they find what a plain filter over all entries finds. */
import { assert, assertEquals } from "@std/assert";
import { type EntryDetails, type KeptEntry, type LedgerStore, REASON_CODES } from "../../lib/store/ledger.ts";
import {
  compareEntries,
  type EntryFilter,
  type EntryOrder,
  matchesFilter,
  orderValue,
} from "../../lib/store/search.ts";
import { seeded } from "../support/random.ts";
import { rounds, skipInQuick } from "../support/skip.ts";
import { entry, failed, HOUR, MIDNIGHT, readChain } from "./behaviours_ledger.ts";

const LARGEST = 2n ** 63n - 1n;
const ALL = { since: 0, until: MIDNIGHT + 1_000 * HOUR } as const;
const ORDERS: readonly EntryOrder[] = ["time", "cost", "duration"];

function detailsOf(random: ReturnType<typeof seeded>, hasReason: boolean): EntryDetails | undefined {
  const details: EntryDetails = {};
  if (hasReason && random.chance(0.9)) details.reason = { code: random.pick(REASON_CODES) };
  if (random.chance(0.3)) details.user = random.pick(["anna", "ben", "%", "an"]);
  if (random.chance(0.3)) details.tags = random.pick([["a"], ["a:b", "b"], ["ab"], ["_"]]);
  return Object.keys(details).length === 0 ? undefined : details;
}

/** Enters entries of all kinds. */
const IS_QUICK = skipInQuick("Each filter of a search before and after sums");

async function fill(ledger: LedgerStore, count: number): Promise<KeptEntry[]> {
  const random = seeded(29);
  const entries = Array.from({ length: count }, (_, index) => {
    const ending = random.pick(["end", "end", "failed", "refused", "lost", "client_disconnected"] as const);
    const isFree = ending === "failed" || ending === "refused" || ending === "lost";
    const details = detailsOf(random, ending === "failed" || ending === "refused");
    const change = {
      id: `s${index}`,
      at: MIDNIGHT + random.below(20) * HOUR,
      keyId: random.pick(["key_1", "key_2"]),
      group: random.pick(["default", "team"]),
      model: random.pick(["acme/one", "acme/two", ""]),
      upstream: random.pick(["one", "two", ""]),
      endpoint: random.pick(["chat", "messages"] as const),
      status: random.pick([200, 400, 429, 499, 503]),
      totalMs: random.below(5),
      ending,
      ...(details !== undefined && { details }),
    };
    return isFree ? failed(change) : entry({ ...change, cost: random.pick([0n, 1n, LARGEST / 1000n, 7n]) });
  });
  await ledger.append(entries);
  return await readChain(ledger, count);
}

async function readAllPages(
  ledger: LedgerStore,
  filter: EntryFilter,
  { order, limit }: { order: EntryOrder; limit: number },
): Promise<KeptEntry[]> {
  const found: KeptEntry[] = [];
  for (;;) {
    const last = found.at(-1);
    const after = last === undefined ? {} : { after: { value: orderValue(last, order), seq: last.seq } };
    const page = await ledger.search({ ...filter, ...after, order, limit });
    assert(page.length <= limit);
    found.push(...page);
    if (page.length < limit) return found;
  }
}

function seqsOf(entries: readonly KeptEntry[]): string {
  return entries.map(({ seq }) => seq).join();
}

/** Compares what each filter finds in each order, page by page, with a filter over all entries. */
async function findAll(ledger: LedgerStore, entries: readonly KeptEntry[], pass: number): Promise<void> {
  const filters: Partial<EntryFilter>[] = [
    {},
    { keyId: "key_1" },
    { group: "team" },
    { model: "acme/two" },
    { model: "" },
    { upstream: "two" },
    { endpoint: "messages" },
    { status: { from: 429, to: 429 } },
    { status: { from: 400, to: 499 } },
    { status: { from: 200, to: 299 } },
    { status: { from: 429, to: 429 }, model: "acme/two", upstream: "one" },
    { failed: true, status: { from: 200, to: 200 }, endpoint: "chat", tag: "b" },
    { reason: "limit", group: "team", model: "" },
    { model: "acme/one", upstream: "two", since: MIDNIGHT + HOUR },
    { model: "acme/one", upstream: "three" },
    { failed: true },
    { reason: "limit" },
    { reason: "lost" },
    { user: "anna" },
    { user: "%" },
    { user: "nobody" },
    { tag: "a" },
    { tag: "_" },
    { tag: "b" },
    { minCost: 7n },
    { minMs: 3 },
    { since: MIDNIGHT + 3 * HOUR, until: MIDNIGHT + 4 * HOUR },
    { keyId: "key_2", failed: true, group: "team", minMs: 2, since: MIDNIGHT + 2 * HOUR },
    { user: "ben", keyId: "key_1", tag: "a" },
  ];
  let count = 0;
  const hasAllOrders = rounds(100) === 100;
  for (const [index, some] of filters.entries()) {
    if (IS_QUICK && index % 2 !== pass) continue;
    const filter = { ...ALL, ...some };
    for (const [place, order] of ORDERS.entries()) {
      if (!hasAllOrders && (index + pass) % ORDERS.length !== place) continue;
      const expected = entries.filter((each) => matchesFilter(each, filter))
        .sort((one, other) => compareEntries(one, other, order));
      count += expected.length;
      const message = JSON.stringify(
        { ...some, order },
        (_, value) => typeof value === "bigint" ? `${value}` : value,
      );
      for (const limit of expected.length < 100 ? [17, 1_000] : [1_000]) {
        const found = await readAllPages(ledger, filter, { order, limit });
        assertEquals(seqsOf(found), seqsOf(expected), message);
        // To compare all entries whole takes longer than to find them.
        assertEquals(found.slice(0, 20), expected.slice(0, 20), message);
      }
    }
  }
  assert(count > (hasAllOrders ? 30_000 : IS_QUICK ? 2_000 : 8_000), `only ${count} entries were found`);
}

const BEHAVIOURS: Record<string, (ledger: LedgerStore) => Promise<void>> = {
  "finds what each filter allows, in each order, page by page": async (ledger) => {
    const entries = await fill(ledger, IS_QUICK ? 2_300 : 4_500);
    await findAll(ledger, entries, 0);
    // Those of the last 300 or 500 entries are not complete.
    while (await ledger.sumUp());
    await findAll(ledger, entries, 1);
  },
  "finds nothing outside the time of the search, whatever the place to go on from": async (ledger) => {
    await ledger.append([0, 1, 2].map((hour) => entry({ id: `r${hour}`, at: MIDNIGHT + hour * HOUR })));
    const after = { value: BigInt(MIDNIGHT + 9 * HOUR), seq: 9 };
    const search = { since: MIDNIGHT + HOUR, until: MIDNIGHT + 2 * HOUR, order: "time", limit: 9 } as const;
    const found = await ledger.search({ ...search, after });
    assertEquals(found.map(({ id }) => id), ["r1"]);
  },
  "knows the place of the last entry": async (ledger) => {
    assertEquals(await ledger.lastSeq(), 0);
    await ledger.append([entry(), entry({ id: "r2" })]);
    assertEquals(await ledger.lastSeq(), 2);
    await ledger.prune(MIDNIGHT / (24 * HOUR) + 2, Infinity);
    assertEquals(await ledger.lastSeq(), 2);
    assertEquals(await ledger.search({ ...ALL, order: "time", limit: 10 }), []);
  },
};

/** Tests a kind of store. `open` passes an empty one to the test and removes it afterwards. */
export function testSearch(name: string, open: (test: (ledger: LedgerStore) => Promise<void>) => Promise<void>): void {
  for (const [claim, behaviour] of Object.entries(BEHAVIOURS)) {
    Deno.test(`${name} ${claim}`, () => open(behaviour));
  }
}
