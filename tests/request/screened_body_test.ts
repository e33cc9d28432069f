/**
 * Members that cost more than tokens, or that name resources at a vendor, reach an upstream only if the operator
 * allowed them.
 */
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import type { Json, JsonObject } from "../../lib/json/mod.ts";
import { oneModel, startGateway, type TestGateway } from "../support/gateway.ts";
import { PROTOCOLS, STREAMED, WHOLE } from "../upstream/replies.ts";
import { events, type FakeUpstream, startUpstream } from "../upstream/mod.ts";

/** A request that asks for a feature. */
interface Case {
  protocol: Protocol;
  /** The members under test, as written in the body. */
  asks: string;
  headers?: Record<string, string>;
  /** Names of the dropped members; absent: the request is rejected, with the name of the member. */
  dropped?: readonly string[];
  /** The member that a refusal names. */
  param?: string;
  /** The part that the upstream gets instead. */
  left?: string;
  /** Group settings that let it pass; absent: it never passes. */
  allow?: JsonObject;
}

const F = '{"type":"function","name":"f","parameters":{"type":"object"},"x" : 1.0}';
const CHAT_F = '{"type":"function","function":{"name":"f"},"x" : 1.0}';
const MESSAGES_F = '{"name":"f","input_schema":{"type":"object"},"x" : 1.0}';

const SEARCH = { hosted_tools: ["web_search"] };
const STATE = { vendor_state: true };

function dropped(protocol: Protocol, asks: string, dropped: readonly string[], allow?: JsonObject): Case {
  return { protocol, asks, dropped, ...(allow !== undefined && { allow }) };
}

function refused(protocol: Protocol, asks: string, param: string, allow?: JsonObject): Case {
  return { protocol, asks, param, ...(allow !== undefined && { allow }) };
}

