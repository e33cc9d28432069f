/** One request through a whole gateway with limits, a budget and prices, and its ledger entry. */
import { assert, assertEquals } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { NO_TOKENS } from "../../../lib/store/days.ts";
import type { BilledTokens, Entry, KeptEntry, LedgerStore } from "../../../lib/store/ledger.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import type { Store } from "../../../lib/store/store.ts";
import {
  type GatewayOptions,
  model,
  startGateway,
  type TestGateway,
  upstream,
  VENDORS,
} from "../../support/gateway.ts";
import { type FakeUpstream, type ScriptedAnswer, startUpstream, type UpstreamRequest } from "../../upstream/mod.ts";
import { until } from "../../support/soon.ts";
import { availableIn } from "../../support/available.ts";

/** Ways of a request to its model: in its own protocol, in another one, or inside the gateway. */
export const WAYS = ["relayed", "translated", "embedded"] as const;

/** One of these ways. */
export type Way = typeof WAYS[number];

/** The protocol of the upstream. */
export function spokenBy(protocol: Protocol, way: Way): Protocol {
  if (way === "relayed") return protocol;
  return ({ chat: "messages", responses: "gemini", messages: "responses", gemini: "chat" } as const)[protocol];
}

/** USD per token, and the factor of the group: what its keys pay. */
const PRICING = {
  prompt: "0.000003",
  completion: "0.000015",
  input_cache_read: "0.0000003",
  input_cache_write_5m: "0.00000375",
  input_cache_write_1h: "0.000006",
};
const FACTOR = "0.8";

/** Price of one token with the factor, in 1e-12 USD, calculated by hand. */
const UNITS: Readonly<Record<Exclude<keyof BilledTokens, "reasoning">, bigint>> = {
  prompt: 2_400_000n,
  input_cache_read: 240_000n,
  input_cache_write_5m: 3_000_000n,
  input_cache_write_1h: 4_800_000n,
  completion: 12_000_000n,
};

/** The budget of the key, and of its group: 1,000 USD. */
const BUDGET = 1_000_000_000_000_000n;
const BUDGET_USD = "1000";
const SLOTS = 1_000;
const LIMITS = { requests_per_minute: 100_000, tokens_per_minute: 100_000_000, concurrency: SLOTS };

/** Options of a world. */
export interface WorldOptions {
  protocol: Protocol;
  way: Way;
  /** The upstream's answer. */
  says?: (request: UpstreamRequest) => ScriptedAnswer;
  /** Answer of the second upstream, which is tried after the first. */
  then?: (request: UpstreamRequest) => ScriptedAnswer;
  onDisconnect?: "cancel" | "drain";
  timeouts?: JsonObject;
  config?: JsonObject;
  gateway?: GatewayOptions;
}

/** A gateway and its upstream. */
export interface World extends AsyncDisposable {
  protocol: Protocol;
  way: Way;
  gateway: TestGateway;
  upstream: FakeUpstream;
  /** The ledger's only entry, once it exists. */
  entry(): Promise<KeptEntry>;
  /** Asserts that no reservation and no hold is left, and that there is no further entry. */
  assertSettled(entry: KeptEntry, about: string): Promise<void>;
  /** Asserts that no reservation and no hold is left, and that this amount is spent. */
  assertNothingTaken(spent: bigint, about: string): Promise<void>;
}

const NOTHING: ScriptedAnswer = { steps: [] };

