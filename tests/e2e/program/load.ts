/**
 * Clients of all kinds under load, an upstream that records its finished answers, and a comparison of both with the
 * ledger.
 */
import { assert, assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { KeptEntry } from "../../../lib/store/ledger.ts";
import { withUsage } from "../../upstream/counted.ts";
import { frames, whole } from "../../upstream/frames.ts";
import { type FakeUpstream, type ScriptedAnswer, startUpstream, type Step } from "../../upstream/mod.ts";
import { plainUpstream } from "../../support/plain_model.ts";

/** USD per token, and the same in 1e-12 USD. */
const PRICING = { prompt: "0.000003", completion: "0.000015" };
const UNITS = { prompt: 3_000_000n, completion: 15_000_000n };

/** The environment variable of the one key, and the key. */
export const KEY = { env: "TEST_KEY", secret: "key-of-the-load-tests" };

/** Environment of a program that serves the load. */
export const ENV = { [KEY.env]: KEY.secret, UPSTREAM_KEY: "key-of-the-upstream" };

/** Treatment of a request by the upstream. */
type Way = "whole" | "streamed" | "slowly" | "long" | "held" | "refused" | "cut" | "left" | "endless";

/** The ways in proportion to their frequency. */
const MIX: readonly Way[] = ["whole", "whole", "streamed", "streamed", "slowly", "slowly", "refused", "cut", "left"];

/** Longest time between two events of a long stream, in milliseconds: it has about seven of them. */
const LONG_STEP_MS = 700;

/** One request, by its number. */
export interface LoadRequest {
  way: Way;
  /** Tokens that the upstream reports: the pair of numbers is unique to the request. */
  prompt: number;
  completion: number;
  /** True if the upstream has written its whole answer. */
  finished: boolean;
  /** The gateway's id and status, once the client knows them. */
  id?: string;
  status?: number;
  /** Error message that the client got instead of an answer. */
  refusal?: string;
  /** Cost reported to the client, which has read the whole answer. */
  paid?: string;
  /** Resolves when the upstream may finish an answer that is held. */
  released?: Promise<void>;
}

/** A continuous load. */
export interface Load extends AsyncDisposable {
  upstream: FakeUpstream;
  requests: LoadRequest[];
  /** Sends one request. @throws if the connection breaks off */
  ask(origin: string, way: Way): Promise<void>;
  /**
   * Sends one request and resolves at its first event. The upstream finishes the answer when the returned function is
   * called, which resolves when the client has read it.
   */
  hold(origin: string): Promise<() => Promise<void>>;
  /** Runs this many clients, each sending one request after another until stopped. */
  run(origin: string, clients: number, restMs?: number): { stop(): Promise<void> };
}

/** A row of the catalog at the price of the load. */
export function pricedModel(id: string, target: JsonObject): JsonObject {
  return { id, created: 1, context_length: 10_000, pricing: PRICING, targets: [target] };
}

/** The load's part of a configuration: its upstream and its model, `acme/one`. */
export function modelConfigOf(
  { upstream }: Load,
): { upstreams: JsonObject; models: JsonObject[]; routing: JsonObject } {
  return {
    upstreams: {
      one: { ...plainUpstream(upstream.url), api_key: { env: "UPSTREAM_KEY" } },
    },
    models: [pricedModel("acme/one", { upstream: "one", model: "m" })],
    // The upstream refuses by chance, also several times in a row.
    routing: { breaker: { least_requests: 1000, consecutive_failures: 1000 } },
  };
}

/** Writes a configuration with the load's model, and with budgets if given. */
export async function writeConfig(folder: string, load: Load, group: JsonObject): Promise<void> {
  const config = {
    store: "sqlite:./sluice.db",
    ...modelConfigOf(load),
    groups: { default: group },
    keys: [{ name: "load", key: { env: KEY.env } }],
    shutdown: { drain_seconds: 2, images_drain_seconds: 2 },
  };
  await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(config));
}