const CASES: readonly Case[] = [
  // Tiers.
  dropped("chat", '"service_tier":"priority"', ["service_tier"], tiers("priority")),
  dropped("chat", '"service_tier":"fast"', ["service_tier"], tiers("priority")),
  dropped("chat", '"service_tier":"scale"', ["service_tier"], tiers("scale")),
  dropped("responses", '"service_tier":"priority"', ["service_tier"], tiers("priority")),
  dropped("responses", '"service_tier":"ultrafast"', ["service_tier"], tiers("ultrafast")),
  {
    protocol: "messages",
    asks: '"speed":"fast"',
    headers: { "anthropic-beta": "interleaved-thinking-2025-05-14,fast-mode-2026-02-01" },
    dropped: ["speed", "anthropic-beta.fast-mode-2026-02-01"],
    allow: tiers("fast"),
  },
  dropped("messages", '"inference_geo":"us"', ["inference_geo"], tiers("inference_geo:us")),

  // Tools that run at the vendor.
  dropped("chat", '"web_search_options":{}', ["web_search_options"], SEARCH),
  dropped("chat", '"enable_search":true', ["enable_search"], SEARCH),
  {
    protocol: "chat",
    asks: `"tools":[${CHAT_F}, {"type":"builtin_function","function":{"name":"$web_search"}}]`,
    dropped: ["tools.builtin_function"],
    left: `"tools":[${CHAT_F}]`,
    allow: { hosted_tools: ["builtin_function"] },
  },
  {
    protocol: "responses",
    asks: `"tools":[ {"type":"web_search"} , ${F},{"type":"web_search_preview_2025_03_11"}],"tool_choice":"auto"`,
    dropped: ["tools.web_search", "tools.web_search_preview_2025_03_11"],
    left: `"tools":[ ${F}],"tool_choice":"auto"`,
    allow: SEARCH,
  },
  dropped("responses", '"tools":[{"type":"constructor"}]', ["tools.constructor"], { hosted_tools: ["constructor"] }),
  {
    protocol: "responses",
    asks: '"tools":[{"type":"code_interpreter","container":{"type":"auto"}}],"tool_choice":"auto"',
    dropped: ["tools.code_interpreter"],
    allow: { hosted_tools: ["code_interpreter"] },
  },
  {
    protocol: "responses",
    asks: '"tools":[{"type":"image_generation","quality":"high"}]',
    dropped: ["tools.image_generation"],
    allow: { hosted_tools: ["image_generation"] },
  },
  {
    protocol: "responses",
    asks: `"tools":[{"type":"namespace","name":"n","tools":[${F},{"type":"acme:lookup"}]}]`,
    dropped: ["tools.acme:lookup"],
    left: `"tools":[{"type":"namespace","name":"n","tools":[${F}]}]`,
    allow: { hosted_tools: ["acme:lookup"] },
  },
  {
    protocol: "responses",
    asks:
      `"input":[{"role":"user","content":"Hi"},{"type":"additional_tools","role":"developer","tools":[{"type":"web_search"},${F}]}]`,
    dropped: ["tools.web_search"],
    left: `"input":[{"role":"user","content":"Hi"},{"type":"additional_tools","role":"developer","tools":[${F}]}]`,
    allow: SEARCH,
  },
  {
    protocol: "responses",
    asks: `"tools":[${F},{"type":"shell","environment":{"type":"container_auto"}}]`,
    dropped: ["tools.shell"],
    left: `"tools":[${F}]`,
    allow: { hosted_tools: ["shell"] },
  },
  {
    protocol: "responses",
    asks:
      `"tools":[${F},{"type":"web_search"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"web_search"}]}`,
    dropped: ["tools.web_search"],
    left: `"tools":[${F}],"tool_choice":"none"`,
    allow: SEARCH,
  },
  {
    protocol: "messages",
    asks: `"tools":[${MESSAGES_F}, {"type":"web_search_20260318","name":"web_search","max_uses":5}]`,
    dropped: ["tools.web_search_20260318"],
    left: `"tools":[${MESSAGES_F}]`,
    allow: SEARCH,
  },
  {
    protocol: "messages",
    asks: '"tools":[{"type":"brand_new_20270101","name":"brand_new"}],"tool_choice":{"type":"auto"}',
    dropped: ["tools.brand_new_20270101"],
    allow: { hosted_tools: ["brand_new"] },
  },

  {
    protocol: "responses",
    asks:
      `"input":[{"role":"user","content":"Hi"},{"type":"tool_search_output","execution":"client","call_id":"c","tools":[${F},{"type":"web_search"}]}]`,
    dropped: ["tools.web_search"],
    left:
      `"input":[{"role":"user","content":"Hi"},{"type":"tool_search_output","execution":"client","call_id":"c","tools":[${F}]}]`,
    allow: SEARCH,
  },

  // Answers at another time.
  { protocol: "chat", asks: '"deferred":true', dropped: ["deferred"] },

  // Other names of limits, which budgets do not know.
  dropped("chat", '"n_predict":100000,"n_cmpl":50', ["n_predict", "n_cmpl"]),
  dropped("chat", '"max_output_tokens":100000', ["max_output_tokens"]),
  dropped("responses", '"max_completion_tokens":100000,"max_tokens":100000,"n":9', [
    "max_completion_tokens",
    "max_tokens",
    "n",
  ]),
  dropped("messages", '"max_completion_tokens":100000,"max_output_tokens":100000,"n":9', [
    "max_completion_tokens",
    "max_output_tokens",
    "n",
  ]),
  dropped("chat", '"extra_body":{"max_tokens":100000}', ["extra_body"]),
  ...(["chat", "responses", "messages"] as const).flatMap((protocol) => [
    dropped(protocol, '"n_predict":100000,"best_of":20', ["n_predict", "best_of"]),
    dropped(protocol, '"max_new_tokens":100000,"num_predict":100000', ["max_new_tokens", "num_predict"]),

    // Settings of servers.
    dropped(protocol, '"priority":-9,"kv_transfer_params":{"remote_host":"10.0.0.1"}', [
      "priority",
      "kv_transfer_params",
    ]),

    // Hosted tools of hosts that speak several protocols.
    dropped(protocol, '"plugins":[{"id":"web"}]', ["plugins"], { hosted_tools: ["plugins"] }),
    dropped(protocol, '"search_parameters":{"mode":"on"}', ["search_parameters"], SEARCH),
  ]),

  // Configurations of the operator's account.
  refused("chat", '"preset":"mail"', "preset", STATE),
  refused("responses", '"preset":"mail"', "preset", STATE),
  refused("messages", '"preset":"mail"', "preset", STATE),

  // Names that only some servers read.
  dropped("chat", '"Service_Tier":"priority"', ["Service_Tier"]),
  dropped("responses", '"Tools":[{"type":"web_search"}]', ["Tools"]),
  dropped("chat", '"Model":"dear","MODELS":["dear"],"Provider":{}', ["Model", "MODELS", "Provider"]),
  dropped("chat", '"Max_Tokens":99999,"N":50', ["Max_Tokens", "N"]),
  // Servers that read protocol buffers as JSON.
  dropped("chat", '"serviceTier":"priority","maxTokens":99999,"webSearchOptions":{}', [
    "serviceTier",
    "maxTokens",
    "webSearchOptions",
  ]),
  dropped("chat", '"extra_Body":{"n":9},"extraBody":{"n":9}', ["extra_Body", "extraBody"]),
  dropped("responses", '"toolChoice":"none","maxOutputTokens":9', ["toolChoice", "maxOutputTokens"]),
  dropped("messages", '"mcpServers":[{"type":"url"}],"maxTokens":5', ["mcpServers", "maxTokens"]),
  dropped("chat", '"\u017fervice_tier":"priority"', ["%C5%BFervice_tier"]),
  dropped("responses", '"tool\\u017f":[{"type":"web_search"}]', ["tool%C5%BF"]),
  dropped("messages", '"\u017fpeed":"fast","top_\u212a":5', ["%C5%BFpeed", "top_%E2%84%AA"]),
  {
    protocol: "chat",
    asks:
      '"tools":[{"type":"function","Type":"web_search","function":{"name":"f","Name":"g","parameters":{"Type":1}},"X":1.0}]',
    dropped: ["tools.Type", "tools.Name"],
    left: '"tools":[{"type":"function","function":{"name":"f","parameters":{"Type":1}},"X":1.0}]',
  },
  {
    protocol: "responses",
    asks:
      `"tools":[{"type":"namespace","name":"n","tools":[${F},{"type":"function","name":"g","Type":"mcp"},{"type":"shell",` +
      '"environment":{"type":"local","TYPE":"container_auto"}}]}]',
    dropped: ["tools.Type", "tools.TYPE"],
    left: `"tools":[{"type":"namespace","name":"n","tools":[${F},{"type":"function","name":"g"},{"type":"shell",` +
      '"environment":{"type":"local"}}]}]',
  },
  {
    protocol: "messages",
    asks:
      '"tools":[{"name":"f","\\u0054ype":"web_search_20250305","input_schema":{"Type":1},"input_examples":[{"Name":1}]},' +
      '{"type":"web_search_20250305","name":"s","Name":1}]',
    dropped: ["tools.Type", "tools.Name", "tools.web_search_20250305"],
    left: '"tools":[{"name":"f","input_schema":{"Type":1},"input_examples":[{"Name":1}]}]',
  },
  {
    protocol: "responses",
    asks: '"tools":[{"type":"function","name":"f","parameters":{"serverUrl":1},"serverUrl":"http://a","ownName":1}]',
    dropped: ["tools.serverUrl"],
    left: '"tools":[{"type":"function","name":"f","parameters":{"serverUrl":1},"ownName":1}]',
  },
  refused("chat", '"Model":"dear","provider":{"require_parameters":true}', "Model"),
  {
    protocol: "responses",
    asks:
      '"input":[{"type":"shell_call_output","call_id":"c","output":[],"Container_ID":"c"},{"role":"user","content":"Hi"}]',
    param: "input[0].Container_ID",
    allow: STATE,
  },

  // Members whose cost no answer reports.
  ...['"fallbacks":"default"', '"fallbacks":{"x":1.0}', '"billing_policy":{"type":"billing_policy"}'].map((
    asks,
  ): Case => ({
    protocol: "messages",
    asks,
    dropped: [asks.slice(1, asks.indexOf('"', 1))],
  })),

  // Servers of the client's choice.
  {
    protocol: "responses",
    asks:
      '"tools":[{"type":"mcp","server_label":"s","server_url":"https://mcp.example.com","headers":{"Authorization":"t"}}]',
    dropped: ["tools.mcp"],
    allow: { remote_mcp: true },
  },
  {
    protocol: "messages",
    asks: '"mcp_servers":[{"type":"url","name":"s","url":"https://mcp.example.com"}],' +
      '"tools":[{"type":"mcp_toolset","mcp_server_name":"s"}]',
    headers: { "anthropic-beta": "mcp-client-2025-11-20" },
    dropped: ["mcp_servers", "tools.mcp_toolset", "anthropic-beta.mcp-client-2025-11-20"],
    allow: { remote_mcp: true },
  },

  // A choice that forces a hosted tool.
  {
    protocol: "responses",
    asks: `"tools":[${F},{"type":"web_search"}],"tool_choice":{"type":"web_search"}`,
    param: "tool_choice",
    allow: SEARCH,
  },
  refused("responses", '"tools":[{"type":"web_search"}],"tool_choice":"required"', "tool_choice", SEARCH),
  {
    protocol: "responses",
    asks:
      `"tools":[${F},{"type":"web_search"}],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"web_search"}]}`,
    param: "tool_choice",
    allow: SEARCH,
  },
  {
    protocol: "messages",
    asks:
      `"tools":[${MESSAGES_F},{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"tool","name":"web_search"}`,
    param: "tool_choice",
    allow: SEARCH,
  },
  {
    protocol: "messages",
    asks: '"tools":[{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"any"}',
    param: "tool_choice",
    allow: SEARCH,
  },
  {
    protocol: "chat",
    asks: '"service_tier":"priority","provider":{"require_parameters":true}',
    param: "service_tier",
    allow: tiers("priority"),
  },

  // State that the vendor keeps.
  {
    protocol: "responses",
    asks: '"tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]',
    param: "tools[0].vector_store_ids",
    allow: { hosted_tools: ["file_search"], ...STATE },
  },
  {
    protocol: "responses",
    asks: '"tools":[{"type":"code_interpreter","container":"cntr_1"}]',
    param: "tools[0].container",
    allow: { hosted_tools: ["code_interpreter"], ...STATE },
  },
  {
    protocol: "responses",
    asks: '"tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":["file-1"]}}]',
    param: "tools[0].container.file_ids",
    allow: { hosted_tools: ["code_interpreter"], ...STATE },
  },
  {
    protocol: "responses",
    asks: '"tools":[{"type":"image_generation","input_image_mask":{"file_id":"file-1"}}]',
    param: "tools[0].input_image_mask.file_id",
    allow: { hosted_tools: ["image_generation"], ...STATE },
  },
  {
    protocol: "responses",
    asks: '"input":[{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}]',
    param: "input[0].content[0].file_id",
    allow: STATE,
  },
  {
    protocol: "responses",
    asks: '"input":[{"role":"user","content":[{"type":"input_image","file_id":"file-1","detail":"auto"}]}]',
    param: "input[0].content[0].file_id",
    allow: STATE,
  },
  {
    protocol: "responses",
    asks: '"input":[{"role":"user","content":"Hi"},' +
      '{"type":"code_interpreter_call","id":"ci_1","code":"","container_id":"cntr_1","outputs":[],"status":"completed"}]',
    param: "input[1].container_id",
    allow: STATE,
  },
  ...[
    [
      '{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","file_id":"file-X"}}',
      "input[0].output.file_id",
    ],
    [
      '{"type":"shell_call","call_id":"c","action":{"commands":["ls"]},"environment":{"type":"container_reference","container_id":"cntr"}}',
      "input[0].environment.container_id",
    ],
    ['{"type":"shell_call_output","call_id":"c","output":[],"container_id":"cntr_9"}', "input[0].container_id"],
    [
      '{"type":"message","role":"user","content":[{"type":"input_image","image_url":"https://a.example/b.png","file_id":"file-1"}]}',
      "input[0].content[0].file_id",
    ],
  ].map(([item, param = ""]): Case => ({
    protocol: "responses",
    asks: `"input":[${item},{"role":"user","content":"Hi"}]`,
    param,
    allow: STATE,
  })),
  {
    protocol: "messages",
    asks:
      '"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"code_execution_tool_result",' +
      '"tool_use_id":"srvtoolu_1","content":{"type":"code_execution_result","content":[{"type":"code_execution_output",' +
      '"file_id":"file_1"}]}}]},{"role":"user","content":"Hi"}]',
    param: "messages[1].content[0].content.content[0].file_id",
    allow: STATE,
  },

  // Tools and tiers inside the conversation.
  {
    protocol: "responses",
    asks: '"input":[{"type":"configuration_update","tools":[{"type":"function","name":"f","Type":"web_search"}]},' +
      '{"role":"user","content":"Hi"}]',
    param: "input[0].tools[0].Type",
  },
  {
    protocol: "responses",
    asks: '"input":[{"type":"configuration_update","tools":[{"type":"web_search"}]},{"role":"user","content":"Hi"}]',
    param: "input[0].tools[0]",
    allow: SEARCH,
  },
  {
    protocol: "responses",
    asks: '"input":[{"type":"configuration_update","service_tier":"priority"},{"role":"user","content":"Hi"}]',
    param: "input[0].service_tier",
    allow: tiers("priority"),
  },
  {
    protocol: "responses",
    asks: '"input":[{"type":"image_generation_call","id":"ig_1"},{"role":"user","content":"Hi"}]',
    param: "input[0].id",
    allow: STATE,
  },
  refused("responses", '"prompt_cache_options":{"comparison_response_id":"resp_1"}', "prompt_cache_options", STATE),
  {
    protocol: "chat",
    asks: '"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]',
    param: "messages[0].content[0].file.file_id",
    allow: STATE,
  },
  refused("messages", '"container":"container_1"', "container", STATE),
  refused("messages", '"container":{"skills":[{"type":"custom","skill_id":"skill_1"}]}', "container", STATE),
  refused("messages", '"thread":{"type":"continue","id":"t_1"}', "thread", STATE),
  {
    protocol: "messages",
    asks:
      '"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_1"}},{"type":"text","text":"Hi"}]}]',
    param: "messages[0].content[0].source.file_id",
    allow: STATE,
  },
  {
    protocol: "messages",
    asks:
      '"messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"file","file_id":"file_1"}}]}},{"type":"text","text":"Hi"}]}]',
    param: "messages[0].content[0].source.content[0].source.file_id",
    allow: STATE,
  },
  {
    protocol: "messages",
    asks: '"messages":[{"role":"user","content":[{"type":"container_upload","file_id":"file_1"}]}]',
    param: "messages[0].content[0].file_id",
    allow: STATE,
  },
  {
    protocol: "messages",
    asks: '"messages":[{"role":"user","content":"Hi"},{"role":"system","content":[{"type":"tool_addition","tool":' +
      '{"type":"tool_definition","definition":{"type":"web_search_20250305","name":"web_search"}}}]}]',
    param: "messages[1].content[0].tool.definition",
    allow: SEARCH,
  },
];

