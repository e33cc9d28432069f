/** Usage beyond the plain price of tokens is held for, billed, explained and audited. */
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { formatUsd, parseUsd } from "../../../lib/billing/money.ts";
import { auditLedger } from "../../../lib/billing/reports/audit.ts";
import { explainEntry } from "../../../lib/billing/reports/explain.ts";
import { explanationText } from "../../../lib/billing/reports/explain_text.ts";
import type { KeptEntry } from "../../../lib/store/ledger.ts";
import {
  type GatewayOptions,
  model,
  startGateway,
  type TestGateway,
  upstream,
  VENDORS,
} from "../../support/gateway.ts";
import { prompt, STREAMED, WHOLE } from "../../upstream/replies.ts";
import { events, json, startUpstream } from "../../upstream/mod.ts";
import { entriesOf } from "./world.ts";

const PRICING = {
  prompt: "0.000001",
  completion: "0.00001",
  hosted_tools: { web_search: "0.01", code_execution: "0.05", plugins: "0.004" },
  service_tiers: {
    priority: { prompt: "0.000002", completion: "0.00002" },
    fast: { prompt: "0.000006", completion: "0.00006" },
    flex: { prompt: "0.0000005", completion: "0.000005" },
    "inference_geo:us": { prompt: "0.0000011", completion: "0.000011" },
  },
};

const GROUPS = {
  default: {},
  allowed: {
    hosted_tools: ["web_search", "code_execution", "plugins"],
    service_tiers: ["priority", "fast", "inference_geo:us"],
    price_factor: "0.5",
  },
};

function start(
  spoken: Protocol,
  url: string,
  more: JsonObject = {},
  options: GatewayOptions = {},
): TestGateway {
  return startGateway({
    upstreams: { one: upstream(VENDORS[spoken], url) },
    models: [model("acme/one", [{ upstream: "one", model: "real-one", protocol: spoken }], { pricing: PRICING })],
    groups: GROUPS,
    ...more,
  }, options);
}

/** Protocols whose answers name their searches in members of their own. */
type SearchingProtocol = Exclude<Protocol, "gemini">;

/** One answer and its expected cost. Its tokens are 7 and 2. */
interface Billed {
  name: string;
  protocol: SearchingProtocol;
  asks: JsonObject;
  /** Members of the answer; of messages, those of `usage` too. */
  answer: JsonObject;
  usage?: JsonObject;
  /** USD of the tokens, before the factor. */
  tokens: string;
  calls?: Readonly<Record<string, number>>;
  tier?: string;
  group?: "default";
}

const SEARCH: Readonly<Record<SearchingProtocol, JsonObject>> = {
  chat: { web_search_options: {} },
  responses: { tools: [{ type: "web_search" }] },
  messages: { tools: [{ type: "web_search_20250305", name: "web_search", max_uses: 3 }] },
};
const search = (id: string, action?: string) => ({
  type: "web_search_call",
  id,
  status: "completed",
  ...(action !== undefined && { action: { type: action } }),
});
const MESSAGE = (WHOLE.responses.output as JsonObject[])[0] ?? {};
const CITED = {
  choices: [{
    index: 0,
    message: {
      role: "assistant",
      content: "Hello there",
      annotations: [{
        type: "url_citation",
        url_citation: { start_index: 0, end_index: 5, url: "https://a.example", title: "A" },
      }],
    },
    finish_reason: "stop",
  }],
};
const PLAIN = "0.000027";
const PRIORITY = "0.000054";

