import { assertEquals, assertStringIncludes } from "@std/assert";
import { explainRequest } from "../../../lib/billing/reports/explain.ts";
import type { EndedRequest } from "../../../lib/billing/reports/request_schemas.ts";
import { explanationText } from "../../../lib/billing/reports/explain_text.ts";
import type { Entry, EntryAttempt, EntryDetails, EntryReason, ReasonCode } from "../../../lib/store/ledger.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { key } from "../../store/behaviours_keys.ts";
import { DAY_ONE, entryOf, freeEntryOf, SHEET, tokensOf } from "./entries.ts";

/** A store in which the key of the entries has a name. */
const NAMED = { keys: { findIds: () => Promise.resolve([key({ name: "anna" })]) }, config: { keys: [] } };

/** The explanation of one entry, through a ledger. */
async function explain(entry: Entry, named?: typeof NAMED): Promise<EndedRequest> {
  const ledger = openMemoryStore().ledger;
  await ledger.append([entry]);
  const explanation = await explainRequest(ledger, entry.id, named);
  if (explanation?.state !== "ended") throw new Error("Cannot explain what was entered");
  return explanation;
}

Deno.test("explainRequest() shows the arithmetic of every class, exactly", async () => {
  const tokens = tokensOf({
    prompt: 1234,
    input_cache_read: 400,
    input_cache_write_5m: 8,
    input_cache_write_1h: 5,
    completion: 56,
    reasoning: 20,
  });
  const { lines, sum_usd, charged_usd, adds_up, cache_saved_usd } = await explain(entryOf({ tokens }));
  assertEquals(lines.map(({ class: name, tokens, amount_usd }) => [name, tokens, amount_usd]), [
    ["prompt", 1234, "0.001234"],
    ["input_cache_read", 400, "0.00004"],
    ["input_cache_write_5m", 8, "0.00001"],
    ["input_cache_write_1h", 5, "0.00001"],
    ["completion", 56, "0.000448"],
  ]);
  assertEquals([sum_usd, charged_usd, adds_up], ["0.001742", "0.001742", true]);
  // 413 tokens as plain prompt tokens would be 0.000413 USD; the cache's classes are 0.00006 USD.
  assertEquals(cache_saved_usd, "0.000353");
});

Deno.test("explanationText() writes one line of arithmetic per class", async () => {
  const text = explanationText(await explain(entryOf(), NAMED));
  for (
    const line of [
      "Request:      req_r1",
      "Key:          anna (key_1)",
      "Time:         first output after 210 ms, end after 1,830 ms",
      "Prompt cache: saved 0.00036 USD",
      "Reasoning:    20 of the completion tokens",
      "Token counts: reported by the upstream",
      "Ledger:       entry 1, price version 1",
      "  1,234 prompt tokens x 0.00000125 USD x 0.8 = 0.001234 USD",
      "  400 tokens read from the cache x 0.000000125 USD x 0.8 = 0.00004 USD",
      "  56 completion tokens x 0.00001 USD x 0.8 = 0.000448 USD",
      "  Sum: 0.001722 USD",
      "  Held: nothing",
      "  Charged: 0.001722 USD",
    ]
  ) assertStringIncludes(text, `${line}\n`);
});

Deno.test("explanationText() shows neither upstream nor time for a lost request", async () => {
  const lost = freeEntryOf({ ending: "lost", status: 0, upstream: "", attempts: 0, firstMs: undefined, totalMs: 0 });
  const text = explanationText(await explain(lost));
  for (const name of ["Upstream", "Time"]) assertStringIncludes(text, `${`${name}:`.padEnd(14)}unknown\n`);
});

Deno.test("explanationText() does not blame permissions for an invalid request", async () => {
  const entry = freeEntryOf({ ending: "refused", status: 400, model: "", upstream: "", attempts: 0 });
  assertStringIncludes(explanationText(await explain(entry)), "Model:        none was chosen\n");
});

Deno.test("explanationText() shows the time outside of the attempts", async () => {
  const attempts = [{ upstream: "one", model: "acme/one", outcome: "success", ms: 40 }];
  const late = entryOf({ firstMs: 3_240, totalMs: 3_300, details: { attempts } });
  assertStringIncludes(
    explanationText(await explain(late)),
    "Time:         first output after 3,240 ms (3,200 ms of it outside of the attempts), end after 3,300 ms\n",
  );
});