function tiers(name: string): JsonObject {
  return { service_tiers: [name] };
}

/** A body with the members of the case. */
function bodyOf(protocol: Protocol, asks: string, model = "acme/one"): string {
  const contents = protocol === "responses"
    ? asks.includes('"input":') ? "" : '"input":"Hi",'
    : asks.includes('"messages":')
    ? ""
    : protocol === "gemini"
    ? '"contents":[{"role":"user","parts":[{"text":"Hi"}]}],'
    : '"messages":[{"role":"user","content":"Hi"}],';
  const most = protocol === "messages" ? '"max_tokens":100,' : "";
  const members = `"model":"${model}",${most}${contents}${asks}`;
  return `{${members.replace(/,$/, "")}}`;
}

/**
 * A gateway whose group `default` allows none of this, and the groups `allowed`, `allowed1` and so on the given settings;
 * the upstream speaks the protocol.
 */
function start(protocol: Protocol, server: FakeUpstream, ...settings: JsonObject[]): TestGateway {
  const { upstreams, models: [row] } = oneModel(protocol, server.url) as {
    upstreams: JsonObject;
    models: JsonObject[];
  };
  const prices = (member: string, price: Json): JsonObject =>
    Object.fromEntries(settings.flatMap((allow) => allow[member] as string[] ?? []).map((name) => [name, price]));
  const free = { prompt: "0", completion: "0" };
  const pricing = {
    ...free,
    hosted_tools: prices("hosted_tools", "0.01"),
    service_tiers: prices("service_tiers", free),
  };
  // The body for a model that reasons would ask for encrypted reasoning.
  const model = { ...row, reasoning: undefined, pricing };
  const groups = Object.fromEntries(settings.map((allow, index) => [`allowed${index || ""}`, allow]));
  return startGateway({ upstreams, models: [model], groups: { default: {}, ...groups } });
}

