import { assert, assertEquals } from "@std/assert";
import type { Reply } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { responses } from "../../../lib/protocols/responses/mod.ts";
import { REPLIES, responseContextOf } from "./replies.ts";

const EMPTY: Reply = { blocks: [], finish: "end", usage: {} };

/** The response to a request with only model and input, with its members in order. */
const SKELETON: JsonObject = {
  id: "resp_r1",
  object: "response",
  created_at: 100,
  completed_at: 107,
  status: "completed",
  background: false,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  model: "a/b",
  output: [],
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  service_tier: "default",
  store: false,
  temperature: 1,
  top_p: 1,
  top_logprobs: 0,
  presence_penalty: 0,
  frequency_penalty: 0,
  text: { format: { type: "text" }, verbosity: "medium" },
  tool_choice: "auto",
  tools: [],
  truncation: "disabled",
  usage: {
    input_tokens: 0,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: 0,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 0,
  },
  user: null,
  metadata: {},
};

Deno.test("writeReply() writes each kind of answer", () => {
  for (const { name, reply, prompt, output, response = {} } of REPLIES) {
    const { usage, ...members } = responses.writeReply(reply, responseContextOf(prompt));
    assertEquals(members.output, output, name);
    const { usage: _usage, ...plain } = SKELETON;
    assertEquals(members, { ...plain, output, ...response }, name);
    assert(usage !== null, name);
  }
});

Deno.test("writeReply() repeats the request", () => {
  const cases: [request: JsonObject, echoed: JsonObject][] = [
    [{ instructions: "Be kind." }, { instructions: "Be kind." }],
    [{ instructions: [{ role: "system", content: "Be kind." }] }, { instructions: null }],
    [{ temperature: 0, top_p: 0, top_logprobs: 3 }, { temperature: 0, top_p: 0, top_logprobs: 3 }],
    [{ temperature: null, top_p: null, metadata: null, tools: null, tool_choice: null }, {}],
    [{ presence_penalty: 1, frequency_penalty: -1 }, { presence_penalty: 1, frequency_penalty: -1 }],
    [{ store: false, truncation: "auto" }, { store: false, truncation: "auto" }],
    [{ parallel_tool_calls: false, max_tool_calls: 2 }, { parallel_tool_calls: false, max_tool_calls: 2 }],
    [{ max_output_tokens: 5 }, { max_output_tokens: 5 }],
    // Only the upstream knows which tier served the request.
    [{ service_tier: "flex" }, { service_tier: "default" }],
    [{ user: "u", safety_identifier: "s" }, { user: "u", safety_identifier: "s" }],
    [{ prompt_cache_key: "k", metadata: { a: "b" } }, { prompt_cache_key: "k", metadata: { a: "b" } }],
    [{ reasoning: { effort: "low" } }, { reasoning: { effort: "low", summary: null } }],
    [{ reasoning: { generate_summary: "auto" } }, { reasoning: { effort: null, summary: "auto" } }],
    [{ text: {} }, {}],
    [{ text: { verbosity: "low" } }, { text: { format: { type: "text" }, verbosity: "low" } }],
    [
      { text: { format: { type: "json_schema", name: "n", schema: {} } } },
      { text: { format: { type: "json_schema", name: "n", schema: {} }, verbosity: "medium" } },
    ],
    [
      { tool_choice: { type: "function", name: "f" }, tools: [{ type: "function", name: "f" }] },
      {
        tool_choice: { type: "function", name: "f" },
        tools: [{ type: "function", name: "f", description: null, parameters: null, strict: null }],
      },
    ],
    [
      { tools: [{ type: "function", name: "f", parameters: {}, strict: true, x: 1 }, { type: "web_search" }] },
      {
        tools: [
          { type: "function", name: "f", description: null, parameters: {}, strict: true, x: 1 },
          { type: "web_search" },
        ],
      },
    ],
  ];
  for (const [request, echoed] of cases) {
    assertEquals(responses.writeReply(EMPTY, responseContextOf({}, request)), { ...SKELETON, ...echoed });
  }
});

Deno.test("writeReply() counts the positions of citations from the beginning of joined texts", () => {
  const value = { type: "url_citation", url: "u", title: "t", start_index: 0, end_index: 3 };
  const citations = [{ from: "responses" as const, value }];
  const blocks = ["one", "two"].map((text) => ({ type: "text" as const, text, citations }));
  const { output } = responses.writeReply({ ...EMPTY, blocks }, responseContextOf());
  assertEquals((output as { content: JsonObject[] }[])[0]?.content, [{
    type: "output_text",
    text: "onetwo",
    annotations: [value, { ...value, start_index: 3, end_index: 6 }],
    logprobs: [],
  }]);
});
