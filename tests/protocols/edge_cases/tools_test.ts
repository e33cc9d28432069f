import { assert, assertEquals, assertThrows } from "@std/assert";
import { GatewayError } from "../../../lib/errors.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { RELAYS } from "../../../lib/upstreams/protocols.ts";
import { crossRequest } from "../../golden/requests.ts";
import { echoOf, PROTOCOLS } from "../../golden/crossings.ts";
import {
  block,
  chunk,
  collected,
  events,
  framesOf,
  get,
  list,
  lost,
  message,
  REQUIRED,
  sent,
  streamed,
} from "./play.ts";

const USER = { role: "user", content: "Go" };
const SAID = { role: "user", parts: [{ text: "Hi" }] };

/** A tool of a chat request, of a messages request. */
const chatTool = (name: string, parameters?: JsonObject) => ({
  type: "function",
  function: { name, ...(parameters && { parameters }) },
});
const messagesTool = (name: string, input_schema: JsonObject = { type: "object" }) => ({ name, input_schema });
const call = (id: string, name: string, args = "{}") => ({
  id,
  type: "function",
  function: { name, arguments: args },
});
const NOW = call("call_1", "now");

/** A call without arguments as each upstream streams it: no piece at all, or an empty or blank one. */
const BARE_CALLS = {
  chat: [
    [chunk({ tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "now", arguments: "" } }] })],
    [chunk({ tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "now" } }] })],
    [
      chunk({ tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "now", arguments: " " } }] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: "" } }] }),
    ],
  ].map((chunks) => [...chunks, chunk({}, "tool_calls"), "[DONE]"]),
  messages: [
    block(0, { type: "tool_use", id: "call_1", name: "now", input: {} }),
    block(0, { type: "tool_use", id: "call_1", name: "now", input: {} }, {
      type: "input_json_delta",
      partial_json: "",
    }),
  ].map((blocks) => message(blocks, "tool_use")),
};

Deno.test("a call without arguments has an empty object for every client, streamed and whole", () => {
  for (const [from, streams] of [["chat", BARE_CALLS.chat], ["messages", BARE_CALLS.messages]] as const) {
    for (const stream of streams) {
      assertEquals(get(collected(from, stream, "chat"), "choices", 0, "message", "tool_calls"), [NOW]);
      assertEquals(get(collected(from, stream, "messages"), "content", 0, "input"), {});
      assertEquals(get(collected(from, stream, "responses"), "output", 0, "arguments"), "{}");
      const pieces = streamed(from, stream, "messages").flatMap((event) => get(event, "delta", "partial_json") ?? []);
      assertEquals(pieces.join(""), "{}");
      const done = streamed(from, stream, "responses").find((event) =>
        get(event, "type") === "response.function_call_arguments.done"
      );
      assertEquals(get(done ?? null, "arguments"), "{}");
    }
  }
});

Deno.test("an answer with calls finishes with tool_use, whatever the upstream's reason", () => {
  for (const reason of ["stop", "", "end_turn"]) {
    const stream = [chunk({ tool_calls: [{ index: 0, ...NOW }] }), chunk({}, reason), chunk({}, "stop"), "[DONE]"];
    assertEquals(get(collected("chat", stream, "chat"), "choices", 0, "finish_reason"), "tool_calls");
    assertEquals(get(collected("chat", stream, "messages"), "stop_reason"), "tool_use");
  }
  const stream = message(block(0, { type: "tool_use", id: "t1", name: "now", input: {} }), "end_turn");
  assertEquals(get(collected("messages", stream, "chat"), "choices", 0, "finish_reason"), "tool_calls");
});

Deno.test("an answer without a usable call does not finish with tool_use", () => {
  const nameless = { index: 0, id: "call_1", type: "function", function: { name: "", arguments: "{}" } };
  for (const delta of [{}, { tool_calls: [nameless] }, { tool_calls: [] }]) {
    const stream = [chunk({ content: "Hm." }), chunk(delta), chunk({}, "tool_calls"), "[DONE]"];
    const answer = collected("chat", stream, "messages");
    assertEquals([get(answer, "stop_reason"), list(answer.content).length], ["end_turn", 1]);
    assertEquals(get(collected("chat", stream, "chat"), "choices", 0, "finish_reason"), "stop");
  }
});