for (const protocol of ["chat", "responses", "messages"] as const) {
  const cases = CASES.filter((one) => one.protocol === protocol);
  Deno.test(`${protocol}: members that need a permission are left out and named, or refused, without it`, async (t) => {
    await using server = startUpstream(() => ({ body: JSON.stringify(WHOLE[protocol]) }));
    await using gateway = start(protocol, server, ...cases.map(({ allow = {} }) => allow));
    for (const [index, { asks, headers = {}, dropped, param, left, allow }] of cases.entries()) {
      await t.step(asks.slice(0, 90), async () => {
        const begun = server.requests.length;
        const body = bodyOf(protocol, asks);
        const response = await gateway.ask(protocol, body, { headers });
        const text = await response.text();
        if (dropped === undefined) {
          assertEquals([response.status, server.requests.length], [400, begun], text);
          assertStringIncludes(text, param ?? "");
          assertStringIncludes(text, Object.keys(allow ?? {}).at(-1) ?? "");
        } else {
          assertEquals([response.status, response.headers.get("x-sluice-dropped")], [200, dropped.join(", ")], text);
          assertEquals(server.requests[begun]?.body, bodyOf(protocol, left ?? "", "real-one"));
          const betas = server.requests[begun]?.headers.get("anthropic-beta") ?? "";
          assert(!/fast-mode|mcp-client/.test(betas), betas);
        }
        if (allow === undefined) return;
        const before = server.requests.length;
        const key = await gateway.addKey({ group: `allowed${index || ""}` });
        const allowed = await gateway.ask(protocol, body, { headers, key });
        assertEquals([allowed.status, allowed.headers.get("x-sluice-dropped")], [200, null], await allowed.text());
        const sent = server.requests[before];
        const expected = bodyOf(protocol, asks, "real-one").replace(/,"provider":\{[^}]*\}/, "");
        assertEquals([sent?.body, sent?.headers.get("anthropic-beta") ?? ""], [
          expected,
          headers["anthropic-beta"] ?? "",
        ]);
      });
    }
  });
}