const BILLED: readonly Billed[] = [
  {
    name: "searches, without opened pages",
    protocol: "responses",
    asks: SEARCH.responses,
    answer: { output: [search("ws_1", "search"), search("ws_2"), search("ws_3", "open_page"), MESSAGE] },
    tokens: PLAIN,
    calls: { web_search: 2 },
  },
  {
    name: "searches by the vendor's own count",
    protocol: "responses",
    asks: SEARCH.responses,
    answer: { output: [search("ws_1"), MESSAGE], tool_usage: { web_search: { num_requests: 5 } } },
    tokens: PLAIN,
    calls: { web_search: 5 },
  },
  {
    name: "searches and code",
    protocol: "messages",
    asks: {
      tools: [...SEARCH.messages.tools as JsonObject[], { type: "code_execution_20250825", name: "code_execution" }],
    },
    answer: {
      content: [
        { type: "server_tool_use", id: "srvtoolu_1", name: "bash_code_execution", input: { command: "ls" } },
        { type: "text", text: "Hello there" },
      ],
    },
    usage: { server_tool_use: { web_search_requests: 3, web_fetch_requests: 0 } },
    tokens: PLAIN,
    calls: { code_execution: 1, web_search: 3 },
  },
  {
    name: "a search cited in the answer",
    protocol: "chat",
    asks: SEARCH.chat,
    answer: CITED,
    tokens: PLAIN,
    calls: { web_search: 1 },
  },
  {
    name: "searches counted in the usage",
    protocol: "chat",
    asks: { plugins: [{ id: "web" }] },
    answer: {
      usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9, server_tool_use: { web_search_requests: 4 } },
    },
    tokens: PLAIN,
    calls: { web_search: 4 },
  },
  { name: "no search", protocol: "chat", asks: SEARCH.chat, answer: {}, tokens: PLAIN },
  {
    name: "the requested tier",
    protocol: "chat",
    asks: { service_tier: "fast" },
    answer: { service_tier: "priority" },
    tokens: PRIORITY,
    tier: "priority",
  },
  {
    name: "the requested tier, if none is reported",
    protocol: "chat",
    asks: { service_tier: "priority" },
    answer: {},
    tokens: PRIORITY,
    tier: "priority",
  },
  {
    name: "the default tier that served it instead",
    protocol: "responses",
    asks: { service_tier: "priority" },
    answer: { service_tier: "default" },
    tokens: PLAIN,
  },
  {
    name: "the tier of the operator's own project",
    protocol: "responses",
    asks: {},
    answer: { service_tier: "priority" },
    tokens: PRIORITY,
    tier: "priority",
    group: "default",
  },
  {
    name: "a cheaper tier with a price",
    protocol: "chat",
    asks: { service_tier: "flex" },
    answer: { service_tier: "flex" },
    tokens: "0.0000135",
    tier: "flex",
    group: "default",
  },
  {
    name: "a tier without a price",
    protocol: "chat",
    asks: {},
    answer: { service_tier: "scale" },
    tokens: PLAIN,
    tier: "scale",
    group: "default",
  },
  {
    name: "the fast mode",
    protocol: "messages",
    asks: { speed: "fast" },
    answer: {},
    usage: { service_tier: "standard", speed: "fast" },
    tokens: "0.000162",
    tier: "fast",
  },
  {
    name: "the fast mode that was not given",
    protocol: "messages",
    asks: { speed: "fast" },
    answer: {},
    usage: { service_tier: "standard", speed: "standard" },
    tokens: PLAIN,
  },
  {
    name: "a region",
    protocol: "messages",
    asks: { inference_geo: "us" },
    answer: {},
    usage: { service_tier: "standard", inference_geo: "us" },
    tokens: "0.0000297",
    tier: "inference_geo:us",
  },
];

/** The answer of a case, whole. */
function wholeOf({ protocol, answer, usage }: Billed): JsonObject {
  const whole = { ...WHOLE[protocol], ...answer };
  return usage === undefined ? whole : { ...whole, usage: { ...WHOLE[protocol].usage as JsonObject, ...usage } };
}

/** The same as a stream. */
function framesOf(billed: Billed): string {
  const whole = wholeOf(billed);
  const line = (data: JsonObject) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
  switch (billed.protocol) {
    case "chat": {
      const { choices, usage, ...head } = whole;
      const [choice] = choices as { message: JsonObject }[];
      const chunk = (more: JsonObject) =>
        `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", ...more })}\n\n`;
      return chunk({ choices: [{ index: 0, delta: choice?.message, finish_reason: null }] }) +
        chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }) + chunk({ choices: [], usage }) +
        "data: [DONE]\n\n";
    }
    case "responses":
      return line({
        type: "response.created",
        response: { ...whole, status: "in_progress", output: [], usage: null },
      }) +
        (whole.output as JsonObject[]).map((item, output_index) =>
          line({ type: "response.output_item.added", output_index, item }) +
          line({ type: "response.output_item.done", output_index, item })
        ).join("") + line({ type: "response.completed", response: whole });
    case "messages": {
      const { content, stop_reason, ...message } = whole;
      return line({ type: "message_start", message: { ...message, content: [], stop_reason: null } }) +
        (content as JsonObject[]).map((block, index) =>
          line({ type: "content_block_start", index, content_block: block }) +
          line({ type: "content_block_stop", index })
        ).join("") +
        line({
          type: "message_delta",
          delta: { stop_reason, stop_sequence: null },
          usage: message.usage as JsonObject,
        }) +
        line({ type: "message_stop" });
    }
  }
}

async function onlyEntry(gateway: TestGateway): Promise<KeptEntry> {
  const [entry] = await entriesOf(gateway.store.ledger, 1);
  assert(entry !== undefined);
  return entry;
}

