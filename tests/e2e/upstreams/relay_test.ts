import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { oneModel, startGateway, type TestGateway } from "../../support/gateway.ts";
import { prompt, PROTOCOLS, STREAMED, WHOLE } from "../../upstream/replies.ts";
import { events, json, startUpstream } from "../../upstream/mod.ts";

/** Unusual but legal bodies: the parts that must change are marked, everything else must be relayed byte for byte. */
const BODIES: Readonly<Record<Protocol, [sent: string, passed: string][]>> = {
  chat: [
    [
      '{\r\n\t"temperature" : 1.0, "model":"acme/one","x_future":{"b":1,"a":[1e400,-0,12345678901234567890]},\n' +
      '  "messages":[ {"content":"caf\\u00e9 \\ud83d\\ude00 é","role":"user","x":null} ] ,"seed":9007199254740991 }\n',
      '{\r\n\t"temperature" : 1.0, "model":"real-one","x_future":{"b":1,"a":[1e400,-0,12345678901234567890]},\n' +
      '  "messages":[ {"content":"caf\\u00e9 \\ud83d\\ude00 é","role":"user","x":null} ] ,"seed":9007199254740991 }\n',
    ],
    [
      '{"provider":{"order":["one"]},"models":["acme/one"],"fallbacks":[1.0],"mod\\u0065l":"acme/one","messages":[{"role":"user","content":' +
      '[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}],"stream":false}',
      '{"fallbacks":[1.0],"mod\\u0065l":"real-one","messages":[{"role":"user","content":' +
      '[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}],"stream":false}',
    ],
    [
      '{"model":"acme/one","messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":' +
      '[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\\"id\\": 12345678901234567890}"}}]},' +
      '{"role":"tool","tool_call_id":"call_1","content":"1.0"}],' +
      '"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","x":1.50}}}]}',
      '{"model":"real-one","messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":' +
      '[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\\"id\\": 12345678901234567890}"}}]},' +
      '{"role":"tool","tool_call_id":"call_1","content":"1.0"}],' +
      '"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","x":1.50}}}]}',
    ],
  ],
  responses: [
    [
      '{ "input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA=="},\n' +
      '{"role":"user","content":"a","x":1.0}], "model": "acme/one", "store":false,"x_future":[0.10, 1E5] }',
      '{ "input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA=="},\n' +
      '{"role":"user","content":"a","x":1.0}], "model": "real-one", "store":false,"x_future":[0.10, 1E5] }',
    ],
    [
      '{"input":"a","model":"acme/one","provider":{},"tools":[{"type":"web_search","x":1.0}],"prompt_cache_key":"k"}',
      '{"input":"a","model":"real-one","tools":[{"type":"web_search","x":1.0}],"prompt_cache_key":"k"}',
    ],
  ],
  messages: [
    [
      '{"max_tokens":2048,"thinking":{"type":"enabled","budget_tokens":1024},"system":[{"type":"text","text":"s",' +
      '"cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[{"role":"user","content":"a"},\n {"role":' +
      '"assistant","content":[{"type":"thinking","thinking":"t","signature":"Eq/+="},{"type":"redacted_thinking",' +
      '"data":"Er=="},{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"text","text":"c","cache_control"' +
      ':{"type":"ephemeral"}}]}],"model":"acme/one","context_management":{"edits":[]},"metadata":{"user_id":"u"}}',
      '{"max_tokens":2048,"thinking":{"type":"enabled","budget_tokens":1024},"system":[{"type":"text","text":"s",' +
      '"cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[{"role":"user","content":"a"},\n {"role":' +
      '"assistant","content":[{"type":"thinking","thinking":"t","signature":"Eq/+="},{"type":"redacted_thinking",' +
      '"data":"Er=="},{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"text","text":"c","cache_control"' +
      ':{"type":"ephemeral"}}]}],"model":"real-one","context_management":{"edits":[]},"metadata":{"user_id":"u"}}',
    ],
    [
      '{"model":"acme/one","max_tokens":1.0e2,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":' +
      '[{"type":"tool_use","id":"toolu_1","name":"f","input":{"id":12345678901234567890,"x":1.0}}]},{"role":"user",' +
      '"content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"}]}],"tools":[{"name":"f",' +
      '"input_schema":{"type":"object"},"x_new":true}],"x_future":null}',
      '{"model":"real-one","max_tokens":1.0e2,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":' +
      '[{"type":"tool_use","id":"toolu_1","name":"f","input":{"id":12345678901234567890,"x":1.0}}]},{"role":"user",' +
      '"content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"}]}],"tools":[{"name":"f",' +
      '"input_schema":{"type":"object"},"x_new":true}],"x_future":null}',
    ],
    [
      '{"fallbacks":[{"model":"acme/one"}],"model":"acme/one","max_tokens":9,"messages":[{"role":"user","content":"a"}],' +
      '"models":["acme/one"]}',
      '{"model":"real-one","max_tokens":9,"messages":[{"role":"user","content":"a"}]}',
    ],
  ],
  // The path has the model, which is sent apart.
  gemini: [
    [
      '{\r\n\t"generationConfig" : {"temperature":1.0,"seed":9007199254740991,"x":[1e400,-0]},"x_future":{"b":1.50},\n' +
      ' "contents":[ {"parts":[{"text":"caf\\u00e9 \\ud83d\\ude00 é","x":null}],"role":"user"} ,{"role":"model","parts":' +
      '[{"functionCall":{"name":"f","args":{"id":12345678901234567890}},"thoughtSignature":"Eq/+="}]},{"role":"user",' +
      '"parts":[{"functionResponse":{"name":"f","response":{"output":1.0}}}]}]}\n',
      '{\r\n\t"generationConfig" : {"temperature":1.0,"seed":9007199254740991,"x":[1e400,-0]},"x_future":{"b":1.50},\n' +
      ' "contents":[ {"parts":[{"text":"caf\\u00e9 \\ud83d\\ude00 é","x":null}],"role":"user"} ,{"role":"model","parts":' +
      '[{"functionCall":{"name":"f","args":{"id":12345678901234567890}},"thoughtSignature":"Eq/+="}]},{"role":"user",' +
      '"parts":[{"functionResponse":{"name":"f","response":{"output":1.0}}}]}]}\n',
    ],
    [
      '{"provider":{"order":["one"]},"models":["acme/one"],"contents":[{"role":"user","parts":[{"text":"a"}]}]}',
      '{"contents":[{"role":"user","parts":[{"text":"a"}]}]}',
    ],
  ],
};

