/** Clients of every kind that send requests without a pause while gateways restart, and the expected ledger. */
import { assertEquals, assertLess, assertLessOrEqual } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { formatUsd, parseUsd } from "../../../lib/billing/money.ts";
import type { KeptEntry } from "../../../lib/store/ledger.ts";
import { countedAnswer } from "../../upstream/counted.ts";
import { type FakeUpstream, startUpstream } from "../../upstream/mod.ts";
import { isStarved } from "../../support/databases.ts";
import { assertLedgerAgrees, ENV as LOAD_ENV, KEY, type Load, modelConfigOf, pricedModel } from "../program/load.ts";
import { plainUpstream } from "../../support/plain_model.ts";

/** Requests per minute of the key `limited`, all nodes together: fewer than its clients send on a busy machine. */
const PER_MINUTE = 20;
/** Concurrent streams of the key `slots`. */
const SLOTS = 3;
/** Cost of an answer to the keys `slots` and `budget`: it has its maximum number of tokens, and its prompt is free. */
const TOKENS = 10;
const ANSWER_COST = 100_000_000n;

/** USD per token of an answer of `acme/echo` before the configuration changes, and after. */
const ECHO_PRICES = { before: "0.000001", after: "0.000002" };

/** Longest time between the arrival of a request, which its entry has, and the moment at which it is counted. */
const COUNTED_AFTER_MS = 10_000;

const SECRETS = Object.fromEntries(
  ["limited", "slots", "budget"].map((name) => [`KEY_${name.toUpperCase()}`, `key-of-the-rollout-${name}`]),
);

/** Environment of the gateways. */
export const ENV: Readonly<Record<string, string>> = { ...LOAD_ENV, ...SECRETS };

/** A model with slow answers that records its largest concurrency. */
export interface Counter extends AsyncDisposable {
  readonly upstream: FakeUpstream;
  /** Requests that the budget of the key `budget` pays for. */
  readonly paid: number;
  /** Maximum number of concurrent streams so far. */
  readonly most: () => number;
}

/** Starts the upstream of the keys `slots` and `budget`. */
export function startCounter(paid: number): Counter {
  let open = 0;
  let most = 0;
  const upstream = startUpstream(({ stream }) => {
    if (stream) most = Math.max(most, ++open);
    return countedAnswer(stream, {
      completion: TOKENS,
      going: async () => {
        await pause(200);
        // Before the gateway can notice the end, which frees the slot.
        open--;
      },
    });
  });
  return { upstream, paid, most: () => most, [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose]() };
}

/** The gateways' configuration; once `changed`, with another price and one more model. */
export function configFor({ load, counter }: { load: Load; counter: Counter }, changed = false): JsonObject {
  const { upstreams, models, routing } = modelConfigOf(load);
  const key = (name: string, rules: JsonObject) => ({ name, key: { env: `KEY_${name.toUpperCase()}` }, ...rules });
  const echo = pricedModel("acme/echo", { upstream: "embedded", model: "echo" });
  const pricing = { prompt: "0", completion: changed ? ECHO_PRICES.after : ECHO_PRICES.before };
  const counted = pricedModel("acme/counted", { upstream: "counter", model: "m" });
  return {
    upstreams: {
      ...upstreams,
      counter: plainUpstream(counter.upstream.url),
    },
    routing,
    models: [
      ...models,
      { ...echo, pricing },
      { ...counted, pricing: { prompt: "0", completion: formatUsd(ANSWER_COST / BigInt(TOKENS)) } },
      ...(changed ? [{ ...echo, id: "acme/new", pricing }] : []),
    ],
    keys: [
      { name: "load", key: { env: KEY.env } },
      key("limited", { limits: { requests_per_minute: PER_MINUTE } }),
      key("slots", { limits: { concurrency: SLOTS } }),
      key("budget", { budget: { usd: formatUsd(ANSWER_COST * BigInt(counter.paid)), period: "total" } }),
    ],
    nodes: { limits_timeout_ms: 5_000, lease_seconds: 60 },
    log: { requests: "none" },
  };
}

