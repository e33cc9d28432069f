import { assert, assertEquals, assertMatch } from "@std/assert";
import { GatewayError } from "../../../lib/errors.ts";
import { readSse, type StreamedEvent } from "../../support/sse.ts";
import { loadTokenCounter } from "../../../lib/o200k/mod.ts";
import { formOf, gray, painter, type Script, startPainted } from "./gateway.ts";
import { png } from "../../images/image_files.ts";

const PROMPT_TOKENS = (await loadTokenCounter()).count("A cat");
const STREAM = { stream: true, size: "1024x1024" };
const SIZE = { width: 1024, height: 1024 };
const IMAGE = gray(SIZE);

async function events(response: Response): Promise<StreamedEvent[]> {
  assertEquals(response.status, 200);
  assertMatch(response.headers.get("content-type") ?? "", /^text\/event-stream/);
  return readSse(await response.text());
}

function usage(input: number, output: number): Record<string, unknown> {
  return {
    input_tokens: input,
    input_tokens_details: { text_tokens: input },
    output_tokens: output,
    total_tokens: input + output,
  };
}

const previews: Script = ({ request }) =>
  Array.from({ length: request.n }, (_, index) => [
    ...Array.from({ length: request.partialImages }, (_, step) => ({
      type: "partial" as const,
      index,
      step,
      base64: `AA${step}`,
    })),
    { type: "image" as const, index, base64: IMAGE },
  ]).flat();

Deno.test("a stream has the official events with an index, and usage with the finished image", async () => {
  await using gateway = startPainted({ p: painter(previews) });
  const response = await gateway.generate({
    ...STREAM,
    partial_images: 2,
    output_format: "webp",
    background: "opaque",
  });
  assertEquals(response.headers.get("x-sluice-image-size"), null);
  const shared = {
    created_at: 1_790_000_000,
    size: "1024x1024",
    quality: "low",
    background: "opaque",
    output_format: "webp",
  };
  const partial = (step: number) => ({
    event: "image_generation.partial_image",
    data: {
      type: "image_generation.partial_image",
      b64_json: `AA${step}`,
      ...shared,
      partial_image_index: step,
      index: 0,
    },
  });
  assertEquals(await events(response), [
    partial(0),
    partial(1),
    {
      event: "image_generation.completed",
      data: {
        type: "image_generation.completed",
        b64_json: IMAGE,
        ...shared,
        usage: usage(PROMPT_TOKENS, 7_024),
        index: 0,
        sluice_image_size: "1024x1024",
        sluice_cost: "0.0316095",
      },
    },
  ]);
});

Deno.test("an edit's events have their own names", async () => {
  const upstream = painter(previews);
  await using gateway = startPainted({ p: upstream });
  const form = formOf({ stream: "true", partial_images: "1" }, [["image", png(1024, 1024)]]);
  const received = await events(await gateway.edit(form));
  assertEquals(received.map(({ event, data }) => [event, data.type, data.size]), [
    ["image_edit.partial_image", "image_edit.partial_image", "auto"],
    ["image_edit.completed", "image_edit.completed", "auto"],
  ]);
  assertEquals(upstream.calls[0]?.request.partialImages, 1);
  assertEquals(received.map(({ data: { num_input_images, usage } }) => [num_input_images, usage]), [
    [undefined, undefined],
    [1, { ...usage((await loadTokenCounter()).count("Blue"), 7_024), num_input_images: 1 }],
  ]);
});

Deno.test("several images are completed once each, and their usage adds up to the bill", async () => {
  const upstream = painter(() => [
    { type: "partial", index: 1, step: 0, base64: "AA" },
    { type: "image", index: 1, base64: IMAGE },
    { type: "partial", index: 1, step: 1, base64: "AA" },
    { type: "image", index: 1, base64: IMAGE },
    { type: "failed", index: 2, error: new GatewayError("invalid", "No") },
    { type: "image", index: 0, base64: IMAGE },
    { type: "image", index: 9, base64: IMAGE },
  ]);
  await using gateway = startPainted({ p: upstream });
  const received = await events(await gateway.generate({ ...STREAM, n: 3, partial_images: 1 }));
  assertEquals(received.map(({ event, data }) => [event?.split(".")[1], data.index, data.usage]), [
    ["partial_image", 1, undefined],
    ["completed", 1, usage(PROMPT_TOKENS, 7_024)],
    ["completed", 0, usage(0, 7_024)],
  ]);
});

