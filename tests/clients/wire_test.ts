import { assert, assertEquals, assertMatch } from "@std/assert";
import { type Body, type Message, parsed, post, readMessages, VERSION } from "./sse.ts";
import { ECHO, sharedPlainGateway } from "./upstreams.ts";

const gateway = sharedPlainGateway();

const CHAT: Body = { model: ECHO, messages: [{ role: "user", content: "Hello there" }], stream: true };
const RESPONSES: Body = { model: ECHO, input: "Hello there", stream: true };
const MESSAGES: Body = {
  model: ECHO,
  max_tokens: 2000,
  messages: [{ role: "user", content: "Hello there" }],
  stream: true,
};
const TOOL = { name: "clock", parameters: { type: "object" } };

function names(messages: readonly Message[]): (string | undefined)[] {
  return messages.map(({ event }) => event);
}

/** Names in a row that are the same, once. */
function collapsed(messages: readonly Message[]): (string | undefined)[] {
  return names(messages).filter((name, index, all) => name !== all[index - 1]);
}

/** A delta by the names of its members. */
function chatShape({ data }: Message): string {
  if (data === "[DONE]") return data;
  const { choices: [choice], usage } = JSON.parse(data);
  if (choice === undefined) return usage ? "usage" : "";
  return [...Object.keys(choice.delta), ...(choice.finish_reason === null ? [] : [choice.finish_reason])].join(" ");
}

Deno.test("a chat stream is chunks without event lines, and ends with [DONE]", async () => {
  const messages = await readMessages(await post(gateway(), "/v1/chat/completions", CHAT));
  assertEquals(names(messages), messages.map(() => undefined));
  assertEquals(messages.map(chatShape), ["role content refusal", "content", "content", "stop", "[DONE]"]);
  for (const chunk of parsed(messages.slice(0, -1))) {
    assertEquals(Object.keys(chunk), ["id", "object", "created", "model", "choices"]);
    assertEquals(chunk.object, "chat.completion.chunk");
  }
});

Deno.test("a chat stream carries usage in a chunk of its own before [DONE]", async () => {
  const body = { ...CHAT, stream_options: { include_usage: true } };
  const messages = await readMessages(await post(gateway(), "/v1/chat/completions", body));
  assertEquals(messages.map(chatShape).slice(-3), ["stop", "usage", "[DONE]"]);
  const usages = parsed(messages.slice(0, -1)).map(({ usage }) => usage);
  assertEquals(usages.slice(0, -1), usages.slice(1).map(() => null));
});

Deno.test("a chat stream opens each call once, with index, id and name", async () => {
  const tools = ["clock", "timer"].map((name) => ({ type: "function", function: { ...TOOL, name } }));
  const body = { ...CHAT, tools, messages: [{ role: "user", content: 'call:clock {"a":1}\ncall:timer {}' }] };
  const messages = await readMessages(await post(gateway(), "/v1/chat/completions", body));
  const deltas = parsed(messages.slice(0, -1)).flatMap(({ choices }) =>
    (choices as { delta: { tool_calls?: { index: number; id?: string; type?: string; function: Body }[] } }[])
      .flatMap(({ delta }) => delta.tool_calls ?? [])
  );
  const opening = deltas.filter(({ id }) => id !== undefined);
  assertEquals(opening.map(({ index, type, function: call }) => [index, type, call]), [
    [0, "function", { name: "clock", arguments: "" }],
    [1, "function", { name: "timer", arguments: "" }],
  ]);
  for (const index of [0, 1]) {
    const pieces = deltas.filter((delta) => delta.index === index).map(({ function: call }) => call.arguments);
    assertEquals(pieces.join(""), index === 0 ? '{"a":1}' : "{}");
  }
  assertEquals(messages.map(chatShape).slice(-2), ["tool_calls", "[DONE]"]);
});

Deno.test("a responses stream names its events, numbers them, and ends with [DONE]", async () => {
  const messages = await readMessages(await post(gateway(), "/v1/responses", RESPONSES));
  assertEquals(messages.pop(), { event: undefined, data: "[DONE]" });
  assertEquals(names(messages), [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
  ]);
  const events = parsed(messages);
  assertEquals(events.map(({ type }) => type), names(messages));
  assertEquals(events.map(({ sequence_number }) => sequence_number), events.map((_, index) => index));
  const ids = events.slice(3, 8).map((
    { item_id, output_index, content_index },
  ) => [item_id, output_index, content_index]);
  assertEquals(ids, ids.map(() => [(events[2]?.item as Body).id, 0, 0]));
  const first = events[0]?.response as Body;
  const last = events.at(-1)?.response as Body;
  assertEquals([first.status, first.output, first.usage], ["in_progress", [], null]);
  assertEquals([last.status, (last.output as Body[]).length, last.id], ["completed", 1, first.id]);
  assertEquals(Object.keys(first), Object.keys(last));
});

