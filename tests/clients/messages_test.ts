import { assert, assertEquals, assertGreater, assertMatch } from "@std/assert";
import type Anthropic from "anthropic-1";
import { jsonSchemaOutputFormat } from "anthropic-1/helpers/json-schema";
import { sharedGateway } from "./gateway.ts";
import { caught, ECHO, testAnthropic } from "./sdks.ts";

const gateway = sharedGateway();

type Request = Omit<Anthropic.MessageCreateParamsNonStreaming, "stream">;

const HELLO: Request = {
  model: ECHO,
  max_tokens: 100,
  system: "Be brief.",
  messages: [{ role: "user", content: "Hello there, gateway" }],
};
const SCHEMA = {
  type: "object",
  properties: { name: { type: "string", enum: ["Oslo"] }, people: { type: "integer", minimum: 3 } },
  required: ["name", "people"],
  additionalProperties: false,
} as const;
const PIXELS = "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAwCAYAAAChS3wfAAAAAElFTkSuQmCC";

/** What two answers to the same request have in common, save what the stream helper adds, and what it does not take. */
function lasting({ id: _, usage, ...rest }: Anthropic.Message): unknown {
  // Of the usage at the end the helper takes all but `cache_creation`, which is not known at the beginning.
  const { cache_creation: __, ...counts } = usage;
  return JSON.parse(JSON.stringify({ ...rest, parsed_output: undefined, usage: counts }));
}

function textOf({ content }: Anthropic.Message): string {
  return content.map((block) => block.type === "text" ? block.text : "").join("");
}

testAnthropic("messages answers with a whole message", gateway, async ({ client }) => {
  const answer = await client.messages.create(HELLO);
  assertMatch(answer.id, /^msg_./);
  assertMatch(answer._request_id ?? "", /^req_./);
  const { type, role, model, content, stop_reason, stop_sequence, usage } = answer;
  assertEquals({ type, role, model, content, stop_reason, stop_sequence }, {
    type: "message",
    role: "assistant",
    model: ECHO,
    content: [{ type: "text", text: "Hello there, gateway" }] as typeof content,
    stop_reason: "end_turn",
    stop_sequence: null,
  });
  assertGreater(usage.input_tokens, 4);
  assertEquals([usage.output_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens], [4, 0, 0]);
});

testAnthropic("messages streams the same text in many events", gateway, async ({ client }) => {
  const whole = await client.messages.create(HELLO);
  const events = await Array.fromAsync(await client.messages.create({ ...HELLO, stream: true }));
  const deltas = events.flatMap((event) =>
    event.type === "content_block_delta" && event.delta.type === "text_delta" ? event.delta.text : []
  );
  assertEquals([deltas.length, deltas.join("")], [4, "Hello there, gateway"]);
  const [first] = events;
  assert(first?.type === "message_start");
  assertEquals(first.message.usage.input_tokens, whole.usage.input_tokens);
  const delta = events.at(-2);
  assert(delta?.type === "message_delta");
  assertEquals([delta.delta.stop_reason, delta.usage.output_tokens], ["end_turn", 4]);
  assertEquals(events.at(-1)?.type, "message_stop");
});

testAnthropic("the messages stream helper ends with what create answers", gateway, async ({ client }) => {
  const requests: Request[] = [
    HELLO,
    { ...HELLO, max_tokens: 2 },
    { ...HELLO, stop_sequences: [" there"] },
    { ...HELLO, max_tokens: 2000, thinking: { type: "enabled", budget_tokens: 1024 } },
    { ...HELLO, thinking: { type: "adaptive", display: "omitted" } },
    { ...HELLO, thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "high" } },
  ];
  for (const request of requests) {
    const whole = await client.messages.create(request);
    const stream = client.messages.stream(request);
    const texts: string[] = [];
    stream.on("text", (delta) => texts.push(delta));
    const final = await stream.finalMessage();
    assertEquals(texts.join(""), textOf(whole));
    assertEquals(final.content, whole.content);
    assertEquals([final.stop_reason, final.stop_sequence], [whole.stop_reason, whole.stop_sequence]);
    assertEquals(lasting(final), lasting(whole));
  }
});

