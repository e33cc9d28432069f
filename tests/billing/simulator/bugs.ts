/** Bugs that other gateways had, planted around the code: each must break an invariant. */
import { DISCONNECTED } from "../../../lib/request/request_meter.ts";
import { Meter } from "../../../lib/billing/meter.ts";
import { costOfTokens, pricesAt } from "../../../lib/billing/price.ts";
import type { Ledger } from "../../../lib/billing/ledger.ts";
import type { Entry, KeptEntry, LedgerStore, PriceSheet } from "../../../lib/store/ledger.ts";
import { openMemoryDisk } from "./disk.ts";
import type { Variant } from "./simulate.ts";
import { CUSTOMERS, WARES } from "./shop.ts";
import { tokensOf } from "./truth.ts";
import { availableIn } from "../../support/available.ts";

/** A bug and the invariants of which it breaks one. */
export interface Bug {
  name: string;
  breaks: readonly string[];
  variant: Variant;
  /** A seed that finds the bug, if the first seeds do not; absent: 1. */
  seed?: number;
}

const FOREVER = Number.MAX_SAFE_INTEGER;
const PLENTY = 10n ** 18n;

/** A ledger with another `enter`, and the original `healthy`. */
function entering(ledger: Ledger, enter: (entry: Entry) => Promise<boolean>): Ledger {
  return replaced(ledger, { enter });
}

function replaced(ledger: Ledger, members: Partial<Ledger>): Ledger {
  return Object.create(ledger, Object.getOwnPropertyDescriptors(members));
}

function changed(store: LedgerStore, members: Partial<LedgerStore>): LedgerStore {
  return { ...store, ...members };
}

/** Opens a disk in memory with a modified store. */
function disk(change: (store: LedgerStore) => LedgerStore): Variant["disk"] {
  return () => openMemoryDisk(change);
}

/** An entry at other prices, as if it had been charged so from the beginning. */
function repriced(entry: Entry, sheet: PriceSheet): Entry {
  const full = costOfTokens(entry.tokens, sheet);
  const cost = entry.held > 0n && full > entry.held ? entry.held : full;
  return { ...entry, sheet, cost, overrun: full - cost };
}

/** A charge in floating point. */
function floated(entry: Entry): Entry {
  if (entry.sheet === undefined) return entry;
  const { tokens, sheet } = entry;
  const usd = (tokens.prompt * parseFloat(sheet.prompt) + tokens.completion * parseFloat(sheet.completion) +
    tokens.input_cache_read * parseFloat(sheet.input_cache_read) +
    tokens.input_cache_write_5m * parseFloat(sheet.input_cache_write_5m) +
    tokens.input_cache_write_1h * parseFloat(sheet.input_cache_write_1h)) * parseFloat(sheet.factor);
  const full = BigInt(Math.trunc(usd * 1e12));
  const cost = entry.held > 0n && full > entry.held ? entry.held : full;
  return { ...entry, cost, overrun: full - cost };
}

/** The current catalog prices of an entry's model. */
function sheetNow({ model, keyId }: Entry, now: number): PriceSheet | undefined {
  const ware = WARES.find((row) => row.model.id === model);
  const customer = CUSTOMERS.find((row) => row.keyId === keyId);
  return ware && customer && pricesAt(ware.model, { factor: customer.factor, now }).sheet;
}

