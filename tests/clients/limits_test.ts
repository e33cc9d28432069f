/** Limits and budgets in the SDKs: the error class, and when they retry. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { until } from "../support/soon.ts";
import { SECRETS, sharedConfigured } from "./configured.ts";
import { anthropic, caught, openai, testAnthropic, testOpenai } from "./sdks.ts";
import { ECHO } from "./upstreams.ts";

/** The model inside the gateway, at a price. */
const PRICED = "acme/priced";

const gateway = sharedConfigured();

const LONG = { role: "user" as const, content: "one two three ".repeat(20_000) };
const HELLO = { role: "user" as const, content: "Hello" };

/** A request that occupies the only slot until it is aborted; its answer is not read. */
async function takeSlot(url: string): Promise<() => void> {
  const leave = new AbortController();
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${SECRETS.narrow}`, "content-type": "application/json" },
    body: JSON.stringify({ model: ECHO, stream: true, messages: [LONG] }),
    signal: leave.signal,
  });
  assertEquals(response.status, 200);
  return () => {
    leave.abort();
    response.body?.cancel().catch(() => {});
  };
}

/** Times of calls of `fetch`, and how many of them were answered. */
interface Tries {
  times: number[];
  answered: number;
}

/** The time of the retry in milliseconds after the first try; once that was rejected, the blocking request is ended. */
async function secondTry(tries: Tries, free: () => void): Promise<number> {
  await until("answer of the first try", () => tries.answered === 1);
  free();
  await until("second try", () => tries.times.length === 2);
  const [first = 0, second = 0] = tries.times;
  return second - first;
}

/** `fetch` that records its calls. */
function timed(tries: Tries): typeof fetch {
  return async (input, init) => {
    tries.times.push(performance.now());
    const response = await fetch(input, init);
    tries.answered++;
    return response;
  };
}

testOpenai(
  "a limit is a RateLimitError with its wait, and is retried after it",
  gateway,
  async ({ Sdk, gateway }) => {
    const leave = await takeSlot(gateway.url);
    const impatient = openai(Sdk, gateway, SECRETS.narrow);
    const calls = [
      () => impatient.chat.completions.create({ model: ECHO, messages: [HELLO] }),
      () => impatient.responses.create({ model: ECHO, input: "Hello" }),
    ];
    for (const call of calls) {
      const error = await caught(Sdk.RateLimitError, call());
      assertEquals([error.status, error.type, error.code], [429, "requests", "rate_limit_exceeded"]);
      assertMatch(error.message, /Please try again in \d+(\.\d+)?s$/);
      const waitMs = Number(error.headers?.get("retry-after-ms"));
      assert(waitMs >= 1_000 && waitMs <= 5_000, `${waitMs}`);
    }

    const tries: Tries = { times: [], answered: 0 };
    const patient = new Sdk({
      baseURL: `${gateway.url}/v1`,
      apiKey: SECRETS.narrow,
      maxRetries: 2,
      fetch: timed(tries),
    });
    const [answer, gap] = await Promise.all([
      patient.chat.completions.create({ model: ECHO, messages: [HELLO] }),
      secondTry(tries, leave),
    ]);
    assertEquals(answer.choices[0]?.message.content, "Hello");
    assert(gap >= 990, `${gap}`);
  },
);

testAnthropic(
  "a limit is a RateLimitError with its wait, and is retried after it",
  gateway,
  async ({ Sdk, gateway }) => {
    const leave = await takeSlot(gateway.url);
    const request = { model: ECHO, max_tokens: 100, messages: [HELLO] };
    const error = await caught(Sdk.RateLimitError, anthropic(Sdk, gateway, SECRETS.narrow).messages.create(request));
    assertEquals(error.status, 429);
    assertStringIncludes(error.message, "rate_limit_error");
    assert(Number(error.headers?.get("retry-after")) >= 1);

    const tries: Tries = { times: [], answered: 0 };
    const patient = new Sdk({
      baseURL: `${gateway.url}/anthropic`,
      apiKey: SECRETS.narrow,
      authToken: null,
      maxRetries: 2,
      fetch: timed(tries),
    });
    const [answer, gap] = await Promise.all([patient.messages.create(request), secondTry(tries, leave)]);
    assertStringIncludes(JSON.stringify(answer.content), "Hello");
    assert(gap >= 990, `${gap}`);
  },
);

testOpenai(
  "a spent budget is a RateLimitError that is not retried",
  gateway,
  async ({ Sdk, gateway }) => {
    const tries: Tries = { times: [], answered: 0 };
    const client = new Sdk({ baseURL: `${gateway.url}/v1`, apiKey: SECRETS.poor, maxRetries: 3, fetch: timed(tries) });
    const most = { model: PRICED, messages: [HELLO], max_completion_tokens: 5_000 };
    const error = await caught(Sdk.RateLimitError, client.chat.completions.create(most));
    assertEquals([error.status, error.type, error.code], [429, "insufficient_quota", "insufficient_quota"]);
    assertEquals(tries.times.length, 1);
  },
);

testAnthropic(
  "a spent budget is a RateLimitError that is not retried",
  gateway,
  async ({ Sdk, gateway }) => {
    const tries: Tries = { times: [], answered: 0 };
    const client = new Sdk({
      baseURL: `${gateway.url}/anthropic`,
      apiKey: SECRETS.poor,
      authToken: null,
      maxRetries: 3,
      fetch: timed(tries),
    });
    const request = { model: PRICED, max_tokens: 5_000, messages: [HELLO] };
    const error = await caught(Sdk.RateLimitError, client.messages.create(request));
    assertStringIncludes(error.message, "rate_limit_error");
    assertEquals(tries.times.length, 1);
  },
);

testOpenai("a stream reports its cost with its last usage", gateway, async ({ Sdk, gateway }) => {
  const client = openai(Sdk, gateway, SECRETS.free);
  const stream = await client.chat.completions.create({
    model: PRICED,
    stream: true,
    stream_options: { include_usage: true },
    messages: [HELLO],
  });
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  const last = chunks.findLast(({ usage }) => usage !== undefined && usage !== null);
  const { prompt_tokens = 0, completion_tokens = 0 } = last?.usage ?? {};
  assertEquals(
    last,
    { ...last, sluice_cost: `0.0000${prompt_tokens + completion_tokens}`.replace(/0+$/, "") } as typeof last,
  );
});
