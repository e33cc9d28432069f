/** The reasons of refused requests in the ledger: the rule that an invalid one breaks, and never a text of it. */
import { assert, assertEquals } from "@std/assert";
import { notEntered } from "../../../lib/billing/entry_queue.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { reasonOf } from "../../../lib/request/request_meter.ts";
import { startGateway } from "../../support/gateway.ts";

const MESSAGES = [{ role: "user", content: "Hello" }];
const CONFIG = {
  models: [{
    id: "acme/echo",
    created: 0,
    context_length: 10_000,
    top_provider: { max_completion_tokens: 100 },
    pricing: { prompt: "0", completion: "0" },
    targets: [{ upstream: "embedded", model: "echo" }],
  }],
};

Deno.test("an invalid request has the rule that it breaks in the ledger, and no text of the client", async () => {
  await using gateway = startGateway(CONFIG);
  const secret = "a-word-of-the-client";
  const cases: [body: JsonObject, param: string, rule: string][] = [
    [{ messages: MESSAGES, max_tokens: -5 }, "max_tokens", "Too small: expected number to be >=1"],
    [{ messages: MESSAGES, max_tokens: 101 }, "max_completion_tokens", "at most 100 output tokens for acme/echo"],
    [
      { messages: [{ role: "user", content: [{ type: secret }] }] },
      "messages.other",
      "Expected a part of type text, image_url, input_audio or file",
    ],
    [{ messages: MESSAGES, temperature: secret }, "temperature", "Invalid input: expected number, received string"],
  ];
  for (const [body, param, rule] of cases) {
    const response = await gateway.ask("chat", { model: "acme/echo", ...body });
    await response.body?.cancel();
    assertEquals(response.status, 400);
    await gateway.gateway.ledger.flush();
    const [entry] = (await gateway.store.ledger.entries({ after: 0, limit: 9 })).slice(-1);
    assertEquals([entry?.details?.reason?.param, entry?.details?.reason?.rule], [param, rule]);
    assert(!Deno.inspect(entry, { depth: 9 }).includes(secret), "no text of the client is kept");
  }
});

Deno.test("a request that the ledger could not take says so, and not that a target was missing", () => {
  assertEquals(reasonOf(notEntered(new Error("disk full"))), { code: "unavailable", outage: "ledger" });
});
