import { assertEquals, assertMatch } from "@std/assert";
import type OpenAI from "openai-7";
import { asInput, crossOpenai } from "./sdks.ts";
import { sharedCrossing } from "./upstreams.ts";

const gateway = sharedCrossing();

type Request = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, "stream" | "model">;

const HELLO: Request = { instructions: "Be brief.", input: "Hello there, gateway" };
const SCHEMA = {
  type: "json_schema" as const,
  name: "city",
  schema: {
    type: "object",
    properties: { name: { type: "string", enum: ["Oslo"] }, people: { type: "integer", minimum: 3 } },
    required: ["name", "people"],
    additionalProperties: false,
  },
  strict: true,
};

/** The members that two answers to the same request share, without ids and times. */
function lasting(response: OpenAI.Responses.Response): unknown {
  const own = new Set(["id", "created_at", "completed_at"]);
  // Members that the helpers add to an answer.
  const added = new Set(["output_parsed", "parsed", "parsed_arguments", "output_text"]);
  return JSON.parse(
    JSON.stringify(response, (key, value) => own.has(key) || added.has(key) ? undefined : value),
  );
}

/** An answer with one item of reasoning: all its summaries, and whether there is something that signs it. */
function settled({ output, ...rest }: OpenAI.Responses.Response): OpenAI.Responses.Response {
  const reasoning = output.filter((item) => item.type === "reasoning");
  const others = output.filter((item) => item.type !== "reasoning");
  if (reasoning.length === 0) return { ...rest, output: others };
  const summary = reasoning.flatMap(({ summary }) => summary);
  const encrypted_content = reasoning.some((item) => item.encrypted_content) ? "signed" : null;
  return { ...rest, output: [{ type: "reasoning", id: "", summary, encrypted_content }, ...others] };
}

crossOpenai("responses answers with a whole response", gateway, async ({ client, model }) => {
  const answer = await client.responses.create({ ...HELLO, model, store: false, metadata: { run: "7" } });
  assertMatch(answer.id, /^resp_./);
  assertMatch(answer._request_id ?? "", /^req_./);
  assertEquals(answer.output_text, "Hello there, gateway");
  const { object, status, instructions, error, incomplete_details, metadata, tools, tool_choice } = answer;
  assertEquals({
    object,
    status,
    model: answer.model,
    instructions,
    error,
    incomplete_details,
    metadata,
    tools,
    tool_choice,
  }, {
    object: "response",
    status: "completed",
    model,
    instructions: "Be brief.",
    error: null,
    incomplete_details: null,
    metadata: { run: "7" },
    tools: [],
    tool_choice: "auto",
  });
  const [message] = answer.output;
  assertEquals([message?.type, message?.type === "message" && message.status], ["message", "completed"]);
  const { input_tokens = 0, output_tokens, total_tokens } = answer.usage ?? {};
  assertEquals([input_tokens > 4, output_tokens, total_tokens], [true, 4, input_tokens + 4]);
});

crossOpenai(
  "the responses stream helper ends with what create answers",
  gateway,
  async ({ client, model, upstream }) => {
    const requests: Request[] = [
      HELLO,
      { ...HELLO, text: { format: { type: "json_object" } } },
      { ...HELLO, reasoning: { effort: "low", summary: "auto" } },
      { ...HELLO, reasoning: { effort: "low" }, include: ["reasoning.encrypted_content"] },
      {
        ...HELLO,
        input: [{ role: "user", content: "Hi" }, { role: "assistant", content: "Ho" }, { role: "user", content: "He" }],
      },
      // The stream then ends with response.incomplete, and the helper takes that for an end as well.
      { ...HELLO, max_output_tokens: 2 },
    ];
    for (const request of requests.map((request) => ({ ...request, model }))) {
      const whole = await client.responses.create(request);
      const final = await client.responses.stream(request).finalResponse();
      // Chat and Gemini sign at the end of a stream, after the signed block.
      const isLate = upstream === "chat" || upstream === "gemini";
      assertEquals(lasting(isLate ? settled(final) : final), lasting(isLate ? settled(whole) : whole));
    }
  },
);

crossOpenai("responses that are cut short are incomplete", gateway, async ({ client, model, upstream }) => {
  const answer = await client.responses.create({ ...HELLO, model, max_output_tokens: 2 });
  assertEquals([answer.status, answer.incomplete_details], ["incomplete", { reason: "max_output_tokens" }]);
  // OpenAI's responses write at least 16 tokens: the answer is cut off, and all of them are billed.
  const billed = upstream === "responses" ? 4 : 2;
  assertEquals([answer.output_text, answer.usage?.output_tokens], ["Hello there", billed]);
  const [message] = answer.output;
  assertEquals(message?.type === "message" && message.status, "incomplete");
  const events = await Array.fromAsync(
    await client.responses.create({ ...HELLO, model, max_output_tokens: 2, stream: true }),
  );
  assertEquals(events.at(-1)?.type, "response.incomplete");
});

crossOpenai(
  "responses parses an answer in a JSON schema, whole and streamed",
  gateway,
  async ({ client, model, upstream }) => {
    const request = { ...HELLO, model, text: { format: SCHEMA } };
    // Anthropic's schemas do not support `minimum`.
    const expected = { name: "Oslo", people: upstream === "messages" ? 0 : 3 };
    assertEquals((await client.responses.parse(request)).output_parsed, expected);
    const streamed = await client.responses.stream(request).finalResponse();
    assertEquals(JSON.parse(streamed.output_text), expected);
  },
);

crossOpenai("responses takes its own output back, with and without ids", gateway, async ({ client, model }) => {
  const first = await client.responses.create({ ...HELLO, model });
  const user = (content: string) => ({ role: "user" as const, content });
  const whole = await client.responses.create({
    model,
    input: [user("Hello there, gateway"), ...asInput(first), user("Again")],
  });
  assertEquals(whole.output_text, "Again");
  const bare = await client.responses.create({
    model,
    input: [user("Hello there, gateway"), { role: "assistant", content: first.output_text }, user("Again")],
  });
  assertEquals(bare.usage, whole.usage);
});
