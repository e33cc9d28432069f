/** Answers of upstreams: the streams in `fixtures/messages/streams`, and the expected result of each. */
import type { ContentBlock, Reply, TokenUsage } from "../../../lib/protocols/canonical/types.ts";
import type { ErrorKind } from "../../../lib/errors.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";

/** Result of a stream: a reply, or the error at its end. */
export type Said = Reply | { error: ErrorKind; message: string; /** Text before it. */ text?: string };

/** The issuer of the answers. */
export const ORIGIN = { issuer: "anthropic" };

const INPUT: TokenUsage = { prompt: 12, input_cache_read: 0, input_cache_write_5m: 0, input_cache_write_1h: 0 };
const CUT = "The model's answer ended before it was complete";

function reply(blocks: ContentBlock[], more: Partial<Reply> = {}, completion = 9): Reply {
  return { id: "msg_a1", blocks, finish: "end", usage: { ...INPUT, completion }, ...more };
}

function text(text: string): ContentBlock {
  return { type: "text", text };
}

function call(id: string, name: string, args: string): ContentBlock {
  return { type: "tool_call", id, name, arguments: args };
}

function thought(text: string, value: string): ContentBlock {
  return { type: "reasoning", text, signature: { issuer: "anthropic", value } };
}

/** The expected result of every fixture, by its name. */
export const ANSWERS: Readonly<Record<string, Said>> = {
  text: reply([text("Good morning 👋")]),
  tools: reply(
    [
      text("Let me look."),
      call("toolu_1", "get_weather", '{"city":"Oslo","station":9007199254740993}'),
      call("toolu_2", "now", "{}"),
      call("toolu_3", "today", "{}"),
    ],
    { finish: "tool_use" },
    44,
  ),
  thinking: reply([thought("Six times seven.", "RXFR"), text("42")], {
    usage: { ...INPUT, completion: 30, reasoning: 21 },
  }),
  hidden_thinking: reply([
    { type: "reasoning", text: "", hidden: true, signature: { issuer: "anthropic", value: "b21pdHRlZA==" } },
    {
      type: "reasoning",
      text: "",
      hidden: true,
      signature: { issuer: "anthropic", value: "cmVkYWN0ZWQ=", id: "redacted" },
    },
    text("Done."),
  ]),
  interleaved_thinking: reply(
    [
      thought("First.", "czE="),
      call("toolu_1", "f", '{"n":1}'),
      thought("Second.", "czI="),
      call("toolu_2", "f", '{"n":2}'),
    ],
    { finish: "tool_use" },
  ),
  refusal: reply([{ type: "refusal", text: "This cannot be helped with." }], { finish: "refusal" }, 0),
  refusal_silent: reply([], { finish: "refusal" }, 0),
  length: reply([text("Once upon"), call("toolu_1", "write", '{"path":"a')], { finish: "length" }),
  context_full: reply([text("And then")], { finish: "length" }),
  stop_sequence: reply([text("one two")], { finish: "stop_sequence", stopSequence: "three" }),
  server_tools: reply([
    {
      type: "vendor_specific",
      from: "messages",
      value: { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "growth" } },
    },
    {
      type: "vendor_specific",
      from: "messages",
      value: {
        type: "web_search_tool_result",
        tool_use_id: "srvtoolu_1",
        content: [{ type: "web_search_result", url: "https://example.test/a", title: "A", encrypted_content: "eA==" }],
      },
    },
    {
      type: "text",
      text: "It grew.",
      citations: [{
        from: "messages",
        value: {
          type: "web_search_result_location",
          url: "https://example.test/a",
          title: "A",
          cited_text: "grew",
          encrypted_index: "eQ==",
        },
      }],
    },
  ], {
    usage: {
      prompt: 15665,
      input_cache_read: 0,
      input_cache_write_5m: 0,
      completion: 120,
      hostedCalls: { web_search: 1 },
    },
  }),
  pause: reply([{
    type: "vendor_specific",
    from: "messages",
    value: { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } },
  }], { finish: "pause" }),
  error_first: { error: "overloaded", message: "The model's vendor is overloaded" },
  error_after_start: { error: "exhausted", message: "The rate limit of the model's vendor is reached" },
  error_middle: { error: "upstream", message: "The model's vendor failed to answer", text: "Half" },
  cut: { error: "upstream", message: CUT, text: "Half" },
  cut_between_blocks: { error: "upstream", message: CUT, text: "Half" },
  no_message_stop: reply([text("Whole")]),
  no_block_stop: reply([text("A"), call("toolu_1", "f", "{}")], { finish: "tool_use" }),
  repeated_start: reply([text("Hi")]),
  spliced_start: {
    error: "upstream",
    message: "Cannot read the upstream's answer: another message begins inside it",
    text: "Hi",
  },
  no_start: { blocks: [text("Hi")], finish: "end", usage: { prompt: 3, completion: 1 } },
  interleaved_blocks: reply(
    [call("toolu_1", "a", '{"y":1}'), call("toolu_2", "b", '{"x":2}'), text("done")],
    { finish: "tool_use" },
  ),
  shared_index: reply([call("toolu_1", "a", '{"x":1}'), call("toolu_2", "b", '{"y":2}')], { finish: "tool_use" }),
  whole_input: reply([call("toolu_1", "a", '{"x":[1,2]}')], { finish: "tool_use" }),
  end_turn_with_calls: reply([call("toolu_1", "a", "{}")], { finish: "tool_use" }),
  tool_use_without_calls: reply([text("Hm.")]),
  call_without_id: reply(
    [call("call_msg_a1_1", "a", '{"x":1}'), call("call_msg_a1_2", "b", "{}")],
    { finish: "tool_use" },
  ),
  after_the_end: reply([text("Hi")]),
  two_signatures: reply([thought("Hm.", "c2Vjb25k")]),
  unsigned_thinking: reply([{ type: "reasoning", text: "Hm." }, text("Yes.")]),
  empty_blocks: reply([text("Yes.")]),
  text_at_start: reply([text("Hi there")]),
  unopened_block: reply([text("Hi there"), thought("Hm.", "c2ln")]),
  unopened_call: {
    error: "upstream",
    message: "Cannot read the upstream's answer: a call continues that was not started",
  },
  two_message_deltas: reply([text("Hi")], {}, 3),
  null_reason_cut: { error: "upstream", message: CUT, text: "Hi" },
  unknown: reply([
    text("Hi"),
    { type: "vendor_specific", from: "messages", value: { type: "hologram", data: "aG9sbw==" } },
    { type: "vendor_specific", from: "messages", value: { type: "compaction", content: "So far" } },
  ]),
};

/** Streams that an official SDK can read unchanged. The others break a rule that it relies on. */
export const SOUND: readonly string[] = `
  text tools thinking hidden_thinking interleaved_thinking refusal refusal_silent context_full stop_sequence
  server_tools pause end_turn_with_calls two_signatures unsigned_thinking empty_blocks text_at_start`.trim().split(
  /\s+/,
);

/** The frames of a fixture: one line each, the data of an event whose name is its type. */
export async function framesOf(name: string): Promise<Frame[]> {
  const url = new URL(`../../fixtures/messages/streams/${name}.jsonl`, import.meta.url);
  const lines = (await Deno.readTextFile(url)).trimEnd().split("\n");
  return lines.map((data) => ({ event: /^\{"type":"(\w+)"/.exec(data)?.[1] ?? "", data }));
}

/** The names of all fixtures. */
export async function fixtureNames(): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of Deno.readDir(new URL("../../fixtures/messages/streams", import.meta.url))) {
    names.push(name.replace(/\.jsonl$/, ""));
  }
  return names.sort();
}