async function checkAudit({ store }: TestGateway): Promise<void> {
  assertEquals((await auditLedger(store.ledger, { now: () => 0 })).differences, []);
}

for (const billed of BILLED) {
  for (const stream of [false, true]) {
    Deno.test(`${billed.protocol}, ${stream ? "streamed" : "whole"}: ${billed.name} is billed, explained and audited`, async () => {
      await using server = startUpstream(() =>
        stream ? events(framesOf(billed)) : { body: JSON.stringify(wholeOf(billed)) }
      );
      await using gateway = start(billed.protocol, server.url);
      const key = await gateway.addKey({ group: billed.group ?? "allowed" });
      const response = await gateway.ask(billed.protocol, prompt(billed.protocol, { stream, ...billed.asks }), { key });
      assertEquals([response.status, response.headers.get("x-sluice-dropped")], [200, null]);
      await response.text();
      const entry = await onlyEntry(gateway);
      const factor = billed.group === undefined ? 2n : 1n;
      const calls = Object.entries(billed.calls ?? {});
      const prices: Readonly<Record<string, string>> = PRICING.hosted_tools;
      const extra = calls.reduce((sum, [name, count]) => sum + BigInt(count) * parseUsd(prices[name] ?? ""), 0n);
      assertEquals(formatUsd(entry.cost), formatUsd((parseUsd(billed.tokens) + extra) / factor));
      const { extras = [], service_tier } = entry.details ?? {};
      assertEquals(
        extras,
        calls.map(([name, count]) => ({ item: `hosted_tools.${name}`, count, price: prices[name] ?? "" })),
      );
      assertEquals(service_tier, billed.tier);
      const explained = explainEntry(entry);
      assertEquals([explained.adds_up, explained.service_tier], [true, billed.tier ?? null]);
      const text = explanationText(explained);
      for (const [name, count] of calls) {
        assertStringIncludes(text, `${count} call${count === 1 ? "" : "s"} of ${name} x ${prices[name]} USD`);
      }
      if (billed.tier !== undefined) assertStringIncludes(text, billed.tier);
      await checkAudit(gateway);
    });
  }
}

Deno.test("a tier that the upstream lacks is neither billed nor claimed", async () => {
  for (const stream of [false, true]) {
    for (const [from, to] of [["responses", "messages"], ["responses", "gemini"], ["chat", "gemini"]] as const) {
      const answer = stream ? events(STREAMED[to].join("")) : json(WHOLE[to]);
      await using server = startUpstream(() => answer);
      await using gateway = start(to, server.url);
      const key = await gateway.addKey({ group: "allowed" });
      const asked = prompt(from, { service_tier: "priority", stream });
      const response = await gateway.ask(from, asked, { key });
      assertEquals(response.headers.get("x-sluice-dropped"), "service_tier");
      const text = await response.text();
      if (from === "responses") {
        assertStringIncludes(text.slice(text.lastIndexOf("completed_at")), '"service_tier":"default"');
      }
      const { cost, details } = await onlyEntry(gateway);
      assertEquals([formatUsd(cost * 2n), details?.service_tier], [PLAIN, undefined], `${from} to ${to}`);
      await checkAudit(gateway);
    }
  }
});

Deno.test("responses and messages name the tier that served the request", async () => {
  await using server = startUpstream(() => json({ ...WHOLE.chat, service_tier: "priority" }));
  await using gateway = start("chat", server.url);
  const key = await gateway.addKey({ group: "allowed" });
  const response = await (await gateway.ask("responses", prompt("responses", { service_tier: "auto" }), { key }))
    .json();
  assertEquals(response.service_tier, "priority");
  const message = await (await gateway.ask("messages", prompt("messages"), { key })).json();
  assertEquals(message.usage.service_tier, "priority");
});

Deno.test("Gemini's searches are counted and billed if the model has a price for them", async () => {
  const answer = {
    candidates: [{
      content: { parts: [{ text: "Hi" }] },
      finishReason: "STOP",
      groundingMetadata: { webSearchQueries: ["a", "b"] },
    }],
    usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 2, totalTokenCount: 9 },
  };
  await using server = startUpstream(() => ({ body: JSON.stringify(answer) }));
  await using gateway = start("gemini", server.url);
  await (await gateway.ask("chat", prompt("chat"))).text();
  const { cost, details } = await onlyEntry(gateway);
  assertEquals(details?.extras, [{ item: "hosted_tools.web_search", count: 2, price: "0.01" }]);
  assertEquals(formatUsd(cost), "0.020027");
});

