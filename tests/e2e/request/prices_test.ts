import { assertEquals } from "@std/assert";
import type { TestGateway, TestKey } from "../../support/gateway.ts";
import { limitedTo, prompt, PROTOCOLS } from "../../upstream/replies.ts";
import { assertSameBill, streamedBill, wholeBill } from "./bills.ts";
import { asking, COST, leftOf, startBudgeted, worth } from "./budgeted.ts";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { KeptEntry } from "../../../lib/store/ledger.ts";

/** Sends a request and returns its entry, after comparing it with the reported bill. */
async function billed(
  gateway: TestGateway,
  { protocol, stream, key }: { protocol: Protocol; stream: boolean; key?: TestKey },
): Promise<KeptEntry> {
  const more = protocol === "chat" && stream ? { stream_options: { include_usage: true } } : {};
  const response = await gateway.ask(protocol, asking(protocol, { stream, ...more }), key === undefined ? {} : { key });
  const text = await response.text();
  assertEquals(response.status, 200, text);
  const entry = await gateway.store.ledger.find(response.headers.get("x-request-id")?.replace("req_", "") ?? "");
  if (entry === undefined) throw new Error("Expected an entry");
  const bill = stream ? streamedBill(protocol, text) : wholeBill(protocol, response, text);
  assertSameBill(bill, entry, `${protocol} ${stream}`);
  return entry;
}

Deno.test("a group pays the catalog's prices times its factor, from its budget too", async () => {
  // 7 tokens of the input, 4 from the cache, 5 of the output.
  const pricing = { prompt: "0.00000015", input_cache_read: "0.0000000375", completion: "0.0000006" };
  const cases: [factor: string, cost: bigint][] = [
    ["1", 7n * 150_000n + 4n * 37_500n + 5n * 600_000n],
    ["2", 14n * 150_000n + 8n * 37_500n + 10n * 600_000n],
    ["999", 999n * (7n * 150_000n + 4n * 37_500n + 5n * 600_000n)],
    ["0.15", 7n * 22_500n + 4n * 5_625n + 5n * 90_000n],
    ["0", 0n],
  ];
  const budget = { usd: "1", period: "total" };
  const groups = Object.fromEntries(cases.map(([factor]) => [`by${factor}`, { price_factor: factor, budget }]));
  await using budgeted = startBudgeted({ row: { pricing }, groups });
  const { gateway } = budgeted;
  for (const [factor, cost] of cases) {
    const key = await gateway.addKey({ group: `by${factor}` });
    let spent = 0n;
    for (const protocol of PROTOCOLS) {
      for (const stream of [false, true]) {
        const entry = await billed(gateway, { protocol, stream, key });
        assertEquals([entry.cost, entry.sheet?.factor, entry.sheet?.prompt], [cost, factor, pricing.prompt]);
        spent += cost;
        const claim = { scope: "group", id: `by${factor}`, budget: 1_000_000_000_000n } as const;
        assertEquals(await leftOf(gateway, claim), 1_000_000_000_000n - spent);
      }
    }
  }
});

Deno.test("a free model is never refused and never capped by a budget", async () => {
  const none = { usd: "0", period: "total" };
  const groups = {
    poor: { budget: none, key_budget: none },
    gratis: { budget: none, key_budget: none, price_factor: "0" },
  };
  await using budgeted = startBudgeted({ groups });
  const { gateway } = budgeted;
  const [poor, gratis, spent] = [
    await gateway.addKey({ group: "poor" }),
    await gateway.addKey({ group: "gratis" }),
    await gateway.addKey(worth(COST)),
  ];
  await billed(gateway, { protocol: "chat", stream: false, key: spent });
  for (const [key, model] of [[poor, "acme/free"], [gratis, "acme/one"], [spent, "acme/free"]] as const) {
    for (const protocol of PROTOCOLS) {
      for (const stream of [false, true]) {
        for (const most of protocol === "messages" ? [900_000] : [900_000, undefined]) {
          const named = most === undefined ? {} : limitedTo(protocol, most);
          const response = await gateway.ask(protocol, prompt(protocol, { model, stream, ...named }), { key });
          const text = await response.text();
          assertEquals(response.status, 200, text);
          assertEquals(response.headers.get("x-sluice-max-tokens"), null);
          if (!stream) assertEquals(response.headers.get("x-sluice-cost"), "0");
          const entry = await gateway.store.ledger.find(
            response.headers.get("x-request-id")?.replace("req_", "") ?? "",
          );
          assertEquals([entry?.cost, entry?.held, entry?.tokens.completion], [0n, 0n, 5]);
        }
      }
    }
    const paid = await gateway.ask("chat", asking("chat"), { key });
    await paid.text();
    assertEquals(paid.status, key === gratis ? 200 : 429);
  }
});
