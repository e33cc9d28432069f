import { assert, assertEquals, assertGreater, assertMatch } from "@std/assert";
import type Anthropic from "anthropic-1";
import { jsonSchemaOutputFormat } from "anthropic-1/helpers/json-schema";
import { caught, crossAnthropic } from "./sdks.ts";
import { sharedCrossing } from "./upstreams.ts";

const gateway = sharedCrossing();

type Request = Omit<Anthropic.MessageCreateParamsNonStreaming, "stream" | "model">;

const HELLO: Request = {
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
/** Twenty tokens. */
const NUMBERS = "one two three four five six seven eight nine ten one two three four five six seven eight nine ten";

const PIXELS = "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAwCAYAAAChS3wfAAAAAElFTkSuQmCC";

/** The members that two answers to the same request share, without those that the stream helper adds or drops. */
function lasting({ id: _, usage, ...rest }: Anthropic.Message): unknown {
  // Of the usage at the end the helper takes all but `cache_creation`, which is not known at the beginning.
  const { cache_creation: __, ...counts } = usage;
  return JSON.parse(JSON.stringify({ ...rest, parsed_output: undefined, usage: counts }));
}

/** Text and thinking of an answer. */
function settled({ content }: Anthropic.Message): unknown {
  const thoughts = content.filter((block) => block.type === "thinking");
  return {
    text: content.map((block) => block.type === "text" ? block.text : "").join(""),
    thinking: thoughts.map(({ thinking }) => thinking).join(""),
  };
}

function textOf({ content }: Anthropic.Message): string {
  return content.map((block) => block.type === "text" ? block.text : "").join("");
}

crossAnthropic("messages answers with a whole message", gateway, async ({ client, model }) => {
  const answer = await client.messages.create({ ...HELLO, model });
  assertMatch(answer.id, /^msg_./);
  assertMatch(answer._request_id ?? "", /^req_./);
  const { type, role, content, stop_reason, stop_sequence, usage } = answer;
  assertEquals({ type, role, model: answer.model, content, stop_reason, stop_sequence }, {
    type: "message",
    role: "assistant",
    model,
    content: [{ type: "text", text: "Hello there, gateway" }] as typeof content,
    stop_reason: "end_turn",
    stop_sequence: null,
  });
  assertGreater(usage.input_tokens, 4);
  assertEquals([usage.output_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens], [4, 0, 0]);
});

crossAnthropic("messages streams the same text in many events", gateway, async ({ client, model }) => {
  const whole = await client.messages.create({ ...HELLO, model });
  const events = await Array.fromAsync(await client.messages.create({ ...HELLO, model, stream: true }));
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

crossAnthropic(
  "the messages stream helper ends with what create answers",
  gateway,
  async ({ client, model, upstream }) => {
    const requests: Request[] = [
      HELLO,
      { ...HELLO, max_tokens: 2 },
      { ...HELLO, stop_sequences: [" there"] },
      { ...HELLO, max_tokens: 2000, thinking: { type: "enabled", budget_tokens: 1024 } },
      { ...HELLO, thinking: { type: "adaptive", display: "omitted" } },
      { ...HELLO, thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "high" } },
    ];
    for (const request of requests.map((request) => ({ ...request, model }))) {
      const whole = await client.messages.create(request);
      const stream = client.messages.stream(request);
      const texts: string[] = [];
      stream.on("text", (delta) => texts.push(delta));
      const final = await stream.finalMessage();
      assertEquals(texts.join(""), textOf(whole));
      // Signatures of responses contain ids; chat and Gemini sign at the end of a stream, after the signed block.
      const isOwn = upstream === "embedded" || upstream === "messages";
      assertEquals(isOwn ? final.content : settled(final), isOwn ? whole.content : settled(whole));
      assertEquals([final.stop_reason, final.stop_sequence], [whole.stop_reason, whole.stop_sequence]);
      assertEquals(lasting({ ...final, content: [] }), lasting({ ...whole, content: [] }));
    }
  },
);

crossAnthropic("messages obeys limits and stop sequences", gateway, async ({ client, model, upstream }) => {
  const messages: Request["messages"] = [{ role: "user", content: NUMBERS }];
  const first = (words: number) => NUMBERS.split(" ").slice(0, words).join(" ");
  // Chat and Gemini do not distinguish a stop sequence from an ordinary end.
  const [reason, sequence] = upstream === "chat" || upstream === "gemini" ? ["end_turn", null] : ["stop_sequence", ","];
  const cases: [Partial<Request>, string, string, string | null, number][] = [
    [{ messages, max_tokens: 16 }, first(16), "max_tokens", null, 16],
    [{ messages, max_tokens: 20 }, NUMBERS, "end_turn", null, 20],
    [{ stop_sequences: ["nothing", ","] }, "Hello there", reason, sequence, 2],
  ];
  for (const [extra, text, reason, sequence, tokens] of cases) {
    const answer = await client.messages.create({ ...HELLO, model, ...extra });
    assertEquals(textOf(answer), text);
    assertEquals([answer.stop_reason, answer.stop_sequence], [reason, sequence]);
    assertEquals(answer.usage.output_tokens, tokens);
  }
});

crossAnthropic("messages counts what messages then charges", gateway, async ({ client, model }) => {
  const tools: Anthropic.Tool[] = [{ name: "clock", input_schema: { type: "object", properties: {} } }];
  const image: Anthropic.ImageBlockParam = {
    type: "image",
    source: { type: "base64", media_type: "image/png", data: PIXELS },
  };
  const bodies: Pick<Anthropic.MessageCreateParamsNonStreaming, "model" | "messages" | "system" | "tools">[] = [
    { model, messages: HELLO.messages },
    { model, messages: HELLO.messages, system: "Be brief." },
    { model, messages: HELLO.messages, system: "Be brief.", tools },
    { model, messages: [{ role: "user", content: [image, { type: "text", text: "Look" }] }] },
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

crossAnthropic("messages parses an answer in a JSON schema, whole and streamed", gateway, async ({ client, model }) => {
  const request = { ...HELLO, model, output_config: { format: jsonSchemaOutputFormat(SCHEMA) } };
  const whole = await client.messages.parse(request);
  // The SDK moves keywords that it considers unsupported, such as `minimum`, into the description.
  assertEquals(whole.parsed_output, { name: "Oslo", people: 0 });
  const streamed = await client.messages.stream(request).finalMessage();
  assertEquals(streamed.parsed_output, whole.parsed_output);
});

crossAnthropic("messages sees images and files", gateway, async ({ client, model, upstream }) => {
  const answer = await client.messages.create({
    ...HELLO,
    model,
    messages: [{
      role: "user",
      content: [
        { type: "text", text: "Look:" },
        { type: "image", source: { type: "base64", media_type: "image/png", data: PIXELS } },
        { type: "document", title: "notes", source: { type: "text", media_type: "text/plain", data: "Milk" } },
      ],
    }],
  });
  // Text files become text for upstreams without such files, and have no name for Gemini.
  const files = {
    embedded: "[file notes text/plain]",
    messages: "[file notes text/plain]",
    chat: "notes\nMilk",
    responses: "notes\n\nMilk",
    gemini: "[file file text/plain]",
  };
  assertEquals(textOf(answer), `Look:\n[image 64x48 png]\n${files[upstream]}`);
});

crossAnthropic(
  "messages takes system text in blocks and among the messages",
  gateway,
  async ({ client, model }) => {
    const answer = await client.messages.create({
      ...HELLO,
      model,
      system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral", ttl: "1h" } }],
      messages: [
        { role: "user", content: "Hello" },
        { role: "system", content: "The user is in Oslo." },
      ],
    });
    assertEquals(textOf(answer), "Hello");
  },
);

crossAnthropic("a message stream can be left, and the gateway goes on", gateway, async ({ client, Sdk, model }) => {
  const long: Anthropic.MessageCreateParamsNonStreaming = {
    ...HELLO,
    model,
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
  assertEquals(textOf(await client.messages.create({ ...HELLO, model })), "Hello there, gateway");
});
