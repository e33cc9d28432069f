import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { model, startGateway, type TestGateway, upstream } from "../../support/gateway.ts";
import { limitedTo, prompt, PROTOCOLS } from "../../upstream/replies.ts";
import { frames, whole } from "../../upstream/frames.ts";
import { type FakeUpstream, type ScriptedAnswer, startUpstream } from "../../upstream/mod.ts";
import { entriesOf } from "./world.ts";
import { until } from "../../support/soon.ts";

/** Concurrent clients. */
const CLIENTS = 32;
/** Estimated tokens of a "Hello" with at most 100 tokens of output: 3 and 3 around it, 2 for its bytes. */
const ESTIMATE = 108;
type Owner = "key" | "group" | "model";

interface Limited extends AsyncDisposable {
  gateway: TestGateway;
  upstream: FakeUpstream;
  /** Lets time pass, in milliseconds. */
  pass(ms: number): void;
}

/** A gateway that limits its key, its group or its model. */
function startLimited(
  owner: Owner,
  limits: JsonObject,
  { says = answer, more = {} }: { says?: (request: { stream: boolean }) => ScriptedAnswer; more?: JsonObject } = {},
): Limited {
  const one = startUpstream(says);
  let passed = 0;
  const gateway = startGateway({
    upstreams: { one: upstream("openai", one.url, { protocols: ["chat"] }) },
    models: [
      model("acme/one", [{ upstream: "one", model: "m" }], owner === "model" ? { limits } : {}),
      model("acme/other", [{ upstream: "one", model: "m" }]),
    ],
    groups: {
      default: owner === "key" ? { key_limits: limits } : owner === "group" ? { limits } : {},
      other: owner === "key" ? { key_limits: limits } : {},
    },
    ...more,
  }, { monotonic: () => passed });
  return {
    gateway,
    upstream: one,
    pass: (ms) => void (passed += ms),
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await one[Symbol.asyncDispose]();
    },
  };
}

function answer({ stream }: { stream: boolean }): ScriptedAnswer {
  if (!stream) return { steps: [whole("chat", "Hello there", "reported")] };
  const { opening, pieces, ending } = frames("chat", ["Hello ", "there"], "reported");
  return { steps: [...opening, ...pieces, ...ending] };
}

/** A prompt with a maximum output. */
function asking(protocol: Protocol, more: JsonObject = {}): JsonObject {
  return prompt(protocol, { ...limitedTo(protocol, 100), ...more });
}

/** Sends all requests concurrently and reads the bodies. */
async function askAll(gateway: TestGateway, count: number, more: JsonObject = {}): Promise<Response[]> {
  return await Promise.all(Array.from({ length: count }, async (_, index) => {
    const protocol = PROTOCOLS[index % PROTOCOLS.length] ?? "chat";
    const response = await gateway.ask(protocol, asking(protocol, more));
    await response.body?.cancel();
    return response;
  }));
}

function count(responses: readonly Response[], status: number): number {
  return responses.filter((response) => response.status === status).length;
}

for (const owner of ["key", "group", "model"] as const) {
  Deno.test(`requests per minute of a ${owner}: the exact number of ${CLIENTS} concurrent ones, and again after a minute`, async () => {
    await using limited = startLimited(owner, { requests_per_minute: 20 });
    const { gateway, upstream } = limited;
    for (let round = 1; round <= 3; round++) {
      const responses = await askAll(gateway, CLIENTS);
      assertEquals([count(responses, 200), count(responses, 429)], [20, CLIENTS - 20]);
      assertEquals(upstream.requests.length, 20 * round);
      limited.pass(59_000);
      assertEquals(count(await askAll(gateway, 3), 429), 3);
      limited.pass(1_500);
    }
    const entries = await entriesOf(gateway.store.ledger, 3 * (CLIENTS + 3));
    assertEquals(
      entries.filter(({ ending, status }) => ending === "refused" && status === 429).length,
      3 * (CLIENTS - 17),
    );
  });

  Deno.test(`concurrency of a ${owner}: the exact number at a time, and the next when one has ended`, async () => {
    const gates = Array.from({ length: 12 }, () => Promise.withResolvers<void>());
    let index = 0;
    await using limited = startLimited(owner, { concurrency: 5 }, {
      says: (pending) => ({ ...answer(pending), before: gates[index++]?.promise ?? Promise.resolve() }),
    });
    const { gateway, upstream } = limited;
    const pending = askAll(gateway, CLIENTS);
    await until("the requests", () => upstream.requests.length === 5);
    await entriesOf(gateway.store.ledger, CLIENTS - 5);
    const refused = await askAll(gateway, 1);
    assertEquals([refused[0]?.status, upstream.requests.length], [429, 5]);
    // One more for each that ends.
    gates[0]?.resolve();
    await entriesOf(gateway.store.ledger, CLIENTS - 5 + 2);
    const [sixth, seventh] = [
      askAll(gateway, 1),
      until("the next request", () => upstream.requests.length === 6).then(() => askAll(gateway, 1)),
    ];
    assertEquals((await seventh)[0]?.status, 429);
    for (const { resolve } of gates) resolve();
    const responses = [...await pending, ...await sixth];
    assertEquals([count(responses, 200), count(responses, 429), upstream.requests.length], [6, CLIENTS - 5, 6]);
    assertEquals(count(await askAll(gateway, 3), 200), 3);
  });
}

