import { assert, assertEquals, assertGreater, assertMatch } from "@std/assert";
import type Anthropic from "anthropic-1";
import { jsonSchemaOutputFormat } from "anthropic-1/helpers/json-schema";
import { crossAnthropic } from "./sdks.ts";
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