Deno.test("parallel calls are separate, with indices that count only calls", () => {
  const shared = message([
    ...block(0, { type: "text", text: "" }, { type: "text_delta", text: "Both" }),
    { type: "content_block_start", index: 1, content_block: { type: "tool_use", id: "t1", name: "a", input: {} } },
    { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: '{"x":1}' } },
    { type: "content_block_stop", index: 1 },
    ...block(1, { type: "tool_use", id: "t2", name: "b", input: {} }, {
      type: "input_json_delta",
      partial_json: '{"y":2}',
    }),
  ], "tool_use");
  const calls = streamed("messages", shared, "chat").flatMap((event) =>
    list(get(event, "choices", 0, "delta", "tool_calls"))
  );
  assertEquals(calls.map((call) => [get(call, "index"), get(call, "id") ?? null, get(call, "function", "arguments")]), [
    [0, "t1", ""],
    [0, null, '{"x":1}'],
    [1, "t2", ""],
    [1, null, '{"y":2}'],
  ]);
});

Deno.test("a delta for a block that was never opened is not added to another", () => {
  const stream = message([
    { type: "content_block_delta", index: 3, delta: { type: "input_json_delta", partial_json: "{}" } },
  ]);
  assertEquals(get(streamed("messages", stream, "messages").at(-1), "type"), "error");
});

Deno.test("empty text beside calls is dropped", () => {
  for (const content of ["", null, " \n"]) {
    const body = sent("chat", "messages", {
      messages: [USER, { role: "assistant", content, tool_calls: [NOW] }, {
        role: "tool",
        tool_call_id: "call_1",
        content: "12:00",
      }],
      tools: [chatTool("now")],
    });
    assertEquals(list(get(body, "messages", 1, "content")).map((part) => get(part, "type")), ["tool_use"]);
  }
  const back = sent("messages", "chat", {
    messages: [USER, { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "now", input: {} }] }, {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "t1", content: "12:00" }],
    }],
    tools: [messagesTool("now")],
  });
  assertEquals(get(back, "messages", 1, "content"), null);
});

Deno.test("results of parallel calls are one message, in call order, first", () => {
  const body = sent("chat", "messages", {
    messages: [
      USER,
      { role: "assistant", content: null, tool_calls: [call("call_1", "now"), call("call_2", "now")] },
      { role: "tool", tool_call_id: "call_2", content: "two" },
      { role: "user", content: "Hurry" },
      { role: "tool", tool_call_id: "call_1", content: "one" },
    ],
    tools: [chatTool("now")],
  });
  assertEquals(list(body.messages).length, 3);
  assertEquals(
    list(get(body, "messages", 2, "content")).map((part) => get(part, "tool_use_id") ?? get(part, "text")),
    ["call_1", "call_2", "Hurry"],
  );
});

Deno.test("a call without index, type and id is normalized", () => {
  const stream = [
    chunk({ role: "assistant", tool_calls: [{ function: { name: "now", arguments: "{}" } }] }),
    chunk({}, "stop"),
  ];
  const [first] = list(get(streamed("chat", stream, "chat")[1], "choices", 0, "delta", "tool_calls"));
  assertEquals([get(first, "index"), get(first, "type"), get(first, "function", "name")], [0, "function", "now"]);
  assert(/^call_/.test(String(get(first, "id"))));
  assertEquals(get(collected("chat", stream, "messages"), "stop_reason"), "tool_use");
});

Deno.test("a signature beside a call keeps its position", () => {
  const signed = { ...NOW, index: 0, extra_content: { google: { thought_signature: "c2ln" } } };
  const [frame] = framesOf([chunk({ tool_calls: [signed] })]);
  assert(frame !== undefined);
  assertEquals(RELAYS.chat.machine(echoOf("chat")).push(frame), [frame]);
  const { body } = crossRequest("chat", "chat", {
    model: "acme/thinker",
    messages: [USER, {
      role: "assistant",
      content: null,
      tool_calls: [{ ...NOW, extra_content: signed.extra_content }],
    }, {
      role: "tool",
      tool_call_id: "call_1",
      content: "12:00",
    }],
    tools: [chatTool("now")],
  });
  assertEquals(get(body, "messages", 1, "tool_calls", 0, "extra_content"), signed.extra_content);
});

