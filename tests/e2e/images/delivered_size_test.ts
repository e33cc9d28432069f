import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { readSse } from "../../support/sse.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { loadTokenCounter } from "../../../lib/o200k/mod.ts";
import { auditLedger } from "../../../lib/billing/reports/audit.ts";
import { explainRequest } from "../../../lib/billing/reports/explain.ts";
import { explanationText } from "../../../lib/billing/reports/explain_text.ts";
import type { KeptEntry } from "../../../lib/store/ledger.ts";
import { formOf, gray, PRICES } from "./gateway.ts";
import { startBoth } from "./host.ts";
import { base64Of, join, jpegHead, png, pngHead } from "../../images/image_files.ts";

const PROMPT = (await loadTokenCounter()).count("A cat");
const INPUT_IMAGE = { pricing: { ...PRICES, input_image: "0.0000012" } };
const BUDGET = { groups: { default: { key_budget: { usd: "5", period: "total" } } } };

const square = gray({ width: 1024, height: 1024 });
const wide = gray({ width: 1536, height: 1024 });
const large = gray({ width: 2048, height: 2048 });
const small = gray({ width: 512, height: 512 });
/** Tokens of these. */
const TOKENS = { square: 7_024, wide: 5_488, large: 14_272, small: 5_212, dearest: 23_719 };

type Both = ReturnType<typeof startBoth>;

/** A whole answer of a host, with its usage behind the images, as OpenAI sends it. */
function answer(images: readonly string[], imageTokens?: unknown): Response {
  const usage = { input_tokens: 900, input_tokens_details: { text_tokens: 9, image_tokens: imageTokens } };
  return Response.json({ created: 1, data: images.map((b64_json) => ({ b64_json })), usage });
}

