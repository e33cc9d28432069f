/** Behaviour of every store for sums: they equal the sums over all entries, however far they have come. */
import { assertEquals } from "@std/assert";
import { cacheSavings } from "../../lib/store/cache_savings.ts";
import { DAY_MS, dayName, dayOf, figuresOf, Sums } from "../../lib/store/days.ts";
import type {
  Entry,
  EntryDetails,
  LedgerStore,
  PriceSheet,
  UsageBy,
  UsageFilter,
  UsageSum,
} from "../../lib/store/ledger.ts";
import { SHEET } from "../billing/reports/entries.ts";
import { seeded } from "../support/random.ts";
import { skipInQuick } from "../support/skip.ts";
import { DAY, entry, failed, HOUR } from "./behaviours_ledger.ts";

type Random = ReturnType<typeof seeded>;

const DAYS = 6;
const PLAIN: readonly UsageBy[] = ["key", "group", "model", "day"];
const GROUPINGS: readonly UsageBy[] = [...PLAIN, "upstream", "user", "tag", "hour", "minute"];
/** Price sheets, one of them with a discount that is a loss for writes, and one for nothing. */
const SHEETS: readonly PriceSheet[] = [
  SHEET,
  { ...SHEET, model: "acme/two", factor: "1.25", input_cache_read: "0.00000125" },
  { ...SHEET, model: "acme/three", factor: "0" },
];

/** Makes an entry of any kind. */
function anyEntry(random: Random, id: string): Entry {
  const details: EntryDetails = {};
  if (random.chance(0.3)) details.user = random.pick(["anna", "ben", "%", ""]);
  if (random.chance(0.2)) details.tags = random.pick([["a"], ["a:b", "b"], ["ab", "a"]]);
  if (random.chance(0.3)) details.upstream_usd = random.pick(["0.000000000001", "12.5", "3", "0", "0.0316"]);
  if (random.chance(0.1)) details.request_id = '"upstream_usd":"7"';
  const sheet = random.pick(SHEETS);
  const change: Partial<Entry> = {
    id,
    at: (DAY + random.below(DAYS)) * DAY_MS + random.below(24) * HOUR + random.pick([0, 1, HOUR - 1]),
    keyId: random.pick(["key_1", "key_2", "key_3"]),
    group: random.pick(["default", "team"]),
    model: sheet.model,
    upstream: random.pick(["one", "two", ""]),
    attempts: random.below(3),
    ...(Object.keys(details).length > 0 && { details }),
  };
  if (random.chance(0.2)) return failed({ ...change, ending: random.pick(["failed", "refused", "lost"]) });
  const tokens = {
    prompt: random.below(1_000),
    input_cache_read: random.pick([0, random.below(100_000)]),
    input_cache_write_5m: random.pick([0, random.below(1_000)]),
    input_cache_write_1h: random.pick([0, 0, random.below(1_000)]),
    completion: random.below(1_000),
    reasoning: 0,
  };
  const source = random.pick(["upstream", "counted", "estimated"] as const);
  const cost = random.pick([0n, 1n, BigInt(random.below(1_000_000_000)) * 4_000_000n]);
  return entry({ ...change, tokens, source, sheet, cost, overrun: random.pick([0n, 5n]), images: random.below(2) });
}

function savedOf({ sheet, tokens }: Entry): bigint {
  if (sheet === undefined) return 0n;
  const { input_cache_read, input_cache_write_5m, input_cache_write_1h } = tokens;
  const units = cacheSavings(sheet);
  return [input_cache_read, input_cache_write_5m, input_cache_write_1h]
    .reduce((sum, count, index) => sum + BigInt(count) * (units[index] ?? 0n), 0n);
}

function namesOf({ at, keyId, group, model, upstream, details }: Entry, by: UsageBy): readonly string[] {
  switch (by) {
    case "key":
      return [keyId];
    case "group":
      return [group];
    case "model":
      return [model];
    case "upstream":
      return [upstream];
    case "user":
      return [details?.user ?? ""];
    case "tag":
      return details?.tags ?? [""];
    case "day":
      return [dayName(dayOf(at))];
    default:
      return [new Date(at).toISOString().slice(0, by === "hour" ? 13 : 16)];
  }
}