/** Starts an upstream. @param random numbers from 0 up to, not including, 1 */
export function createLoad(random: () => number): Load {
  const requests: LoadRequest[] = [];
  const upstream = startUpstream(({ json, stream }) => {
    const [message] = json.messages as { content: string }[];
    const one = requests[Number(message?.content.split(" ")[1])];
    assert(one !== undefined);
    return answerTo(one, stream);
  });

  function answerTo(one: LoadRequest, stream: boolean): ScriptedAnswer {
    if (one.way === "refused") return { status: 500, steps: ['{"error":{"message":"No"}}'] };
    const tell = (text: string) => withUsage(text, one);
    if (!stream) {
      return { before: pause(random() * 20), steps: finishing([tell(whole("chat", "Hello", "reported"))], one) };
    }
    const { opening, pieces, ending } = frames("chat", ["alpha ", "beta ", "gamma"], "reported");
    const begun = [...opening, ...pieces];
    // It ends without its end.
    if (one.way === "cut") return { steps: begun };
    if (one.way === "left" || one.way === "endless") return { steps: [...begun, never] };
    const steps = finishing([...begun, ...one.released === undefined ? [] : [one.released], ...ending.map(tell)], one);
    const longest = one.way === "slowly" ? 60 : one.way === "long" ? LONG_STEP_MS : 0;
    return { steps: longest > 0 ? slowly(steps, () => random() * longest) : steps };
  }

  async function ask(origin: string, way: Way, held?: { begun: () => void; released: Promise<void> }): Promise<void> {
    const number = requests.length;
    const one: LoadRequest = { way, ...tokensOf(number), finished: false, released: held?.released };
    requests.push(one);
    const stream = way !== "whole" && way !== "refused";
    const leave = new AbortController();
    const response = await fetch(`${origin}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${KEY.secret}` },
      body: JSON.stringify({
        model: "acme/one",
        max_tokens: 1_000,
        stream,
        ...(stream && { stream_options: { include_usage: true } }),
        messages: [{ role: "user", content: `Number ${number} of many` }],
      }),
      signal: leave.signal,
    });
    one.status = response.status;
    one.id = response.headers.get("x-request-id")?.replace("req_", "") ?? "";
    // The gateway has sent the headers with the first event.
    held?.begun();
    if (way === "left") {
      await response.body?.getReader().read();
      return leave.abort();
    }
    const text = await response.text();
    if (response.status !== 200) {
      one.refusal = text;
      return;
    }
    const paid = stream ? /"sluice_cost":"([^"]*)"/.exec(text)?.[1] : response.headers.get("x-sluice-cost");
    if (stream && !text.endsWith("data: [DONE]\n\n")) return;
    assert(typeof paid === "string", text);
    one.paid = paid;
  }

  return {
    upstream,
    requests,
    ask,
    async hold(origin) {
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      const answered = ask(origin, "held", { begun: begin, released });
      await Promise.race([begun, answered]);
      return () => {
        release();
        return answered;
      };
    },
    run(origin, clients, restMs = 0) {
      let isOver = false;
      const client = async () => {
        while (!isOver) {
          // A stopped gateway is noticed by the test that stopped it.
          await ask(origin, MIX[Math.floor(random() * MIX.length)] ?? "whole").catch(() => pause(5));
          if (restMs > 0) await pause(restMs);
        }
      };
      const running = Promise.all(Array.from({ length: clients }, client));
      return {
        async stop() {
          isOver = true;
          await running;
        },
      };
    },
    async [Symbol.asyncDispose]() {
      await upstream[Symbol.asyncDispose]();
    },
  };
}

/** The steps, and that they were taken. */
function* finishing(steps: readonly Step[], one: LoadRequest): Generator<Step> {
  // The last event counts as written once the next is requested.
  for (const [index, step] of steps.entries()) {
    if (index === steps.length - 1) one.finished = true;
    yield step;
  }
}

function* slowly(steps: Iterable<Step>, ms: () => number): Generator<Step> {
  for (const step of steps) {
    yield pause(ms());
    yield step;
  }
}

const never = new Promise<never>(() => {});

/** Results of the comparison. */
export interface Findings {
  /** Answers that a client saw whole. */
  complete: number;
  /** Answers that are charged although no client saw their end: the gateway was about to send it. */
  unseen: number;
  spent: bigint;
}

/**
 * Asserts that the ledger agrees with clients and upstream: every answer that a client read whole is there once, at its
 * exact price; beside these only answers that the upstream finished, and the parts that clients got before they left,
 * are charged.
 */
export function assertLedgerAgrees(entries: readonly KeptEntry[], requests: readonly LoadRequest[]): Findings {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  assertEquals(byId.size, entries.length);
  const byTokens = new Map(requests.map((one) => [nameOf(one), one]));
  const left = new Set(requests.flatMap(({ way, id }) => way === "left" && id !== undefined ? [id] : []));
  let complete = 0;
  for (const one of requests) {
    if (one.paid === undefined) continue;
    complete++;
    const entry = byId.get(one.id ?? "");
    const cost = BigInt(one.prompt) * UNITS.prompt + BigInt(one.completion) * UNITS.completion;
    assert(entry !== undefined, `req_${one.id} was seen whole and is not in the ledger`);
    assertEquals([entry.ending, entry.cost, entry.tokens.prompt, entry.tokens.completion], [
      "end",
      cost,
      one.prompt,
      one.completion,
    ]);
    assertEquals(one.paid, usd(cost));
  }
  let spent = 0n;
  let unseen = 0;
  const charged = new Set<string>();
  for (const { id, cost, tokens, source, ending } of entries) {
    spent += cost;
    if (cost === 0n) {
      assert(["failed", "refused", "lost"].includes(ending), `req_${id}: ${ending}`);
      continue;
    }
    if (source === "counted") {
      assert(
        left.has(id) && ending === "client_disconnected",
        `req_${id} is charged, and its client has not left: ${ending}`,
      );
      continue;
    }
    const one = byTokens.get(nameOf(tokens));
    assert(one?.finished === true, `req_${id} is charged, and the upstream has not finished it`);
    assert(!charged.has(nameOf(tokens)), `req_${id} is charged twice`);
    charged.add(nameOf(tokens));
    if (one.paid === undefined) unseen++;
  }
  return { complete, unseen, spent };
}

/** Less than the hold of a short prompt. */
function tokensOf(number: number): { prompt: number; completion: number } {
  return { prompt: 50 + number % 200, completion: 1 + Math.floor(number / 200) };
}

function nameOf({ prompt, completion }: { prompt: number; completion: number }): string {
  return `${prompt} ${completion}`;
}

function usd(amount: bigint): string {
  return `0.${amount.toString().padStart(12, "0").replace(/0+$/, "")}`;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