/** A host's streamed answer: each image with the usage it reports for uploads. */
function streamed(kind: "generation" | "edit", images: readonly (readonly [base64: string, reported?: number])[]) {
  const event = (type: string, members: JsonObject) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
  const body = images.map(([b64_json, image_tokens]) =>
    event(`image_${kind}.partial_image`, { b64_json, partial_image_index: 0 }) +
    event(`image_${kind}.completed`, {
      b64_json,
      ...(image_tokens !== undefined && { usage: { input_tokens_details: { text_tokens: 9, image_tokens } } }),
    })
  ).join("");
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

async function completed(response: Response): Promise<JsonObject[]> {
  return readSse(await response.text()).filter(({ event }) => event?.endsWith(".completed")).map(({ data }) => data);
}

/** The only entry, after it was explained and the whole ledger audited. */
async function audited({ gateway: { gateway } }: Both): Promise<{ entry: KeptEntry; text: string }> {
  await gateway.ledger.flush();
  const { ledger } = gateway.store;
  const [entry, ...others] = await ledger.entries({ after: 0, limit: 10 });
  assertEquals([entry === undefined, others.length], [false, 0]);
  assertEquals((await auditLedger(ledger)).differences, []);
  const explanation = await explainRequest(ledger, entry?.id ?? "");
  if (entry === undefined || explanation?.state !== "ended") throw new Error("Cannot explain the request");
  assertEquals(explanation.adds_up, true);
  return { entry, text: explanationText(explanation) };
}

/** Sizes from log lines about differing sizes. */
function sizes({ gateway: { logs } }: ReturnType<typeof startBoth>): unknown[] {
  return logs.filter(({ event }) => event === "image_size_mismatch").map(({ level, upstream, asked, delivered }) => [
    level,
    upstream,
    asked,
    delivered,
  ]);
}

Deno.test("images are billed by their delivered size, and an unexpected size is reported", async (t) => {
  const cases: [what: string, images: string[], size: string, tokens: number][] = [
    ["as asked for", [square], "1024x1024", TOKENS.square],
    ["cheaper", [wide], "1536x1024", TOKENS.wide],
    ["dearer", [large], "2048x2048", TOKENS.large],
    ["smaller than any that can be asked for", [small], "512x512", TOKENS.small],
    ["several sizes", [square, large, wide], "1024x1024, 2048x2048, 1536x1024", 7_024 + 14_272 + 5_488],
    ["several alike", [wide, wide], "1536x1024", 2 * 5_488],
    // Its header claims more than there is, and nothing is decoded.
    ["a wrong header", [base64Of(pngHead(2 ** 31 - 1, 2 ** 31 - 1))], "2147483647x2147483647", TOKENS.dearest],
  ];
  for (const [what, images, size, tokens] of cases) {
    await t.step(what, async () => {
      await using both = startBoth(() => answer(images));
      const response = await both.gateway.generate({ n: images.length, size: "1024x1024" });
      const { usage, size: requested } = await response.json();
      assertEquals([requested, response.headers.get("x-sluice-image-size")], ["1024x1024", size]);
      assertEquals([usage.input_tokens, usage.output_tokens], [PROMPT, tokens]);
      const { entry, text } = await audited(both);
      assertEquals([entry.tokens.prompt, entry.tokens.completion, entry.images], [PROMPT, tokens, images.length]);
      assertEquals(entry.cost, BigInt(PROMPT) * 750_000n + BigInt(tokens) * 4_500_000n);
      const isAsked = what === "as asked for";
      const delivered = images.length > 1 && !size.includes(",") ? images.map(() => size).join(", ") : size;
      assertEquals(sizes(both), isAsked ? [] : [["warn", "host", "1024x1024", delivered]]);
      assertEquals(text.includes("Image sizes:"), !isAsked);
    });
  }
});

Deno.test("an image without a readable size counts as failed, and is free", async (t) => {
  const unreadable: [string, string][] = [
    ["no image", base64Of(new TextEncoder().encode("not an image at all"))],
    ["half a header", base64Of(pngHead(1024, 1024).slice(0, 18))],
    ["no frame", base64Of(join("\xff\xd8", "\xff\xd9"))],
  ];
  for (const [what, image] of unreadable) {
    await t.step(what, async () => {
      await using both = startBoth(() => answer([image, square]));
      const response = await both.gateway.generate({ n: 2, size: "1024x1024" });
      const { data, usage } = await response.json();
      assertEquals([data.length, usage.output_tokens], [1, TOKENS.square]);
      const { entry } = await audited(both);
      assertEquals([entry.ending, entry.images, entry.tokens.completion], ["partial", 1, TOKENS.square]);
    });
  }
  await using both = startBoth(() => answer([base64Of(jpegHead(0, 0))]));
  const response = await both.gateway.generate({ size: "1024x1024", output_format: "jpeg" });
  assertEquals([response.status, response.headers.get("x-sluice-cost")], [502, "0"]);
  await response.body?.cancel();
  assertEquals((await audited(both)).entry.cost, 0n);
});

Deno.test("a stream states no size in advance; each completed event states its own", async () => {
  await using both = startBoth(() => streamed("generation", [[large], [wide]]));
  const response = await both.gateway.generate({ n: 2, size: "1024x1024", stream: true });
  assertEquals(response.headers.get("x-sluice-image-size"), null);
  const events = await completed(response);
  assertEquals(events.map(({ size, sluice_image_size, usage }) => [size, sluice_image_size, usage]), [
    ["1024x1024", "2048x2048", {
      input_tokens: PROMPT,
      input_tokens_details: { text_tokens: PROMPT },
      output_tokens: TOKENS.large,
      total_tokens: PROMPT + TOKENS.large,
    }],
    ["1024x1024", "1536x1024", {
      input_tokens: 0,
      input_tokens_details: { text_tokens: 0 },
      output_tokens: TOKENS.wide,
      total_tokens: TOKENS.wide,
    }],
  ]);
  const { entry, text } = await audited(both);
  assertEquals([entry.tokens.prompt, entry.tokens.completion], [PROMPT, TOKENS.large + TOKENS.wide]);
  assertEquals(sizes(both), [["warn", "host", "1024x1024", "2048x2048, 1536x1024"]]);
  assertStringIncludes(text, "asked for 1024x1024, delivered 2048x2048, 1536x1024; billed by the size delivered");
});

Deno.test("a key with a budget pays for a larger image up to its hold, and the operator the rest", async () => {
  await using both = startBoth(() => answer([large]), { file: BUDGET });
  const response = await both.gateway.generate({ size: "1024x1024" });
  assertEquals((await response.json()).usage.output_tokens, TOKENS.large);
  const { entry } = await audited(both);
  const [held, cost] = [TOKENS.square, TOKENS.large].map((tokens) =>
    BigInt(PROMPT) * 750_000n + BigInt(tokens) * 4_500_000n
  );
  assertEquals([entry.held, entry.cost, entry.overrun], [held, held, (cost ?? 0n) - (held ?? 0n)]);
  assertMatch(response.headers.get("x-sluice-cost") ?? "", /^0\.0316/);
});

Deno.test("reported tokens of uploaded images are billed if the model has a price for them", async (t) => {
  const form = (fields = {}) =>
    formOf({ prompt: "A cat", size: "1024x1024", ...fields }, [["image", png(64, 64)], ["image", png(64, 64)]]);
  const total = (images: number, tokens: number) =>
    BigInt(PROMPT) * 750_000n + BigInt(images) * 1_200_000n + BigInt(tokens) * 4_500_000n;

  await t.step("in a whole answer, with a budget that held enough", async () => {
    await using both = startBoth(() => answer([square], 510), { row: INPUT_IMAGE, file: BUDGET });
    const { usage } = await (await both.gateway.edit(form())).json();
    assertEquals(usage, {
      input_tokens: PROMPT + 510,
      input_tokens_details: { text_tokens: PROMPT, image_tokens: 510 },
      output_tokens: TOKENS.square,
      total_tokens: PROMPT + 510 + TOKENS.square,
      num_input_images: 2,
    });
    const { entry, text } = await audited(both);
    assertEquals([entry.cost, entry.overrun], [total(510, TOKENS.square), 0n]);
    // Set aside: the size asked for, and 8,192 tokens for each of the two uploads.
    assertEquals(entry.held, total(2 * 8_192, TOKENS.square));
    assertStringIncludes(text, "  510 tokens of uploaded images x 0.0000012 USD = 0.000612 USD\n");
  });

  await t.step("once per upstream request, whose images report the same uploads", async () => {
    await using both = startBoth(() => streamed("edit", [[square, 510], [square, 510]]), { row: INPUT_IMAGE });
    const events = await completed(await both.gateway.edit(form({ n: "2", stream: "true" })));
    const details = events.map(({ usage }) => (usage as JsonObject).input_tokens_details);
    assertEquals(details, [{ text_tokens: PROMPT, image_tokens: 510 }, { text_tokens: 0 }]);
    assertEquals((await audited(both)).entry.cost, total(510, 2 * TOKENS.square));
  });

  await t.step("for each upstream request", async () => {
    const targets = [{ upstream: "host", model: "paint-1", images: { single: true } }];
    await using both = startBoth(() => answer([square], 510), { row: { ...INPUT_IMAGE, targets } });
    const { usage } = await (await both.gateway.edit(form({ n: "3" }))).json();
    assertEquals([both.received.length, usage.input_tokens_details.image_tokens], [3, 3 * 510]);
    assertEquals((await audited(both)).entry.cost, total(3 * 510, 3 * TOKENS.square));
  });

  await t.step("in a whole answer to a client that streams: with the last image", async () => {
    const targets = [{ upstream: "host", model: "paint-1", images: { whole: true } }];
    await using both = startBoth(() => answer([square, wide], 510), { row: { ...INPUT_IMAGE, targets } });
    const events = await completed(await both.gateway.edit(form({ n: "2", stream: "true" })));
    const details = events.map(({ usage }) => (usage as JsonObject).input_tokens_details);
    assertEquals(details, [{ text_tokens: PROMPT }, { text_tokens: 0, image_tokens: 510 }]);
    assertEquals(events.at(-1)?.sluice_cost, "0.0569175");
    assertEquals((await audited(both)).entry.cost, total(510, TOKENS.square + TOKENS.wide));
  });

  await t.step("not without a price, not if impossible, and not for a generation", async () => {
    const cases: [JsonObject, unknown, "edit" | "generate"][] = [
      [{}, 510, "edit"],
      [INPUT_IMAGE, -1, "edit"],
      [INPUT_IMAGE, 1e20, "edit"],
      [INPUT_IMAGE, 1.5, "edit"],
      [INPUT_IMAGE, "510", "edit"],
      [INPUT_IMAGE, 510, "generate"],
    ];
    for (const [row, reported, kind] of cases) {
      await using both = startBoth(() => answer([square], reported), { row });
      const response =
        await (kind === "edit" ? both.gateway.edit(form()) : both.gateway.generate({ size: "1024x1024" }));
      assertEquals((await response.json()).usage.input_tokens_details, { text_tokens: PROMPT });
      assertEquals((await audited(both)).entry.cost, total(0, TOKENS.square));
    }
  });

  await t.step("not if the answer breaks off after its last image, which is delivered", async () => {
    const head = `{"created":1,"data":[{"b64_json":"${square}"}],"usage":{"input_tok`;
    const cut = new Response(head, { headers: { "content-type": "application/json" } });
    await using both = startBoth(() => cut, { row: INPUT_IMAGE });
    const { data, usage } = await (await both.gateway.edit(form())).json();
    assertEquals([data.length, usage.input_tokens], [1, PROMPT]);
    assertEquals((await audited(both)).entry.cost, total(0, TOKENS.square));
  });

  await t.step("not with a failed image", async () => {
    await using both = startBoth(() => answer(["bm9uZQ=="], 510), { row: INPUT_IMAGE });
    const response = await both.gateway.edit(form());
    await response.body?.cancel();
    assertEquals([response.status, (await audited(both)).entry.cost], [502, 0n]);
  });
});
