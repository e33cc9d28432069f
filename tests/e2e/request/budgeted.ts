/** A gateway with budgets that are easy to calculate: the input is free, and an answer costs the reported output. */
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { BudgetClaim } from "../../../lib/store/ledger.ts";
import type { Store } from "../../../lib/store/store.ts";
import { model, startGateway, type TestGateway, upstream, VENDORS } from "../../support/gateway.ts";
import { limitedTo, prompt } from "../../upstream/replies.ts";
import { usd } from "./bills.ts";
import { frames, REPORTED, whole } from "../../upstream/frames.ts";
import { type FakeUpstream, type ScriptedAnswer, startUpstream, type UpstreamRequest } from "../../upstream/mod.ts";
import { until } from "../../support/soon.ts";
import { availableIn } from "../../support/available.ts";

/** Price of an output token, in 1e-12 USD. */
export const PRICE = 10_000_000n;
/** The same for the catalog, in USD. */
export const PRICING = { prompt: "0", completion: "0.00001" };
/** Cost of an answer that reports its usage. */
export const COST = BigInt(REPORTED.completion) * PRICE;

/** A gateway and its upstream. */
export interface Budgeted extends AsyncDisposable {
  gateway: TestGateway;
  upstream: FakeUpstream & {
    /** Resolves after this number of requests. @throws if that takes too long */
    until(count: number): Promise<number>;
  };
}

/** A gateway whose one upstream speaks a protocol. */
export function startBudgeted(
  { says = answer("chat"), spoken = "chat", row = {}, groups = {}, store, now }: {
    says?: (request: UpstreamRequest) => ScriptedAnswer | Promise<ScriptedAnswer>;
    spoken?: Protocol;
    row?: JsonObject;
    groups?: JsonObject;
    store?: Store;
    now?: () => number;
  } = {},
): Budgeted {
  const one = startUpstream(says);
  const gateway = startGateway({
    upstreams: { one: upstream(VENDORS[spoken], one.url, { protocols: [spoken] }) },
    models: [
      model("acme/one", [{ upstream: "one", model: "m" }], { pricing: PRICING, ...row }),
      model("acme/free", [{ upstream: "one", model: "m" }]),
    ],
    groups: { default: {}, ...groups },
  }, { ...(store !== undefined && { store }), ...(now !== undefined && { now }) });
  return {
    gateway,
    upstream: {
      ...one,
      until: (count) => until(`${count} requests`, () => one.requests.length >= count),
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await one[Symbol.asyncDispose]();
    },
  };
}

/** An answer that reports its usage. */
export function answer(spoken: Protocol): (request: UpstreamRequest) => ScriptedAnswer {
  return ({ stream }) => {
    if (!stream) return { steps: [whole(spoken, "Hello there", "reported")] };
    const { opening, pieces, ending } = frames(spoken, ["Hello ", "there"], "reported");
    return { steps: [...opening, ...pieces, ...ending] };
  };
}

/** A prompt whose maximum output is exactly the scripted answer. */
export function asking(protocol: Protocol, more: JsonObject = {}): JsonObject {
  return prompt(protocol, { ...limitedTo(protocol, REPORTED.completion), ...more });
}

/** A key with a budget for so much, in all. */
export function worth(amount: bigint): { rules: { budget: { usd: string; period: "total" } } } {
  return { rules: { budget: { usd: usd(amount), period: "total" } } };
}

/** Remaining part of a budget of this total amount. */
export function leftOf(
  { store }: TestGateway,
  { scope = "key", id, budget, since = 0 }: Pick<BudgetClaim, "id" | "budget"> & Partial<BudgetClaim>,
): Promise<bigint> {
  return availableIn(store.ledger, { scope, id, budget, since });
}