Deno.test("explanationText() omits a factor of 1 and formats large counts with commas", async () => {
  const sheet = { ...SHEET, factor: "1" };
  const text = explanationText(
    await explain(entryOf({ sheet, tokens: tokensOf({ prompt: 1_234_567, completion: 1 }) })),
  );
  assertStringIncludes(text, "  1,234,567 prompt tokens x 0.00000125 USD = 1.54320875 USD\n");
  assertStringIncludes(text, "  1 completion token x 0.00001 USD = 0.00001 USD\n");
  assertStringIncludes(text, "Key:          key_1\n");
  const empty = explanationText(await explain(entryOf({ tokens: tokensOf({ completion: 2_000, reasoning: 2_000 }) })));
  assertStringIncludes(empty, "Reasoning:    all 2,000 completion tokens: none is left for an answer\n");
});

Deno.test("explainRequest() shows held, released and overrun amounts", async () => {
  const enough = await explain(entryOf({ held: 10_000_000_000n }));
  assertEquals([enough.held_usd, enough.released_usd, enough.overrun_usd], ["0.01", "0.008278", "0"]);
  const short = await explain(entryOf({ held: 1_000_000_000n }));
  assertEquals([short.held_usd, short.released_usd, short.overrun_usd], ["0.001", "0", "0.000722"]);
  assertEquals([short.sum_usd, short.charged_usd, short.adds_up], ["0.001722", "0.001", true]);
  const text = explanationText(short);
  assertStringIncludes(text, "  Held: 0.001 USD, of which 0 USD was released\n");
  assertStringIncludes(text, "  Beyond the held amount: 0.000722 USD, paid by the operator\n");
});

Deno.test("explainRequest() explains why nothing was charged", async () => {
  const cases: [Entry, string][] = [
    [
      freeEntryOf({ ending: "refused", status: 429, upstream: "", attempts: 0 }),
      "it was refused before any upstream was asked",
    ],
    [freeEntryOf({ ending: "failed" }), "it failed, and failed requests are not charged"],
    [freeEntryOf({ ending: "lost" }), "the process ended before the request did"],
    [
      freeEntryOf({ ending: "client_disconnected", status: 499 }),
      "the client disconnected before it received any of the answer",
    ],
    [
      entryOf({ ending: "done", source: "none", tokens: tokensOf() }),
      "it repeated a request with the same Idempotency-Key",
    ],
    [entryOf({ sheet: { ...SHEET, factor: "0" } }), "its tokens are free at these prices"],
  ];
  for (const [entry, why] of cases) {
    const explanation = await explain(entry);
    assertEquals([explanation.charged_usd, explanation.why_free], ["0", why]);
    assertStringIncludes(explanationText(explanation), `  Charged: 0 USD (${why})\n`);
  }
  assertEquals((await explain(entryOf())).why_free, null);
});

Deno.test("explainRequest() shows extras, and sizes that differ from the requested ones", async () => {
  const entry = entryOf({
    endpoint: "images.edits",
    source: "formula",
    images: 3,
    tokens: tokensOf({ prompt: 9, completion: 2 * 5_488 + 7_024 }),
    details: {
      extras: [{ item: "input_image", count: 1_510, price: "0.0000015" }, {
        item: "web_search",
        count: 2,
        price: "0.01",
      }],
      image_sizes: { asked: "1024x1024", delivered: ["1536x1024", "1024x1024", "1536x1024"] },
    },
  });
  const explanation = await explain(entry);
  const lines = explanation.lines.map(({ class: name, tokens, amount_usd }) => [name, tokens, amount_usd]);
  assertEquals(lines, [
    ["prompt", 9, "0.000009"],
    ["completion", 18_000, "0.144"],
    ["input_image", 1_510, "0.001812"],
    ["web_search", 2, "0.016"],
  ]);
  assertEquals([explanation.sum_usd, explanation.adds_up], ["0.161821", true]);
  const text = explanationText(explanation);
  for (
    const line of [
      "Image sizes:  asked for 1024x1024, delivered 1536x1024 (2 times), 1024x1024; billed by the size delivered",
      "  1,510 tokens of uploaded images x 0.0000015 USD x 0.8 = 0.001812 USD",
      "  2 web_search x 0.01 USD x 0.8 = 0.016 USD",
    ]
  ) assertStringIncludes(text, `${line}\n`);
  const same = { asked: "1024x1024", delivered: ["1024x1024"] };
  const usual = await explain(entryOf({ images: 1, details: { image_sizes: same } }));
  assertEquals([usual.image_sizes, explanationText(usual).includes("Image sizes")], [same, false]);
});