/** One request besides those of the load. */
interface Answered {
  kind: Kind;
  id: string;
  status: number;
  /** Cost reported to its client; absent if it was rejected. */
  paid?: bigint;
}

/** `echo`: a model inside the gateway, whose price changes; `image`: each twice, with one `Idempotency-Key`. */
type Kind = "echo" | "image" | "limited" | "slots" | "budget";

/** Number of clients of each kind, and the pause of each between two requests, in milliseconds. */
export type Mix = Readonly<
  Record<Kind | "whole" | "streamed" | "slowly" | "long", { clients: number; restMs: number }>
>;

/** Clients that send requests until stopped. */
export interface Traffic {
  readonly answered: readonly Answered[];
  /** Unexpected observations of clients, one line each. */
  readonly faults: readonly string[];
  /** Requests of all clients that were answered. */
  count(): number;
  /** Resolves when the last one has its answer. */
  stop(): Promise<void>;
}

/** Starts clients for this address. Errors, cut streams and unexpected rejections are added to `faults`. */
export function startTraffic(origin: string, { load, mix }: { load: Load; mix: Mix }): Traffic {
  const answered: Answered[] = [];
  const faults: string[] = [];
  let isOver = false;
  let images = 0;

  async function post(path: string, { secret, body, more = {} }: {
    secret: string;
    body: JsonObject;
    more?: Record<string, string>;
  }): Promise<{ response: Response; text: string }> {
    const response = await fetch(`${origin}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${secret}`, ...more },
      body: JSON.stringify(body),
    });
    return { response, text: await response.text() };
  }

  function note(kind: Kind, { response, text }: { response: Response; text: string }): void {
    const { status, headers } = response;
    const id = headers.get("x-request-id")?.replace("req_", "") ?? "";
    const isRefused = (kind === "limited" || kind === "slots" || kind === "budget") && status === 429;
    if (isRefused || isStarved(status, text)) return void answered.push({ kind, id, status });
    const isStream = kind === "slots";
    const reported = isStream ? /"sluice_cost":"([^"]*)"/.exec(text)?.[1] : headers.get("x-sluice-cost");
    if (status !== 200 || typeof reported !== "string" || isStream && !text.endsWith("data: [DONE]\n\n")) {
      return void faults.push(`${kind}: ${status} ${text.slice(-500)}`);
    }
    answered.push({ kind, id, status, paid: parseUsd(reported) });
  }

  const question = { messages: [{ role: "user", content: "How are you?" }] };

  async function ask(kind: Kind): Promise<void> {
    const path = "/v1/chat/completions";
    if (kind === "echo") {
      return note(kind, await post(path, { secret: KEY.secret, body: { model: "acme/echo", ...question } }));
    }
    if (kind === "image") {
      const more = { "idempotency-key": `image-${images++}` };
      const body = { model: "sluice/canvas", prompt: `Number ${images}`, size: "1024x640", quality: "low" };
      const send = async () => {
        for (;;) {
          const one = await post("/v1/images/generations", { secret: KEY.secret, body, more });
          if (!isStarved(one.response.status, one.text)) return one;
          note(kind, one);
          await pause(100);
        }
      };
      const [first, again] = await Promise.all([send(), send()]);
      if (first.text !== again.text) faults.push(`image: one key, two answers`);
      for (const one of [first, again]) note(kind, one);
      return;
    }
    const body = kind === "limited" ? { model: "sluice/echo", ...question } : {
      model: "acme/counted",
      max_tokens: TOKENS,
      ...question,
      ...(kind === "slots" && { stream: true, stream_options: { include_usage: true } }),
    };
    note(kind, await post(path, { secret: SECRETS[`KEY_${kind.toUpperCase()}`] ?? "", body }));
  }

  async function client(kind: keyof Mix, restMs: number): Promise<void> {
    // Not all in one beat.
    await pause(Math.random() * restMs);
    while (!isOver) {
      try {
        if (kind === "whole" || kind === "streamed" || kind === "slowly" || kind === "long") {
          await load.ask(origin, kind);
        } else await ask(kind);
      } catch (error) {
        faults.push(`${kind}: ${error}`);
      }
      await pause(restMs);
    }
  }

  const running = Object.entries(mix).flatMap(([kind, { clients, restMs }]) =>
    Array.from({ length: clients }, () => client(kind as keyof Mix, restMs))
  );
  return {
    answered,
    faults,
    count: () => answered.length + load.requests.filter(({ status }) => status !== undefined).length,
    async stop() {
      isOver = true;
      await Promise.all(running);
    },
  };
}

