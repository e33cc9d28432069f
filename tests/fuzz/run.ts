/** Sends many broken requests at once to a whole gateway, and checks the state afterwards. */
import { assert, assertEquals } from "@std/assert";
import type { Store } from "../../lib/store/store.ts";
import { SPOKEN } from "../e2e/fault/matrix/sound_answer.ts";
import { startWire, type Wire } from "../e2e/fault/matrix/wire.ts";
import { send } from "../e2e/fault/matrix/written.ts";
import { exchange, head, type RawResponse } from "../server/serve.ts";
import { type Random, seeded } from "../support/random.ts";
import { model } from "../support/gateway.ts";
import { ADMIN_KEY, type KeyedGateway, startKeyed } from "../support/keyed_gateway.ts";
import { complaint } from "./judge.ts";
import { type Mutant, mutate, type Sound } from "./requests.ts";
import { soundRequests } from "./sound.ts";
import { until } from "../support/soon.ts";

/** Options of a run. */
export interface FuzzOptions {
  seed: number;
  requests: number;
  /** Longest time for an answer, in milliseconds; the server's own limits here are far shorter. */
  patienceMs: number;
  /** Absent: in memory. */
  store?: Store;
  /** Called after every batch of requests. */
  every?: { requests: number; look: (done: number) => void };
}

/** Counts of a run. */
export interface FuzzResult {
  /** Number of answers per status; 0 where the server closed without one. */
  statuses: ReadonlyMap<number, number>;
  /** The longest time for an answer, in milliseconds. */
  longestMs: number;
}

/** A gateway with an upstream of each protocol that answers soundly. */
export interface FuzzedGateway extends AsyncDisposable {
  gateway: KeyedGateway;
  wire: Wire;
}

/** Replaces the gateway's key in recorded requests. */
export const KEY = "<key>";

const AT_ONCE = 16;
/** Bytes of a body: so that larger ones are cheap to make. */
const BODY_BYTES = 300_000;

/** Starts it. */
export async function startFuzzed(store?: Store): Promise<FuzzedGateway> {
  const wire = startWire({ get: () => ({ play: send, resets: false }) });
  const vendors = { chat: "openai", responses: "openai", messages: "anthropic", gemini: "gemini" };
  const gateway = startKeyed({
    admin: { key: { env: "ADMIN_KEY" } },
    resource_limits: { body_gap_ms: 200, body_grace_ms: 200, body_total_ms: 1000, json_body_bytes: BODY_BYTES },
    upstreams: Object.fromEntries(SPOKEN.map((spoken) => [spoken, {
      vendor: vendors[spoken],
      base_url: wire.url,
      protocols: [spoken],
      api_key: { env: "ADMIN_KEY" },
    }])),
    models: SPOKEN.map((spoken) => model(`acme/${spoken}`, [{ upstream: spoken, model: "real-one" }])),
  }, store === undefined ? {} : { store });
  const made = await fetch(`${gateway.adminUrl}/admin/v1/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${ADMIN_KEY}` },
    body: JSON.stringify({ name: "victim", group: "default" }),
  });
  await made.body?.cancel();
  return {
    gateway,
    wire,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await wire[Symbol.asyncDispose]();
    },
  };
}

/** Sends broken requests. @throws {AssertionError} at the first that is not answered as it must be */
export async function fuzz(
  { gateway, wire }: FuzzedGateway,
  { seed, requests, patienceMs, every }: FuzzOptions,
): Promise<FuzzResult> {
  const random = seeded(seed);
  const choose = weighted(soundRequests({ key: gateway.keys.good, admin: ADMIN_KEY }));
  const statuses = new Map<number, number>();
  let longestMs = 0;
  let made = 0;
  let done = 0;
  let failed = false;

  async function play(): Promise<void> {
    while (made < requests && !failed) {
      made++;
      // All random values are drawn before the first await: the same seed gives the same requests.
      const own = seeded(random.below(2 ** 32));
      const mutant = mutate(choose(own), own);
      try {
        await check(mutant);
      } catch (error) {
        failed = true;
        throw error;
      }
      if (++done % (every?.requests ?? Infinity) === 0) every?.look(done);
    }
  }

  async function check(mutant: Mutant): Promise<void> {
    const start = performance.now();
    const response = await exchange(gateway.port, [mutant.bytes], { patienceMs: patienceMs + 500 });
    const ms = performance.now() - start;
    longestMs = Math.max(longestMs, ms);
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    const wrong = ms > patienceMs ? `no answer within ${patienceMs} ms` : complaint(response, mutant);
    assert(wrong === undefined, `Seed ${seed}: ${wrong}\n${tell(mutant, response)}`);
    const errors = gateway.logs.filter(({ level }) => level === "error");
    assertEquals(errors, [], `Seed ${seed}: errors in the log\n${tell(mutant, response)}`);
    gateway.logs.length = 0;
    gateway.requestLines.length = 0;
  }

  await Promise.all(Array.from({ length: AT_ONCE }, play));
  await assertQuiet(gateway, wire);
  return { statuses, longestMs };
}

/** Asserts that nothing remains reserved, and that good requests are answered. */
export async function assertQuiet(
  { gateway: { backgroundTasks, ledger, inFlight }, store, port, keys }: KeyedGateway,
  wire: Wire,
): Promise<void> {
  await until("no request is under way", () => inFlight.count() + wire.busy === 0);
  await backgroundTasks.done();
  await ledger.flush();
  assertEquals(await store.ledger.holds(), [], "money is held");
  assertEquals((await exchange(port, [head("GET /healthz", { connection: "close" })])).status, 200);
  const body = '{"model":"sluice/echo","messages":[{"role":"user","content":"Hello"}]}';
  const headers = {
    authorization: `Bearer ${keys.good}`,
    connection: "close",
    "content-length": String(body.length),
  };
  const good = await exchange(port, [head("POST /v1/chat/completions", headers) + body]);
  assertEquals([good.status, JSON.parse(good.body).choices[0].message.content], [200, "Hello"]);
}

/** Logs a request and its answer, without the key. */
function tell({ bytes, soundHead, errors }: Mutant, { status, body }: RawResponse): string {
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  const request = text.replace(/(?<=^(authorization: Bearer|x-api-key:|x-goog-api-key:) )sk-sluice-[^\r]*/im, KEY);
  const kept = JSON.stringify({ soundHead, errors, request });
  return `${status} ${body.slice(0, 1_000)} ... ${body.slice(-1_000)}\nTo keep: ${kept.slice(0, 20_000)}`;
}

/** Draws entries in proportion to their weights. */
function weighted(sounds: readonly Sound[]): (random: Random) => Sound {
  const sum = sounds.reduce((sum, { weight = 1 }) => sum + weight, 0);
  return (random) => {
    let left = random.next() * sum;
    for (const sound of sounds) {
      left -= sound.weight ?? 1;
      if (left <= 0) return sound;
    }
    throw new RangeError("There is nothing to choose from");
  };
}
