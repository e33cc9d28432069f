import { assertEquals } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { model, oneModel, startGateway, type TestGateway, upstream } from "../../support/gateway.ts";
import { prompt, PROTOCOLS } from "../../upstream/replies.ts";
import { json, type ScriptedAnswer, startUpstream } from "../../upstream/mod.ts";

/** An answer of the responses API. */
interface Scene {
  output: JsonObject[];
  usage: JsonObject;
  /** The upstream's own limit has cut it. */
  incomplete?: boolean;
}

const LIMIT = {
  chat: "max_tokens",
  responses: "max_output_tokens",
  messages: "max_tokens",
  gemini: "generationConfig.maxOutputTokens",
} as const;
const WORDS = "one two three four five six seven eight nine ten";

function text(text: string): JsonObject {
  const content = [{ type: "output_text", text, annotations: [] }];
  return { id: "msg_1", type: "message", role: "assistant", status: "completed", content };
}

function reasoning(text: string): JsonObject {
  const summary = text === "" ? [] : [{ type: "summary_text", text }];
  return { id: "rs_1", type: "reasoning", summary, encrypted_content: "sealed" };
}

function call(input: string, status = "completed"): JsonObject {
  return { id: "fc_1", type: "function_call", call_id: "call_1", name: "look", arguments: input, status };
}

function used(output: number, reasoning = 0): JsonObject {
  return {
    input_tokens: 7,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: 7 + output,
  };
}

function responseOf({ output, usage, incomplete = false }: Scene): JsonObject {
  return {
    id: "resp_1",
    object: "response",
    created_at: 1,
    status: incomplete ? "incomplete" : "completed",
    incomplete_details: incomplete ? { reason: "max_output_tokens" } : null,
    model: "real-one",
    output,
    usage,
  };
}

/** The pieces in which a stream brings an item's text. */
function deltas(item: JsonObject, output_index: number): JsonObject[] {
  const place = { item_id: item.id ?? "", output_index };
  const pieces = (text: string) => text.match(/.{1,3}/gs) ?? [];
  if (item.type === "function_call") {
    return pieces(String(item.arguments)).map((delta) => ({
      type: "response.function_call_arguments.delta",
      delta,
      ...place,
    }));
  }
  const [part] = (item.type === "message" ? item.content : item.summary) as JsonObject[];
  const type = item.type === "message" ? "response.output_text.delta" : "response.reasoning_summary_text.delta";
  const at = item.type === "message" ? { content_index: 0 } : { summary_index: 0 };
  return pieces(String(part?.text ?? "")).map((delta) => ({ type, delta, ...place, ...at }));
}

function streamOf(scene: Scene): ScriptedAnswer {
  const response = responseOf(scene);
  const events: JsonObject[] = [
    { type: "response.created", response: { ...response, status: "in_progress", output: [], usage: null } },
    ...scene.output.flatMap((item, output_index) => [
      {
        type: "response.output_item.added",
        output_index,
        item: item.type === "message"
          ? { ...item, content: [] }
          : item.type === "reasoning"
          ? { id: item.id ?? "", type: "reasoning", summary: [] }
          : { ...item, arguments: "" },
      },
      ...deltas(item, output_index),
      { type: "response.output_item.done", output_index, item },
    ]),
    { type: scene.incomplete === true ? "response.incomplete" : "response.completed", response },
  ];
  const body = events.map((event, sequence_number) =>
    `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number })}\n\n`
  );
  return { headers: { "content-type": "text/event-stream" }, body: body.join("") };
}

/** The fields that a client reads, in any protocol. */
interface Read {
  text: string;
  reasoning: string;
  calls: string[];
  finish: string | undefined;
  output: number | undefined;
}

// deno-lint-ignore no-explicit-any
type Any = any;

function readChat(bodies: Any[]): Read {
  const parts: Any[] = bodies.flatMap(({ choices = [] }) => choices);
  const messages: Any[] = parts.map(({ message, delta }) => message ?? delta);
  return {
    text: messages.map(({ content }) => content ?? "").join(""),
    reasoning: messages.map(({ reasoning_content }) => reasoning_content ?? "").join(""),
    calls: joined(
      messages.flatMap(({ tool_calls = [] }) => tool_calls).map((one: Any) => [
        one.index ?? 0,
        one.function.arguments ?? "",
      ]),
    ),
    finish: parts.findLast(({ finish_reason }) => finish_reason)?.finish_reason,
    output: bodies.findLast(({ usage }) => usage)?.usage.completion_tokens,
  };
}

