/** Laws of relays: everything passes unchanged, except for each protocol's documented edits. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import { UnsupportedParameters } from "../../lib/protocols/canonical/unsupported_parameters.ts";
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import {
  isObject,
  type Json,
  type JsonObject,
  type ObjectText,
  parseDocument,
  parseJson,
  scanMembers,
} from "../../lib/json/mod.ts";
import type { Frame } from "../../lib/protocols/codec.ts";
import { RelayTranslator } from "../../lib/upstreams/answer_feeds.ts";
import { RELAYS, UPSTREAM_CODECS } from "../../lib/upstreams/protocols.ts";
import { joinPieces } from "../../lib/http1/mod.ts";
import { relayBody, replyWithModel } from "../../lib/upstreams/relay_attempt.ts";
import type { Step } from "../../lib/upstreams/upstream.ts";
import { CLIENTS, PROTOCOLS, responseContextOf, rowOf } from "../golden/crossings.ts";
import { readEvents, RECORDED, type RecordedStream } from "../golden/recorded.ts";
import { replyOf } from "../golden/round_trips.ts";
import { functionOf } from "../../lib/protocols/chat/call_finder.ts";
import { objectsOf } from "../../lib/protocols/members.ts";

/** The recorded streams without frames that are not objects, such as marks: these never reach a relay. */
const STREAMS = RECORDED.map((recorded) => ({
  ...recorded,
  frames: recorded.frames.filter(({ data }) => data.trimStart().startsWith("{")),
}));

/** Returns frames without what a relay may correct: indices, types and ids of calls, and a finish because of calls. */
function withoutCallFixes(frames: readonly Frame[]): Frame[] {
  const fixes =
    /,"index":\d+|"index":\d+,|,"type":"(?:function|custom)"|"type":"(?:function|custom)",|,"id":"call_r1_\d+"/g;
  return frames.map(({ data, ...others }) => ({
    ...others,
    data: data.includes('"tool_calls":')
      ? data.replace(fixes, "")
      : data.replace('reason":"tool_calls"', 'reason":"stop"'),
  }));
}

/** Objects with the model in the frames of each protocol. */
const HOLDERS: Readonly<Record<Protocol, readonly string[]>> = {
  chat: [],
  responses: ["response"],
  messages: ["message"],
  gemini: [],
};

/** Chunks of Mistral, whose content is in parts, as clients get them. */
const IN_PARTS: ReadonlyMap<string, string> = new Map([
  ['"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]}]', '"content":"","reasoning_content":"Hm"'],
  ['"content":[{"type":"thinking","thinking":[{"type":"text","text":"m."}]}]', '"content":"","reasoning_content":"m."'],
  ['"content":[{"type":"text","text":"Hel"}]', '"content":"Hel"'],
]);