/** All planted bugs. */
export const BUGS: readonly Bug[] = [
  {
    name: "settled twice",
    breaks: ["I18", "I9"],
    variant: {
      ledger: (ledger) =>
        entering(ledger, async (entry) => {
          const isNew = await ledger.enter(entry);
          await ledger.enter({ ...entry, id: `${entry.id}-again` });
          return isNew;
        }),
    },
  },
  {
    name: "a release is forgotten in a catch",
    breaks: ["I3", "I18"],
    variant: {
      ledger: (ledger) =>
        replaced(ledger, { note: (entry) => entry.ending === "failed" ? Promise.resolve() : ledger.note(entry) }),
    },
  },
  {
    name: "costs are binary fractions",
    breaks: ["I5"],
    variant: { ledger: (ledger) => entering(ledger, (entry) => ledger.enter(floated(entry))) },
  },
  {
    name: "sums are binary fractions",
    breaks: ["I16"],
    variant: {
      disk: disk((store) =>
        changed(store, {
          async days(since) {
            const days = await store.days(since);
            return days.map((day) => ({ ...day, cost: BigInt(Math.trunc(Number(day.cost) / 1e12 * 1e12)) }));
          },
        })
      ),
    },
  },
  {
    name: "a lease has no end",
    breaks: ["I3"],
    variant: {
      disk: disk((store) => changed(store, { hold: (hold) => store.hold({ ...hold, leaseUntil: FOREVER }) })),
    },
  },
  {
    name: "holds of dead processes stay",
    breaks: ["I3"],
    variant: {
      disk: disk((store) =>
        changed(store, {
          expire: (now) => now === FOREVER ? Promise.resolve([]) : store.expire(now - 10 * 86_400_000),
        })
      ),
    },
  },
  {
    name: "looks at what is left, then holds",
    breaks: ["I10"],
    variant: {
      ledger: (ledger) =>
        replaced(ledger, {
          async hold(hold, forMs) {
            for (const claim of hold.claims) {
              const left = await availableIn(ledger, claim);
              if (left < hold.amount) return { held: false, claim, available: left, onHold: 0n };
            }
            return await ledger.hold({ ...hold, claims: hold.claims.map((c) => ({ ...c, budget: PLENTY })) }, forMs);
          },
        }),
    },
  },
  {
    name: "of two budgets only the first is held",
    breaks: ["I10"],
    variant: {
      ledger: (ledger) =>
        replaced(ledger, {
          hold: (hold, forMs) => ledger.hold({ ...hold, claims: hold.claims.slice(0, 1) }, forMs),
        }),
    },
  },
  {
    name: "a failure is charged",
    breaks: ["I7"],
    variant: {
      ledger: (ledger, { now }) =>
        replaced(ledger, {
          note(entry) {
            const sheet = entry.ending === "failed" ? sheetNow(entry, now()) : undefined;
            return ledger.note(sheet === undefined ? entry : repriced({ ...entry, tokens: tokensOf(10, 0) }, sheet));
          },
        }),
    },
  },
  {
    name: "charged at the prices of the end",
    breaks: ["I13"],
    variant: {
      ledger: (ledger, { now }) =>
        entering(ledger, (entry) => ledger.enter(repriced(entry, sheetNow(entry, now()) ?? entry.sheet as PriceSheet))),
    },
  },
  {
    name: "the hold is too small, and all is charged",
    breaks: ["I4", "I10"],
    variant: {
      ledger: (ledger) =>
        replaced(ledger, {
          hold: (hold, forMs) => ledger.hold({ ...hold, amount: hold.amount / 4n }, forMs),
          enter: (entry) => ledger.enter({ ...entry, cost: entry.cost + entry.overrun, overrun: 0n }),
        }),
    },
  },
  {
    name: "cost above the hold is charged",
    seed: 26,
    breaks: ["I1", "I4", "I5"],
    variant: {
      ledger: (ledger) =>
        entering(ledger, (entry) => ledger.enter({ ...entry, cost: entry.cost + entry.overrun, overrun: 0n })),
    },
  },
  {
    name: "acknowledged before it is durable",
    breaks: ["I6"],
    variant: {
      ledger: (ledger) =>
        entering(ledger, (entry) => {
          ledger.enter(entry).catch(() => {});
          return Promise.resolve(true);
        }),
    },
  },
  {
    name: "acknowledged though it could not be entered",
    breaks: ["I6"],
    variant: { ledger: (ledger) => entering(ledger, (entry) => ledger.enter(entry).catch(() => true)) },
  },
  {
    name: "an answer that broke off is charged",
    breaks: ["I7"],
    variant: {
      async broken({ meter, prompt, sent }) {
        await meter.deliver({ status: 200, ending: "end", tokens: tokensOf(prompt, sent), source: "counted" });
      },
    },
  },
  {
    name: "tried again after the first byte, and charged as another request",
    breaks: ["I18"],
    variant: {
      async broken({ ware, customer, prompt, sent, at, meter }, again) {
        await meter.fail(502, DISCONNECTED);
        const second = again();
        const sheet = pricesAt(ware.model, { factor: customer.factor, now: at }).sheet;
        await second.admit({ model: ware.model, sheet, limitRequests: [], budgets: [], maxCost: 1n, forMs: 1_000 });
        second.entry.beginAttempt("second");
        await second.deliver({ status: 200, ending: "end", tokens: tokensOf(prompt, sent), source: "upstream" });
      },
    },
  },
  {
    name: "a refused hold leaves its limits taken",
    breaks: ["I17", "limits"],
    variant: { limiter: (limiter) => ({ ...limiter, undo: () => Promise.resolve() }) },
  },
  {
    name: "slots are not freed",
    breaks: ["I17", "limits"],
    variant: { limiter: (limiter) => ({ ...limiter, end: () => Promise.resolve([]) }) },
  },
  {
    name: "limits are looked at, then taken",
    breaks: ["limits"],
    variant: {
      limiter: (limiter) => ({
        ...limiter,
        async take(request) {
          const found = await limiter.statuses(request.limitRequests);
          const isFree = found.every(({ limitRequest, remaining }) => remaining >= limitRequest.cost);
          const plenty = request.limitRequests.map((claim) => ({
            ...claim,
            limit: isFree ? 1_000_000 : claim.limit + 1,
          }));
          return await limiter.take({ ...request, limitRequests: plenty });
        },
      }),
    },
  },
  {
    name: "whoever leaves pays for all",
    breaks: ["I8"],
    variant: {
      open(parts, arrival) {
        const meter = new Meter(parts, arrival);
        const deliver = meter.deliver.bind(meter);
        meter.deliver = (delivered) =>
          deliver({
            ...delivered,
            tokens: delivered.ending === "client_disconnected"
              ? { ...delivered.tokens, completion: 120 }
              : delivered.tokens,
          });
        return meter;
      },
    },
  },
  {
    name: "an id is entered again",
    breaks: ["I18", "I9", "I6"],
    seed: 141,
    variant: {
      disk: disk((store) =>
        changed(store, {
          async append(entries) {
            const fresh = await store.append(entries);
            await store.append(
              entries.filter((_, i) => fresh[i] === false).map((e) => ({ ...e, id: `${e.id}-again` })),
            );
            return entries.map(() => true);
          },
        })
      ),
    },
  },
  {
    name: "sums per day are not kept up",
    breaks: ["I16"],
    variant: {
      disk: disk((store) => {
        let kept: ReturnType<LedgerStore["days"]> | undefined;
        return changed(store, {
          async append(entries) {
            const fresh = await store.append(entries);
            kept ??= store.days(0);
            return fresh;
          },
          days: (since) => kept ?? store.days(since),
        });
      }),
    },
  },
  {
    name: "an entry is changed later",
    breaks: ["I12"],
    variant: {
      disk: disk((store) => {
        const change = (entry: KeptEntry, i: number) => i % 7 === 3 ? { ...entry, totalMs: entry.totalMs + 1 } : entry;
        let reads = 0;
        return changed(store, {
          async entries(from) {
            const found = await store.entries(from);
            return from.after === 0 && reads++ > 0 && found.length > 10 ? found.map(change) : found;
          },
        });
      }),
    },
  },
  {
    name: "a budget refuses what fits",
    breaks: ["I19", "I2"],
    variant: {
      disk: disk((store) =>
        changed(store, {
          async hold(hold) {
            const lefts = await Promise.all(hold.claims.map((claim) => availableIn(store, claim)));
            const short = lefts.findIndex((left) => left < hold.amount * 2n);
            const claim = hold.claims[short];
            if (claim === undefined) return await store.hold(hold);
            return { held: false, claim, available: lefts[short] ?? 0n, onHold: 0n };
          },
        })
      ),
    },
  },
];
