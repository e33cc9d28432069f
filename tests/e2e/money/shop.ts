/** A whole gateway with models, prices and budgets, and upstreams that answer each request as scripted. */
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { BilledTokens } from "../../../lib/store/ledger.ts";
import type { Store } from "../../../lib/store/store.ts";
import { gray } from "../images/gateway.ts";
import { frames, whole } from "../../upstream/frames.ts";
import {
  type FakeUpstream,
  type ScriptedAnswer,
  startUpstream,
  type Step,
  type UpstreamRequest,
} from "../../upstream/mod.ts";
import { model, startGateway, type TestGateway, type TestKey, upstream } from "../../support/gateway.ts";

/** Treatment of a request by the first upstream. */
export const FATES = [
  "reported",
  "reported",
  "reported",
  "missing",
  "absurd",
  "fails",
  "cut",
  "leave",
  "leave early",
] as const;

/** Treatment of a request. */
export type Fate = typeof FATES[number];

/** Text models. After a disconnect reasoning models are billed what the upstream reports, the others what was sent. */
export const TEXT_MODELS = ["acme/cheap", "acme/dear", "acme/drain", "acme/cancel"] as const;

/** Prices of a token in USD, and in 1e-12 USD with the factor of the groups. */
const CHEAP = { prompt: "0.00000125", completion: "0.000005", input_cache_read: "0.000000125" };
/**
 * Maximum number of tokens of input that cost the same as without a tier: texts here have 11, with long numbers some
 * more.
 */
const THRESHOLDS: Readonly<Record<string, number>> = { "acme/cheap": 11, "acme/drain": 10 };
/** Above the threshold eight times the price, without a discount for cached tokens. */
const tiered = (above: number | undefined) => ({
  ...CHEAP,
  context_tiers: [{ above: above ?? 0, prompt: "0.00001", completion: "0.00004" }],
});
const DEAR = { prompt: "0.000123456785", completion: "0.000987654325", input_cache_read: "0.000000000005" };
const PAINT = { prompt: "0.00000075", completion: "0.0000045" };
const FACTOR = "0.8";
const UNITS: Readonly<Record<string, Pick<Record<keyof BilledTokens, bigint>, "prompt" | "completion">>> = {
  "acme/cheap": { prompt: 1_000_000n, completion: 4_000_000n },
  "acme/drain": { prompt: 1_000_000n, completion: 4_000_000n },
  "acme/cancel": { prompt: 1_000_000n, completion: 4_000_000n },
  "acme/dear": { prompt: 98_765_428n, completion: 790_123_460n },
  "acme/paint": { prompt: 600_000n, completion: 3_600_000n },
};
const CACHED: Readonly<Record<string, bigint>> = {
  "acme/cheap": 100_000n,
  "acme/drain": 100_000n,
  "acme/cancel": 100_000n,
  "acme/dear": 4n,
};

/** Budget of the key in the group `poor`. */
export const POOR_USD = "0.05";

/** Tokens of one image as requested here, and as delivered. */
export const IMAGE_TOKENS = 7_024;

/** Maximum number of concurrent requests of the group `default`. */
export const SLOTS = 10_000;

/** A shop that is open. */
export interface Shop extends AsyncDisposable {
  gateway: TestGateway;
  /** A key whose budget runs out. */
  poor: TestKey;
  /** Sets how the request with this number is treated. Resolves when an upstream gets it. */
  decide(number: number, fate: Fate): Promise<void>;
  /** Numbers of requests that an upstream has answered to the end. */
  finished: ReadonlySet<number>;
}

const PIECES = ["alpha ", "beta ", "gamma ", "delta"];