Deno.test("explainRequest() reports an entry that does not add up", async () => {
  const explanation = await explain({ ...entryOf(), cost: 1n });
  assertEquals(explanation.adds_up, false);
  assertStringIncludes(explanationText(explanation), "This does not add up");
});

Deno.test("explainRequest() finds ended and running requests, with or without req_", async () => {
  const ledger = openMemoryStore().ledger;
  await ledger.append([entryOf()]);
  for (const id of ["r1", "req_r1"]) assertEquals((await explainRequest(ledger, id))?.id, "req_r1");
  for (const id of ["r2", "req_req_r1", ""]) assertEquals(await explainRequest(ledger, id), undefined);
  await ledger.hold({
    id: "r3",
    at: DAY_ONE,
    keyId: "key_1",
    group: "default",
    model: "acme/one",
    endpoint: "chat",
    amount: 5_000_000_000n,
    claims: [{ scope: "key", id: "key_1", budget: 10n ** 12n, since: 0 }],
    leaseUntil: Date.now() + 60_000,
  });
  const running = await explainRequest(ledger, "req_r3");
  assertEquals(running?.state, "running");
  if (running !== undefined) {
    assertStringIncludes(explanationText(running), "State:        running; 0.005 USD is held for it\n");
  }
});

Deno.test("explainRequest() explains refusals in one sentence", async () => {
  const limit = { id: "key_1", unit: "requests", limit: 5, needed: 1, remaining: 0, free_after_ms: 11_940 } as const;
  const budget = {
    scope: "key",
    id: "key_1",
    period: "month",
    budget_usd: "10",
    left_usd: "0.5",
    held_usd: "1.5",
    needed_usd: "0.75",
    resets_on: "2026-12-01",
  } as const;
  const cases: [EntryReason, string][] = [
    [
      { code: "limit", limit: { scope: "key", ...limit }, set_by: "group" },
      'key "anna" is limited to 5 requests per minute (group default, key_limits); the next slot was free 12 s later',
    ],
    [
      { code: "limit", limit: { scope: "key", ...limit, unit: "concurrency", free_after_ms: 150 }, set_by: "key" },
      'key "anna" is limited to 5 concurrent requests (limits of its own); a slot is free once one of the running requests ends',
    ],
    [
      { code: "limit", limit: { ...limit, scope: "group", id: "default", unit: "tokens", needed: 3 } },
      'group "default" is limited to 5 tokens per minute (limits of the group); the request needs up to 3, and there ' +
      "was room 12 s later",
    ],
    [
      { code: "limit", limit: { scope: "model", id: "acme/one", unit: "tokens", limit: 5, needed: 9 } },
      'model "acme/one" is limited to 5 tokens per minute (limits of the model); the request needs 9, so waiting does not help',
    ],
    [
      { code: "budget", budget, set_by: "group" },
      'key "anna" has a budget of 10 USD per month (group default, key_budget) with 0.5 USD left and 1.5 USD held for ' +
      "running requests; the request could cost up to 0.75 USD, and the budget resets on 2026-12-01",
    ],
    [
      { code: "permission", permission: { of: "model", name: "acme/one" } },
      'key "anna" may not use the model "acme/one" (group default)',
    ],
    [{ code: "invalid", param: "temperature" }, 'the request is not valid, parameter "temperature"'],
    [
      {
        code: "unavailable",
        targets: [
          { upstream: "one", model: "acme/one", why: "open", wait_ms: 4_200 },
          { upstream: "two", model: "acme/one", why: "quarantined", wait_ms: 60_000 },
        ],
      },
      "no target was available: one (its circuit breaker was open; 4.2 s left), two (it refused the gateway's key; 60 s left)",
    ],
    [
      { code: "invalid", param: "max_tokens", rule: "Expected at least 1" },
      'the request is not valid, parameter "max_tokens": Expected at least 1',
    ],
    [{ code: "unavailable", outage: "ledger", error: "overloaded" }, "the gateway could not write its ledger"],
    [{ code: "unavailable", outage: "store" }, "the store of keys and the ledger was unreachable"],
    [{ code: "unavailable", outage: "limits_store" }, "the limits store was unreachable"],
    [{ code: "body_too_large" }, "the request body is too large"],
  ];
  for (const [reason, sentence] of cases) {
    const ledger = openMemoryStore().ledger;
    await ledger.append([
      freeEntryOf({
        ending: "refused",
        details: { reason, dropped: ["top_k", "seed"], max_tokens: 1_300, user: "u 1", tags: ["a", "b"] },
      }),
    ]);
    const explanation = await explainRequest(ledger, "r1", NAMED);
    if (explanation?.state !== "ended") throw new Error("Cannot explain what was entered");
    assertEquals(explanation.why, `Refused: ${sentence}`);
    assertEquals([explanation.reason, explanation.user, explanation.tags], [reason, "u 1", ["a", "b"]]);
    const text = explanationText(explanation);
    for (
      const line of [
        `Refused: ${sentence}`,
        "Dropped:      top_k, seed",
        "Output limit: 1,300 tokens: the budget did not cover more",
        "User:         u 1",
        "Tags:         a, b",
      ]
    ) {
      assertStringIncludes(text, `${line}\n`);
    }
  }
});