function isWanted({ keyId, group, model, details }: Entry, only: UsageFilter): boolean {
  return (only.keyId ?? keyId) === keyId && (only.group ?? group) === group && (only.model ?? model) === model &&
    (only.user === undefined || only.user === details?.user) &&
    (only.tag === undefined || details?.tags?.includes(only.tag) === true);
}

/** The same sums over entries. */
async function expectedSums(
  entries: readonly Entry[],
  { by, thenBy, only = {} }: Pick<Parameters<LedgerStore["usage"]>[0], "by" | "thenBy" | "only">,
): Promise<UsageSum[]> {
  const sums = new Sums();
  for (const each of entries) {
    if (!isWanted(each, only)) continue;
    for (const name of namesOf(each, by)) {
      for (const thenName of thenBy === undefined ? [undefined] : namesOf(each, thenBy)) {
        const names = { name, ...(thenName !== undefined && { thenName }) };
        sums.add(names, { ...figuresOf(each), saved: savedOf(each) });
      }
    }
  }
  return await sums.list();
}

/** A filter, mostly none. */
function anyFilter(random: Random): UsageFilter {
  return random.pick<UsageFilter>([
    ...[{}, {}, {}, { keyId: "key_2" }, { group: "team" }, { model: "acme/two", keyId: "key_1" }, { model: "none" }],
    ...[{ user: "anna" }, { tag: "a" }, { tag: "b", group: "team" }, { user: "ben", tag: "a" }],
  ]);
}

/** All entries of a ledger, and the number of those that were pruned. */
interface History {
  random: Random;
  ledger: LedgerStore;
  all: Entry[];
  gone: number;
  /** The last day with pruned entries. */
  goneDay: number;
}

async function checkUsage({ random, ledger, all, gone, goneDay }: History): Promise<void> {
  const by = random.pick(GROUPINGS);
  const thenBy = random.pick([undefined, ...GROUPINGS].filter((name) => name !== by));
  const only = anyFilter(random);
  const isPlain = [by, thenBy ?? "day"].every((name) => PLAIN.includes(name)) && !("user" in only || "tag" in only);
  // Days with pruned entries have the plain sums for good; parts of them are whole days.
  const from = isPlain ? DAY : Math.max(DAY, goneDay + 1);
  if (from >= DAY + DAYS) return;
  const first = from + random.below(DAY + DAYS - from);
  const last = first + random.below(DAY + DAYS - first);
  const part = () => random.pick([0, random.below(24) * HOUR]);
  const since = first * DAY_MS + (first > goneDay ? part() : 0);
  const until = (last + 1) * DAY_MS - (last > goneDay && last > first ? part() : 0);
  const query = { since, until, by, only, ...(thenBy !== undefined && { thenBy }) };
  const within = (isPlain ? all : all.slice(gone)).filter(({ at }) => at >= since && at < until);
  assertEquals(await ledger.usage(query), await expectedSums(within, query), JSON.stringify(query));
}

