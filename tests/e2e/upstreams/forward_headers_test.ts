import { assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { model, startGateway, upstream, UPSTREAM_KEY } from "../../support/gateway.ts";
import { errorBody, prompt, PROTOCOLS, STREAMED, WHOLE } from "../../upstream/replies.ts";
import { events, json, type ScriptedAnswer, startUpstream } from "../../upstream/mod.ts";

/** Headers of each upstream answer. */
const SENT = {
  "X-RateLimit-Remaining-Requests": "7",
  "x-ratelimit-limit-requests": "9",
  "Anthropic-Ratelimit-Unified-5h-Utilization": "0.25",
  "x-request-id": "up_1",
  "x-note": `for ${UPSTREAM_KEY}, é`,
  "set-cookie": "a=b",
  "x-other": "not asked for",
};

const PATTERNS = ["x-ratelimit-*", "anthropic-ratelimit-*", "x-request-id", "x-note", "x-absent"];

const PASSED = {
  "anthropic-ratelimit-unified-5h-utilization": "0.25",
  "x-ratelimit-limit-requests": "9",
  "x-ratelimit-remaining-requests": "7",
  "x-sluice-upstream-request-id": "up_1",
};

/** Headers of an answer that come from `SENT`. */
function passedOn({ headers }: Response): Record<string, string> {
  const names = /^(x-ratelimit-.*|anthropic-ratelimit-.*|x-sluice-upstream-request-id|set-cookie|x-other)$/;
  return Object.fromEntries([...headers].filter(([name]) => names.test(name)));
}

function config(url: string, more: JsonObject, limits?: JsonObject): JsonObject {
  return {
    upstreams: { one: upstream("openai-compatible", url, { protocols: ["chat"], ...more }) },
    models: [model("acme/one", [{ upstream: "one", model: "real-one" }])],
    ...(limits !== undefined && { groups: { default: { key_limits: limits } } }),
  };
}

/** An upstream that speaks chat and sends these headers. */
function script(change: (answer: ScriptedAnswer) => ScriptedAnswer = (answer) => answer) {
  return startUpstream(({ stream }) => {
    const answer = stream ? events(STREAMED.chat.join("")) : json(WHOLE.chat);
    return change({ ...answer, headers: { ...answer.headers, ...SENT } });
  });
}

for (const transport of ["http1", "fetch"]) {
  Deno.test(`listed headers of an upstream reach the client over ${transport}, relayed and translated, whole and streamed`, async () => {
    await using server = script();
    await using gateway = startGateway(config(server.url, { transport, forward_headers: PATTERNS }));
    for (const protocol of PROTOCOLS) {
      for (const stream of [false, true]) {
        const response = await gateway.ask(protocol, prompt(protocol, { model: "acme/one", stream }));
        await response.text();
        const about = `${protocol}, stream: ${stream}`;
        assertEquals([response.status, passedOn(response)], [200, PASSED], about);
        assertEquals(response.headers.get("x-note")?.includes(UPSTREAM_KEY), false, about);
        assertEquals(response.headers.get("x-request-id")?.startsWith("req_"), true, about);
      }
    }
  });
}

Deno.test("without forward_headers no header of an upstream reaches the client", async () => {
  await using server = script();
  await using gateway = startGateway(config(server.url, {}));
  for (const protocol of PROTOCOLS) {
    const response = await gateway.ask(protocol, prompt(protocol, { model: "acme/one" }));
    await response.text();
    assertEquals([response.status, passedOn(response)], [200, {}], protocol);
  }
});

Deno.test("the error of an upstream brings its listed headers", async () => {
  await using server = script(({ headers }) => json(errorBody("chat", "no"), { status: 400, headers: headers ?? {} }));
  await using gateway = startGateway(config(server.url, { forward_headers: PATTERNS }));
  const response = await gateway.ask("chat", prompt("chat", { model: "acme/one" }));
  await response.text();
  assertEquals([response.status, passedOn(response)], [400, PASSED]);
});

Deno.test("the gateway's own limit headers take precedence over an upstream's", async () => {
  await using server = script();
  const limits = { requests_per_minute: 60 };
  await using gateway = startGateway(config(server.url, { forward_headers: PATTERNS }, limits));
  for (const stream of [false, true]) {
    const response = await gateway.ask("chat", prompt("chat", { model: "acme/one", stream }));
    await response.text();
    const passed = passedOn(response);
    assertEquals(passed["x-ratelimit-limit-requests"], "60");
    assertEquals(passed["anthropic-ratelimit-unified-5h-utilization"], "0.25");
  }
});

Deno.test("only headers of the answering upstream are passed on", async () => {
  await using failing = script((answer) => ({ ...answer, status: 500 }));
  await using server = script();
  await using gateway = startGateway({
    upstreams: {
      first: upstream("openai-compatible", failing.url, { protocols: ["chat"], forward_headers: PATTERNS }),
      second: upstream("openai-compatible", server.url, { protocols: ["chat"], forward_headers: ["x-request-id"] }),
    },
    models: [model("acme/one", [
      { upstream: "first", model: "a" },
      { upstream: "second", model: "b", priority: 1 },
    ])],
  });
  const response = await gateway.ask("chat", prompt("chat", { model: "acme/one" }));
  await response.text();
  assertEquals([response.status, response.headers.get("x-sluice-upstream")], [200, "second"]);
  assertEquals(passedOn(response), { "x-sluice-upstream-request-id": "up_1" });
});