Deno.test("explainRequest() shows a reason of another release by its code", async () => {
  const entry = freeEntryOf({ ending: "failed", details: { reason: { code: "of_tomorrow" as ReasonCode } } });
  assertEquals((await explain(entry)).why, "Failed: of_tomorrow");
});

Deno.test("explainRequest() gives the facts of the last attempt as the cause of a failure", async () => {
  const failedWith = async (reason: EntryReason, attempt: Partial<EntryAttempt>) => {
    const attempts = [{ upstream: "one", model: "acme/one", outcome: "failure", ms: 12, ...attempt }];
    return (await explain(freeEntryOf({ ending: "failed", details: { reason, attempts } }))).why;
  };
  assertEquals(
    await failedWith({ code: "upstream_failed" }, { status: 401, code: "invalid_api_key", request_id: "v1" }),
    "Failed: the upstream failed (status 401, invalid_api_key)",
  );
  assertEquals(
    await failedWith({ code: "upstream_rejected", error: "model_not_found" }, { status: 404, message: "No model" }),
    'Failed: the upstream rejected the request (status 404, "No model")',
  );
  assertEquals(
    await failedWith({ code: "upstream_failed", error: "upstream_refused" }, {}),
    "Failed: the upstream failed (upstream_refused)",
  );
});

Deno.test("explanationText() lists the attempts, and the reason for each next one", async () => {
  const attempts = [
    { upstream: "one", model: "acme/one", outcome: "unreachable", ms: 12, message: "Cannot connect" },
    {
      upstream: "one",
      model: "acme/one",
      outcome: "limited",
      ms: 3,
      status: 429,
      code: "slow",
      retry_after_ms: 30_000,
    },
    { upstream: "two", model: "acme/one", outcome: "failure", ms: 5, status: 500, message: "oops" },
    { upstream: "two", model: "acme/b", outcome: "success", ms: 40 },
  ];
  const text = explanationText(await explain(entryOf({ attempts: 4, details: { attempts } })));
  assertStringIncludes(
    text,
    `
Attempts:
  1. one, acme/one: no connection could be made after 12 ms ("Cannot connect"); the upstream was tried again
  2. one, acme/one: at its limit after 3 ms (status 429, slow, retry after 30 s); the next target was tried
  3. two, acme/one: failed after 5 ms (status 500, "oops"); the next model, acme/b, was tried
  4. two, acme/b: answered after 40 ms
`,
  );
});

Deno.test("explanationText() shows the limit at which an answer ended for the client and for the budget", async () => {
  const limitOf = async (details: EntryDetails) =>
    /Output limit: (.*)/.exec(explanationText(await explain(entryOf({ ending: "length", details }))))?.[1];
  assertEquals(await limitOf({ requested_max_tokens: 1_600 }), "1,600 tokens: the client asked for no more");
  assertEquals(await limitOf({ max_tokens: 20 }), "20 tokens: the budget did not cover more");
  assertEquals(await limitOf({}), undefined);
});