/** Returns a frame with the public model id, and with a text in place of content in parts. */
function renamed({ event, data }: Frame, protocol: Protocol): Frame {
  for (const [parts, text] of IN_PARTS) {
    if (data.includes(parts)) return renamed({ data: data.replace(parts, text) }, protocol);
  }
  const path = HOLDERS[protocol];
  if (protocol === "gemini") {
    return { data: data.replace(/"modelVersion":( ?)"[^"]*"/, '"modelVersion":$1"acme/thinker"') };
  }
  if (!data.startsWith("{") || !hasModel(data, path)) return { ...(event !== undefined && { event }), data };
  // In recorded frames the first match is the model.
  return { ...(event !== undefined && { event }), data: data.replace(/"model":"[^"]*"/, '"model":"acme/thinker"') };
}

function hasModel(data: string, path: readonly string[]): boolean {
  let value: unknown;
  try {
    value = path.reduce((value: unknown, name) => isObject(value) ? value[name] : undefined, parseJson(data));
  } catch {
    return false;
  }
  return isObject(value) && value.model !== undefined;
}

Deno.test("relayed frames are unchanged except for the model id and content in parts", () => {
  let passed = 0;
  for (const { protocol, name, frames } of STREAMS) {
    const machine = RELAYS[protocol].machine(responseContextOf(protocol));
    let starts = 0;
    if (protocol === "gemini") {
      // The last piece is held back until the end.
      const out = [...frames.flatMap((frame) => machine.push(frame)), ...machine.end()];
      assertEquals(out, frames.map((frame) => renamed(frame, protocol)), name);
      passed += out.length;
      continue;
    }
    for (const frame of frames) {
      const out = machine.push(frame);
      // Clients accept one start and one end mark, so repeated ones are dropped.
      if (frame.event === "message_start") starts++;
      const isDropped = (starts > 1 && frame.event === "message_start") || frame.event === "keepalive";
      const expected = isDropped ? [] : [renamed(frame, protocol)];
      assertEquals(withoutCallFixes(out), withoutCallFixes(expected), `${protocol}: ${name}`);
      passed += out.length;
    }
  }
  assert(passed > 500, `${passed} frames passed`);
});

Deno.test("relayed chat streams hide usage that the client did not ask for, and nothing else", () => {
  const request = { model: "acme/thinker", messages: [{ role: "user", content: "Hi" }], stream: true };
  for (const { protocol, name, frames } of STREAMS) {
    if (protocol !== "chat") continue;
    const machine = RELAYS.chat.machine(responseContextOf("chat", request));
    for (const frame of frames) {
      const [out] = machine.push(frame);
      const sent = objectOf(frame.data);
      if (sent === undefined || `${frame.data}${out?.data}`.includes('"tool_calls"')) continue;
      const isUsage = Array.isArray(sent.choices) && sent.choices.length === 0 && isObject(sent.usage);
      assertEquals(out === undefined, isUsage, name);
      if (out === undefined) continue;
      const { usage: _, ...others } = objectOf(renamed(frame, protocol).data) ?? sent;
      const model = sent.model === undefined ? {} : { model: "acme/thinker" };
      assertEquals(objectOf(out.data), objectOf(JSON.stringify({ ...others, ...model })), name);
    }
  }
});

function objectOf(data: string): JsonObject | undefined {
  try {
    const value = parseJson(data);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Plays frames one by one through the relay until it ends. */
function play({ protocol, frames }: RecordedStream & { protocol: Protocol }): Frame[] {
  const reader = UPSTREAM_CODECS[protocol].reader({ issuer: "x" });
  const translator = new RelayTranslator(reader, RELAYS[protocol].machine(responseContextOf(protocol)));
  const steps: Step[] = [];
  for (const frame of frames) {
    steps.push(translator.push([frame], false));
    if (translator.isOver) break;
  }
  if (!translator.isOver) steps.push(translator.push([], true));
  return steps.flatMap(({ frames }) => frames);
}

const ENDS: Readonly<Record<Protocol, RegExp>> = {
  chat: /^\[DONE\]$|^\{"error"/,
  responses: /^\[DONE\]$/,
  messages: /"type": ?"(?:message_stop|error)"/,
  gemini: /"finishReason"|^\{"error"|"blockReason"/,
};

/** Returns the name and the arguments of each call, found by its index as clients do. SDKs need a type at its begin. */
function callsIn(frames: readonly Frame[]): string[][] {
  const calls: { name: string; input: string }[] = [];
  for (const { data } of frames) {
    for (const choice of objectsOf(objectOf(data)?.choices)) {
      for (const entry of isObject(choice.delta) ? objectsOf(choice.delta.tool_calls) : []) {
        const inner = functionOf(entry);
        const input = inner.arguments ?? inner.input ?? "";
        if (calls[Number(entry.index)] === undefined) assertMatch(String(entry.type), /^(?:function|custom)$/);
        const call = calls[Number(entry.index)] ??= { name: "", input: "" };
        call.name ||= String(inner.name ?? "");
        call.input += typeof input === "string" ? input : JSON.stringify(input);
      }
    }
  }
  return calls.map(({ name, input }) => [name, input.trim() || "{}"]);
}

Deno.test("relayed chat streams number the calls as the gateway reads them", () => {
  let calls = 0;
  for (const recorded of RECORDED) {
    const reply = recorded.protocol === "chat" ? replyOf(readEvents(recorded)) : undefined;
    if (reply === undefined || recorded.frames.some(({ data }) => data.includes('"function_call":{'))) continue;
    const sent = callsIn(play(recorded));
    const read = reply.blocks.flatMap((block) => block.type === "tool_call" ? [[block.name, block.arguments]] : []);
    assertEquals(sent.filter(([name]) => name !== ""), read, recorded.name);
    calls += read.length;
  }
  assert(calls > 20, `${calls} calls`);
});

Deno.test("a relayed chat stream keeps the calls of as many answers as a request can ask for", () => {
  const machine = RELAYS.chat.machine(responseContextOf("chat"));
  const delta = { tool_calls: [{ function: { name: "f" } }] };
  const sent = Array.from(
    { length: 200 },
    (_, index) => machine.push({ data: JSON.stringify({ choices: [{ index, delta }] }) }),
  ).flat();
  assertEquals([sent.length, sent.filter(({ data }) => data.includes('"index":0,"type":"function"}')).length], [
    200,
    128,
  ]);
});

Deno.test("a relayed chat answer with calls does not end like one without, unless the client named the tool", () => {
  const call = { index: 0, id: "c", type: "function", function: { name: "a", arguments: "{}" } };
  const end = { index: 0, delta: {}, finish_reason: "stop" };
  const reasonsOf = (calls: Json[], request: JsonObject = {}) => {
    const context = { ...responseContextOf("chat"), request };
    const machine = RELAYS.chat.machine(context);
    const choices = [{ index: 1, delta: {}, finish_reason: null }, { index: 0, delta: { tool_calls: calls } }];
    machine.push({ data: JSON.stringify({ choices }) });
    const streamed = machine.push({ data: JSON.stringify({ choices: [end, { ...end, index: 1 }] }) });
    const message = { content: null, tool_calls: calls };
    const whole = JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }] });
    const text = `${streamed[0]?.data} ${RELAYS.chat.editReply?.(scanMembers(whole), context).text}`;
    return Array.from(text.matchAll(/"finish_reason":"(\w+)"/g), ([, reason]) => reason);
  };
  assertEquals(reasonsOf([call]), ["tool_calls", "stop", "tool_calls"]);
  assertEquals(reasonsOf([]), ["stop", "stop", "stop"]);
  const named = { type: "function", function: { name: "a" } };
  assertEquals(reasonsOf([call], { tool_choice: named }), ["stop", "stop", "stop"]);
});

Deno.test("relayed chat answers give each call an id, unless a later piece may have it", () => {
  const machine = RELAYS.chat.machine(responseContextOf("chat"));
  const idOf = (entry: JsonObject) => {
    const [frame] = machine.push({ data: JSON.stringify({ choices: [{ delta: { tool_calls: [entry] } }] }) });
    return /"id":"([^"]*)"/.exec(frame?.data ?? "")?.[1];
  };
  assertEquals(idOf({ id: "", function: { name: "a", arguments: "{}" } }), "call_r1_0");
  assertEquals(idOf({ id: "own", function: { name: "a", arguments: "{}" } }), "own");
  assertEquals(idOf({ index: 7, function: { name: "a", arguments: "{" } }), undefined);
  assertEquals(idOf({ index: 7, id: "late", function: { arguments: "}" } }), "late");
  const calls = [{ function: { name: "a", arguments: "{}" } }, { id: "own", custom: { name: "b", input: "" } }];
  const whole = scanMembers(JSON.stringify({ choices: [{ index: 0, message: { tool_calls: calls } }] }));
  const edited = parseJson(RELAYS.chat.editReply?.(whole, responseContextOf("chat")).text ?? "");
  assertEquals(edited, {
    choices: [{
      index: 0,
      message: {
        tool_calls: [{ ...calls[0], type: "function", id: "call_r1_0" }, { ...calls[1], type: "custom" }],
      },
    }],
  });
});