Deno.test("a responses stream has one item each for reasoning, message and calls, in order", async () => {
  const body = {
    ...RESPONSES,
    input: "Now.\ncall:clock {}",
    reasoning: { effort: "low", summary: "auto" },
    tools: [{ type: "function", ...TOOL }],
  };
  const messages = await readMessages(await post(gateway(), "/v1/responses", body));
  assertEquals(collapsed(messages.slice(2, -2)), [
    "response.output_item.added",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
    "response.output_item.done",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.output_item.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
  ]);
  const added = parsed(messages.filter(({ event }) => event === "response.output_item.added"));
  assertEquals(added.map(({ output_index, item }) => [output_index, (item as Body).type]), [
    [0, "reasoning"],
    [1, "message"],
    [2, "function_call"],
  ]);
});

Deno.test("a messages stream names its events, and has no [DONE]", async () => {
  const messages = await readMessages(await post(gateway(), "/anthropic/v1/messages", MESSAGES, VERSION));
  assertEquals(names(messages), [
    "message_start",
    "ping",
    "content_block_start",
    "content_block_delta",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
  assertEquals(parsed(messages).map(({ type }) => type), names(messages));
});

Deno.test("a messages stream numbers its blocks without gaps, and signs thinking once, at its end", async () => {
  const body = {
    ...MESSAGES,
    thinking: { type: "enabled", budget_tokens: 1024 },
    messages: [{ role: "user", content: "Now.\ncall:clock {}" }],
    tools: [{ name: "clock", input_schema: { type: "object" } }],
  };
  const events = parsed(await readMessages(await post(gateway(), "/anthropic/v1/messages", body, VERSION)));
  const starts = events.filter(({ type }) => type === "content_block_start");
  assertEquals(starts.map(({ index, content_block }) => [index, (content_block as Body).type]), [
    [0, "thinking"],
    [1, "text"],
    [2, "tool_use"],
  ]);
  const thinking = events.filter(({ type, index }) => type === "content_block_delta" && index === 0)
    .map(({ delta }) => (delta as Body).type);
  assertEquals([thinking.indexOf("signature_delta"), thinking.includes("thinking_delta")], [thinking.length - 1, true]);
  const [delta] = events.filter(({ type }) => type === "message_delta");
  assertEquals(delta?.delta, { stop_reason: "tool_use", stop_sequence: null });
});

Deno.test("streams are neither cached nor buffered, and have a request id", async () => {
  const cases: [string, Body][] = [
    ["/v1/chat/completions", CHAT],
    ["/v1/responses", RESPONSES],
    ["/anthropic/v1/messages", MESSAGES],
  ];
  for (const [path, body] of cases) {
    const response = await post(gateway(), path, body, VERSION);
    assertEquals(response.headers.get("cache-control"), "no-cache", path);
    assertEquals(response.headers.get("content-encoding"), null, path);
    assertMatch(response.headers.get("x-request-id") ?? "", /^req_./);
    const native = path.startsWith("/anthropic");
    assertEquals(response.headers.get("request-id"), native ? response.headers.get("x-request-id") : null);
    await response.body?.cancel();
  }
});

Deno.test("every write of a stream consists of whole events", async () => {
  const { url, key } = gateway();
  const { hostname, port } = new URL(url);
  const body = JSON.stringify({ ...CHAT, messages: [{ role: "user", content: "one two three ".repeat(200) }] });
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const head = [
    "POST /v1/chat/completions HTTP/1.1",
    `host: ${hostname}`,
    `authorization: Bearer ${key}`,
    "content-type: application/json",
    `content-length: ${body.length}`,
    "connection: close",
  ];
  await connection.write(new TextEncoder().encode(`${head.join("\r\n")}\r\n\r\n${body}`));
  const text = await new Response(connection.readable).text();
  // HTTP's own chunks are the writes: their sizes are on the wire.
  let rest = text.slice(text.indexOf("\r\n\r\n") + 4);
  let chunks = 0;
  for (let size = parseInt(rest, 16); size > 0; size = parseInt(rest, 16)) {
    const from = rest.indexOf("\r\n") + 2;
    assertMatch(rest.slice(from, from + size), /^(data: .+\n\n)+$/);
    rest = rest.slice(from + size + 2);
    chunks++;
  }
  assert(chunks > 100, `${chunks} chunks`);
});