/** Opens it over a store. */
export async function openShop(store: Store): Promise<Shop> {
  const decided = new Map<number, { fate: Fate; arrived: PromiseWithResolvers<void>; tries: number }>();
  const finished = new Set<number>();
  const timers = new Set<ReturnType<typeof setTimeout>>();

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        timers.delete(timer);
        resolve();
      }, ms);
      timers.add(timer);
    });
  }

  function answer(spoken: Protocol): (request: UpstreamRequest) => ScriptedAnswer {
    return ({ json: body, stream }) => {
      const number = Number(/Number (\d+) of/.exec(JSON.stringify(body))?.[1]);
      const one = decided.get(number);
      if (one === undefined) throw new Error(`No client sent ${JSON.stringify(body)}`);
      one.arrived.resolve();
      // The replacement for a failed upstream answers normally.
      const fate = one.tries++ > 0 && one.fate === "fails" ? "reported" : one.fate;
      const finishing = function* (steps: readonly Step[]): Generator<Step> {
        yield* steps.slice(0, -1);
        finished.add(number);
        yield* steps.slice(-1);
      };
      if (fate === "fails") return { status: 500, steps: ['{"error":{"message":"No"}}'] };
      const before = fate === "leave early" ? pause(200) : undefined;
      if (body.model === "paint-1") {
        return { steps: finishing([images(Number(body.n ?? 1) - (fate === "cut" ? 1 : 0))]) };
      }
      const reported = fate === "missing" || fate === "absurd" ? fate : "reported";
      if (!stream) {
        const content = whole(spoken, PIECES.join(""), reported);
        return fate === "cut"
          ? { steps: [content.slice(0, 50)] }
          : { ...(before !== undefined && { before }), steps: finishing([content]) };
      }
      const { opening, pieces, ending } = frames(spoken, PIECES, reported);
      if (fate === "cut") return { steps: [...opening, ...pieces] };
      // Enough time for a client to disconnect in the middle.
      const wait = fate === "leave" ? [pause(30)] : [];
      return {
        ...(before !== undefined && { before }),
        steps: finishing([...opening, ...pieces, ...wait, ...ending]),
      };
    };
  }

  const [one, two] = [startUpstream(answer("chat")), startUpstream(answer("messages"))];
  const gateway = startGateway(configOf(one, two), { store, now: Date.now });
  return {
    gateway,
    poor: await gateway.addKey({ group: "poor" }),
    decide(number, fate) {
      const arrived = Promise.withResolvers<void>();
      decided.set(number, { fate, arrived, tries: 0 });
      return arrived.promise;
    },
    finished,
    async [Symbol.asyncDispose]() {
      for (const timer of timers) clearTimeout(timer);
      await gateway[Symbol.asyncDispose]();
      await Promise.all([one[Symbol.asyncDispose](), two[Symbol.asyncDispose]()]);
    },
  };
}

const IMAGE = gray({ width: 1024, height: 1024 });

function images(count: number): string {
  return JSON.stringify({ created: 1, data: Array.from({ length: count }, () => ({ b64_json: IMAGE })) });
}

function configOf(one: FakeUpstream, two: FakeUpstream): JsonObject {
  const text = (id: string, pricing: JsonObject, more: JsonObject) => model(id, [], { pricing, ...more });
  return {
    upstreams: {
      one: upstream("openai", one.url, { protocols: ["chat"] }),
      two: upstream("anthropic", two.url),
    },
    models: [
      text("acme/cheap", tiered(THRESHOLDS["acme/cheap"]), { targets: [{ upstream: "one", model: "cheap" }] }),
      text("acme/dear", DEAR, { targets: [{ upstream: "two", model: "dear" }] }),
      text("acme/drain", tiered(THRESHOLDS["acme/drain"]), {
        targets: [{ upstream: "one", model: "drain" }],
        on_disconnect: "drain",
      }),
      text("acme/cancel", CHEAP, { targets: [{ upstream: "one", model: "cancel" }], on_disconnect: "cancel" }),
      model("acme/paint", [{ upstream: "one", model: "paint-1" }], {
        architecture: { input_modalities: ["text"], output_modalities: ["image"] },
        reasoning: undefined,
        pricing: PAINT,
      }),
    ],
    groups: {
      default: {
        price_factor: FACTOR,
        limits: { concurrency: SLOTS },
        key_budget: { usd: "900000", period: "month" },
      },
      poor: { price_factor: FACTOR, key_budget: { usd: POOR_USD, period: "total" } },
    },
  };
}

/** Cost of a model's tokens, calculated independently. */
export function costAt(id: string, tokens: BilledTokens): bigint {
  const input = tokens.prompt + tokens.input_cache_read;
  if (input > (THRESHOLDS[id] ?? Infinity)) return BigInt(input) * 8_000_000n + BigInt(tokens.completion) * 32_000_000n;
  const units = UNITS[id];
  if (units === undefined) throw new RangeError(`Nothing is known of the prices of ${id}`);
  return BigInt(tokens.prompt) * units.prompt + BigInt(tokens.completion) * units.completion +
    BigInt(tokens.input_cache_read) * (CACHED[id] ?? 0n);
}