for (const protocol of PROTOCOLS) {
  Deno.test(`relayed ${protocol}: the client's body passes unchanged except for documented edits`, async () => {
    await using server = startUpstream(() => json(WHOLE[protocol]));
    const groups = { default: { hosted_tools: ["web_search"] } };
    const { upstreams, models: [row] } = oneModel(protocol, server.url) as {
      upstreams: JsonObject;
      models: JsonObject[];
    };
    const pricing = { prompt: "0", completion: "0", hosted_tools: { web_search: "0" } };
    await using gateway = startGateway({ upstreams, models: [{ ...row, pricing }], groups });
    for (const [sent, passed] of BODIES[protocol]) {
      const response = await (protocol === "gemini" ? askGemini(gateway, sent) : gateway.ask(protocol, sent));
      assertEquals([response.status, await response.text()], [200, textOf(WHOLE[protocol])]);
      assertEquals(response.headers.get("x-sluice-dropped"), null);
      assertEquals(server.requests.at(-1)?.body, passed);
    }
  });

  Deno.test(`relayed ${protocol}: a stream passes frame by frame, split anywhere, with any line ends`, async () => {
    const frames = STREAMED[protocol];
    const future = protocol === "chat"
      ? 'data: {"id":"c","object":"chat.future","x":1.0,"choices":[]}\n\n'
      : 'event: x.future\ndata: {"type":"x.future", "n":12345678901234567890}\n\n';
    const all = [...frames.slice(0, 2), future, ...frames.slice(2)].join("");
    const lines: [string, (text: string) => string][] = [
      ["as they are", (text) => text],
      ["ended by CRLF", (text) => text.replaceAll("\n", "\r\n")],
      ["with comments and keep-alives", (text) => `: hello\n\n${text.replaceAll("\n\n", "\n\n: keep-alive\n\n")}`],
      ["with events of nothing", (text) => text.replaceAll("\n\n", "\n\nevent: x\ndata:\n\n")],
      ["with a byte order mark and ids", (text) => `\ufeff${text.replaceAll("data:", "id: 1\nretry: 5\ndata:")}`],
      ["without spaces", (text) => text.replaceAll("data: ", "data:").replaceAll("event: ", "event:")],
      ["over several lines of data", (text) => text.replaceAll(/"model(Version)?":/g, "\ndata: $&")],
    ];
    let sent = "";
    let chunkBytes = 1;
    await using server = startUpstream(() => events(sent, { chunkBytes }));
    await using gateway = startGateway(oneModel(protocol, server.url));
    for (const [name, write] of lines) {
      sent = write(all);
      for (chunkBytes of [1, 7, 1000]) {
        const response = await gateway.ask(protocol, prompt(protocol, { stream: true }));
        assertEquals(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
        const got = await response.text();
        const spaced = name === "over several lines of data" ? got.replaceAll(/ ("model(?:Version)?":)/g, "$1") : got;
        assertEquals(spaced, expectedStream(protocol, [...frames.slice(0, 2), future, ...frames.slice(2)]), name);
      }
    }
  });
}

Deno.test("a byte order mark within a text reaches the client, even if the upstream's bytes are split before it", async () => {
  for (const spoken of PROTOCOLS) {
    const text = STREAMED[spoken].join("").replaceAll(" th\\u00e9re", "\ufeffthere");
    const bytes = new TextEncoder().encode(`: ${" ".repeat(text.length)}\n\n${text}`);
    const cut = new TextEncoder().encode(new TextDecoder().decode(bytes).split("\ufeff")[0]).length;
    let arrived = Promise.withResolvers<void>();
    await using server = startUpstream(() => ({
      headers: { "content-type": "text/event-stream" },
      body: bytes,
      chunkBytes: cut,
      beforeLast: arrived.promise,
    }));
    for (const transport of ["http1", "fetch"]) {
      // A keep-alive arrives first if the first part has no whole event.
      await using gateway = startGateway({ ...oneModel(spoken, server.url, { transport }), keep_alive_seconds: 1 });
      for (const protocol of PROTOCOLS) {
        arrived = Promise.withResolvers();
        const response = await gateway.ask(protocol, prompt(protocol, { stream: true }));
        const got: number[] = [];
        for await (const piece of response.body ?? []) {
          got.push(...piece);
          arrived.resolve();
        }
        const text = new TextDecoder().decode(Uint8Array.from(got));
        assertMatch(text, /"\ufeffthere 🙂"/, `${protocol} from ${spoken} over ${transport}`);
      }
    }
  }
});

Deno.test("relayed chat: invalid JSON is an error, even between white space that JSON does not know", async () => {
  const [first = "", ...others] = STREAMED.chat;
  await using server = startUpstream(() => events([first, ...others].join("").replace("}\n\n", "}\ufeff\n\n")));
  await using gateway = startGateway(oneModel("chat", server.url));
  const response = await gateway.ask("chat", prompt("chat", { stream: true }));
  assertEquals([response.status, (await response.json()).error.code], [502, "upstream_error"]);
});

/** Sends a body as it is. */
function askGemini({ url, key }: TestGateway, body: string): Promise<Response> {
  const headers = { "x-goog-api-key": key.key };
  return fetch(`${url}/v1beta/models/acme/one:generateContent`, { method: "POST", headers, body });
}

/** A value as a scripted server writes it and the gateway returns it: with the public id of the model. */
function textOf(value: JsonObject): string {
  return JSON.stringify(value).replace(/"(model|modelVersion)":"real-one"/, '"$1":"acme/one"');
}

/**
 * The documented edits of a stream: the model's id, and the cost beside the usage; chat: no usage that was not asked for;
 * responses: an end mark.
 */
function expectedStream(protocol: Protocol, frames: readonly string[]): string {
  const named = frames.map((frame) => frame.replace(/"(model|modelVersion)":"real-one"/, '"$1":"acme/one"'));
  const costed = named.map((frame) =>
    /^event: (message_delta|response\.completed)\n|"usageMetadata"/.test(frame) ? withCost(frame) : frame
  );
  if (protocol === "responses") return `${costed.join("")}data: [DONE]\n\n`;
  if (protocol === "messages" || protocol === "gemini") return costed.join("");
  return named.filter((frame) => !frame.includes('"usage":{')).map((frame) => frame.replace(',"usage":null', "")).join(
    "",
  );
}

function withCost(frame: string): string {
  return frame.replace(/\}\n\n$/, ',"sluice_cost":"0"}\n\n');
}