Deno.test("features that cost only tokens pass unchanged", async () => {
  const plain: [Protocol, string][] = [
    ["chat", '"service_tier":"auto"'],
    ["chat", '"service_tier":"default"'],
    ["chat", '"service_tier":"flex"'],
    ["chat", '"service_tier":null,"web_search_options":null,"enable_search":false,"plugins":[]'],
    ["responses", '"service_tier":"flex"'],
    [
      "responses",
      '"input":[{"type":"tool_search_call","execution":"client","call_id":"c","arguments":{"file_id":"x"}},' +
      `{"type":"tool_search_output","execution":"client","call_id":"c","tools":[${F}]},` +
      '{"type":"shell_call","call_id":"d","action":{"commands":["ls"]},"environment":{"type":"local"}},' +
      '{"type":"mcp_list_tools","id":"m","server_label":"s","tools":[{"name":"f","type":"web_search","input_schema":' +
      '{"type":"object","properties":{"file_id":{"type":"string"}},"examples":[{"file_id":"x"}]}}]},' +
      '{"role":"user","content":"Hi"}]',
    ],
    [
      "responses",
      `"tools":[${F},{"type":"custom","name":"c"},{"type":"local_shell"},{"type":"apply_patch"},{"type":"tool_search"},` +
      '{"type":"shell"},{"type":"computer_use_preview","display_width":1,"display_height":1,"environment":"mac"}]',
    ],
    ["messages", '"service_tier":"standard_only","speed":"standard","inference_geo":"global","mcp_servers":[]'],
    ["messages", '"service_tier":"auto","speed":null,"container":null'],
    [
      "messages",
      `"tools":[${MESSAGES_F},{"type":"bash_20250124","name":"bash"},{"type":"memory_20250818","name":"memory"},` +
      '{"type":"text_editor_20250728","name":"e"},{"type":"computer_toolset_20260801","name":"computer"},' +
      '{"type":"tool_search_tool_regex_20251119","name":"t"}]',
    ],
  ];
  for (const protocol of ["chat", "responses", "messages"] as const) {
    await using server = startUpstream(() => ({ body: JSON.stringify(WHOLE[protocol]) }));
    await using gateway = start(protocol, server);
    for (const [, asks] of plain.filter(([one]) => one === protocol)) {
      const response = await gateway.ask(protocol, bodyOf(protocol, asks));
      assertEquals([response.status, response.headers.get("x-sluice-dropped")], [200, null], await response.text());
      assertEquals(server.requests.at(-1)?.body, bodyOf(protocol, asks, "real-one"));
    }
  }
});

