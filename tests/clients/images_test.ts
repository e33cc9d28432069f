import { assert, assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { imageSizeBase64 } from "../../lib/billing/image_size.ts";
import type OpenAI from "openai-7";
import { png } from "../images/image_files.ts";
import { skipInQuick } from "../support/skip.ts";
import { sharedConfigured } from "./configured.ts";
import { caught, testOpenai } from "./sdks.ts";

const gateway = sharedConfigured();

const model = "acme/painter";
/** The smallest size: larger ones take longer to paint, as do other prompts. */
const SIZE = "1024x640";

function image(width = 1024, height = 1024, name = "image.png"): File {
  return new File([png(width, height)], name, { type: "image/png" });
}

/** The SDK asks `fetch` for its class of responses before its first form; without one it leaves a response unread. */
function withForms(client: OpenAI): OpenAI {
  const ask: typeof fetch = (input, init) => fetch(input, init);
  return client.withOptions({ fetch: Object.assign(ask, { Response }) });
}

/** Type and size of an image, such as `png 1024x1024`. */
function shape(base64: string | undefined): string {
  const size = imageSizeBase64(base64 ?? "");
  return `${size?.type} ${size?.width}x${size?.height}`;
}

testOpenai("images.generate returns images and their cost, once per idempotency key", gateway, async (
  { client, Sdk },
) => {
  const headers = { "Idempotency-Key": crypto.randomUUID() };
  const send = (prompt: string) =>
    client.images.generate({ model, prompt, size: SIZE, n: 2 }, { headers }).withResponse();
  const { data: answer, response } = await send("Stripes");
  assertEquals(answer.data?.map(({ b64_json }) => shape(b64_json)), [`png ${SIZE}`, `png ${SIZE}`]);
  assertNotEquals(answer.data?.[0]?.b64_json, answer.data?.[1]?.b64_json);
  assertEquals([answer.size as string, answer.quality], [SIZE, "high"]);
  assertEquals([answer.usage?.input_tokens, answer.usage?.output_tokens, answer.usage?.total_tokens], [
    2,
    7_648,
    7_650,
  ]);
  assertEquals(response.headers.get("x-sluice-cost"), "0.0344175");
  const again = await send("Stripes");
  assertEquals(again.data.data, answer.data);
  assertEquals(again.response.headers.get("x-sluice-idempotent-replay"), "true");
  assertMatch((await caught(Sdk.BadRequestError, send("Patterns"))).message, /used for another request/);
});

/** Painting an image takes seconds. */
const testInAll: typeof testOpenai = skipInQuick("Edited and streamed images of SDKs") ? () => {} : testOpenai;

testInAll("images.edit accepts one file, several, and a mask", gateway, async ({ client }) => {
  const one = await withForms(client).images.edit({
    model,
    prompt: "Make it blue",
    image: image(1024, 640),
    output_format: "webp",
    n: 2,
  });
  assertEquals(one.data?.map(({ b64_json }) => shape(b64_json)), [`webp ${SIZE}`, `webp ${SIZE}`]);
  const several = await withForms(client).images.edit({
    model,
    prompt: "Put them side by side",
    image: [image(), image(800, 600, "other.png")],
    mask: image(1024, 1024, "mask.png"),
    quality: "low",
    size: SIZE,
  });
  const { num_input_images } = several as unknown as Record<string, unknown>;
  assertEquals([several.data?.length, num_input_images, several.quality], [1, 2, "low"]);
  assertEquals((several.usage as unknown as Record<string, unknown>).num_input_images, 2);
  assertEquals(several.usage?.output_tokens, 3_824);
});

testInAll("images are streamed with previews", gateway, async ({ client }) => {
  const generated = await Array.fromAsync(
    await client.images.generate({
      model,
      prompt: "Stripes",
      size: SIZE,
      output_format: "jpeg",
      stream: true,
      partial_images: 1,
    }),
  );
  assertEquals(generated.map(({ type }) => type), [
    "image_generation.partial_image",
    "image_generation.completed",
  ]);
  const last = generated.at(-1);
  assert(last?.type === "image_generation.completed");
  assertEquals([shape(last.b64_json), last.usage.output_tokens], [`jpeg ${SIZE}`, 3_824]);
  const edited = await Array.fromAsync(
    await withForms(client).images.edit({
      model,
      prompt: "Blur it",
      image: image(),
      size: SIZE,
      stream: true,
      partial_images: 1,
    }),
  );
  assertEquals(edited.map(({ type }) => type), ["image_edit.partial_image", "image_edit.completed"]);
});

testOpenai("an invalid image request is a BadRequestError with the reason", gateway, async ({ client, Sdk }) => {
  const cases: [() => PromiseLike<unknown>, string, RegExp][] = [
    [
      () => client.images.generate({ model, prompt: "Stripes", size: "512x512" }),
      "size",
      /nearest valid size is 816x816/,
    ],
    [
      () => client.images.generate({ model, prompt: "Stripes", background: "transparent" }),
      "background",
      /unsupported/,
    ],
    [() => client.images.generate({ model: "sluice/echo", prompt: "Stripes" }), "model", /\/v1\/chat\/completions/],
    [
      () => withForms(client).images.edit({ model, prompt: "x", image: new File(["text"], "a.png") }),
      "image",
      /neither PNG nor JPEG nor WebP/,
    ],
    [
      () => client.chat.completions.create({ model, messages: [{ role: "user", content: "Hi" }] }),
      "model",
      /\/v1\/images\//,
    ],
  ];
  for (const [ask, param, message] of cases) {
    const error = await caught(Sdk.BadRequestError, ask());
    assertEquals(error.param, param);
    assertMatch(error.message, message);
  }
});
