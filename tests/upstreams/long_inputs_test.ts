import { assert, assertEquals, assertGreater, assertStrictEquals } from "@std/assert";
import { runToEnd } from "../../lib/scheduler.ts";
import type { ContentBlock, Message, Protocol } from "../../lib/protocols/canonical/types.ts";
import { isObject, type JsonObject, writeJson } from "../../lib/json/mod.ts";
import { geminiUpstream } from "../../lib/protocols/gemini/upstream.ts";
import { readLongInputs } from "../../lib/upstreams/long_inputs.ts";
import { promptOf } from "../protocols/canonical/messages.ts";
import { messageOf, targetOf, write } from "../protocols/messages/upstream_targets.ts";
import { oneModel, startGateway } from "../support/gateway.ts";
import { errorBody, prompt, WHOLE } from "../upstream/replies.ts";
import { json, startUpstream } from "../upstream/mod.ts";
import { skipInQuick } from "../support/skip.ts";

const LONG = "word ".repeat(14_000);
const names = Array.from({ length: 10_001 }, (_, at) => `"k${at}":1`).join(",");

/** Long arguments, and their written form: the parsed object, or the text under `_raw`. */
const ARGUMENTS: readonly [name: string, text: string, isObject: boolean][] = [
  ["an object", `{"a":"${LONG}"}`, true],
  ["an object of more than can be read at once", `{"a":"${LONG.repeat(20)}\\"\\ud800"}`, true],
  ["white space around", ` \n{"a":"${LONG}"}\t`, true],
  ["numbers that are kept", `{"a":"${LONG}","b":[1.0,-0,1e400,12345678901234567890]}`, true],
  ["a name that is a prototype's", `{"__proto__":{"a":1},"b":"${LONG}"}`, true],
  ["equal names further in", `{"b":"${LONG}","c":{"d":{"e":1,"e":2}}}`, true],
  ["equal names", `{"a":1,"a":2,"b":"${LONG}"}`, false],
  ["equal names in more than can be read at once", `{"a":1,"a":2,"b":"${LONG.repeat(20)}"}`, false],
  ["too many names", `{${names}}`, false],
  ["too many levels", `{"a":"${LONG}","b":${"[".repeat(64)}${"]".repeat(64)}}`, false],
  ["an array", `["${LONG}"]`, false],
  ["a text", `"${LONG}"`, false],
  ["a number", "1".repeat(70_000), false],
  ["null", `null${" ".repeat(70_000)}`, false],
  ["what was cut off", `{"a":"${LONG}`, false],
  ["what is no JSON", LONG, false],
  ["more after the object", `{"a":"${LONG}"}}`, false],
  ["a space that is none of JSON's", `\u00a0{"a":"${LONG}"}`, false],
];

function called(text: string, more: Partial<Extract<ContentBlock, { type: "tool_call" }>> = {}): Message[] {
  return [
    messageOf("user", "Hi"),
    messageOf("assistant", "Well", { type: "tool_call", id: "c", name: "f", arguments: text, ...more }),
    messageOf("user", { type: "tool_result", callId: "c", blocks: [{ type: "text", text: "Y" }] }),
  ];
}

/** The text written in each protocol that requires objects. */
function written(messages: Message[]): string[] {
  const gemini = runToEnd(geminiUpstream.writePrompt(promptOf(messages), {
    ...targetOf(),
    issuer: "google",
    dialect: geminiUpstream.dialect,
  }));
  return [writeJson(write({ messages }).body), writeJson(gemini)];
}

Deno.test("arguments parsed in advance are written like others", async () => {
  for (const [name, text, isRead] of ARGUMENTS) {
    const messages = called(text);
    const read = await readLongInputs(promptOf(messages), "messages");
    const call = read.messages[1]?.blocks[1];
    assert(call?.type === "tool_call" && call.input !== undefined, name);
    assertEquals(isObject(call.input), isRead, name);
    assertEquals(written(read.messages), written(messages), name);
    assertEquals(written(messages).map((body) => body.includes('"_raw":')), [!isRead, !isRead], name);
  }
});

/** A conversation with the result of a call. */
function answered(...texts: string[]): Message[] {
  return [
    messageOf("user", "Hi"),
    messageOf("assistant", { type: "tool_call", id: "c", name: "f", arguments: "{}" }),
    messageOf("user", { type: "tool_result", callId: "c", blocks: texts.map((text) => ({ type: "text", text })) }),
  ];
}

