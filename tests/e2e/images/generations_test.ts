import { assert, assertEquals, assertMatch } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { loadTokenCounter } from "../../../lib/o200k/mod.ts";
import { errorOf, gray, painter, paintsAll, startPainted } from "./gateway.ts";
import { base64Of, pngHead } from "../../images/image_files.ts";

const PROMPT_TOKENS = (await loadTokenCounter()).count("A cat");

Deno.test("a generation returns exactly the members of an image result", async () => {
  await using gateway = startPainted({ p: painter(paintsAll) });
  const response = await gateway.generate();
  assertEquals(response.status, 200);
  assertEquals(await response.json(), {
    created: 1_790_000_000,
    data: [{ b64_json: gray({ width: 1536, height: 1024 }), index: 0 }],
    model: "acme/paint",
    size: "auto",
    quality: "low",
    usage: {
      input_tokens: PROMPT_TOKENS,
      input_tokens_details: { text_tokens: PROMPT_TOKENS },
      output_tokens: 5_488,
      total_tokens: PROMPT_TOKENS + 5_488,
    },
  });
  assertEquals(response.headers.get("content-type"), "application/json");
  assertEquals(response.headers.get("x-sluice-image-size"), "1536x1024");
  assertMatch(response.headers.get("x-request-id") ?? "", /^req_/);
});

Deno.test("the upstream gets every parameter, as sent or as default", async () => {
  const upstream = painter(paintsAll);
  await using gateway = startPainted({ p: upstream });
  await (await gateway.generate()).body?.cancel();
  await (await gateway.generate({
    prompt: "A \ud800 dog",
    n: 2,
    size: "1024x1536",
    quality: "auto",
    output_format: "webp",
    output_compression: 40,
    background: "opaque",
    moderation: "low",
    style: "vivid",
    response_format: "b64_json",
    user: "u-1",
    seed: 7,
    partial_images: 0,
    stream: false,
  })).body?.cancel();
  const [plain, full] = upstream.calls;
  const { request } = plain ?? {};
  assertEquals(plain?.target.model, "paint-1");
  assertEquals(plain?.model.id, "acme/paint");
  assertEquals(request, {
    kind: "generation",
    model: "acme/paint",
    prompt: "A cat",
    quality: "low",
    n: 1,
    requestedSize: "auto",
    size: { width: 1536, height: 1024 },
    format: "png",
    background: "auto",
    stream: false,
    partialImages: 0,
    images: [],
    rest: {},
  });
  assertEquals(full?.request, {
    kind: "generation",
    model: "acme/paint",
    prompt: "A \ufffd dog",
    quality: "auto",
    n: 2,
    requestedSize: "1024x1536",
    size: { width: 1024, height: 1536 },
    format: "webp",
    compression: 40,
    background: "opaque",
    stream: false,
    partialImages: 0,
    user: "u-1",
    images: [],
    rest: { moderation: "low", style: "vivid", seed: 7 },
  });
});

const BAD: readonly [what: string, members: JsonObject, param: string, message: RegExp][] = [
  ["no model", { model: undefined }, "model", /Missing required parameter: model/],
  ["a model that is no text", { model: 3 }, "model", /Invalid value for model/],
  ["no prompt", { prompt: undefined }, "prompt", /Missing required parameter: prompt/],
  ["an empty prompt", { prompt: "" }, "prompt", /Invalid value for prompt/],
  ["a prompt of 32,001 characters", { prompt: "x".repeat(32_001) }, "prompt", /at most 32000 characters/],
  ["no quality", { quality: undefined }, "quality", /Missing required parameter: quality/],
  ["quality hd", { quality: "hd" }, "quality", /"auto", "low", "medium", "high"/],
  ["n 0", { n: 0 }, "n", /at least 1/],
  ["n 11", { n: 11 }, "n", /at most 10/],
  ["a size that is no text", { size: 1024 }, "size", /Expected a string/],
  ["size 256x256", { size: "256x256" }, "size", /from 655,360 to 8,294,400 pixels/],
  ["output_format gif", { output_format: "gif" }, "output_format", /"png", "jpeg", "webp"/],
  ["output_compression 101", { output_compression: 101 }, "output_compression", /at most 100/],
  ["background transparent", { background: "transparent" }, "background", /"transparent" is unsupported/],
  ["another background", { background: "red" }, "background", /Expected "opaque" or "auto"$/],
  ["response_format url", { response_format: "url" }, "response_format", /base64, URLs are not supported/],
  ["moderation high", { moderation: "high" }, "moderation", /"auto", "low"/],
  ["style drawn", { style: "drawn" }, "style", /"vivid", "natural"/],
  ["a user that is no text", { user: 5 }, "user", /Expected a string/],
  ["stream as text", { stream: "true" }, "stream", /Expected true or false/],
  ["partial_images 4", { stream: true, partial_images: 4 }, "partial_images", /at most 3/],
  ["partial_images in a whole answer", { partial_images: 1 }, "partial_images", /require stream: true/],
];

Deno.test("an invalid parameter is a 400 that names it, and reaches no upstream", async (t) => {
  const upstream = painter(paintsAll);
  await using gateway = startPainted({ p: upstream });
  for (const [what, members, param, message] of BAD) {
    await t.step(what, async () => {
      const error = await errorOf(await gateway.generate(members));
      assertEquals([error.status, error.param], [400, param], error.message);
      assertMatch(error.message, message);
    });
  }
  assertEquals(upstream.calls, []);
});

