import { assert, assertEquals, assertMatch } from "@std/assert";
import type { TestProtocol as Protocol } from "../../upstream/replies.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { BudgetClaim } from "../../../lib/store/ledger.ts";
import {
  type GatewayOptions,
  model,
  startGateway,
  type TestGateway,
  type TestKey,
  upstream,
} from "../../support/gateway.ts";
import { prompt, PROTOCOLS } from "../../upstream/replies.ts";
import { frames, whole } from "../../upstream/frames.ts";
import { type FakeUpstream, type ScriptedAnswer, startUpstream, type UpstreamRequest } from "../../upstream/mod.ts";
import { entriesOf, spokenBy, type Way } from "./world.ts";

/** USD in 1e-12 USD. */
function pico(usd: number): bigint {
  return BigInt(Math.round(usd * 1e9)) * 1_000n;
}

function claimOf(scope: "key" | "group", id: string, usd: number): BudgetClaim {
  return { scope, id, budget: pico(usd), since: 0 };
}

interface Bounded extends AsyncDisposable {
  gateway: TestGateway;
  upstream: FakeUpstream;
}

/** A gateway in front of an upstream that answers at once, where `acme/one` costs 0.00001 USD per token of its answers. */
function startBounded(
  { protocol, way }: { protocol: Protocol; way: Way },
  { groups, more = {}, says, options }: {
    groups: JsonObject;
    more?: JsonObject;
    says?: (asked: UpstreamRequest) => ScriptedAnswer;
    options?: GatewayOptions;
  },
): Bounded {
  const spoken = spokenBy(protocol, way);
  const one = startUpstream(
    says ?? (({ stream }) => {
      if (!stream) return { steps: [whole(spoken, "Hello there", "told")] };
      const { opening, pieces, ending } = frames(spoken, ["Hello ", "there"], "told");
      return { steps: [...opening, ...pieces, ...ending] };
    }),
  );
  const vendor = spoken === "messages" ? "anthropic" : "openai";
  const targets = [{ upstream: "one", model: "m" }];
  const gateway = startGateway({
    upstreams: { one: upstream(vendor, one.url, { protocols: [spoken] }) },
    models: [
      model("acme/one", targets, {
        pricing: { prompt: "0", completion: "0.00001" },
        context_length: 200_000,
        top_provider: { max_completion_tokens: 50_000 },
        ...more,
      }),
      model("acme/free", targets),
      model("acme/dear", targets, {
        pricing: { prompt: "0.000001", completion: "0.00001" },
        top_provider: { max_completion_tokens: 50_000 },
      }),
    ],
    groups,
  }, options);
  return {
    gateway,
    upstream: one,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await one[Symbol.asyncDispose]();
    },
  };
}

function budget(usd: string): JsonObject {
  return { usd, period: "total" };
}