Deno.test("results parsed in advance are written like others", async () => {
  for (const [name, text, isRead] of ARGUMENTS) {
    const half = text.indexOf(",");
    for (const texts of [[text], ["", text], half < 0 ? [text, ""] : [text.slice(0, half), text.slice(half)]]) {
      const messages = answered(...texts);
      const read = await readLongInputs(promptOf(messages), "gemini");
      const result = read.messages[2]?.blocks[0];
      assert(result?.type === "tool_result", name);
      assertEquals(isObject(result.output), isRead, name);
      assertEquals(written(read.messages), written(messages), name);
      assertEquals(written(messages)[1]?.includes('"response":{"result":'), !isRead, name);
    }
  }
});

Deno.test("results stay text if the protocol requires it, or if they report an error", async () => {
  const prompt = promptOf(answered(`{"a":"${LONG}"}`));
  assertStrictEquals(await readLongInputs(prompt, "messages"), prompt);
  const failed = promptOf(prompt.messages.map((message) => ({
    ...message,
    blocks: message.blocks.map((block) => block.type === "tool_result" ? { ...block, isError: true } : block),
  })));
  assertStrictEquals(await readLongInputs(failed, "gemini"), failed);
});

Deno.test("many short arguments and results are parsed in advance, in slices", async () => {
  const zeros = `{"a":[${"-0,".repeat(10_000)}1]}`;
  const messages = Array.from({ length: 12 }, () => [...called(zeros), ...answered(zeros)]).flat();
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  const { messages: read } = await readLongInputs(promptOf(messages), "gemini");
  clearInterval(timer);
  assertGreater(turns, 2);
  const objects = read.flatMap(({ blocks }) =>
    blocks.flatMap((block) =>
      block.type === "tool_call" ? [block.input] : block.type === "tool_result" ? [block.output] : []
    )
  );
  assertEquals(objects.filter((object) => isObject(object)).length, 36);
  assertEquals(written(read), written(messages));
});

Deno.test("blank arguments of any length count as absent", async () => {
  const messages = called(" \n".repeat(40_000));
  const read = await readLongInputs(promptOf(messages), "gemini");
  assertEquals(written(read.messages), written(called("")));
  assertEquals(written(messages), written(called("")));
});

Deno.test("a prompt without long inputs stays unchanged", async () => {
  const long = promptOf(called(`{"a":"${LONG}"}`));
  for (const protocol of ["chat", "responses"] as const) assertStrictEquals(await readLongInputs(long, protocol), long);
  const short = promptOf(called(`{"a":"${LONG.slice(0, 65_528)}"}`));
  assertStrictEquals(await readLongInputs(short, "messages"), short);
  const custom = promptOf(called(`{"a":"${LONG}"}`, { custom: true }));
  assertStrictEquals(await readLongInputs(custom, "messages"), custom);
});

Deno.test("other calls, messages and blocks stay unchanged", async () => {
  const requested = promptOf([...called("{}"), ...called(`{"a":"${LONG}"}`)]);
  const { messages } = await readLongInputs(requested, "gemini");
  for (const at of [0, 2, 3, 5]) assertStrictEquals(messages[at], requested.messages[at]);
  assertStrictEquals(messages[4]?.blocks[0], requested.messages[4]?.blocks[0]);
});

Deno.test("long arguments reach an upstream as an object with exact numbers", async () => {
  await using server = startUpstream(() => json(WHOLE.messages));
  await using gateway = startGateway(oneModel("messages", server.url));
  const input = `{"a":"${LONG.repeat(20)}","b":[1.0,12345678901234567890]}`;
  for (const [name, text, sent] of [["object", input, input], ["cut", input.slice(0, -1), undefined]] as const) {
    const calls: JsonObject[] = [{ id: "c", type: "function", function: { name: "f", arguments: text } }];
    const response = await gateway.ask(
      "chat",
      prompt("chat", {
        messages: [
          { role: "user", content: "Hi" },
          { role: "assistant", tool_calls: calls },
          { role: "tool", tool_call_id: "c", content: "y" },
        ],
      }),
    );
    assertEquals(response.status, 200, await response.text());
    const expected = `"input":${sent ?? `{"_raw":${JSON.stringify(text)}}`}`;
    assert(server.requests.at(-1)?.body.includes(expected), name);
  }
});

Deno.test("long input stays with a call whose reasoning was dropped", async () => {
  const refusal = errorBody("messages", "Invalid `signature` in `thinking` block", "invalid_request_error");
  await using server = startUpstream(({ body }) =>
    body.includes('"thinking":"t"') ? json(refusal, { status: 400 }) : json(WHOLE.messages)
  );
  await using gateway = startGateway(oneModel("messages", server.url));
  const input = { a: LONG };
  const call = { type: "tool_use", id: "c", name: "f", input };
  const messages = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: [{ type: "thinking", thinking: "t", signature: "old" }, call] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: "y" }] },
  ];
  const response = await gateway.ask("messages", prompt("messages", { messages }));
  assertEquals(response.status, 200, await response.text());
  assertEquals(server.requests.length, 2);
  assert(server.requests[1]?.body.includes(`"input":${JSON.stringify(input)}`));
});

