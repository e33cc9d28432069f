import { assert, assertEquals } from "@std/assert";
import { inFolder, startWithKey } from "../../support/program.ts";
import { events, json, startUpstream } from "../../upstream/mod.ts";
import { STREAMED, WHOLE } from "../../upstream/replies.ts";
import { until } from "../../support/soon.ts";
import { postChat } from "../../support/post_chat.ts";
import { plainUpstream } from "../../support/plain_model.ts";

const PROMPT = "quokkaPrompt7719zebra";
const UPSTREAM_KEY = "upstream-canary-5518-key";

interface Value {
  stringValue?: string;
  intValue?: string;
  doubleValue?: number;
  arrayValue?: { values: Value[] };
}

interface Span {
  traceId: string;
  spanId: string;
  name: string;
  kind: number;
  parentSpanId: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: Value }[];
  status?: { code?: number };
}

/** A collector that takes OTLP over HTTP as JSON. */
function startCollector() {
  const spans: Span[] = [];
  let text = "";
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const body = await request.text();
    text += body;
    const { resourceSpans = [] } = JSON.parse(body);
    for (const { scopeSpans } of resourceSpans) for (const scope of scopeSpans) spans.push(...scope.spans);
    return Response.json({});
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    spans,
    text: () => text,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** Numbers may be of either kind. */
function plain({ stringValue, intValue, doubleValue, arrayValue }: Value): unknown {
  if (arrayValue !== undefined) return arrayValue.values.map(plain);
  return stringValue ?? (intValue === undefined ? doubleValue : Number(intValue));
}

Deno.test("with OTEL_DENO=true each model request has a span with its usage and none of its text", () =>
  inFolder(async (folder) => {
    await using collector = startCollector();
    await using server = startUpstream(({ body }) =>
      body.includes("fail")
        ? json({ error: { message: PROMPT } }, { status: 400 })
        : body.includes('"stream":true')
        ? events(STREAMED.chat.join(""))
        : json(WHOLE.chat)
    );
    const config = {
      upstreams: { one: { ...plainUpstream(server.url), vendor: "openai", api_key: { env: "CANARY" } } },
      models: [{
        id: "acme/one",
        created: 1,
        context_length: 100_000,
        pricing: { prompt: "0.000001", completion: "0.000002" },
        targets: [{ upstream: "one", model: "real-one", protocol: "chat" }],
      }],
    };
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(config));
    const gateway = await startWithKey([], {
      folder,
      env: {
        CANARY: UPSTREAM_KEY,
        OTEL_DENO: "true",
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_BSP_SCHEDULE_DELAY: "50",
      },
    });
    const { key } = gateway;
    const ids: string[] = [];
    for (const more of [{}, { stream: true }, { user: "fail" }]) {
      const response = await postChat(gateway.origin, key, {
        model: "acme/one",
        messages: [{ role: "user", content: PROMPT }],
        ...more,
      });
      ids.push(response.headers.get("x-request-id")?.slice(4) ?? "");
      await response.text();
    }
    const wanted = () => collector.spans.filter(({ name }) => name === "chat acme/one");
    await until("the spans", () => wanted().length >= 3);
    gateway.kill("SIGTERM");
    assertEquals((await gateway.ended).code, 0);
    const reported = wanted().map(({ attributes }) =>
      Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]))
    );
    const common = {
      "gen_ai.operation.name": "chat",
      "gen_ai.request.model": "acme/one",
      "gen_ai.response.model": "acme/one",
      "gen_ai.provider.name": "one",
      "sluice.attempts": 1,
    };
    const used = {
      "gen_ai.usage.input_tokens": 7,
      "gen_ai.usage.output_tokens": 2,
      "gen_ai.response.finish_reasons": ["end"],
    };
    assertEquals(reported, [
      { ...common, ...used, "sluice.request_id": ids[0] },
      { ...common, ...used, "sluice.request_id": ids[1] },
      { ...common, "sluice.request_id": ids[2], "error.type": "invalid" },
    ]);
    const servers = collector.spans.filter(({ name }) => name === "POST /v1/chat/completions");
    assertEquals(servers.length, 3);
    const traces = new Set(servers.map(({ traceId }) => traceId));
    for (const span of wanted()) {
      assert(traces.has(span.traceId) && BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano));
    }
    // One span for each request to the upstream, which gets its trace context.
    const calls = collector.spans.filter(({ name, kind }) => name === "POST" && kind === 3);
    assertEquals(
      server.requests.map(({ headers }) => headers.get("traceparent")),
      calls.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`),
    );
    assert(
      calls.every(({ traceId, parentSpanId }, at) =>
        traceId === servers[at]?.traceId && parentSpanId === servers[at]?.spanId
      ),
    );
    const facts = calls.map(({ attributes }) =>
      Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]))
    );
    assertEquals(facts.map((fact) => fact["http.response.status_code"]), [200, 200, 400]);
    assertEquals(new Set(facts.map((fact) => fact["url.full"])), new Set([`${server.url}/v1/chat/completions`]));
    assertEquals(wanted().map(({ status }) => status?.code === 2), [false, false, true]);
    for (const secret of [PROMPT, "Hello there", UPSTREAM_KEY, key]) assert(!collector.text().includes(secret), secret);
  }));