async function ask(
  gateway: TestGateway,
  protocol: Protocol,
  more: JsonObject = {},
  key: TestKey = gateway.key,
): Promise<{ status: number; headers: Headers; text: string }> {
  const response = await gateway.ask(protocol, prompt(protocol, more), { key });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

Deno.test("a request beyond its budget is refused in each protocol's terms, and no SDK retries", async () => {
  for (const protocol of PROTOCOLS) {
    const most = { chat: "max_completion_tokens", responses: "max_output_tokens", messages: "max_tokens" }[protocol];
    for (const stream of [false, true]) {
      await using bounded = startBounded({ protocol, way: "relayed" }, {
        groups: { default: { key_budget: budget("0.01") } },
      });
      const { gateway, upstream } = bounded;
      const { status, headers, text } = await ask(gateway, protocol, { [most]: 1_001, stream });
      assertEquals([status, upstream.requests.length], [429, 0], text);
      const { error } = JSON.parse(text);
      assertEquals(
        [error.type, error.code],
        protocol === "messages" ? ["rate_limit_error", undefined] : ["insufficient_quota", "insufficient_quota"],
      );
      assertMatch(
        error.message,
        /^Cannot pay for this request: it may cost up to 0\.01001 USD, more than is left of the budget of this API key \(0\.01 USD in all, of which 0\.01 USD is left\)/,
      );
      assertEquals(
        ["x-should-retry", "retry-after", "retry-after-ms", "x-sluice-cost"].map((name) => headers.get(name)),
        ["false", null, null, "0"],
      );
      assertEquals((await ask(gateway, protocol, { [most]: 1_000, stream })).status, 200);
    }
  }
});

/** The maximum number of tokens that an upstream received. */
function mostOf({ json }: UpstreamRequest): unknown {
  return json.max_completion_tokens ?? json.max_tokens ?? json.max_output_tokens;
}

for (const way of ["relayed", "translated"] as const) {
  for (const protocol of ["chat", "responses"] as const) {
    Deno.test(`${protocol} ${way}: a request without a maximum is capped by the budget, and the upstream is told`, async () => {
      for (const stream of [false, true]) {
        await using bounded = startBounded({ protocol, way }, { groups: { default: { key_budget: budget("0.01") } } });
        const { gateway, upstream } = bounded;
        const { status, headers, text } = await ask(gateway, protocol, { stream });
        assertEquals([status, headers.get("x-sluice-max-tokens")], [200, "1000"], text);
        assertEquals(upstream.requests.map(mostOf), [1_000]);
        if (protocol === "responses" && !stream && way === "translated") {
          assertEquals(JSON.parse(text).max_output_tokens, 1_000);
        }
        const [entry] = await entriesOf(gateway.store.ledger, 1);
        assertEquals([entry?.held, entry?.cost], [pico(0.01), 50_000_000n]);
        // The cost of the first one is missing.
        assertEquals((await ask(gateway, protocol, { stream })).headers.get("x-sluice-max-tokens"), "995");
        assertEquals(await gateway.store.ledger.left(claimOf("key", gateway.key.id, 0.01)), pico(0.0099));
      }
    });
  }
}

Deno.test("the prompt's highest cost is subtracted first", async () => {
  await using bounded = startBounded({ protocol: "chat", way: "relayed" }, {
    groups: { default: { key_budget: budget("0.01") } },
  });
  const { gateway, upstream } = bounded;
  const { headers } = await ask(gateway, "chat", { model: "acme/dear" });
  const [entry] = await entriesOf(gateway.store.ledger, 1);
  const tokens = Number(headers.get("x-sluice-max-tokens"));
  assertEquals(upstream.requests.map(mostOf), [tokens]);
  assert(tokens > 900 && tokens < 1_000, `${tokens}`);
  assert(entry !== undefined && entry.held <= pico(0.01) && entry.held > pico(0.01) - pico(0.00001));
});

Deno.test("a nearly empty budget refuses, and a large one sets no maximum", async () => {
  for (const [usd, status, header] of [["0.00255", 429, null], ["0.00256", 200, "256"], ["0.5", 200, null]] as const) {
    await using bounded = startBounded({ protocol: "chat", way: "relayed" }, {
      groups: { default: { key_budget: budget(usd) } },
    });
    const answer = await ask(bounded.gateway, "chat");
    assertEquals([answer.status, answer.headers.get("x-sluice-max-tokens")], [status, header], usd);
    assertEquals(bounded.upstream.requests.map(mostOf), status === 429 ? [] : [header === null ? undefined : 256]);
  }
});

Deno.test("several answers share the budget", async () => {
  await using bounded = startBounded({ protocol: "chat", way: "relayed" }, {
    groups: { default: { key_budget: budget("0.01") } },
  });
  const { headers } = await ask(bounded.gateway, "chat", { n: 3 });
  assertEquals(headers.get("x-sluice-max-tokens"), "333");
});

Deno.test("budgets of key and group apply together, and a refusal by one holds nothing in the other", async () => {
  await using bounded = startBounded({ protocol: "chat", way: "relayed" }, {
    groups: { default: { budget: budget("0.01"), key_budget: budget("0.006") } },
  });
  const { gateway } = bounded;
  const second = await gateway.addKey();
  const left = async () => [
    await gateway.store.ledger.left(claimOf("key", gateway.key.id, 0.006)),
    await gateway.store.ledger.left(claimOf("key", second.id, 0.006)),
    await gateway.store.ledger.left(claimOf("group", "default", 0.01)),
  ];
  // Its own budget is the smaller one.
  assertMatch((await ask(gateway, "chat", { max_completion_tokens: 700 })).text, /budget of this API key/);
  assertEquals(await left(), [pico(0.006), pico(0.006), pico(0.01)]);
  assertEquals((await ask(gateway, "chat", { max_completion_tokens: 600 })).status, 200);
  assertEquals(await left(), [pico(0.00595), pico(0.006), pico(0.00995)]);
  assertEquals((await ask(gateway, "chat")).headers.get("x-sluice-max-tokens"), "595");
  for (let times = 0; times < 45; times++) {
    await Promise.all([gateway.key, second].map((key) => ask(gateway, "chat", { max_completion_tokens: 300 }, key)));
  }
  const [own = 0n, other = 0n, group = 0n] = await left();
  assertEquals(pico(0.012) - own - other, pico(0.01) - group);
  const third = await gateway.addKey();
  const refused = await ask(gateway, "chat", { max_completion_tokens: 595 }, third);
  assertEquals(refused.status, 429);
  // The message does not reveal what others left.
  assertMatch(refused.text, /budget of group \\"default\\" \(0\.01 USD in all\)\. It does not reset/);
});

Deno.test("free models are never refused, even if a budget is used up or overdrawn", async () => {
  await using bounded = startBounded({ protocol: "chat", way: "relayed" }, {
    groups: { default: { key_budget: budget("0.00005") } },
  });
  const { gateway } = bounded;
  assertEquals((await ask(gateway, "chat", { max_completion_tokens: 5 })).status, 200);
  assertEquals((await ask(gateway, "chat", { max_completion_tokens: 1 })).status, 429);
  for (const protocol of PROTOCOLS) {
    const { status, headers } = await ask(gateway, protocol, { model: "acme/free" });
    assertEquals([status, headers.get("x-sluice-cost"), headers.get("x-sluice-max-tokens")], [200, "0", null]);
  }
  const entries = await entriesOf(gateway.store.ledger, 5);
  assertEquals(entries.slice(2).map(({ cost, held }) => [cost, held]), [[0n, 0n], [0n, 0n], [0n, 0n]]);
});

Deno.test("a request pays the price at its start, with its group's factor", async () => {
  const from = Date.parse("2027-01-01T00:00:00Z");
  let now = from - 1;
  const gate = Promise.withResolvers<void>();
  const { opening, pieces, ending } = frames("chat", ["Hello ", "there"], "told");
  await using bounded = startBounded({ protocol: "chat", way: "relayed" }, {
    groups: { default: {}, dear: { price_factor: "1.25" } },
    more: {
      pricing: { prompt: "0.000002", completion: "0.00001", input_cache_read: "0.000001" },
      price_changes: [{ from: "2027-01-01T00:00:00Z", prompt: "0.000004", completion: "0.00002" }],
    },
    says: ({ stream }) => ({
      steps: stream ? [...opening, ...pieces, gate.promise, ...ending] : [whole("chat", "Hello there", "told")],
    }),
    options: { now: () => now },
  });
  const { gateway } = bounded;
  const dear = await gateway.addKey({ group: "dear" });
  const body = prompt("chat", { stream: true, stream_options: { include_usage: true } });
  const early = await Promise.all([gateway.ask("chat", body), gateway.ask("chat", body, { key: dear })]);
  now = from;
  const costs = [];
  for (const key of [gateway.key, dear]) costs.push((await ask(gateway, "chat", {}, key)).headers.get("x-sluice-cost"));
  gate.resolve();
  for (const response of early) costs.push(/"sluice_cost":"([^"]+)"/.exec(await response.text())?.[1]);
  // 7 prompt tokens, 4 from a cache (at the prompt's price where there is no own price), 5 completion tokens.
  assertEquals(costs, ["0.000144", "0.00018", "0.000068", "0.000085"]);
  const entries = await entriesOf(gateway.store.ledger, 4);
  assertEquals(entries.map(({ sheet, cost }) => [sheet?.completion, sheet?.factor, cost]), [
    ["0.00002", "1", 144_000_000n],
    ["0.00002", "1.25", 180_000_000n],
    ["0.00001", "1", 68_000_000n],
    ["0.00001", "1.25", 85_000_000n],
  ]);
});