Deno.test("relayed chat: usage is always requested, and shown only to clients that asked", async () => {
  await using server = startUpstream(() => events(STREAMED.chat.join("")));
  await using gateway = startGateway(oneModel("chat", server.url));
  const cases: [JsonObject, sent: JsonObject, shown: boolean][] = [
    [{}, { include_usage: true }, false],
    [{ stream_options: null }, { include_usage: true }, false],
    [{ stream_options: { include_usage: false } }, { include_usage: true }, false],
    [{ stream_options: { include_usage: true, x: 1 } }, { include_usage: true, x: 1 }, true],
    [{ stream_options: { include_obfuscation: false } }, { include_obfuscation: false, include_usage: true }, false],
  ];
  for (const [more, sent, shown] of cases) {
    const response = await gateway.ask("chat", prompt("chat", { stream: true, ...more }));
    const text = await response.text();
    assertEquals(text.includes('"usage":{"prompt_tokens":7'), shown, JSON.stringify(more));
    assertEquals(text.includes('"usage":null'), shown, JSON.stringify(more));
    assertEquals(JSON.parse(server.requests.at(-1)?.body ?? "").stream_options, sent);
  }
});

Deno.test("relayed bodies lose parameters that the model lacks, and these are named", async () => {
  const cases: [Protocol, JsonObject, dropped: string, gone: string[], kept: JsonObject][] = [
    ["chat", { reasoning_effort: "high" }, "reasoning_effort", ["reasoning_effort"], {}],
    ["chat", { reasoning: { effort: "high" } }, "reasoning.effort", ["reasoning"], {}],
    ["responses", { reasoning: { effort: "high" } }, "reasoning", ["reasoning"], {}],
    [
      "messages",
      { thinking: { type: "adaptive" }, output_config: { effort: "high", x: 1 } },
      "thinking, output_config.effort",
      ["thinking"],
      { output_config: { x: 1 } },
    ],
  ];
  for (const [protocol, more, dropped, gone, kept] of cases) {
    await using server = startUpstream(() => json(WHOLE[protocol]));
    const file = oneModel(protocol, server.url);
    const [row] = file.models as JsonObject[];
    await using gateway = startGateway({ ...file, models: [{ ...row, reasoning: undefined }] });
    const response = await gateway.ask(protocol, prompt(protocol, more));
    assertEquals(response.status, 200, await response.text());
    const sent: JsonObject = JSON.parse(server.requests[0]?.body ?? "");
    assertEquals(response.headers.get("x-sluice-dropped"), dropped, JSON.stringify(sent));
    for (const name of gone) assert(!(name in sent), JSON.stringify(sent));
    for (const [name, value] of Object.entries(kept)) assertEquals(sent[name], value);

    const strict = await gateway.ask(protocol, prompt(protocol, { ...more, provider: { require_parameters: true } }));
    assertEquals([strict.status, server.requests.length], [400, 1], await strict.text());
  }
});

Deno.test("relayed bodies are adapted to their vendor", async () => {
  await using server = startUpstream(() => events(STREAMED.chat.join("")));
  const file = oneModel("chat", server.url);
  await using gateway = startGateway({
    ...file,
    upstreams: { one: { vendor: "mistral", base_url: `${server.url}/v1`, api_key: { env: "UPSTREAM_KEY" } } },
  });
  const sent = '{"model":"acme/one","user":"u","seed":7,"x":1.0,"max_completion_tokens":5,' +
    '"messages":[{"role":"user","content":"a"}],"stream":true}';
  const response = await gateway.ask("chat", sent);
  await response.body?.cancel();
  assertEquals(response.headers.get("x-sluice-dropped"), "user");
  const body = server.requests[0]?.body ?? "";
  assertEquals(
    body,
    '{"model":"real-one","x":1.0,"messages":[{"role":"user","content":"a"}],"stream":true,"max_tokens":5,' +
      '"random_seed":7}',
  );
});