async function checkUpstreams({ random, ledger, all, gone, goneDay }: History): Promise<void> {
  const only = anyFilter(random);
  const since = (Math.max(DAY, goneDay + 1) + random.below(2)) * DAY_MS + random.pick([0, HOUR]);
  const until = (DAY + DAYS) * DAY_MS - random.pick([0, HOUR]);
  const wanted = all.slice(gone).filter((each) => each.at >= since && each.at < until && isWanted(each, only));
  const sums = await ledger.upstreamDays({ since, until, only });
  const total = (pick: (sum: typeof sums[number]) => bigint) => sums.reduce((all, sum) => all + pick(sum), 0n);
  const made = (pick: (entry: Entry) => bigint) => wanted.reduce((all, each) => all + pick(each), 0n);
  const priced = ({ details }: Entry) => {
    const [whole = "", decimals = ""] = (details?.upstream_usd ?? "0").split(".");
    return BigInt(whole + decimals.padEnd(12, "0"));
  };
  assertEquals(total(({ targetCost }) => targetCost), made(priced));
  assertEquals(total(({ cost }) => cost), made(({ cost }) => cost));
  assertEquals(total(({ attempts }) => BigInt(attempts)), made(({ attempts }) => BigInt(attempts)));
  const kinds = (upstream: string, factor: string | undefined, has: boolean) => ({
    stored: sums.filter((sum) =>
      sum.upstream === upstream && sum.sheet?.factor === factor && sum.hasTargetPrice === has
    )
      .reduce((all, { requests, counted, tokens }) => all + requests * 1e9 + counted * 1e6 + tokens.completion, 0),
    made: wanted.filter((each) =>
      each.upstream === upstream && each.sheet?.factor === factor && (each.details?.upstream_usd !== undefined) === has
    ).reduce(
      (all, { source, tokens }) =>
        all + 1e9 + (source === "counted" || source === "estimated" ? 1e6 : 0) + tokens.completion,
      0,
    ),
  });
  for (const upstream of ["one", "two", ""]) {
    for (const factor of [undefined, "0.8", "1.25", "0"]) {
      for (const has of [true, false]) {
        const { stored, made } = kinds(upstream, factor, has);
        assertEquals(stored, made, `${upstream} ${factor} ${has}`);
      }
    }
  }
}

async function live(history: History): Promise<void> {
  const { random, ledger, all } = history;
  for (let step = 0; step < (skipInQuick("Most queries of random sums") ? 5 : 12); step++) {
    const count = random.pick([1, 300, 1_100]);
    const entries = Array.from({ length: count }, (_, index) => anyEntry(random, `e${all.length + index}`));
    await ledger.append(entries);
    all.push(...entries);
    if (random.chance(0.5)) { while (await ledger.sumUp()); }
    if (random.chance(0.2)) {
      const before = DAY + random.below(DAYS);
      while (await ledger.prune(before, Infinity));
      const start = await ledger.start();
      history.gone = start.seq;
      history.goneDay = start.day;
    }
    for (let query = 0; query < 12; query++) await checkUsage(history);
    await checkUpstreams(history);
  }
}

const BEHAVIOURS: Record<string, (ledger: LedgerStore) => Promise<void>> = {
  "sums up what it has: entries of any day, pruned or not": async (ledger) => {
    await live({ random: seeded(31), ledger, all: [], gone: 0, goneDay: -1 });
  },
  "has complete sums of pruned entries by key, group, model and day": async (ledger) => {
    const random = seeded(5);
    const entries = Array.from({ length: 700 }, (_, index) => anyEntry(random, `e${index}`));
    await ledger.append(entries.sort((one, other) => one.at - other.at));
    while (await ledger.prune(DAY + DAYS, Infinity));
    assertEquals((await ledger.start()).seq, 700);
    const query = { since: DAY * DAY_MS, until: (DAY + DAYS) * DAY_MS, by: "model", thenBy: "day" } as const;
    assertEquals(await ledger.usage(query), await expectedSums(entries, query));
    assertEquals(await ledger.usage({ ...query, by: "user" }), []);
    const late = anyEntry(random, "late");
    await ledger.append([late]);
    assertEquals(await ledger.usage(query), await expectedSums([...entries, late], query));
    assertEquals(await ledger.usage({ ...query, by: "user" }), await expectedSums([late], { ...query, by: "user" }));
  },
};

/** Tests a kind of store. `open` passes an empty one to the test and removes it afterwards. */
export function testSums(name: string, open: (test: (ledger: LedgerStore) => Promise<void>) => Promise<void>): void {
  for (const [claim, behaviour] of Object.entries(BEHAVIOURS)) {
    Deno.test(`${name} ${claim}`, () => open(behaviour));
  }
}