Deno.test("a signature beside a call returns through every client, to its issuer only", () => {
  const signed = { ...NOW, extra_content: { google: { thought_signature: "c2ln" } } };
  const stream = [
    chunk({ tool_calls: [{ index: 0, ...signed }, { index: 1, ...call("call_2", "now") }] }),
    chunk({}, "stop"),
  ];
  const results = ["call_1", "call_2"];
  const requests: Record<string, JsonObject> = {
    chat: {
      messages: [
        USER,
        get(collected("chat", stream, "chat"), "choices", 0, "message") ?? null,
        ...results.map((id) => ({ role: "tool", tool_call_id: id, content: "12:00" })),
      ],
      tools: [chatTool("now")],
    },
    responses: {
      input: [
        USER,
        ...list(collected("chat", stream, "responses").output),
        ...results.map((id) => ({ type: "function_call_output", call_id: id, output: "12:00" })),
      ],
      tools: [{ type: "function", name: "now" }],
    },
    messages: {
      messages: [USER, { role: "assistant", content: collected("chat", stream, "messages").content }, {
        role: "user",
        content: results.map((id) => ({ type: "tool_result", tool_use_id: id, content: "12:00" })),
      }],
      tools: [messagesTool("now")],
    },
    gemini: {
      contents: [SAID, get(collected("chat", stream, "gemini"), "candidates", 0, "content") ?? null, {
        role: "user",
        parts: results.map((id) => ({ functionResponse: { id, name: "now", response: { output: "12:00" } } })),
      }],
      tools: [{ functionDeclarations: [{ name: "now" }] }],
    },
  };
  for (const client of PROTOCOLS) {
    const body = sent(client, "chat", requests[client] ?? {});
    assertEquals(get(body, "messages", 1, "tool_calls"), [signed, call("call_2", "now")], client);
    for (const to of ["messages", "responses", "gemini", "deepseek"]) {
      assert(!JSON.stringify(sent(client, to, requests[client] ?? {})).includes("c2ln"), `${client} to ${to}`);
    }
  }
});

Deno.test("a signature returns with its call through chat clients that keep nothing else", () => {
  const part = { functionCall: { id: "call_1", name: "now", args: {} }, thoughtSignature: "c2ln" };
  const stream = [{ candidates: [{ content: { role: "model", parts: [part] }, finishReason: "STOP", index: 0 }] }];
  const opened = streamed("gemini", stream, "chat").flatMap((event) =>
    list(get(event, "choices", 0, "delta", "tool_calls"))
  ).filter((entry) => get(entry, "id") !== undefined);
  const [whole] = list(get(collected("gemini", stream, "chat"), "choices", 0, "message", "tool_calls"));
  const ofGateway = { ...NOW, extra_content: get(whole ?? null, "extra_content") ?? null };
  assertEquals(opened.map((entry) => get(entry, "extra_content")), [ofGateway.extra_content]);
  // Clients also bring conversations that began at Google's OpenAI-compatible endpoint.
  const ofGoogle = { ...NOW, extra_content: { google: { thought_signature: "c2ln" } } };
  for (const call of [ofGateway, ofGoogle]) {
    const request = {
      messages: [USER, { role: "assistant", content: null, tool_calls: [call] }, {
        role: "tool",
        tool_call_id: "call_1",
        content: "12:00",
      }],
      tools: [chatTool("now")],
    };
    assertEquals(get(sent("chat", "gemini", request), "contents", 1, "parts"), [part]);
    assertEquals(lost("chat", "gemini", request), []);
    for (const to of ["messages", "responses"]) {
      assert(!JSON.stringify(sent("chat", to, request)).includes("c2ln"), to);
      const [name = ""] = lost("chat", to, request);
      assert(name.endsWith("extra_content"), `${to}: ${name}`);
    }
  }
});

Deno.test("indices that restart with every call are separate calls", () => {
  const stream = [
    chunk({ tool_calls: [{ index: 0, ...call("call_1", "a", '{"x":1}') }] }),
    chunk({ tool_calls: [{ index: 0, ...call("call_2", "b", '{"y":2}') }] }),
    chunk({}, "tool_calls"),
  ];
  const calls = list(get(collected("chat", stream, "chat"), "choices", 0, "message", "tool_calls"));
  assertEquals(calls, [call("call_1", "a", '{"x":1}'), call("call_2", "b", '{"y":2}')]);
  const indices = streamed("chat", stream, "chat").flatMap((event) =>
    list(get(event, "choices", 0, "delta", "tool_calls")).map((call) => get(call, "index") ?? null)
  );
  assertEquals([...new Set(indices)], [0, 1]);
});