testAnthropic("messages obeys limits and stop sequences", gateway, async ({ client }) => {
  const cases: [Partial<Request>, string, string, string | null, number][] = [
    [{ max_tokens: 2 }, "Hello there", "max_tokens", null, 2],
    [{ max_tokens: 4 }, "Hello there, gateway", "end_turn", null, 4],
    [{ stop_sequences: ["nothing", ","] }, "Hello there", "stop_sequence", ",", 2],
  ];
  for (const [extra, text, reason, sequence, tokens] of cases) {
    const answer = await client.messages.create({ ...HELLO, ...extra });
    assertEquals(textOf(answer), text);
    assertEquals([answer.stop_reason, answer.stop_sequence], [reason, sequence]);
    assertEquals(answer.usage.output_tokens, tokens);
  }
});

testAnthropic("messages counts what messages then charges", gateway, async ({ client }) => {
  const tools: Anthropic.Tool[] = [{ name: "clock", input_schema: { type: "object", properties: {} } }];
  const image: Anthropic.ImageBlockParam = {
    type: "image",
    source: { type: "base64", media_type: "image/png", data: PIXELS },
  };
  const bodies: Pick<Request, "model" | "messages" | "system" | "tools">[] = [
    { model: ECHO, messages: HELLO.messages },
    { model: ECHO, messages: HELLO.messages, system: "Be brief." },
    { model: ECHO, messages: HELLO.messages, system: "Be brief.", tools },
    { model: ECHO, messages: [{ role: "user", content: [image, { type: "text", text: "Look" }] }] },
  ];
  const counts: number[] = [];
  for (const body of bodies) {
    const { input_tokens } = await client.messages.countTokens(body);
    const { usage } = await client.messages.create({ ...body, max_tokens: 50 });
    assertEquals(input_tokens, usage.input_tokens);
    counts.push(input_tokens);
  }
  const [bare = 0, system = 0, withTools = 0] = counts;
  assert(bare > 0 && system > bare && withTools > system, counts.join());
});

testAnthropic("messages parses an answer in a JSON schema, whole and streamed", gateway, async ({ client }) => {
  const request = { ...HELLO, output_config: { format: jsonSchemaOutputFormat(SCHEMA) } };
  const whole = await client.messages.parse(request);
  // The SDK moves what it takes for unsupported, such as `minimum`, into the description.
  assertEquals(whole.parsed_output, { name: "Oslo", people: 0 });
  const streamed = await client.messages.stream(request).finalMessage();
  assertEquals(streamed.parsed_output, whole.parsed_output);
});

testAnthropic("messages sees pictures and files", gateway, async ({ client }) => {
  const answer = await client.messages.create({
    ...HELLO,
    messages: [{
      role: "user",
      content: [
        { type: "text", text: "Look:" },
        { type: "image", source: { type: "base64", media_type: "image/png", data: PIXELS } },
        { type: "document", title: "notes", source: { type: "text", media_type: "text/plain", data: "Milk" } },
      ],
    }],
  });
  assertEquals(textOf(answer), "Look:\n[image 64x48 png]\n[file notes text/plain]");
});

testAnthropic(
  "messages takes system text in blocks and among the messages",
  gateway,
  async ({ client }) => {
    const answer = await client.messages.create({
      ...HELLO,
      system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral", ttl: "1h" } }],
      messages: [
        { role: "user", content: "Hello" },
        { role: "system", content: "The user is in Oslo." },
      ],
    });
    assertEquals(textOf(answer), "Hello");
  },
);

testAnthropic("a message stream can be left, and the gateway goes on", gateway, async ({ client, Sdk }) => {
  const long: Request = {
    ...HELLO,
    max_tokens: 30_000,
    messages: [{ role: "user", content: "one two three four ".repeat(5000) }],
  };
  const stream = await client.messages.create({ ...long, stream: true });
  let events = 0;
  for await (const _ of stream) {
    if (++events === 4) stream.controller.abort();
  }
  assert(events < 1000, `${events} events`);
  const helper = client.messages.stream(long);
  helper.once("streamEvent", () => helper.abort());
  await caught(Sdk.APIUserAbortError, helper.finalMessage());
  assertEquals(textOf(await client.messages.create(HELLO)), "Hello there, gateway");
});