/** Starts a gateway with the model `acme/one`. */
export function startWorld(options: WorldOptions): World {
  const { protocol, way, says = () => NOTHING, onDisconnect = "cancel", timeouts } = options;
  const spoken = spokenBy(protocol, way);
  const one = startUpstream(says);
  const two = startUpstream(options.then ?? says);
  const more = { protocols: [spoken], ...(timeouts !== undefined && { timeouts }) };
  const targets = way === "embedded"
    ? [{ upstream: "embedded", model: "echo" }]
    : [{ upstream: "one", model: "real-one" }, { upstream: "two", model: "real-two", priority: 1 }];
  const gateway = startGateway({
    upstreams: { one: upstream(VENDORS[spoken], one.url, more), two: upstream(VENDORS[spoken], two.url, more) },
    models: [
      model("acme/one", options.then === undefined ? targets.slice(0, 1) : targets, {
        pricing: PRICING,
        on_disconnect: onDisconnect,
        context_length: 10_000_000,
        limits: LIMITS,
      }),
    ],
    groups: {
      default: {
        price_factor: FACTOR,
        limits: LIMITS,
        key_limits: LIMITS,
        key_budget: { usd: BUDGET_USD, period: "total" },
        budget: { usd: BUDGET_USD, period: "total" },
      },
    },
    ...options.config,
  }, options.gateway);
  const { store } = gateway;
  return {
    protocol,
    way,
    gateway,
    upstream: one,
    async entry() {
      const [entry] = await entriesOf(store.ledger, 1);
      assert(entry !== undefined);
      return entry;
    },
    async assertSettled({ id, cost }, about) {
      await gateway.gateway.backgroundTasks.done();
      await gateway.gateway.ledger.flush();
      assertEquals((await store.ledger.entries({ after: 0, limit: 10 })).map((entry) => entry.id), [id], about);
      await this.assertNothingTaken(cost, about);
    },
    async assertNothingTaken(cost, about) {
      assertEquals(await store.ledger.holds(), [], about);
      for (const scope of ["key", "group"] as const) {
        const claim = { scope, id: scope === "key" ? gateway.key.id : "default", budget: BUDGET, since: 0 };
        assertEquals(await availableIn(store.ledger, claim), BUDGET - cost, about);
      }
      for (const name of [`key:${gateway.key.id}`, "group:default", "model:acme/one"]) {
        const claim = { name, unit: "concurrency" as const, limit: SLOTS, cost: 1, reportOnly: false };
        const [status] = await gateway.gateway.limiter.statuses([claim]);
        assertEquals(status?.remaining, SLOTS, `${about}: ${name}`);
      }
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await one[Symbol.asyncDispose]();
      await two[Symbol.asyncDispose]();
    },
  };
}

/** All entries, as soon as there is this number of them. @throws if that takes too long */
export async function entriesOf(ledger: LedgerStore, count: number): Promise<KeptEntry[]> {
  let entries: KeptEntry[] = [];
  await until(
    `${count} entries`,
    async () => (entries = await ledger.entries({ after: 0, limit: 10_000 })).length >= count,
  );
  return entries;
}

/** The amounts of an entry, without fields that differ from run to run. */
export function chargeOf(entry: Entry): Pick<Entry, "status" | "ending" | "tokens" | "source" | "cost" | "attempts"> {
  const { status, ending, tokens, source, cost, attempts } = entry;
  return { status, ending, tokens, source, cost, attempts };
}

/** Tokens of a bill; those not named are 0. */
export function tokens(named: Partial<BilledTokens>): BilledTokens {
  return { ...NO_TOKENS, ...named };
}

/** Price of these tokens in this world. */
export function priceOf(tokens: BilledTokens): bigint {
  return Object.entries(UNITS).reduce(
    (sum, [name, unit]) => sum + BigInt(tokens[name as keyof typeof UNITS]) * unit,
    0n,
  );
}

/** A store whose entries wait until `open` is called. */
export function gatedStore(): { store: Store; arrived: Promise<void>; open: () => void } {
  const store = openMemoryStore();
  const arrived = Promise.withResolvers<void>();
  const open = Promise.withResolvers<void>();
  const append: LedgerStore["append"] = async (entries) => {
    arrived.resolve();
    await open.promise;
    return await store.ledger.append(entries);
  };
  return { store: { ...store, ledger: { ...store.ledger, append } }, arrived: arrived.promise, open: open.resolve };
}
