import { assert, assertEquals, assertMatch, assertObjectMatch } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { MIN_OUTPUT } from "../../../lib/billing/token_bound.ts";
import type { KeptEntry } from "../../../lib/store/ledger.ts";
import type { TestGateway } from "../../support/gateway.ts";
import { rounds } from "../../support/skip.ts";
import { limitedTo, prompt, PROTOCOLS } from "../../upstream/replies.ts";
import { answer, asking, COST, leftOf, PRICE, startBudgeted, worth } from "./budgeted.ts";
import { usd } from "./bills.ts";

/** Tokens that a budget pays for: more than the minimum for a request, less than the model's maximum. */
const TOKENS = 300;
const BUDGET = BigInt(TOKENS) * PRICE;

/** Protocols that do not require a maximum number of tokens. */
const OPEN = ["chat", "responses", "gemini"] as const;

const CUT = {
  chat: /"finish_reason":"length"/,
  responses: /max_output_tokens/,
  gemini: /"finishReason":"MAX_TOKENS"/,
} as const;

async function entryOf({ store }: TestGateway, response: Response): Promise<KeptEntry | undefined> {
  return await store.ledger.find(response.headers.get("x-request-id")?.replace("req_", "") ?? "");
}

Deno.test("a request without a maximum gets the tokens that its budget pays for, and its upstream is told, in every protocol", async () => {
  for (const spoken of PROTOCOLS) {
    await using budgeted = startBudgeted({ spoken, says: answer(spoken) });
    const { gateway, upstream } = budgeted;
    for (const protocol of OPEN) {
      for (const stream of [false, true]) {
        for (const unsaid of [{}, limitedTo(protocol, null)]) {
          const about = `${protocol} to ${spoken}, ${stream}, ${JSON.stringify(unsaid)}`;
          const key = await gateway.addKey(worth(BUDGET));
          const response = await gateway.ask(protocol, prompt(protocol, { stream, ...unsaid }), { key });
          const text = await response.text();
          assertEquals([response.status, response.headers.get("x-sluice-max-tokens")], [200, `${TOKENS}`], about);
          assertObjectMatch(upstream.requests.at(-1)?.json ?? {}, limitedTo(spoken, TOKENS), about);
          // An answer in this protocol repeats the request; a relayed one is the upstream's own.
          if (protocol === "responses" && spoken !== protocol) {
            assert(text.includes(`"max_output_tokens":${TOKENS}`), `${about}: ${text}`);
          }
          const entry = await entryOf(gateway, response);
          assertEquals([entry?.held, entry?.cost, entry?.details?.max_tokens], [BUDGET, COST, TOKENS], about);
          assertEquals(await leftOf(gateway, { id: key.id, budget: BUDGET }), BUDGET - COST, about);
        }
      }
    }
  }
});

/** A request without a maximum, and the expected result. */
interface Case {
  name: string;
  body?: JsonObject;
  row?: JsonObject;
  /** Budget of the request's key. */
  budget: bigint;
  /** Budget of the key's group. */
  group?: bigint;
  /** The maximum that is set for it; absent: none. */
  cap?: number;
  held: bigint;
}

const MODEL_MOST = 280;
const most = (tokens: number) => ({ top_provider: { max_completion_tokens: tokens } });
const worthOf = (tokens: number) => BigInt(tokens) * PRICE;

const CASES: readonly Case[] = [
  { name: "all of the rest", budget: BUDGET, cap: TOKENS, held: BUDGET },
  { name: "fractions of a token are rounded down", budget: BUDGET + PRICE - 1n, cap: TOKENS, held: BUDGET },
  { name: "the minimum", budget: worthOf(MIN_OUTPUT), cap: MIN_OUTPUT, held: worthOf(MIN_OUTPUT) },
  { name: "the group has the smaller budget", budget: BUDGET, group: worthOf(290), cap: 290, held: worthOf(290) },
  { name: "the key has the smaller budget", budget: worthOf(290), group: BUDGET, cap: 290, held: worthOf(290) },
  { name: "as much as the model can write", budget: BUDGET, row: most(TOKENS), held: BUDGET },
  { name: "more than the model can write", budget: BUDGET, row: most(MODEL_MOST), held: worthOf(MODEL_MOST) },
  {
    name: "less than the minimum, for a model with a smaller maximum",
    budget: BUDGET,
    row: most(10),
    held: worthOf(10),
  },
  { name: "each of two answers", budget: 2n * BUDGET + PRICE, body: { n: 2 }, cap: TOKENS, held: 2n * BUDGET },
  { name: "a named maximum", budget: BUDGET, body: { max_completion_tokens: 7 }, held: worthOf(7) },
  { name: "by its older name", budget: BUDGET, body: { max_tokens: 7 }, held: worthOf(7) },
  { name: "an older name without a number", budget: BUDGET, body: { max_tokens: null }, cap: TOKENS, held: BUDGET },
];