Deno.test("a body with more than a thousand members or tools to remove is refused", async () => {
  await using server = startUpstream(() => ({ body: JSON.stringify(WHOLE.chat) }));
  await using gateway = start("chat", server);
  const tool = CHAT_F.replace("{", '{"Type":1,"tYpe":1,"tyPe":1,"typE":1,');
  for (const [more, status] of [["", 200], [',{"type":"web_search"}', 400]] as const) {
    const response = await gateway.ask("chat", bodyOf("chat", `"tools":[${Array(250).fill(tool)}${more}]`));
    const text = await response.text();
    assertEquals(response.status, status, text);
    if (status === 400) assertStringIncludes(text, "more than 1000");
  }
});

Deno.test("of two more expensive tiers the second is dropped, because the combination has no price", async () => {
  await using server = startUpstream(() => ({ body: JSON.stringify(WHOLE.messages) }));
  await using gateway = start("messages", server, { service_tiers: ["fast", "inference_geo:us"] });
  const body = bodyOf("messages", '"speed":"fast","inference_geo":"us"');
  const response = await gateway.ask("messages", body, { key: await gateway.addKey({ group: "allowed" }) });
  assertEquals([response.status, response.headers.get("x-sluice-dropped")], [200, "inference_geo"]);
  await response.text();
  assertEquals(server.requests[0]?.body, bodyOf("messages", '"speed":"fast"', "real-one"));
});

