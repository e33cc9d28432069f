import { assertEquals, assertThrows } from "@std/assert";
import { parseConfig } from "../../lib/config/parse.ts";
import { matchHeaders } from "../../lib/upstreams/answers.ts";
import { oneModel, startGateway } from "../support/gateway.ts";
import { errorBody, prompt } from "../upstream/replies.ts";
import { json, startUpstream } from "../upstream/mod.ts";

function parse(forwardHeaders: unknown) {
  return parseConfig({
    upstreams: { one: { vendor: "vllm", base_url: "http://127.0.0.1:1/v1", forward_headers: forwardHeaders } },
  } as never);
}

Deno.test("headers that the gateway or its connection sets cannot be forwarded, nor their prefixes", () => {
  const cases: [pattern: string, forbidden: string | undefined][] = [
    ["x-ratelimit-*", undefined],
    ["anthropic-ratelimit-*", undefined],
    ["x-request-id", undefined],
    ["request-id", undefined],
    ["cf-*", undefined],
    ["x-r*", undefined],
    ["content-language", undefined],
    ["connection", "connection"],
    ["keep-alive", "keep-alive"],
    ["transfer-*", "transfer-encoding"],
    ["proxy-status", "proxy-status"],
    ["proxy-*", "proxy-"],
    ["set-cookie", "set-cookie"],
    ["set-cookie2", "set-cookie2"],
    ["set-*", "set-cookie"],
    ["content-type", "content-type"],
    ["content-*", "content-disposition"],
    ["retry-after", "retry-after"],
    ["x-should-*", "x-should-retry"],
    ["x-sluice-upstream", "x-sluice-upstream"],
    ["x-sluice-up*", "x-sluice-"],
    ["x-*", "x-accel-buffering"],
    ["x-sl*", "x-sluice-"],
    ["access-control-allow-origin", "access-control-allow-origin"],
  ];
  for (const [pattern, forbidden] of cases) {
    if (forbidden === undefined) parse([pattern]);
    else assertThrows(() => parse([pattern]), Error, `Cannot pass on ${forbidden}:`);
  }
});

Deno.test("the configuration rejects invalid header names", () => {
  for (const list of [[], ["*"], ["X-Request-Id"], ["x-*-id"], ["x ratelimit"], [""], ["x:y"], "x-request-id"]) {
    assertThrows(() => parse(list), Error, "forward_headers", JSON.stringify(list));
  }
});

Deno.test("matchHeaders() matches names and prefixes", () => {
  const matches = matchHeaders(["x-ratelimit-*", "cf-ray"]);
  const names = ["x-ratelimit-limit-requests", "x-ratelimit-", "cf-ray", "cf-ray-2", "x-ratelimi", "x"];
  assertEquals(names.map(matches), [true, true, true, false, false, false]);
});

Deno.test("a long retry-after of an upstream counts as an hour, and not as none", async () => {
  const cases: [name: string, value: string, expected: string | null][] = [
    ["retry-after", "20", "20"],
    ["retry-after", "86400", "3600"],
    ["retry-after-ms", "90000000", "3600"],
    ["retry-after", "-5", null],
    ["retry-after", "soon", null],
  ];
  for (const [name, value, expected] of cases) {
    const refusal = json(errorBody("chat", "slower"), { status: 429, headers: { [name]: value } });
    await using host = startUpstream(() => refusal);
    await using gateway = startGateway(oneModel("chat", host.url));
    const response = await gateway.ask("chat", prompt("chat"));
    assertEquals([response.status, response.headers.get("retry-after")], [429, expected], await response.text());
  }
});