Deno.test("holds cover the most expensive tier and the calls that the request allows", async () => {
  const budget = { usd: "1000", period: "total" };
  const output = 2n * parseUsd("0.00006") * 100n;
  for (
    const { asks, calls } of [
      { asks: SEARCH.messages, calls: 3n },
      { asks: { tools: [{ type: "web_search_20250305", name: "web_search" }] }, calls: 32n },
    ]
  ) {
    const billed = BILLED.find(({ name }) => name === "the fast mode");
    assert(billed !== undefined);
    const used = { server_tool_use: { web_search_requests: Number(calls) } };
    const whole = wholeOf({ ...billed, usage: { ...billed.usage, ...used } });
    await using server = startUpstream(() => ({ body: JSON.stringify(whole) }));
    await using gateway = start("messages", server.url, {
      groups: { default: { ...GROUPS.allowed, price_factor: "2", budget } },
    });
    await (await gateway.ask("messages", prompt("messages", { speed: "fast", ...asks }))).text();
    const { held, cost, overrun } = await onlyEntry(gateway);
    const tools = calls * 2n * parseUsd("0.01");
    // A request that may search can read as much as its model's window holds.
    assertEquals(held, 2n * parseUsd("0.000006") * 1_000_000n + output + tools);
    assertEquals([cost, overrun], [tools + 2n * parseUsd("0.000162"), 0n]);
  }
});

Deno.test("calls beyond the hold are paid by the operator", async () => {
  const whole = wholeOf({ ...BILLED[2] as Billed, usage: { server_tool_use: { web_search_requests: 9_000 } } });
  await using server = startUpstream(() => ({ body: JSON.stringify(whole) }));
  const groups = { default: { ...GROUPS.allowed, price_factor: "1", budget: { usd: "1000", period: "total" } } };
  await using gateway = start("messages", server.url, { groups });
  await (await gateway.ask("messages", prompt("messages", SEARCH.messages))).text();
  const entry = await onlyEntry(gateway);
  assertEquals([entry.cost, entry.cost + entry.overrun], [entry.held, parseUsd("90.000027")]);
  await checkAudit(gateway);
});

Deno.test("calls are held for by the limit of the protocol itself, not by that of another one", async () => {
  const groups = { default: { ...GROUPS.allowed, price_factor: "1", budget: { usd: "1000", period: "total" } } };
  const bounds: [SearchingProtocol, JsonObject, calls: bigint][] = [
    ["responses", { max_tool_calls: 4, max_output_tokens: 100 }, 4n],
    ["responses", { tools: [{ type: "web_search", max_uses: 4 }], max_output_tokens: 100 }, 32n],
    ["messages", { max_tool_calls: 1, max_tokens: 100 }, 3n],
    ["chat", { max_tool_calls: 1, max_uses: 1, max_tokens: 100 }, 32n],
  ];
  for (const [protocol, bound, calls] of bounds) {
    await using server = startUpstream(() => ({ body: JSON.stringify(WHOLE[protocol]) }));
    await using gateway = start(protocol, server.url, { groups });
    await (await gateway.ask(protocol, prompt(protocol, { ...SEARCH[protocol], ...bound }))).text();
    const { held } = await onlyEntry(gateway);
    const tokens = parseUsd("0.000006") * 1_000_000n + parseUsd("0.00006") * 100n;
    assertEquals(held, tokens + calls * parseUsd("0.01"), `${protocol} ${calls}`);
  }
});

Deno.test("a client that disconnects from a stream pays for the searches in it", async () => {
  const billed = BILLED[0] as Billed;
  const frames = framesOf(billed);
  const end = frames.indexOf("event: response.completed");
  const never = Promise.withResolvers<void>();
  await using server = startUpstream(() => events(frames, { chunkBytes: end, beforeLast: never.promise }));
  await using gateway = start("responses", server.url, {
    models: [model("acme/one", [{ upstream: "one", model: "real-one", protocol: "responses" }], {
      pricing: PRICING,
      on_disconnect: "cancel",
    })],
  });
  const leave = new AbortController();
  const key = await gateway.addKey({ group: "allowed" });
  const requested = prompt("responses", { stream: true, ...billed.asks });
  const response = await gateway.ask("responses", requested, { key, signal: leave.signal });
  const reader = response.body?.getReader();
  let got = "";
  while (!got.includes("Hello there")) got += new TextDecoder().decode((await reader?.read())?.value);
  leave.abort();
  await reader?.cancel().catch(() => {});
  const entry = await onlyEntry(gateway);
  never.resolve();
  assertEquals(entry.ending, "client_disconnected");
  assertEquals(entry.details?.extras, [{ item: "hosted_tools.web_search", count: 2, price: "0.01" }]);
});