Deno.test("hosted tools are dropped from streams and translated requests alike, and named", async () => {
  const tools: Record<Protocol, string> = {
    chat: `"tools":[${CHAT_F},{"type":"web_search"}]`,
    responses: `"tools":[${F},{"type":"web_search"}]`,
    messages: `"tools":[${MESSAGES_F},{"type":"web_search_20250305","name":"web_search"}]`,
    gemini: '"tools":[{"functionDeclarations":[{"name":"f"}]},{"googleSearch":{}}]',
  };
  for (const spoken of PROTOCOLS) {
    await using server = startUpstream(() => events(STREAMED[spoken].join("")));
    await using gateway = start(spoken, server);
    for (const protocol of PROTOCOLS) {
      const response = await gateway.ask(protocol, bodyOf(protocol, `${tools[protocol]},"stream":true`));
      const named = response.headers.get("x-sluice-dropped") ?? "";
      assertEquals(response.status, 200);
      assert(named.startsWith(protocol === "gemini" ? "tools.googleSearch" : "tools.web_search"), named);
      await response.text();
      const { body } = server.requests.at(-1) ?? { body: "" };
      assert(!/web_search|googleSearch/.test(body), body);
      assertStringIncludes(body, '"f"');
    }
  }
});

Deno.test("allowed hosted tools and files of one vendor do not reach another vendor", async () => {
  await using server = startUpstream(() => ({ body: JSON.stringify(WHOLE.chat) }));
  await using gateway = start("chat", server, { ...SEARCH, ...STATE });
  const key = await gateway.addKey({ group: "allowed" });
  const search = await gateway.ask("responses", bodyOf("responses", '"tools":[{"type":"web_search"}]'), { key });
  assertEquals([search.status, search.headers.get("x-sluice-dropped")], [200, "tools.web_search"]);
  await search.text();
  assert(!server.requests[0]?.body.includes("web_search"));
  const files: [Protocol, string][] = [
    ["responses", '"input":[{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}]'],
    ["messages", '"messages":[{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"f"}}]}]'],
  ];
  for (const [protocol, asks] of files) {
    const response = await gateway.ask(protocol, bodyOf(protocol, asks), { key });
    assertEquals([response.status, server.requests.length], [400, 1], await response.text());
  }
});

Deno.test("images by a hosted tool require the images endpoint", async () => {
  await using server = startUpstream(() => ({ body: JSON.stringify(WHOLE.responses) }));
  const allow = { hosted_tools: ["image_generation"], endpoints: ["responses"] };
  await using gateway = start("responses", server, allow);
  const key = await gateway.addKey({ group: "allowed" });
  const body = (more: string) => bodyOf("responses", `"tools":[{"type":"image_generation"}]${more}`);
  const response = await gateway.ask("responses", body(""), { key });
  assertEquals([response.status, response.headers.get("x-sluice-dropped")], [200, "tools.image_generation"]);
  await response.text();
  const forced = await gateway.ask("responses", body(',"tool_choice":{"type":"image_generation"}'), { key });
  assertEquals([forced.status, server.requests.length], [400, 1]);
  assertStringIncludes(await forced.text(), "groups.allowed.endpoints");
});