Deno.test("illegal call ids become legal, equal for call and result, and distinct", () => {
  const ids = ["functions.read:0", "functions.read:1", "x".repeat(150), "y".repeat(150)];
  const turn = {
    messages: [
      USER,
      { role: "assistant", content: null, tool_calls: ids.map((id) => call(id, "now")) },
      ...ids.map((id) => ({ role: "tool", tool_call_id: id, content: id.slice(0, 20) })),
    ],
    tools: [chatTool("now")],
  };
  const body = sent("chat", "messages", turn);
  const calls = list(get(body, "messages", 1, "content")).map((part) => String(get(part, "id")));
  const results = list(get(body, "messages", 2, "content")).map((part) => String(get(part, "tool_use_id")));
  assertEquals(results, calls);
  assertEquals(new Set(calls).size, ids.length);
  assert(calls.every((id) => /^[A-Za-z0-9_-]{1,128}$/.test(id)));
  assertEquals(JSON.stringify(sent("chat", "messages", turn)), JSON.stringify(body));
  const nine = sent("chat", "mistral", turn);
  const short = list(get(nine, "messages", 1, "tool_calls")).map((call) => String(get(call, "id")));
  assertEquals(list(nine.messages).flatMap((message) => get(message, "tool_call_id") ?? []), short);
  assert(new Set(short).size === ids.length && short.every((id) => /^[A-Za-z0-9]{9}$/.test(id)), String(short));
  const kept = sent("chat", "messages", { ...turn, messages: [USER, { role: "assistant", tool_calls: [NOW] }] });
  assertEquals(get(kept, "messages", 1, "content", 0, "id"), "call_1");
});

Deno.test("long tool names are shortened by a hash everywhere, and restored", () => {
  const name = `mcp__server__${"x".repeat(80)}`;
  const other = `${name}y`;
  const { body, restore } = crossRequest("messages", "chat", {
    ...REQUIRED.messages,
    messages: [USER, { role: "assistant", content: [{ type: "tool_use", id: "t1", name, input: {} }] }, {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "t1", content: "a" }],
    }],
    tools: [messagesTool(name), messagesTool(other)],
    tool_choice: { type: "tool", name },
  });
  const wire = String(get(body, "tools", 0, "function", "name"));
  assert(wire.length <= 64 && wire !== get(body, "tools", 1, "function", "name"));
  assertEquals(get(body, "tool_choice", "function", "name"), wire);
  assertEquals(get(body, "messages", 1, "tool_calls", 0, "function", "name"), wire);
  const machine = restore();
  const back = events("chat", [chunk({ tool_calls: [{ index: 0, ...call("call_1", wire) }] }), chunk({}, "stop")])
    .flatMap((event) => machine.push(event));
  const opened = back.flatMap((event) =>
    event.type === "open" && event.block.type === "tool_call" ? [event.block.name] : []
  );
  assertEquals(opened, [name]);
});

Deno.test("an argument name that the vendor refuses is reported with its tool", () => {
  const properties = { "user name": { type: "string" } };
  const tools = [chatTool("fine"), chatTool("odd", { type: "object", properties })];
  const request = (all: JsonObject[]) => ({ messages: [USER], tools: all });
  const error = assertThrows(() => sent("chat", "messages", request(tools)), GatewayError, '"user name"');
  assertEquals([error.kind, error.param], ["invalid", "tools[1]"]);
  assertEquals(list(sent("chat", "responses", request(tools)).tools).length, 2);
  const named = { type: "object", properties: { "user.name-2": { type: "string" } } };
  assertEquals(list(sent("chat", "messages", request([chatTool("even", named)])).tools).length, 1);
});

