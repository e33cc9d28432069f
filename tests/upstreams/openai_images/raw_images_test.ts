import { assert, assertEquals } from "@std/assert";
import { endIdleWorkers } from "../../../lib/images/codec_pool.ts";
import { IMAGE_FORMATS } from "../../../lib/images/types.ts";
import { imageSizeBase64 } from "../../../lib/billing/image_size.ts";
import { readImage } from "../../../lib/upstreams/openai_images/raw_images.ts";
import { events, failure, imageCall, images, PNG, png, readAll, startHost, WEBP } from "./host.ts";

/** An image with slashes in its base64. */
const SLASHES = png(255);

Deno.test("An image of another format than the one asked for is converted", async () => {
  for (const format of IMAGE_FORMATS) {
    await using host = startHost(() => images(PNG));
    const { feed } = host.create({ format, compression: 50 }, { images: { own_format: true } });
    const [event, ...others] = await readAll(await feed);
    assert(event?.type === "image", format);
    assertEquals(imageSizeBase64(event.base64), { width: 1, height: 1, type: format });
    assertEquals(others, []);
  }
  await endIdleWorkers();
});

Deno.test("An image in any pieces is the same image", async () => {
  const signal = new AbortController().signal;
  const { request } = imageCall({});
  assert(SLASHES.includes("/") && SLASHES.endsWith("="));
  const texts = [
    SLASHES,
    SLASHES.replace(/=+$/, ""),
    SLASHES.replaceAll("/", "\\/").replaceAll("=", "\\u003D") + "\\n",
  ];
  for (const text of texts) {
    for (let at = 0; at <= text.length; at++) {
      const raw = [text.slice(0, at), text.slice(at, at + 2), text.slice(at + 2)];
      assertEquals(await readImage(raw, { request, signal }), SLASHES, `${text}, ${at}`);
    }
  }
});

Deno.test("a text that is not base64 is not an image, in any pieces", async () => {
  const signal = new AbortController().signal;
  const { request } = imageCall({});
  const texts = [
    `${SLASHES}=`,
    `${SLASHES}A`,
    `=${SLASHES}`,
    `${SLASHES}\\`,
    SLASHES.replace("/", "\\\\/"),
    SLASHES.slice(1),
    `${SLASHES}QUJD`,
  ];
  for (const text of texts) {
    for (let at = Math.max(0, text.length - 8); at <= text.length; at++) {
      const error = await failure(readImage([text.slice(0, at), text.slice(at)], { request, signal }));
      assertEquals([error.kind, error.final], ["upstream", true], `${text}, ${at}`);
    }
  }
});

Deno.test("Previews are converted too", async () => {
  await using host = startHost(() =>
    events(
      { type: "image_generation.partial_image", b64_json: PNG, partial_image_index: 0 },
      { type: "image_generation.completed", b64_json: PNG },
    )
  );
  const all = await readAll(await host.create({ format: "jpeg", stream: true, partialImages: 1 }).feed);
  assertEquals(all.map(({ type }) => type), ["partial", "image"]);
  for (const event of all) assert(event.type !== "failed" && imageSizeBase64(event.base64)?.type === "jpeg");
  await endIdleWorkers();
});

Deno.test("An image that cannot be converted fails, as the upstream's fault", async () => {
  await using host = startHost(() => images(WEBP));
  const [event] = await readAll(await host.create({ format: "png" }).feed);
  assert(event?.type === "failed");
  assertEquals([event.error.kind, event.error.final], ["upstream", true]);
  await endIdleWorkers();
});