Deno.test("a later failure is an error event without a completed event", async (t) => {
  const broken = new GatewayError("upstream", "It broke", { final: true });
  const begun = { type: "partial", index: 0, step: 0, base64: "AA" } as const;
  const cases: [string, Script, string[]][] = [
    ["thrown", () => [begun, broken], ["image_generation.partial_image", "error"]],
    ["said", () => [begun, { type: "failed", index: 0, error: broken }], ["image_generation.partial_image", "error"]],
    ["silent", () => [begun], ["image_generation.partial_image", "error"]],
    [
      "after one of two",
      () => [{ type: "image", index: 1, base64: IMAGE }, broken],
      ["image_generation.completed", "error"],
    ],
    [
      "after both",
      () => [0, 1].map((index) => ({ type: "image" as const, index, base64: IMAGE })).concat([broken] as never[]),
      ["image_generation.completed", "image_generation.completed"],
    ],
  ];
  for (const [what, script, names] of cases) {
    await t.step(what, async () => {
      const upstream = painter(script);
      await using gateway = startPainted({ p: upstream });
      const received = await events(await gateway.generate({ ...STREAM, n: 2, partial_images: 1 }));
      assertEquals(received.map(({ event }) => event), names);
      const last = received.at(-1);
      if (last?.event !== "error") return;
      const error = last.data.error as Record<string, unknown>;
      assertEquals(last.data, { type: "error", error });
      assertEquals([error.type, error.code, error.param], ["server_error", "upstream_error", null]);
      assertEquals(upstream.cancelled, 1);
    });
  }
});

Deno.test("a stream sends keep-alives while an image is made, even before the first event", async () => {
  const waits = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const upstream = painter(() => [
    ...waits.slice(0, 1).map(({ promise }) => promise),
    { type: "partial", index: 0, step: 0, base64: "AA" },
    ...waits.slice(1).map(({ promise }) => promise),
    { type: "image", index: 0, base64: IMAGE },
  ]);
  await using running = startPainted({ p: upstream }, { keep_alive_seconds: 1 });
  const response = await running.generate({ ...STREAM, partial_images: 1 });
  const decoder = new TextDecoder();
  let text = "";
  let waiting = 0;
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (text.endsWith(": keep-alive\n")) waits[waiting++]?.resolve();
  }
  assertMatch(
    text,
    /^(: keep-alive\n)+event: image_generation.partial_image\ndata: .*\n\n(: keep-alive\n)+event: image_g/,
  );
  assertEquals(text.split("event: ").length, 3);
});

Deno.test("an error after keep-alives is an event", async () => {
  const wait = Promise.withResolvers<void>();
  const upstream = painter(() => [wait.promise, new GatewayError("invalid", "Refused")]);
  await using gateway = startPainted({ p: upstream }, { keep_alive_seconds: 1 });
  const response = await gateway.generate(STREAM);
  wait.resolve();
  const [only, ...others] = await events(response);
  assertEquals([only?.event, others], ["error", []]);
  assertMatch(JSON.stringify(only?.data), /"message":"Refused","type":"invalid_request_error"/);
});

Deno.test("a stream that takes too long ends with an error", async () => {
  const upstream = painter(() => [{ type: "partial", index: 0, step: 0, base64: "AA" }, new Promise(() => {})]);
  await using gateway = startPainted({ p: upstream }, { images: { total_ms: 100 } });
  const received = await events(await gateway.generate({ ...STREAM, partial_images: 1 }));
  assertEquals(received.map(({ event }) => event), ["image_generation.partial_image", "error"]);
});

Deno.test("an upstream's base64 cannot break out of its event", async () => {
  const evil = 'AA","x":1}\n\nevent: error\ndata: {"error":{}}\n\n';
  const upstream = painter(() => [{ type: "image", index: 0, base64: evil }]);
  await using gateway = startPainted({ p: upstream });
  const [only, ...others] = await events(await gateway.generate(STREAM));
  assertEquals([only?.data.b64_json, only?.data.x, others], [evil, undefined, []]);
});

Deno.test("a large image is streamed in pieces and arrives whole", async () => {
  const large = IMAGE + "A".repeat(5_000_000);
  await using gateway = startPainted({ p: painter(() => [{ type: "image", index: 0, base64: large }]) });
  const [only] = await events(await gateway.generate(STREAM));
  assert(only?.data.b64_json === large);
});
