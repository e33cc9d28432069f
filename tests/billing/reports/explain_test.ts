import { assertEquals, assertStringIncludes } from "@std/assert";
import { type EndedRequest, explainRequest } from "../../../lib/billing/reports/explain.ts";
import { explanationText } from "../../../lib/billing/reports/explain_text.ts";
import type { Entry } from "../../../lib/store/ledger.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { DAY_ONE, entryOf, freeEntryOf, SHEET, tokensOf } from "./entries.ts";

/** The explanation of one entry, through a ledger. */
async function explain(entry: Entry): Promise<EndedRequest> {
  const ledger = openMemoryStore().ledger;
  await ledger.append([entry]);
  const explanation = await explainRequest(ledger, entry.id);
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
  const { lines, sum_usd, charged_usd, adds_up } = await explain(entryOf({ tokens }));
  assertEquals(lines.map(({ class: name, tokens, amount_usd }) => [name, tokens, amount_usd]), [
    ["prompt", 1234, "0.001234"],
    ["input_cache_read", 400, "0.00004"],
    ["input_cache_write_5m", 8, "0.00001"],
    ["input_cache_write_1h", 5, "0.00001"],
    ["completion", 56, "0.000448"],
  ]);
  assertEquals([sum_usd, charged_usd, adds_up], ["0.001742", "0.001742", true]);
});

Deno.test("explanationText() writes one line of arithmetic per class", async () => {
  const text = explanationText(await explain(entryOf()), { keyName: "ci" });
  for (
    const line of [
      "Request:      req_r1",
      "Key:          ci (key_1)",
      "Time:         first output after 210 ms, end after 1,830 ms",
      "Reasoning:    20 of the completion tokens",
      "Numbers:      the upstream told them",
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

Deno.test("a factor of 1 is left out of the text, and large counts have commas", async () => {
  const sheet = { ...SHEET, factor: "1" };
  const text = explanationText(await explain(entryOf({ sheet, tokens: tokensOf({ prompt: 1_234_567 }) })));
  assertStringIncludes(text, "  1,234,567 prompt tokens x 0.00000125 USD = 1.54320875 USD\n");
  assertStringIncludes(text, "Key:          key_1\n");
});

Deno.test("explainRequest() tells what was held, released and paid by the house", async () => {
  const enough = await explain(entryOf({ held: 10_000_000_000n }));
  assertEquals([enough.held_usd, enough.released_usd, enough.overrun_usd], ["0.01", "0.008278", "0"]);
  const short = await explain(entryOf({ held: 1_000_000_000n }));
  assertEquals([short.held_usd, short.released_usd, short.overrun_usd], ["0.001", "0", "0.000722"]);
  assertEquals([short.sum_usd, short.charged_usd, short.adds_up], ["0.001722", "0.001", true]);
  const text = explanationText(short);
  assertStringIncludes(text, "  Held: 0.001 USD, of which 0 USD were released\n");
  assertStringIncludes(text, "  Beyond what was held: 0.000722 USD, paid by the house\n");
});

Deno.test("explainRequest() says why nothing was charged", async () => {
  const cases: [Entry, string][] = [
    [
      freeEntryOf({ ending: "refused", status: 429, upstream: "", attempts: 0 }),
      "it was refused before any upstream was asked",
    ],
    [freeEntryOf({ ending: "failed" }), "it failed, and what fails is not charged"],
    [freeEntryOf({ ending: "lost" }), "the process that served it ended before the request did"],
    [freeEntryOf({ ending: "abandoned", status: 499 }), "the client left before anything of the answer reached it"],
    [
      entryOf({ ending: "done", source: "none", tokens: tokensOf() }),
      "it repeated a request under the same Idempotency-Key",
    ],
    [entryOf({ sheet: { ...SHEET, factor: "0" } }), "its tokens cost nothing at these prices"],
  ];
  for (const [entry, why] of cases) {
    const explanation = await explain(entry);
    assertEquals([explanation.charged_usd, explanation.why_free], ["0", why]);
    assertStringIncludes(explanationText(explanation), `  Charged: 0 USD (${why})\n`);
  }
  assertEquals((await explain(entryOf())).why_free, null);
});

Deno.test("explainRequest() shows what is billed beside tokens, and sizes that were not asked for", async () => {
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

Deno.test("explainRequest() says where an entry does not add up", async () => {
  const explanation = await explain({ ...entryOf(), cost: 1n });
  assertEquals(explanation.adds_up, false);
  assertStringIncludes(explanationText(explanation), "This does not add up");
});

Deno.test("explainRequest() finds a request by its id with or without req_, and one that is still running", async () => {
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
    assertStringIncludes(explanationText(running), "State:        running; 0.005 USD are held for it\n");
  }
});
