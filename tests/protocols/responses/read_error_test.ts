import { assertEquals } from "@std/assert";
import type { ErrorKind } from "../../../lib/errors.ts";
import { isObject, type Json, parseJson } from "../../../lib/json/mod.ts";
import type { TokenUsage } from "../../../lib/protocols/canonical/types.ts";
import { responsesUpstream } from "../../../lib/protocols/responses/upstream.ts";

Deno.test("readError() follows the status, or a more specific code", () => {
  const error = (members: Record<string, Json>): Json => ({
    error: { message: "m", param: null, code: null, ...members },
  });
  const cases: [status: number, body: Json | undefined, kind: ErrorKind, code?: string, final?: true][] = [
    [400, error({ code: "context_length_exceeded", param: "input" }), "invalid", "context_length_exceeded"],
    [400, error({ message: "This model's maximum context length is 9" }), "invalid", "context_length_exceeded"],
    [400, undefined, "invalid"],
    [422, error({}), "invalid"],
    [401, error({ code: "invalid_api_key" }), "upstream"],
    [403, error({}), "upstream"],
    [402, error({}), "exhausted", "insufficient_quota", true],
    [404, error({ code: "model_not_found" }), "not_found", "model_not_found"],
    [408, error({}), "timeout"],
    [413, error({}), "too_large"],
    [429, error({ type: "tokens", code: "rate_limit_exceeded" }), "exhausted"],
    [429, error({ type: "insufficient_quota", code: "insufficient_quota" }), "exhausted", "insufficient_quota", true],
    [500, error({ type: "server_error" }), "upstream"],
    [502, "<html>", "upstream"],
    [503, error({ code: "server_is_overloaded" }), "overloaded"],
    [504, [], "timeout"],
    [529, null, "overloaded"],
    [302, undefined, "upstream"],
  ];
  for (const [status, body, kind, code, final] of cases) {
    const read = responsesUpstream.readError(status, body);
    assertEquals([read.kind, read.code, read.final], [kind, code, final ?? false], `${status} ${JSON.stringify(body)}`);
  }
});

Deno.test("readError() passes on client errors without addresses and keys", () => {
  const message = "Cannot fetch https://10.0.0.7/a.png with sk-proj-abcdef: ask org-12345678 at gpu7.internal:8000";
  const read = responsesUpstream.readError(400, { error: { message, param: "input[0].content" } });
  assertEquals(read.message, "Cannot fetch [address] with [key]: ask [account] at [address]");
  assertEquals(read.param, "input[0].content");
  const hidden = responsesUpstream.readError(500, { error: { message } });
  assertEquals(hidden.message, "The model's vendor failed to answer");
});

Deno.test("readUsage() separates usage into disjoint classes", () => {
  const cases: [name: string, usage: string, read: TokenUsage][] = [
    ["none", "null", {}],
    ["bare", '{"input_tokens":5,"output_tokens":2}', { prompt: 5, completion: 2 }],
    [
      "cached and written tokens are input",
      '{"input_tokens":36,"input_tokens_details":{"cached_tokens":16,"cache_write_tokens":4},"output_tokens":1}',
      { prompt: 16, input_cache_read: 16, input_cache_write_5m: 4, completion: 1 },
    ],
    [
      "zero is known",
      '{"input_tokens":3,"input_tokens_details":{"cached_tokens":0},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0}}',
      { prompt: 3, input_cache_read: 0, completion: 1, reasoning: 0 },
    ],
    [
      "cached tokens beside the input, as the total tells",
      '{"input_tokens":10,"input_tokens_details":{"cached_tokens":90},"output_tokens":5,"total_tokens":105}',
      { prompt: 10, input_cache_read: 90, completion: 5 },
    ],
    [
      "reasoning beside the output, as the total tells",
      '{"input_tokens":10,"output_tokens":5,"output_tokens_details":{"reasoning_tokens":20},"total_tokens":35}',
      { prompt: 10, completion: 25, reasoning: 20 },
    ],
    [
      "more cached than input: nobody knows the input",
      '{"input_tokens":10,"input_tokens_details":{"cached_tokens":90},"output_tokens":5,"total_tokens":15}',
      { completion: 5 },
    ],
    ["other spellings", '{"prompt_tokens":7.0,"completion_tokens":"3","cached_tokens":2}', {
      prompt: 5,
      input_cache_read: 2,
      completion: 3,
    }],
    ["junk is not known", '{"input_tokens":-1,"output_tokens":1.5,"total_tokens":[]}', {}],
  ];
  for (const [name, text, wanted] of cases) {
    const body = parseJson(`{"status":"completed","output":[],"usage":${text}}`);
    if (!isObject(body)) throw new TypeError("Cannot use the case: it is not an object");
    assertEquals(responsesUpstream.readReply(body, { issuer: "openai" }).usage, wanted, name);
  }
});