Deno.test("files stored at Google cannot be referred to by URL", async () => {
  const answer = {
    candidates: [{ content: { parts: [{ text: "Hi" }] }, finishReason: "STOP" }],
    usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 2, totalTokenCount: 9 },
  };
  await using server = startUpstream(() => ({ body: JSON.stringify(answer) }));
  await using gateway = startGateway({ ...oneModel("gemini", server.url), groups: { default: {}, allowed: STATE } });
  const key = await gateway.addKey({ group: "allowed" });
  const requestFor = (url: string) =>
    bodyOf("responses", `"input":[{"role":"user","content":[{"type":"input_file","file_url":"${url}"}]}]`);
  for (
    const url of [
      "https://generativelanguage.googleapis.com/v1beta/files/abc",
      "gs://bucket/a.pdf",
      "GS://bucket/a.pdf",
      "https://generativelanguage.googleapis.com./v1beta/files/abc",
      "https://generativelanguage.googleapis.com/v1beta/%66iles/abc",
      "https://generativelanguage.googleapis.com/v1beta%2f%2566iles/abc",
      "https://generativelanguage.googleapis.com\\\\v1beta\\\\files\\\\abc",
      "https://GenerativeLanguage.GoogleAPIs.com:443//v1beta/../files/abc",
      "h\\tttps://generativelanguage.googleapis.com/v1beta/files/abc",
      "https:generativelanguage.googleapis.com/v1beta/files/abc",
      "//generativelanguage.googleapis.com/v1beta/files/abc",
      "files/abc",
    ]
  ) {
    const response = await gateway.ask("responses", requestFor(url));
    assertEquals([response.status, server.requests.length], [400, 0], url);
    assertStringIncludes(await response.text(), "vendor_state");
  }
  const source = { type: "url", url: "gs://bucket/a.png" };
  const content = [{ type: "document", source: { type: "content", content: [{ type: "image", source }] } }];
  const inside = await gateway.ask(
    "messages",
    bodyOf("messages", `"messages":${JSON.stringify([{ role: "user", content }])}`),
  );
  assertEquals([inside.status, server.requests.length], [400, 0], await inside.text());
  const open = await gateway.ask("responses", requestFor("https://example.com/files/a.pdf"));
  assertEquals(open.status, 200, await open.text());
  const allowed = await gateway.ask("responses", requestFor("gs://bucket/a.pdf"), { key });
  assertEquals(allowed.status, 200, await allowed.text());
  assertEquals(server.requests.length, 2);
});

Deno.test("Gemini gets image URLs as images, and holds cover the context for other URLs", async () => {
  const answer = {
    candidates: [{ content: { parts: [{ text: "Hi" }] }, finishReason: "STOP" }],
    usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 2, totalTokenCount: 9 },
  };
  await using server = startUpstream(() => ({ body: JSON.stringify(answer) }));
  const { upstreams, models: [row] } = oneModel("gemini", server.url) as {
    upstreams: JsonObject;
    models: JsonObject[];
  };
  await using gateway = startGateway({
    upstreams,
    models: [{
      ...row,
      context_length: 1_000_000,
      pricing: { prompt: "0.000001", completion: "0" },
      architecture: { input_modalities: ["text", "image"] },
    }],
    groups: { default: { key_budget: { usd: "0.1", period: "day" } } },
  });
  const ask = async (url: string) => {
    const image = `{"type":"image_url","image_url":{"url":"${url}"}}`;
    const response = await gateway.ask("chat", bodyOf("chat", `"messages":[{"role":"user","content":[${image}]}]`));
    return [response.status, await response.text()] as const;
  };
  assertEquals((await ask("https://example.com/a.png"))[0], 200);
  assertStringIncludes(server.requests[0]?.body ?? "", '"mimeType":"image/png"');
  const [status, text] = await ask("https://example.com/a");
  assertEquals(status, 429, text);
  const [refused, why] = await ask("https://www.youtube.com/watch?v=abcdefghijk");
  assertEquals(refused, 400, why);
  assertStringIncludes(why, "video");
  assertEquals(server.requests.length, 1);
});

Deno.test("the beta header of the long context passes for models that have one", async () => {
  for (const [context_length, passes] of [[200_000, false], [1_000_000, true]] as const) {
    await using server = startUpstream(() => ({ body: JSON.stringify(WHOLE.messages) }));
    const { upstreams, models: [row] } = oneModel("messages", server.url) as {
      upstreams: JsonObject;
      models: JsonObject[];
    };
    await using gateway = startGateway({ upstreams, models: [{ ...row, context_length }] });
    const headers = { "anthropic-beta": "context-1m-2025-08-07, interleaved-thinking-2025-05-14" };
    const response = await gateway.ask("messages", bodyOf("messages", ""), { headers });
    await response.text();
    assertEquals(
      [response.headers.get("x-sluice-dropped"), server.requests[0]?.headers.get("anthropic-beta")],
      passes
        ? [null, headers["anthropic-beta"]]
        : ["anthropic-beta.context-1m-2025-08-07", "interleaved-thinking-2025-05-14"],
    );
  }
});