Deno.test("long input reaches a text upstream unchanged, with exact numbers", async () => {
  await using server = startUpstream(() => json(WHOLE.chat));
  await using gateway = startGateway(oneModel("chat", server.url));
  const input = `{"a":"${LONG.repeat(20)}","b":[1.0,12345678901234567890],"c":"\\""}`;
  const messages = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: [{ type: "tool_use", id: "c", name: "f", input: "INPUT" }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: "y" }] },
  ];
  const body = JSON.stringify(prompt("messages", { messages })).replace('"INPUT"', () => input);
  const response = await gateway.ask("messages", body);
  assertEquals(response.status, 200, await response.text());
  assert(server.requests[0]?.body.includes(`"arguments":${JSON.stringify(input)}`));
});

/** Longer than is read and written at once. */
const HUGE = LONG.repeat(20);

Deno.test("a long whole answer is read like a short one, including calls", async () => {
  const few = skipInQuick("Long answers for most clients");
  for (const [index, upstream] of (["messages", "gemini", "chat"] as const).entries()) {
    for (const [place, client] of (["chat", "messages", "responses"] as const).entries()) {
      if (few && place !== index) continue;
      for (const long of ["", HUGE]) {
        const input = { a: `${long}"\\`, b: [1, { c: null }] };
        await using server = startUpstream(() => json(answerOf(upstream, { input, text: `${long}\ud800"` })));
        await using gateway = startGateway(oneModel(upstream, server.url));
        const response = await gateway.ask(client, prompt(client));
        assertEquals(response.status, 200);
        const body = contentOf(client, await response.json());
        assertEquals(body, { text: `${long}\ud800"`, input: JSON.stringify(input) }, `${upstream} for ${client}`);
      }
    }
  }
});

Deno.test("long arguments of an answer that are not an object are wrapped", async () => {
  const text = `{"a":"${HUGE}`;
  const body: JsonObject = answerOf("chat", { input: {}, text: "x" });
  const call = { id: "c", type: "function", function: { name: "f", arguments: text } };
  const choices = [{ index: 0, message: { role: "assistant", tool_calls: [call] }, finish_reason: "tool_calls" }];
  await using server = startUpstream(() => json({ ...body, choices }));
  await using gateway = startGateway(oneModel("chat", server.url));
  const { content } = await (await gateway.ask("messages", prompt("messages"))).json();
  assertEquals(content.map(({ input }: { input: unknown }) => input), [{ _raw: text }]);
});

/** A whole answer of an upstream with a text and a call. */
function answerOf(
  protocol: "chat" | "messages" | "gemini",
  { input, text }: { input: JsonObject; text: string },
): JsonObject {
  switch (protocol) {
    case "gemini":
      return {
        candidates: [{
          content: { parts: [{ text }, { functionCall: { name: "f", args: input } }] },
          finishReason: "STOP",
        }],
        usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 2, totalTokenCount: 9 },
      };
    case "messages":
      return {
        ...WHOLE.messages,
        content: [{ type: "text", text }, { type: "tool_use", id: "c", name: "f", input }],
        stop_reason: "tool_use",
      };
    case "chat": {
      const call = { id: "c", type: "function", function: { name: "f", arguments: JSON.stringify(input) } };
      const message = { role: "assistant", content: text, tool_calls: [call] };
      return { ...WHOLE.chat, choices: [{ index: 0, message, finish_reason: "tool_calls" }] };
    }
  }
}

/** The compared parts of an answer to a client, in one of the protocols. */
interface ClientAnswer {
  choices?: { message: { content: string; tool_calls: { function: { arguments: string } }[] } }[];
  content?: { text?: string; input?: JsonObject }[];
  output?: { content?: { text: string }[]; arguments?: string }[];
}

function contentOf(
  client: Exclude<Protocol, "gemini">,
  { choices, content, output }: ClientAnswer,
): { text: string | undefined; input: string | undefined } {
  switch (client) {
    case "chat":
      return { text: choices?.[0]?.message.content, input: choices?.[0]?.message.tool_calls[0]?.function.arguments };
    case "messages":
      return { text: content?.[0]?.text, input: JSON.stringify(content?.[1]?.input) };
    case "responses":
      return { text: output?.[0]?.content?.[0]?.text, input: output?.[1]?.arguments };
  }
}