/** Figures of the ledger about a rollout. */
export interface RolloutFigures {
  requests: number;
  /** Admitted of the key `limited` within almost a minute, at most. */
  mostPerMinute: number;
  slotsAtOnce: number;
  budgetSpent: bigint;
}

/**
 * Asserts that clients saw no fault, that each of their requests is in the ledger once and at the price its client saw,
 * without other entries, and that limits and budgets held.
 */
export function assertServed(
  entries: readonly KeptEntry[],
  { load, traffic, counter }: { load: Load; traffic: Traffic; counter: Counter },
): RolloutFigures {
  assertEquals(traffic.faults.slice(0, 5), []);
  const starved = traffic.answered.filter(({ status }) => status === 503);
  assertLess(starved.length, traffic.answered.length / 10);
  const unpaid = load.requests.filter(({ paid }) => paid === undefined);
  const unhappy = unpaid.filter(({ status = 0, refusal = "" }) => !isStarved(status, refusal));
  assertEquals(unhappy.slice(0, 5), []);
  assertLess(unpaid.length, load.requests.length / 10);
  const { unseen } = assertLedgerAgrees(entries.filter(({ model }) => model === "acme/one"), load.requests);
  assertEquals(unseen, 0);

  const ids = [...load.requests.map(({ id = "" }) => id), ...traffic.answered.map(({ id }) => id)];
  assertEquals(new Set(ids).size, ids.length);
  assertEquals(entries.map(({ id }) => id).toSorted(), ids.toSorted());
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  for (const { kind, id, status, paid = 0n } of traffic.answered) {
    const entry = byId.get(id);
    assertEquals([entry?.status, entry?.cost], [status, paid], `${kind} req_${id}`);
  }
  assertPrices(traffic.answered);
  return { requests: ids.length, ...assertLimits(entries, { answered: traffic.answered, counter }) };
}

/** Only the prices of the two configurations, and both of them; an image requested twice is paid once. */
function assertPrices(answered: readonly Answered[]): void {
  const costs = (kind: Kind) =>
    answered.filter((one) => one.kind === kind && one.status === 200).map(({ paid = 0n }) => paid);
  const [before, after, ...others] = [...new Set(costs("echo"))].toSorted((a, b) => a < b ? -1 : 1);
  assertEquals([after, others], [2n * (before ?? 0n), []]);
  const images = costs("image");
  assertEquals(images.filter((cost) => cost > 0n).length, images.length / 2);
}

function assertLimits(
  entries: readonly KeptEntry[],
  { answered, counter }: { answered: readonly Answered[]; counter: Counter },
): Omit<RolloutFigures, "requests"> {
  const of = (kind: Kind, status: number) =>
    answered.filter((one) => one.kind === kind && one.status === status).length;
  const admitted = entries.filter(({ keyId, status }) => keyId === "config:limited" && status === 200)
    .map(({ at }) => at).toSorted((a, b) => a - b);
  const mostPerMinute = Math.max(
    ...admitted.map((at, first) =>
      admitted.slice(first).filter((other) => other - at < 60_000 - COUNTED_AFTER_MS).length
    ),
  );
  assertLessOrEqual(mostPerMinute, PER_MINUTE);
  assertLessOrEqual(counter.most(), SLOTS);
  assertEquals(of("budget", 200), counter.paid);
  const spent = entries.filter(({ keyId }) => keyId === "config:budget").reduce((sum, { cost }) => sum + cost, 0n);
  assertEquals(spent, ANSWER_COST * BigInt(counter.paid));
  return { mostPerMinute, slotsAtOnce: counter.most(), budgetSpent: spent };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