function joined(pieces: [number, string][]): string[] {
  const calls: string[] = [];
  for (const [at, piece] of pieces) calls[at] = (calls[at] ?? "") + piece;
  return calls;
}

function readResponses(bodies: Any[]): Read {
  const last = bodies.at(-1);
  const response = last.response ?? last;
  const of = (type: string): Any[] => response.output.filter((item: Any) => item.type === type);
  return {
    text: of("message").flatMap(({ content }) => content).map(({ text }) => text).join(""),
    reasoning: of("reasoning").flatMap(({ summary }) => summary).map(({ text }) => text).join(""),
    calls: of("function_call").map((item) => item.arguments),
    finish: response.incomplete_details?.reason ?? response.status,
    output: response.usage.output_tokens,
  };
}

function readMessages(bodies: Any[]): Read {
  const [whole] = bodies;
  if (whole.type === "message") {
    const of = (type: string): Any[] => whole.content.filter((block: Any) => block.type === type);
    return {
      text: of("text").map(({ text }) => text).join(""),
      reasoning: of("thinking").map(({ thinking }) => thinking).join(""),
      calls: of("tool_use").map(({ input }) => JSON.stringify(input)),
      finish: whole.stop_reason,
      output: whole.usage.output_tokens,
    };
  }
  const of = (type: string): Any[] => bodies.filter(({ delta }) => delta?.type === type).map(({ delta }) => delta);
  const end = bodies.find(({ type }) => type === "message_delta");
  const calls = of("input_json_delta").map(({ partial_json }) => partial_json).join("");
  return {
    text: of("text_delta").map(({ text }) => text).join(""),
    reasoning: of("thinking_delta").map(({ thinking }) => thinking).join(""),
    calls: bodies.some(({ content_block }) => content_block?.type === "tool_use") ? [calls] : [],
    finish: end.delta.stop_reason,
    output: end.usage.output_tokens,
  };
}

function readGemini(bodies: Any[]): Read {
  const candidates: Any[] = bodies.flatMap(({ candidates }) => candidates);
  const parts: Any[] = candidates.flatMap(({ content }) => content.parts);
  const { candidatesTokenCount, thoughtsTokenCount = 0 } = bodies.at(-1).usageMetadata;
  return {
    text: parts.map(({ text = "", thought }) => thought === true ? "" : text).join(""),
    reasoning: parts.map(({ text, thought }) => thought === true ? text : "").join(""),
    calls: parts.flatMap(({ functionCall }) => functionCall ? [JSON.stringify(functionCall.args)] : []),
    finish: candidates.at(-1).finishReason,
    output: candidatesTokenCount + thoughtsTokenCount,
  };
}

const READERS = { chat: readChat, responses: readResponses, messages: readMessages, gemini: readGemini };
const LENGTH = { chat: "length", responses: "max_output_tokens", messages: "max_tokens", gemini: "MAX_TOKENS" };
const END = { chat: "stop", responses: "completed", messages: "end_turn", gemini: "STOP" };
const TOOL_USE = { chat: "tool_calls", responses: "completed", messages: "tool_use", gemini: "STOP" };

async function read(protocol: Protocol, response: Response): Promise<Read> {
  const body = await response.text();
  assertEquals(response.status, 200, body);
  if (body.startsWith("{")) return READERS[protocol]([JSON.parse(body)]);
  const lines = body.split("\n").filter((line) => line.startsWith("data: {"));
  return READERS[protocol](lines.map((line) => JSON.parse(line.slice(6))));
}

function asking(protocol: Protocol, limit: number, stream: boolean): JsonObject {
  const tool = { name: "look", description: "Looks", parameters: { type: "object", properties: {} } };
  const tools: JsonObject[] = {
    chat: [{ type: "function", function: tool }],
    responses: [{ type: "function", ...tool }],
    messages: [{ name: "look", input_schema: tool.parameters }],
    gemini: [{ functionDeclarations: [tool] }],
  }[protocol];
  if (protocol === "gemini") {
    const generationConfig = { maxOutputTokens: limit, thinkingConfig: { includeThoughts: true } };
    return prompt(protocol, { stream, tools, generationConfig });
  }
  return prompt(protocol, {
    stream,
    tools,
    [LIMIT[protocol]]: limit,
    ...(protocol === "chat" && stream && { stream_options: { include_usage: true } }),
    ...(protocol === "responses" && { reasoning: { summary: "auto" } }),
    ...(protocol === "chat" && { reasoning_effort: "low" }),
  });
}