Deno.test("a relayed messages stream has usage at its start, without which SDKs fail", () => {
  for (const usage of ["", ',"usage":null']) {
    const [frame] = RELAYS.messages.machine(responseContextOf("messages")).push({
      event: "message_start",
      data: `{"type":"message_start","message":{"id":"msg_1"${usage}}}`,
    });
    const wanted = '{"id":"msg_1","usage":{"input_tokens":0,"output_tokens":0}}';
    assertEquals(frame?.data, `{"type":"message_start","message":${wanted}}`);
  }
});

Deno.test("a relayed responses stream has no events keepalive, at which some clients fail", () => {
  const { push } = RELAYS.responses.machine(responseContextOf("responses"));
  const delta = { data: '{"type":"response.output_text.delta","sequence_number":4,"delta":"keepalive"}' };
  const data = '{"type":"keepalive","sequence_number":3}';
  assertEquals([{ event: "keepalive", data }, { data }, delta].flatMap(push), [delta]);
});

Deno.test("a relayed stream has exactly one end, even if the upstream omits it", () => {
  for (const recorded of STREAMS) {
    const frames = play(recorded);
    const { protocol, name } = recorded;
    // Some models repeat the finish reason on every piece.
    if (name === "stop_on_every_piece") continue;
    const ends = frames.filter(({ data }) => ENDS[protocol].test(data));
    const last = frames.findLast(({ data }) => protocol !== "gemini" || !data.startsWith('{"usageMetadata"'));
    assertEquals([ends.length, ends[0]], [1, last], `${protocol}: ${name}`);
    if (protocol === "messages") assert(frames.every(({ event }) => event !== undefined), name);
  }
});