Deno.test("null means the default, and the longest prompt is accepted", async () => {
  const upstream = painter(paintsAll);
  await using gateway = startPainted({ p: upstream });
  const absent = { n: null, size: null, output_format: null, background: null, stream: null, partial_images: null };
  const response = await gateway.generate({ ...absent, prompt: "😀".repeat(32_000), moderation: null, user: null });
  assertEquals(response.status, 200);
  assertEquals((await response.json()).size, "auto");
  assertEquals(upstream.calls[0]?.request.rest, {});
});

Deno.test("the operator's default quality applies to requests without one", async () => {
  const upstream = painter(paintsAll);
  await using gateway = startPainted({ p: upstream }, { images: { default_quality: "medium" } });
  assertEquals((await (await gateway.generate({ quality: undefined })).json()).quality, "medium");
  assertEquals((await (await gateway.generate({ quality: "high" })).json()).quality, "high");
  assertEquals(upstream.calls.map(({ request }) => request.quality), ["medium", "high"]);
});

Deno.test("unrequested images are neither delivered nor charged", async () => {
  const upstream = painter(({ request: { size } }) =>
    [0, 0, 1, -1, 0.5, 7].map((index) => ({ type: "image", index, base64: gray(size) }))
  );
  await using gateway = startPainted({ p: upstream });
  const { data, usage } = await (await gateway.generate({ size: "1024x1024" })).json();
  assertEquals([data.length, usage.output_tokens], [1, 7_024]);
});

Deno.test("a request that takes too long is a 504 and cancels the upstream", async () => {
  const upstream = painter(() => [new Promise(() => {})]);
  await using gateway = startPainted({ p: upstream }, { images: { total_ms: 50 } });
  const response = await gateway.generate();
  assertEquals((await errorOf(response)).status, 504);
  assertEquals(response.headers.get("x-should-retry"), "false");
  assertEquals(upstream.calls[0]?.signal.aborted, true);
});

Deno.test("output_compression for PNG is dropped and named", async () => {
  const upstream = painter(paintsAll);
  await using gateway = startPainted({ p: upstream });
  const cases: [JsonObject, string | null, number | undefined][] = [
    [{ output_compression: 50 }, "output_compression", undefined],
    [{ output_compression: 100, output_format: "png" }, null, undefined],
    [{ output_compression: 50, output_format: "jpeg" }, null, 50],
    [{ output_compression: 0, output_format: "webp" }, null, 0],
  ];
  for (const [members, dropped, compression] of cases) {
    const response = await gateway.generate(members);
    await response.body?.cancel();
    assertEquals(response.headers.get("x-sluice-dropped"), dropped);
    assertEquals(upstream.calls.at(-1)?.request.compression, compression);
  }
});

Deno.test("a model of another kind is a 400 that names the right endpoint", async () => {
  await using gateway = startPainted({ p: painter(paintsAll) });
  const messages = [{ role: "user", content: "Hi" }];
  const version = { headers: { "anthropic-version": "2023-06-01" } };
  const model = "acme/paint";
  const cases: [Promise<Response>, RegExp][] = [
    [gateway.generate({ model: "sluice/echo", quality: undefined }), /\/v1\/chat\/completions.*\/v1\/responses/],
    [gateway.post("/v1/chat/completions", { model, messages }), /\/v1\/images\/generations.*\/v1\/images\/edits/],
    [gateway.post("/v1/responses", { model, input: "Hi" }), /\/v1\/images\/generations/],
    [gateway.post("/anthropic/v1/messages", { model, messages, max_tokens: 9 }, version), /\/v1\/images\/generations/],
    [gateway.post("/anthropic/v1/messages/count_tokens", { model, messages }, version), /\/v1\/images\/generations/],
  ];
  for (const [pending, message] of cases) {
    const response = await pending;
    assertEquals(response.status, 400);
    assertMatch((await response.json()).error.message, message);
  }
  assertEquals((await errorOf(await gateway.generate({ model: "acme/none" }))).status, 404);
});

Deno.test("a group without the endpoint or the model gets a 403", async () => {
  for (const group of [{ endpoints: ["chat"] }, { models: ["sluice/*"] }]) {
    await using gateway = startPainted({ p: painter(paintsAll) }, { groups: { default: group } });
    assertEquals((await errorOf(await gateway.generate())).status, 403);
  }
  await using gateway = startPainted({ p: painter(paintsAll) });
  assertEquals((await errorOf(await gateway.generate({}, { headers: { authorization: "" } }))).status, 401);
});

Deno.test("ten large images are streamed in pieces, never as one text", async () => {
  const base64 = base64Of(pngHead(1024, 1024)) + "A".repeat(8_000_000);
  const upstream = painter(({ request }) =>
    Array.from({ length: request.n }, (_, index) => ({ type: "image", index, base64 }))
  );
  await using gateway = startPainted({ p: upstream });
  const response = await gateway.generate({ n: 10 });
  let length = 0;
  let longest = 0;
  let head = "";
  for await (const piece of response.body ?? []) {
    if (length === 0) head = new TextDecoder().decode(piece.subarray(0, 60));
    length += piece.length;
    longest = Math.max(longest, piece.length);
  }
  assert(head.startsWith('{"created":1790000000,"data":[{"b64_json":"iVBORw0KGgo'), head);
  assert(length > 10 * base64.length && length < 10 * base64.length + 1000);
  assert(longest < 4_000_000, String(longest));
});