for (const { name, body = {}, row = {}, budget, group, cap, held } of CASES) {
  Deno.test(`the maximum for a request without one: ${name}`, async () => {
    const groups = group === undefined ? {} : { small: { budget: { usd: usd(group), period: "total" } } };
    await using budgeted = startBudgeted({ groups, row });
    const { gateway, upstream } = budgeted;
    const key = await gateway.addKey({ ...(group !== undefined && { group: "small" }), ...worth(budget) });
    const response = await gateway.ask("chat", prompt("chat", body), { key });
    assertEquals(response.status, 200, await response.text());
    assertEquals(response.headers.get("x-sluice-max-tokens"), cap === undefined ? null : String(cap));
    const sent = cap === undefined ? body : { ...body, max_completion_tokens: cap };
    for (const member of ["max_completion_tokens", "max_tokens"]) {
      assertEquals(upstream.requests[0]?.json[member], (sent as JsonObject)[member], member);
    }
    const entry = await entryOf(gateway, response);
    assertEquals([entry?.held, entry?.details?.max_tokens], [held, cap]);
  });
}

Deno.test("a request whose budget pays for too few tokens is refused and reaches no upstream", async () => {
  await using budgeted = startBudgeted();
  const { gateway, upstream } = budgeted;
  for (const protocol of OPEN) {
    for (const [budget, more] of [[worthOf(MIN_OUTPUT) - 1n, {}], [0n, {}]] as const) {
      const key = await gateway.addKey(worth(budget));
      const response = await gateway.ask(protocol, prompt(protocol, more), { key });
      const { error } = await response.json();
      const code = protocol === "gemini" ? 429 : "insufficient_quota";
      assertEquals([response.status, error.code], [429, code]);
      assertMatch(error.message, /it may cost up to 10 USD, more than is left/);
      assertEquals(response.headers.get("x-sluice-max-tokens"), null);
    }
  }
  const key = await gateway.addKey(worth(2n * worthOf(MIN_OUTPUT) - 1n));
  const two = await gateway.ask("chat", prompt("chat", { n: 2 }), { key });
  assertEquals([two.status, upstream.requests.length], [429, 0]);
  await two.text();
});

Deno.test("a named maximum is never reduced: an unaffordable one is refused", async () => {
  await using budgeted = startBudgeted();
  const { gateway, upstream } = budgeted;
  for (const protocol of PROTOCOLS) {
    const key = await gateway.addKey(worth(BUDGET));
    const refused = await gateway.ask(protocol, asking(protocol, limitedTo(protocol, TOKENS + 1)), { key });
    assertEquals(refused.status, 429, await refused.text());
    const paid = await gateway.ask(protocol, asking(protocol, limitedTo(protocol, TOKENS)), { key });
    await paid.text();
    assertEquals([paid.status, paid.headers.get("x-sluice-max-tokens")], [200, null]);
  }
  assertEquals(upstream.requests.length, PROTOCOLS.length);
});

Deno.test("the input is paid first, at its most expensive class, and the cap is exact to the token", async () => {
  const pricing = { prompt: "0.000003", completion: "0.00001", input_cache_write_1h: "0.000006" };
  for (const protocol of OPEN) {
    await using budgeted = startBudgeted({ row: { pricing } });
    const { gateway, upstream } = budgeted;
    for (const length of [1, 500]) {
      // The input's 500 bytes would be 0.003 USD.
      const budget = 12_345_678_901n;
      const key = await gateway.addKey(worth(budget));
      const text = "x".repeat(length);
      const response = await gateway.ask(protocol, prompt(protocol, {}, text), { key });
      assertEquals(response.status, 200, await response.text());
      const cap = Number(response.headers.get("x-sluice-max-tokens"));
      const { held = 0n } = await entryOf(gateway, response) ?? {};
      assert(held <= budget && held + PRICE > budget, `${held}`);
      assert(held - BigInt(cap) * PRICE >= BigInt(length) * 6_000_000n);
      assertEquals(upstream.requests.at(-1)?.json.max_completion_tokens, cap);
    }
  }
});

Deno.test("the embedded model stops at the budget", async () => {
  await using budgeted = startBudgeted({ row: { targets: [{ upstream: "embedded", model: "echo" }] } });
  const { gateway } = budgeted;
  for (const protocol of OPEN) {
    for (const stream of [false, true]) {
      const key = await gateway.addKey(worth(BUDGET));
      const text = "one two three ".repeat(200);
      const response = await gateway.ask(protocol, prompt(protocol, { stream }, text), { key });
      assertEquals(response.headers.get("x-sluice-max-tokens"), `${TOKENS}`);
      assertMatch(await response.text(), CUT[protocol]);
      const entry = await entryOf(gateway, response);
      assertEquals([entry?.ending, entry?.tokens.completion, entry?.cost], ["length", TOKENS, BUDGET]);
      const next = await gateway.ask(protocol, prompt(protocol), { key });
      assertEquals(next.status, 429, await next.text());
    }
  }
});

Deno.test("a request without a maximum is not refused because of concurrent small ones", async () => {
  await using budgeted = startBudgeted();
  const { gateway } = budgeted;
  for (let round = 1; round <= rounds(20); round++) {
    // Small ones take less than half of it: there is always enough for the minimum.
    const key = await gateway.addKey(worth(2n * BUDGET));
    const responses = await Promise.all(Array.from({ length: 64 }, async (_, index) => {
      const small = index !== 32;
      const response = await gateway.ask("chat", small ? asking("chat") : prompt("chat"), { key });
      await response.text();
      return small ? 200 : response.status;
    }));
    assertEquals(responses.filter((status) => status === 429).length, 0, `round ${round}`);
  }
});
