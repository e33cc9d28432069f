import { assertEquals } from "@std/assert";
import { sharedGateway } from "./gateway.ts";
import { caught, testAnthropic, testOpenai } from "./sdks.ts";
import { ECHO } from "./upstreams.ts";

/** An upstream without a listener. */
const GONE = { vendor: "openai-compatible", base_url: "http://127.0.0.1:9/v1" };
const PRICING = { prompt: "0.000001", completion: "0.000002" };
const ROW = { created: 1, context_length: 100_000, pricing: PRICING };

const gateway = sharedGateway({
  config: {
    upstreams: { gone: GONE },
    models: [
      {
        ...ROW,
        id: "t/both",
        targets: [{ upstream: "gone", model: "m" }, { upstream: "embedded", model: "echo", priority: 1 }],
      },
      { ...ROW, id: "t/gone", targets: [{ upstream: "gone", model: "n" }] },
    ],
    // All requests of this file fail at that upstream, and each failure must be visible.
    routing: { attempts: 5, breaker: { least_requests: 10_000, consecutive_failures: 1000, connect_failures: 1000 } },
  },
});

const PROVIDER = {
  order: ["gone", "embedded"],
  allow_fallbacks: true,
  require_parameters: false,
  data_collection: "allow",
  zdr: false,
  sort: { by: "throughput", partition: "model" },
  preferred_min_throughput: { p50: 40, p90: 20 },
  preferred_max_latency: 3,
  max_price: { prompt: "1", completion: 2, request: "0", image: "0", audio: "0" },
};

function answeredBy({ headers }: Response): (string | null)[] {
  return ["upstream", "model"].map((name) => headers.get(`x-sluice-${name}`));
}

const MESSAGES = [{ role: "user" as const, content: "Hello" }];

testOpenai("an unreachable target is skipped", gateway, async ({ client }) => {
  const { data, response } = await client.chat.completions.create({ model: "t/both", messages: MESSAGES })
    .withResponse();
  assertEquals(data.choices[0]?.message.content, "Hello");
  assertEquals(answeredBy(response), ["embedded", "t/both"]);
  const streamed = await client.chat.completions.create({ model: "t/both", messages: MESSAGES, stream: true });
  let text = "";
  for await (const chunk of streamed) text += chunk.choices[0]?.delta.content ?? "";
  assertEquals(text, "Hello");
});

testOpenai("clients can send the provider object and fallback models", gateway, async ({ client }) => {
  const more = { provider: PROVIDER, models: ["t/gone", ECHO] };
  const chat = await client.chat.completions.create({ model: "t/gone", messages: MESSAGES, ...more }).withResponse();
  assertEquals([chat.data.model, chat.data.choices[0]?.message.content], [ECHO, "Hello"]);
  assertEquals(answeredBy(chat.response), ["embedded", ECHO]);
  const { data } = await client.responses.create({ model: "t/gone", input: "Hello", ...more }).withResponse();
  assertEquals([data.model, data.output_text], [ECHO, "Hello"]);
});

testOpenai("preferences that no target meets are errors of the right class", gateway, async ({ client, Sdk }) => {
  const wishing = (provider: Record<string, unknown>) => ({ model: "t/both", messages: MESSAGES, provider });
  const wrong = await caught(Sdk.BadRequestError, client.chat.completions.create(wishing({ only: ["nobody"] })));
  assertEquals([wrong.status, wrong.param], [400, "provider.only[0]"]);
  const none = await caught(
    Sdk.InternalServerError,
    client.chat.completions.create(wishing({ max_price: { prompt: 0.5 } })),
  );
  assertEquals(none.status, 503);
});

testAnthropic("fallbacks name the next models", gateway, async ({ client }) => {
  const body = {
    model: "t/gone",
    max_tokens: 100,
    messages: MESSAGES,
    provider: PROVIDER,
    fallbacks: [{ model: "t/both" }],
  };
  const { data, response } = await client.messages.create(body).withResponse();
  assertEquals([data.model, data.content[0]?.type === "text" && data.content[0].text], ["t/both", "Hello"]);
  assertEquals(answeredBy(response), ["embedded", "t/both"]);
  const stream = await client.messages.create({ ...body, stream: true });
  const models: string[] = [];
  for await (const event of stream) if (event.type === "message_start") models.push(event.message.model);
  assertEquals(models, ["t/both"]);
});

testAnthropic(
  "an unreachable upstream without alternatives is an InternalServerError",
  gateway,
  async ({ client, Sdk }) => {
    const error = await caught(
      Sdk.InternalServerError,
      client.messages.create({ model: "t/gone", max_tokens: 100, messages: MESSAGES }),
    );
    assertEquals(error.status, 502);
  },
);
