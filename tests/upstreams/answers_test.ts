import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { parseConfig } from "../../lib/config/parse.ts";
import { matchHeaders } from "../../lib/upstreams/answers.ts";
import { oneModel, startGateway } from "../support/gateway.ts";
import { errorBody, prompt, PROTOCOLS, WHOLE } from "../upstream/replies.ts";
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
    else assertThrows(() => parse([pattern]), Error, `Cannot forward ${forbidden}:`);
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

Deno.test("an error in place of a stream is read like one in place of a whole answer", async () => {
  for (const protocol of PROTOCOLS) {
    for (const stream of [false, true]) {
      const body = errorBody(protocol, "slower", "rate_limit_error");
      await using host = startUpstream(() => json(body, { headers: { "content-type": "application/json" } }));
      await using gateway = startGateway(oneModel(protocol, host.url));
      const response = await gateway.ask(protocol, prompt(protocol, { stream }));
      assertEquals(response.status, 429, `${protocol} ${stream} ${await response.text()}`);
    }
  }
});

Deno.test("an answer that should be a stream, and is no error, is called so", async () => {
  await using host = startUpstream(() => json(WHOLE.chat, { headers: { "content-type": "application/json" } }));
  await using gateway = startGateway(oneModel("chat", host.url));
  const response = await gateway.ask("chat", prompt("chat", { stream: true }));
  assertEquals(response.status, 502);
  assertMatch(await response.text(), /expected a stream of events/);
});
