import { assertEquals, assertMatch } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { TestGateway } from "../../support/gateway.ts";
import { frames } from "../../upstream/frames.ts";
import { limitedTo, prompt, PROTOCOLS } from "../../upstream/replies.ts";
import { answer, leftOf, PRICE, startBudgeted } from "./budgeted.ts";
import { until } from "../../support/soon.ts";
import { entriesOf } from "./world.ts";

async function ask(
  gateway: TestGateway,
  protocol: Protocol,
  more: JsonObject,
): Promise<{ status: number; headers: Headers; text: string }> {
  const response = await gateway.ask(protocol, prompt(protocol, more));
  return { status: response.status, headers: response.headers, text: await response.text() };
}

Deno.test("a request beyond its budget is refused in each protocol's terms, and no SDK retries", async () => {
  for (const protocol of PROTOCOLS) {
    for (const stream of [false, true]) {
      await using budgeted = startBudgeted({
        spoken: protocol,
        says: answer(protocol),
        groups: { default: { key_budget: { usd: "0.01", period: "total" } } },
      });
      const { gateway, upstream } = budgeted;
      const { status, headers, text } = await ask(gateway, protocol, { ...limitedTo(protocol, 1_001), stream });
      assertEquals([status, upstream.requests.length], [429, 0], text);
      const { error } = JSON.parse(text);
      const words: Readonly<Record<Protocol, unknown[]>> = {
        chat: ["insufficient_quota", "insufficient_quota", undefined],
        responses: ["insufficient_quota", "insufficient_quota", undefined],
        messages: ["rate_limit_error", undefined, undefined],
        gemini: [undefined, 429, "RESOURCE_EXHAUSTED"],
      };
      assertEquals([error.type, error.code, error.status], words[protocol]);
      assertMatch(
        error.message,
        /^Cannot pay for this request: it may cost up to 0\.01001 USD, more than is left of the budget of this API key \(0\.01 USD in total, of which 0\.01 USD is left\)/,
      );
      assertEquals(
        ["x-should-retry", "retry-after", "retry-after-ms", "x-sluice-cost"].map((name) => headers.get(name)),
        ["false", null, null, "0"],
      );
      assertEquals((await ask(gateway, protocol, { ...limitedTo(protocol, 1_000), stream })).status, 200);
    }
  }
});

Deno.test("a budget resets with its period, and a request counts in the period it began in", async () => {
  let now = Date.parse("2026-11-30T23:59:59Z");
  const gate = Promise.withResolvers<void>();
  const { opening, pieces, ending } = frames("chat", ["Hello ", "there"], "reported");
  await using budgeted = startBudgeted({
    groups: { default: { key_budget: { usd: "0.01", period: "month" } } },
    says: (request) =>
      request.stream ? { steps: [...opening, ...pieces, gate.promise, ...ending] } : answer("chat")(request),
    now: () => now,
  });
  const { gateway } = budgeted;
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
  const left = (since: number) => leftOf(gateway, { id: gateway.key.id, budget: 1_000n * PRICE, since });
  assertEquals([await left(day), await left(day - 30)], [995n * PRICE, 990n * PRICE]);
});

/** Begins a chat request, and returns a function that sends the rest of it. */
function beginAsking({ url, key }: TestGateway, more: JsonObject): () => Promise<Response> {
  const { readable, writable } = new TransformStream<string, string>();
  const writer = writable.getWriter();
  const body = JSON.stringify(prompt("chat", more));
  void writer.write(body.slice(0, 9));
  const answered = fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key.key}`, "content-type": "application/json" },
    body: readable.pipeThrough(new TextEncoderStream()),
  });
  return async () => {
    await writer.write(body.slice(9));
    await writer.close();
    return await answered;
  };
}

Deno.test("a request that is read across midnight has the budget and the prices of its arrival", async () => {
  const midnight = Date.parse("2026-11-21T00:00:00Z");
  let now = midnight - 1_000;
  await using budgeted = startBudgeted({
    groups: { default: { key_budget: { usd: "0.01", period: "day" } } },
    row: { price_changes: [{ from: new Date(midnight).toISOString(), prompt: "0", completion: "0.000001" }] },
    now: () => now,
  });
  const { gateway } = budgeted;
  const { inFlight } = gateway.gateway;
  const late = Array.from({ length: 3 }, () => beginAsking(gateway, { max_completion_tokens: 1_000 }));
  await until("three requests", () => inFlight.count() === 3);
  now = midnight;
  const statuses: number[] = [];
  for (const finish of late) {
    const response = await finish();
    await response.body?.cancel();
    statuses.push(response.status);
  }
  // The first answer costs half a percent of the budget, so the rest does not cover the highest cost of another one.
  assertEquals(statuses, [200, 429, 429]);
  assertEquals((await ask(gateway, "chat", { max_completion_tokens: 1_000 })).status, 200);
  const entries = await entriesOf(gateway.store.ledger, 4);
  assertEquals(entries.flatMap(({ cost, sheet }) => cost > 0n ? [sheet?.completion] : []), ["0.00001", "0.000001"]);
});