Deno.test("a schema with branches at its top becomes an object that allows all of them", () => {
  const branches = [
    { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
    { type: "object", properties: { b: { type: "integer" } }, required: ["b"] },
  ];
  const merged = { type: "object", properties: { a: { type: "string" }, b: { type: "integer" } } };
  for (const keyword of ["anyOf", "oneOf"]) {
    const chat = sent("chat", "messages", { messages: [USER], tools: [chatTool("t", { [keyword]: branches })] });
    assertEquals(get(chat, "tools", 0, "input_schema"), merged);
    const tool = messagesTool("t", { type: "object", [keyword]: branches });
    for (const [to, path] of [["chat", ["function", "parameters"]], ["responses", ["parameters"]]] as const) {
      const body = sent("messages", to, { messages: [USER], tools: [tool] });
      assertEquals(get(body, "tools", 0, ...path), merged, to);
    }
  }
});

Deno.test("images in results are passed natively, or follow the last result", () => {
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } };
  const turn = {
    messages: [USER, {
      role: "assistant",
      content: [{ type: "tool_use", id: "t1", name: "shot", input: {} }, {
        type: "tool_use",
        id: "t2",
        name: "shot",
        input: {},
      }],
    }, {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "t1", content: [image] },
        { type: "tool_result", tool_use_id: "t2", content: "no screen" },
        { type: "text", text: "Well?" },
      ],
    }],
    tools: [messagesTool("shot")],
  };
  const chat = sent("messages", "chat", turn);
  assertEquals(list(chat.messages).map((message) => get(message, "role")), [
    "user",
    "assistant",
    "tool",
    "tool",
    "user",
  ]);
  assert(!JSON.stringify(get(chat, "messages", 2)).includes("iVBOR"));
  const url = "data:image/png;base64,iVBORw0KGgo=";
  assert(list(get(chat, "messages", 4, "content")).some((part) => get(part, "image_url", "url") === url));
  const responses = sent("messages", "responses", turn);
  assertEquals(get(responses, "input", 3, "output"), [{ type: "input_image", image_url: url }]);
});

Deno.test("a result without a call becomes user text, and a call without a result gets a placeholder", () => {
  const body = sent("chat", "messages", {
    messages: [
      USER,
      { role: "tool", tool_call_id: "call_0", content: "lost" },
      { role: "assistant", content: null, tool_calls: [NOW] },
      { role: "user", content: "Well?" },
    ],
    tools: [chatTool("now")],
  });
  const text = JSON.stringify(get(body, "messages", 0, "content"));
  assert(text.includes("lost") && !text.includes("tool_result") && !text.includes("call_0"));
  const [result, message] = list(get(body, "messages", 2, "content"));
  assertEquals([get(result, "tool_use_id"), get(result, "is_error"), get(message, "text")], ["call_1", true, "Well?"]);
});

Deno.test("free-form tools become functions upstream and return as free-form tools", () => {
  const { body, restore } = crossRequest("responses", "messages", {
    ...REQUIRED.responses,
    input: "Patch",
    tools: [
      { type: "custom", name: "apply_patch", format: { type: "grammar", syntax: "lark", definition: "start: /.+/" } },
      { type: "namespace", name: "files", tools: [{ type: "function", name: "read", parameters: { type: "object" } }] },
    ],
  });
  assertEquals(get(body, "tools", 0, "input_schema", "required"), ["input"]);
  assert(String(get(body, "tools", 0, "description")).includes("start: /.+/"));
  const machine = restore();
  const back = events(
    "messages",
    message([
      ...block(0, { type: "tool_use", id: "t1", name: "apply_patch", input: {} }, {
        type: "input_json_delta",
        partial_json: '{"input":"*** Begin\\n+a"}',
      }),
      ...block(1, { type: "tool_use", id: "t2", name: String(get(body, "tools", 1, "name")), input: {} }),
    ], "tool_use"),
  ).flatMap((event) => machine.push(event));
  const calls = back.flatMap((event) => event.type === "open" ? [event.block] : []);
  assertEquals(calls, [
    { type: "tool_call", id: "t1", name: "apply_patch", custom: true },
    { type: "tool_call", id: "t2", name: "read", namespace: "files" },
  ]);
  const text = back.flatMap((event) => event.type === "delta" && event.index === 0 ? [event.text] : []).join("");
  assertEquals(text, "*** Begin\n+a");
});

Deno.test("no client gets an empty text block before a call", () => {
  const stream = [
    chunk({ role: "assistant", content: "" }),
    chunk({ content: "" }),
    chunk({ tool_calls: [{ index: 0, ...NOW }] }),
    chunk({}, "tool_calls"),
  ];
  for (const client of PROTOCOLS) {
    const answer = collected("chat", stream, client);
    const parts = {
      chat: get(answer, "choices", 0, "message", "content"),
      responses: answer.output,
      messages: answer.content,
      gemini: get(answer, "candidates", 0, "content", "parts"),
    };
    assertEquals(client === "chat" ? parts.chat : list(parts[client]).length, client === "chat" ? null : 1);
  }
  const starts = streamed("chat", stream, "messages").filter((event) => get(event, "type") === "content_block_start");
  assertEquals(starts.map((event) => get(event, "content_block", "type")), ["tool_use"]);
});