/** The tokens of the last request's entry in the ledger. */
async function billed({ store }: TestGateway): Promise<number | undefined> {
  const entries = await store.ledger.entries({ after: 0, limit: 1_000 });
  return entries.at(-1)?.tokens.completion;
}

interface Claim {
  about: string;
  scene: Scene;
  limit?: number;
  text?: string;
  reasoning?: string;
  calls?: string[];
  finish: Record<Protocol, string>;
}

const CLAIMS: Claim[] = [
  {
    about: "a text is cut at the client's limit",
    scene: { output: [text(WORDS)], usage: used(16), incomplete: true },
    text: "one two three four five",
    finish: LENGTH,
  },
  {
    about: "a text that the upstream has ended is cut as well",
    scene: { output: [text(WORDS)], usage: used(12) },
    text: "one two three four five",
    finish: LENGTH,
  },
  {
    about: "an answer within the limit stays as it is, by the upstream's count",
    scene: { output: [text(WORDS)], usage: used(5) },
    text: WORDS,
    finish: END,
  },
  {
    about: "one that fits, of which the upstream counts more than its words, stays whole",
    scene: { output: [text("one two")], usage: used(9) },
    text: "one two",
    finish: END,
  },
  {
    about: "a character of several tokens is whole or left out",
    scene: { output: [text("𓀀𓀀𓀀𓀀")], usage: used(16), incomplete: true },
    limit: 7,
    text: "𓀀",
    finish: LENGTH,
  },
  {
    about: "reasoning counts, also where none of it is shown",
    scene: { output: [reasoning(""), text(WORDS)], usage: used(14, 3) },
    text: "one two",
    finish: LENGTH,
  },
  {
    about: "reasoning that fills the limit leaves nothing of the text",
    scene: { output: [reasoning("Hm. Well."), text(WORDS)], usage: used(16, 9), incomplete: true },
    finish: LENGTH,
  },
  {
    about: "reasoning that is shown counts once",
    scene: { output: [reasoning("alpha beta"), text(WORDS)], usage: used(13, 2) },
    reasoning: "alpha beta",
    text: "one two three",
    finish: LENGTH,
  },
  {
    about: "a call that fits is whole",
    scene: { output: [call("{}")], usage: used(14) },
    calls: ["{}"],
    finish: TOOL_USE,
  },
  {
    about: "a call beyond the limit is left out",
    scene: { output: [text("one two"), call('{"where":"at home"}')], usage: used(16) },
    text: "one two",
    finish: LENGTH,
  },
  {
    about: "a call that the upstream's minimum has cut is left out, however short it is",
    scene: { output: [call('{"w', "incomplete")], usage: used(16), incomplete: true },
    limit: 15,
    finish: LENGTH,
  },
];

Deno.test("the gateway enforces a limit below the upstream's minimum, in every protocol, whole and streamed", async () => {
  let scene: Scene | undefined;
  await using server = startUpstream(({ body }) => {
    if (scene === undefined) throw new Error("Cannot answer without a scene");
    return JSON.parse(body).stream === true ? streamOf(scene) : json(responseOf(scene));
  });
  await using gateway = startGateway(oneModel("responses", server.url));
  for (const claim of CLAIMS) {
    scene = claim.scene;
    const { limit = 5 } = claim;
    for (const protocol of PROTOCOLS) {
      for (const stream of [false, true]) {
        const about = `${claim.about}: ${protocol}, ${stream ? "streamed" : "whole"}`;
        const response = await gateway.ask(protocol, asking(protocol, limit, stream));
        const shown = await read(protocol, response);
        const output = Number(scene.usage.output_tokens);
        assertEquals(JSON.parse(server.requests.at(-1)?.body ?? "").max_output_tokens, 16, about);
        assertEquals(response.headers.get("x-sluice-dropped"), LIMIT[protocol], about);
        assertEquals(
          { ...shown, reasoning: protocol === "messages" ? claim.reasoning ?? "" : shown.reasoning },
          {
            text: claim.text ?? "",
            reasoning: claim.reasoning ?? "",
            calls: claim.calls ?? [],
            finish: claim.finish[protocol],
            output,
          },
          about,
        );
        assertEquals(await billed(gateway), output, about);
      }
    }
  }
});