/** The error of a 429 in each protocol. */
async function refusalOf(
  protocol: Protocol,
  response: Response,
): Promise<{ type?: string; message: string; code?: string | number; status?: string }> {
  const body = await response.json();
  const id = response.headers.get("x-request-id");
  if (protocol === "messages") {
    assertEquals([body.type, body.request_id, response.headers.get("request-id")], ["error", id, id]);
    return body.error;
  }
  if (protocol === "gemini") assertEquals(Object.keys(body.error), ["code", "message", "status", "details"]);
  else assertEquals(body.error.param, null);
  return body.error;
}

Deno.test("a refusal says when to retry, in the terms of each protocol and client family", async () => {
  const cases: [limits: JsonObject, openai: string, words: RegExp][] = [
    [
      { requests_per_minute: 1 },
      "requests",
      /^Rate limit reached: this API key is limited to 1 request per minute\. Please try again in [\d.]+s$/,
    ],
    [{ tokens_per_minute: ESTIMATE }, "tokens", /limited to 108 tokens per minute\. Please try again in [\d.]+s$/],
    [{ concurrency: 1 }, "requests", /limited to 1 concurrent request\. Please try again in [\d.]+s$/],
  ];
  for (const [limits, type, words] of cases) {
    for (const protocol of PROTOCOLS) {
      const gate = Promise.withResolvers<void>();
      await using limited = startLimited("key", limits, {
        says: (requested) => ({ ...answer(requested), before: gate.promise }),
      });
      const { gateway, upstream } = limited;
      const first = gateway.ask(protocol, asking(protocol));
      await until("the requests", () => upstream.requests.length === 1);
      const response = await gateway.ask(protocol, asking(protocol));
      const { headers } = response;
      assertEquals(response.status, 429);
      const refusal = await refusalOf(protocol, response);
      assertMatch(refusal.message, words);
      const openai = [type, "rate_limit_exceeded", undefined];
      const terms: Readonly<Record<Protocol, unknown[]>> = {
        chat: openai,
        responses: openai,
        messages: ["rate_limit_error", undefined, undefined],
        gemini: [undefined, 429, "RESOURCE_EXHAUSTED"],
      };
      assertEquals([refusal.type, refusal.code, refusal.status], terms[protocol]);
      const ms = Number(headers.get("retry-after-ms"));
      // Claude Code does not wait for more than 60 s.
      const seconds = Math.ceil(ms / 1_000);
      assertEquals(Number(headers.get("retry-after")), protocol === "messages" ? Math.min(seconds, 60) : seconds);
      if ("concurrency" in limits) assert(ms >= 1_000 && ms <= 5_000, `${ms}`);
      else assert(ms > 58_000 && ms <= 60_500, `${ms}`);
      assertEquals([headers.get("x-should-retry"), headers.get("x-sluice-cost")], [null, "0"]);
      const [name] = Object.keys(limits);
      const unit = name === "tokens_per_minute" ? "tokens" : "requests";
      if (name !== "concurrency") {
        const isNative = protocol === "messages";
        const about = (what: string) =>
          headers.get(isNative ? `anthropic-ratelimit-${unit}-${what}` : `x-ratelimit-${what}-${unit}`);
        assertEquals([about("limit"), about("remaining")], [unit === "tokens" ? "108" : "1", "0"]);
        assertMatch(
          about("reset") ?? "",
          isNative ? /^1970-01-01T00:0\d:\d\dZ$/ : /^(1m\d|\d+)(\.\d+)?s$/,
        );
        assertEquals([...headers.keys()].filter((name) => name.startsWith(isNative ? "x-rate" : "anthropic-rate")), []);
      }
      gate.resolve();
      await (await first).body?.cancel();
      if (name === "concurrency") continue;
      // Retrying at the announced time is enough.
      limited.pass(ms);
      assertEquals((await askAll(gateway, 1))[0]?.status, 200);
    }
  }
});

Deno.test("report-only limits refuse nothing, log what they would refuse, and are not shown", async () => {
  await using limited = startLimited("group", {
    requests_per_minute: 5,
    tokens_per_minute: ESTIMATE,
    concurrency: 2,
    report_only: true,
  });
  const { gateway } = limited;
  const responses = await askAll(gateway, CLIENTS);
  assertEquals(count(responses, 200), CLIENTS);
  assertEquals([...responses[0]?.headers ?? []].filter(([name]) => name.includes("ratelimit")), []);
  const reports = gateway.logs.filter(({ event }) => event === "limit_exceeded");
  const requests = reports.filter(({ unit }) => unit === "requests");
  assertEquals(requests.length, CLIENTS - 5);
  assertEquals(new Set(requests.map(({ request_id }) => request_id)).size, CLIENTS - 5);
  assert(reports.every(({ name, report_only }) => name === "group:default" && report_only === true));
});