Deno.test("a budget resets with its period, and a request counts in the period it began in", async () => {
  let now = Date.parse("2026-11-30T23:59:59Z");
  const gate = Promise.withResolvers<void>();
  const { opening, pieces, ending } = frames("chat", ["Hello ", "there"], "told");
  await using bounded = startBounded({ protocol: "chat", way: "relayed" }, {
    groups: { default: { key_budget: { usd: "0.01", period: "month" } } },
    says: ({ stream }) => ({
      steps: stream ? [...opening, ...pieces, gate.promise, ...ending] : [whole("chat", "Hello there", "told")],
    }),
    options: { now: () => now },
  });
  const { gateway } = bounded;
  const late = await gateway.ask("chat", prompt("chat", { stream: true, max_completion_tokens: 1_000 }));
  const refused = await ask(gateway, "chat", { max_completion_tokens: 1_000 });
  assertMatch(
    refused.text,
    /per month, of which 0 USD is left and 0\.01 USD is held.*It resets on 2026-12-01 at 00:00 UTC/,
  );
  now += 1_000;
  assertEquals((await ask(gateway, "chat", { max_completion_tokens: 1_000 })).status, 200);
  gate.resolve();
  await late.text();
  await entriesOf(gateway.store.ledger, 3);
  const day = Math.floor(now / 86_400_000);
  const claim = (since: number) => ({ scope: "key" as const, id: gateway.key.id, budget: pico(0.01), since });
  assertEquals(await gateway.store.ledger.left(claim(day)), pico(0.00995));
  assertEquals(await gateway.store.ledger.left(claim(day - 30)), pico(0.0099));
});