Deno.test("a stop sequence ends an answer within the limit, and a limit that the upstream accepts is unchanged", async () => {
  await using server = startUpstream(({ body }) => {
    const scene = { output: [text(WORDS)], usage: used(16), incomplete: true };
    return JSON.parse(body).stream === true ? streamOf(scene) : json(responseOf(scene));
  });
  await using gateway = startGateway(oneModel("responses", server.url));
  for (const stream of [false, true]) {
    const stopped = await gateway.ask("chat", { ...asking("chat", 5, stream), stop: [" four"] });
    const { text, finish } = await read("chat", stopped);
    assertEquals([text, finish], ["one two three", "stop"]);
    const free = await gateway.ask("chat", asking("chat", 16, stream));
    assertEquals(free.headers.get("x-sluice-dropped"), null);
    assertEquals((await read("chat", free)).text, WORDS);
  }
});

Deno.test("an upstream that exceeds its limit by far is cut off", async () => {
  const long = `one${" two".repeat(50_000)}`;
  const scene = { output: [text(long)], usage: used(3) };
  await using server = startUpstream(({ body }) =>
    JSON.parse(body).stream === true ? streamOf(scene) : json(responseOf(scene))
  );
  await using gateway = startGateway(oneModel("responses", server.url));
  const cut = await read("chat", await gateway.ask("chat", asking("chat", 5, false)));
  assertEquals([cut.text, cut.finish], ["one two two two two", "length"]);
});

Deno.test("a budget pays for the upstream's minimum, or the request is not sent", async () => {
  const scene = { output: [text(WORDS)], usage: used(16), incomplete: true };
  await using server = startUpstream(() => json(responseOf(scene)));
  const file = oneModel("responses", server.url);
  const [row] = file.models as JsonObject[];
  const pricing = { prompt: "0", completion: "0.001" };
  await using gateway = startGateway({ ...file, models: [{ ...row, pricing }] });
  for (const [usd, status, cost] of [["0.015", 429, 0n], ["0.016", 200, 16_000_000_000n]] as const) {
    const key = await gateway.addKey({ rules: { budget: { usd, period: "total" } } });
    const response = await gateway.ask("chat", prompt("chat", { max_tokens: 5 }), { key });
    assertEquals(response.status, status, await response.text());
    const entries = await gateway.store.ledger.entries({ after: 0, limit: 10 });
    assertEquals([entries.at(-1)?.cost, entries.at(-1)?.overrun], [cost, 0n]);
  }
  assertEquals(server.requests.length, 1);
});

Deno.test("a host with an unknown minimum gets a responses client's own limit", async () => {
  await using server = startUpstream(() => json(responseOf({ output: [text("one")], usage: used(1) })));
  await using gateway = startGateway({
    upstreams: { one: upstream("vllm", server.url, { protocols: ["chat", "responses"] }) },
    models: [model("acme/one", [{ upstream: "one", model: "real-one", protocol: "responses" }])],
  });
  const response = await gateway.ask("responses", prompt("responses", { max_output_tokens: 5 }));
  assertEquals([response.status, response.headers.get("x-sluice-dropped")], [200, null], await response.text());
  assertEquals(JSON.parse(server.requests[0]?.body ?? "").max_output_tokens, 5);
});

Deno.test("a client that requires all parameters is refused under the name of its own limit", async () => {
  await using server = startUpstream(() => json({}, { status: 500 }));
  await using gateway = startGateway(oneModel("responses", server.url));
  for (const member of ["max_tokens", "max_completion_tokens"]) {
    const body = prompt("chat", { [member]: 5, provider: { require_parameters: true } });
    const response = await gateway.ask("chat", body);
    const { error } = await response.json();
    assertEquals([response.status, error.param], [400, member], JSON.stringify(error));
  }
  assertEquals(server.requests.length, 0);
});
