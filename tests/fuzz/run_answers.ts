/** Broken upstream answers for a whole gateway, and a check of the state afterwards. */
import { assert, assertEquals } from "@std/assert";
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import type { TransportKind } from "../../lib/upstreams/select_transport.ts";
import type { Seen } from "../e2e/fault/matrix/fault.ts";
import { SPOKEN } from "../e2e/fault/matrix/sound_answer.ts";
import { endOf } from "../e2e/fault/matrix/seen.ts";
import { asking, type Play, startWire } from "../e2e/fault/matrix/wire.ts";
import { seeded } from "../support/random.ts";
import { model, startGateway, upstream } from "../support/gateway.ts";
import { PROTOCOLS } from "../upstream/replies.ts";
import { brokenAnswer } from "./answers.ts";
import { until } from "../support/soon.ts";

/** Options of a run. */
export interface AnswersOptions {
  seed: number;
  answers: number;
  transport: TransportKind;
}

const AT_ONCE = 8;
const PRICING = { prompt: "0.000001", completion: "0.000002" };
/** Some answers announce more bytes than they have. */
const LIMITS = { first_byte_ms: 2_000, idle_ms: 1_000, total_ms: 2_000 };

/** Asks, and has each answer broken. @returns how often each end was seen. @throws {AssertionError} at the first wrong one */
export async function fuzzAnswers({ seed, answers, transport }: AnswersOptions): Promise<ReadonlyMap<Seen, number>> {
  const plays = new Map<string, { play: Play; resets: boolean }>();
  await using wire = startWire(plays);
  const vendors = { chat: "openai", responses: "openai", messages: "anthropic", gemini: "gemini" };
  await using gateway = startGateway({
    upstreams: Object.fromEntries(
      SPOKEN.map((spoken) => [spoken, upstream(vendors[spoken], wire.url, { protocols: [spoken], transport })]),
    ),
    models: SPOKEN.map((spoken) =>
      model(`acme/${spoken}`, [{ upstream: spoken, model: "real-one", timeouts: LIMITS }], { pricing: PRICING })
    ),
    groups: { default: { key_limits: { concurrency: 100 }, key_budget: { usd: "50000", period: "total" } } },
  }, { described: false });
  const random = seeded(seed);
  const seens = new Map<Seen, number>();
  let made = 0;

  async function play(): Promise<void> {
    while (made < answers) {
      const number = String(made++);
      const own = random.below(2 ** 31);
      const chosen = seeded(own);
      const requested = {
        protocol: chosen.pick(PROTOCOLS),
        spoken: chosen.pick(SPOKEN),
        stream: chosen.chance(0.6),
      };
      plays.set(number, { play: brokenAnswer(seeded(own + 1)), resets: false });
      const seen = await ask(number, {
        ...requested,
        about: `Seed ${seed}, answer ${number}: ${JSON.stringify(requested)}`,
      });
      plays.delete(number);
      seens.set(seen, (seens.get(seen) ?? 0) + 1);
    }
  }

  async function ask(
    number: string,
    { protocol, spoken, stream, about }: { protocol: Protocol; spoken: string; stream: boolean; about: string },
  ): Promise<Seen> {
    const head = { model: `acme/${spoken}`, stream };
    const messages = [{ role: "user", content: asking(number) }];
    const body = protocol === "responses"
      ? { ...head, input: asking(number) }
      : protocol === "gemini"
      ? { ...head, contents: [{ role: "user", parts: [{ text: asking(number) }] }] }
      : { ...head, messages, ...(protocol === "messages" && { max_tokens: 1_000 }) };
    const response = await gateway.ask(protocol, body);
    const text = await response.text();
    try {
      const { seen } = endOf({ status: response.status, headers: response.headers, text }, { protocol, stream });
      assert(seen !== 500 && !text.includes("internal_error"), "the gateway itself failed");
      assertEquals(gateway.logs.filter(({ level }) => level === "error"), [], "errors in the log");
      gateway.logs.length = 0;
      return seen;
    } catch (error) {
      throw new Error(`${about}\n${response.status} ${text.slice(0, 6_000)}`, {
        cause: error,
      });
    }
  }

  await Promise.all(Array.from({ length: AT_ONCE }, play));
  await until("no request is under way", () => gateway.gateway.inFlight.count() + wire.busy === 0);
  await gateway.gateway.backgroundTasks.done();
  await gateway.gateway.ledger.flush();
  assertEquals(await gateway.store.ledger.holds(), [], "money is held");
  const claim = { name: `key:${gateway.key.id}`, unit: "concurrency" as const, limit: 100, cost: 1, reportOnly: false };
  const [status] = await gateway.gateway.limiter.statuses([claim]);
  assertEquals(status?.remaining, 100, "slots are taken");
  const entries = await gateway.store.ledger.entries({ after: 0, limit: answers + 1 });
  assertEquals(entries.length, answers, "entries in the ledger");
  for (const { cost, ending } of entries) assert(cost >= 0n && (cost === 0n || ending !== "failed"), "a wrong charge");
  return seens;
}