Deno.test("a cut relayed stream ends with an error", () => {
  const failed = {
    chat: /^\{"error"/,
    responses: /"type":"response\.failed"/,
    messages: /^\{"type":"error"/,
    gemini: /^\{"error"/,
  };
  for (const recorded of STREAMS) {
    const { protocol, name } = recorded;
    for (let length = 0; length < recorded.frames.length; length++) {
      const cut = { ...recorded, frames: recorded.frames.slice(0, length) };
      const reader = UPSTREAM_CODECS[protocol].reader({ issuer: "x" });
      const events = [...cut.frames.flatMap((frame) => reader.push(frame)), ...reader.end()];
      if (events.at(-1)?.type !== "error") continue;
      const frames = play(cut).filter(({ data }) => data !== "[DONE]" || protocol !== "responses");
      assert(failed[protocol].test(frames.at(-1)?.data ?? ""), `${protocol}: ${name} after ${length}`);
      assertEquals(frames.filter(({ data }) => data === "[DONE]" || data.includes('"message_stop"')), [], name);
    }
  }
});

/** Returns the text of a request with everything that a parser would lose. */
function oddText(body: JsonObject): string {
  const members = Object.entries(body).map(([name, value]) =>
    `\n\t${JSON.stringify(name)} :  ${JSON.stringify(value)}`
  );
  return `{ "x_first":{"z":1.0,"a":12345678901234567890,"e":1E+2},${members.join(" ,")}\r\n , "x\\u005flast" : [ ] }\n`;
}

const MINIMAL: Readonly<Record<Protocol, JsonObject>> = {
  chat: { messages: [{ role: "user", content: "a\u2028 \u{1f44b}", x: 1 }], model: "acme/thinker", vendor: [{}] },
  responses: { input: [{ role: "user", content: "a", x: 1 }], model: "acme/thinker", background: false },
  messages: { messages: [{ role: "user", content: "a", x: 1 }], model: "acme/thinker", max_tokens: 7, thread: null },
  gemini: { contents: [{ role: "user", parts: [{ text: "a", x: 1 }] }], labels: { a: "1" } },
};

async function relayedBody(protocol: Protocol, text: string): Promise<string> {
  const parsed = parseJson(text);
  assert(isObject(parsed));
  // Gemini has it in the URL.
  const request = { ...parsed, model: "acme/thinker" };
  const prompt = CLIENTS[protocol].readPrompt(request);
  const responseContext = {
    ...responseContextOf(protocol, request),
    prompt,
    get request() {
      // With a limit for a budget, this would parse the whole body.
      assert(protocol !== "chat", "a chat body is edited as text");
      return request;
    },
  };
  const relayed = (body: ObjectText) =>
    relayBody({
      prompt,
      client: { responseContext, body, header: () => null },
      model: rowOf("acme/thinker"),
      target: { upstream: "u", model: "model-x", priority: 0, weight: 1 },
      countInput: () => Promise.resolve(1),
      signal: new AbortController().signal,
      dropped: new UnsupportedParameters(),
    }, { relay: RELAYS[protocol], quirk: {} });
  const body = relayed(scanMembers(text));
  const pieces = relayed(await parseDocument(new TextEncoder().encode(text)));
  assert(typeof body === "string" && typeof pieces !== "string");
  assertEquals(new TextDecoder().decode(joinPieces(pieces)), body, "as text and as bytes");
  return body;
}

Deno.test("a relayed body is unchanged except for the model id", async () => {
  for (const protocol of PROTOCOLS) {
    const text = oddText(MINIMAL[protocol]);
    assertEquals(await relayedBody(protocol, text), text.replace('"acme/thinker"', '"model-x"'), protocol);
  }
});

Deno.test("gateway-only members are removed from a relayed body, and chat usage is always requested", async () => {
  for (const protocol of PROTOCOLS) {
    const members = JSON.stringify(MINIMAL[protocol]).slice(1, -1);
    const text = `{"provider":{"order":["a"]}, ${members} ,"models":["a/b"],\n"stream":true }`;
    const usageOption = protocol === "chat" ? ',"stream_options":{"include_usage":true}' : "";
    const stream = protocol === "gemini" ? " " : ',\n"stream":true ';
    const expected = `{ ${members.replace("acme/thinker", "model-x")} ${stream}${usageOption}}`;
    assertEquals(await relayedBody(protocol, text), expected, protocol);
  }
});

Deno.test("members that ask for the default are removed from a relayed chat body", async () => {
  const kept = `"model":"model-x", "messages": [${JSON.stringify({ role: "user", content: "a" })}]`;
  const asked = '"max_tokens": -1, "max_completion_tokens": -1, "reasoning_effort": "default", ';
  assertEquals(await relayedBody("chat", `{${asked}${kept}}`), `{ ${kept}}`);
  assertEquals(await relayedBody("chat", `{${kept}, "max_tokens":5}`), `{${kept}, "max_tokens":5}`);
});

Deno.test("a relayed whole answer is unchanged except for the model id", () => {
  for (const protocol of PROTOCOLS) {
    const relay = RELAYS[protocol];
    const { replyModel = "model" } = relay;
    const text = oddText({ id: "x", [replyModel]: "real", n: [{ model: "inner" }] });
    assertEquals(
      replyWithModel(scanMembers(text), responseContextOf(protocol).model, relay),
      text.replace('"real"', '"acme/thinker"'),
      protocol,
    );
  }
});

Deno.test("a relayed whole answer has text in place of content in parts, unless a part has another kind", () => {
  const thinking = { type: "thinking", thinking: [{ type: "text", text: "Hm" }, { type: "text", text: "m." }] };
  const text = { type: "text", text: "Hello" };
  const reference = { type: "reference", reference_ids: [1] };
  const answerOf = (messages: JsonObject[]) =>
    JSON.stringify({
      choices: messages.map((message, index) => ({ index, message, logprobs: { content: [], top: 1 } })),
    });
  const edited = (messages: JsonObject[]) =>
    RELAYS.chat.editReply?.(scanMembers(answerOf(messages)), responseContextOf("chat")).text;
  assertEquals(
    edited([{ role: "assistant", content: [thinking, text] }, { content: [text], n: 1 }, { content: "" }]),
    answerOf([
      { role: "assistant", content: "Hello", reasoning_content: "Hmm." },
      { content: "Hello", n: 1 },
      { content: "" },
    ]),
  );
  for (const content of [[text, reference], ["Hello"], {}, null, "Hi"]) {
    assertEquals(edited([{ content }]), answerOf([{ content }]));
  }
});
